//! Asking a server how this machine looks from outside.

use alloc::vec::Vec;
use core::net::SocketAddr;

use crate::message::{Class, Draft, Id, Message, Method, attribute};

pub fn ask(question: &Id) -> Vec<u8> {
    Draft::new(Class::Request, Method::Binding, question).plain()
}

/// The address in an answer to the question.
pub fn answer(bytes: &[u8], question: &Id) -> Option<SocketAddr> {
    let message = Message::read(bytes)?;
    let is_ours = message.class == Class::Success
        && message.method == Some(Method::Binding)
        && message.id == *question;
    if is_ours { message.address(attribute::MAPPED) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_the_address_and_others_are_not_heard() {
        let question = *b"twelve bytes";
        assert_eq!(ask(&question)[8..], question);
        let mut bytes = Vec::from([0x01, 0x01, 0, 20]);
        bytes.extend(0x2112_a442_u32.to_be_bytes());
        bytes.extend(question);
        // An attribute of another kind with padding, then 192.0.2.1:32853 as RFC 5769 masks it.
        bytes.extend([0x80, 0x22, 0, 1, b'x', 0, 0, 0]);
        bytes.extend([0x00, 0x20, 0, 8, 0, 1, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43]);
        let wanted: SocketAddr = "192.0.2.1:32853".parse().unwrap();
        assert_eq!(answer(&bytes, &question), Some(wanted));
        assert_eq!(answer(&bytes, b"another one."), None);
        for length in 0..bytes.len() {
            assert_eq!(answer(&bytes[..length], &question), None, "cut at {length}");
        }
    }
}
