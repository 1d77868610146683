//! Messages on a stream (TCP, or TLS over it), where nothing but their own heads says where they end.

use alloc::vec::Vec;

use crate::message::{Class, Method};

/// The head of a STUN message, which its length does not count.
const HEAD: usize = 20;
/// The head of a datagram in the short form.
const SHORT_HEAD: usize = 4;

/// How a datagram in the long form begins.
const SEND: [u8; 2] = (Class::Indication as u16 | Method::Send as u16).to_be_bytes();

/// What came of a stream and is not a whole message yet. Never more than one read and the longest message,
/// which has a length of two bytes.
#[derive(Default)]
pub struct Stream(Vec<u8>);

/// No message begins so: what follows cannot be told apart any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfStep;

impl Stream {
    /// Say [`Stream::next`] until there is nothing more, then this again.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Moves the next whole message into `into`. Its length; 0 if it was too long for that, which makes it a lost
    /// one like any datagram.
    pub fn next(&mut self, into: &mut [u8]) -> Result<Option<usize>, OutOfStep> {
        let Some(head) = self.0.first_chunk() else { return Ok(None) };
        let length = length(*head)?;
        let Some(message) = self.0.get(..length) else { return Ok(None) };
        let taken = match into.get_mut(..length) {
            Some(into) => {
                into.copy_from_slice(message);
                length
            }
            None => 0,
        };
        self.0.drain(..length);
        Ok(Some(taken))
    }
}

/// Of the message that begins with this, with what fills it up to a multiple of four.
fn length(head: [u8; 4]) -> Result<usize, OutOfStep> {
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    match head[0] >> 6 {
        0 if length.is_multiple_of(4) => Ok(HEAD + length),
        1 => Ok((SHORT_HEAD + length).next_multiple_of(4)),
        _ => Err(OutOfStep),
    }
}

/// Whether a message to the server carries a datagram, which may be lost; questions may not.
pub fn is_data(message: &[u8]) -> bool {
    match message {
        [first, ..] if first >> 6 == 1 => true,
        message => message.starts_with(&SEND),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_whole_however_the_stream_is_cut() {
        let mut sent = Vec::new();
        let mut wanted = Vec::new();
        for length in [0_u16, 1, 2, 3, 4, 5, 700] {
            let mut short = [&[0x40, 0][..], &length.to_be_bytes(), &[7; 700]].concat();
            short.truncate((4 + usize::from(length)).next_multiple_of(4));
            wanted.push(short);
            let long = [&[0, 0x17][..], &(length * 4).to_be_bytes(), &[8; 2816]].concat();
            wanted.push(long[..20 + usize::from(length) * 4].to_vec());
        }
        wanted.iter().for_each(|message| sent.extend(message));
        for piece in [1, 2, 3, 5, 64, 4096] {
            let (mut stream, mut into, mut got) = (Stream::default(), [0; 3000], Vec::new());
            for piece in sent.chunks(piece) {
                stream.push(piece);
                while let Some(length) = stream.next(&mut into).unwrap() {
                    got.push(into[..length].to_vec());
                }
            }
            assert_eq!(got, wanted, "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_too_long_is_left_out_and_what_is_none_ends_it() {
        let mut stream = Stream::default();
        stream.push(&[&[0x40, 0, 0, 100][..], &[1; 100], &[0x40, 1, 0, 1, 9, 0, 0, 0]].concat());
        let mut into = [0; 50];
        assert_eq!(stream.next(&mut into), Ok(Some(0)));
        assert_eq!(stream.next(&mut into), Ok(Some(8)));
        assert_eq!((into[4], stream.next(&mut into)), (9, Ok(None)));
        for head in [[0x80, 0, 0, 0], [0xff, 0, 0, 0], [0, 1, 0, 3]] {
            let mut stream = Stream::default();
            stream.push(&head);
            assert_eq!(stream.next(&mut into), Err(OutOfStep), "{head:?}");
        }
    }
}
