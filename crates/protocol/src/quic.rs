//! How frames go between a node and the coordinator by QUIC: one stream in both directions, opened by the node. First
//! comes the node's session in a greeting, and one byte back; then frames follow each other, each as long as its own
//! header says.

use alloc::vec::Vec;

use crate::frame::{FRAME_VERSION, FrameError, HEADER_BYTES};
use crate::limit::MAX_FRAME_BYTES;

/// Where the coordinator listens, as a path of its address.
pub const PATH: &str = "/node/quic";
/// The coordinator's answer to a good greeting. To any other it closes the connection.
pub const ACCEPTED: u8 = 1;
/// Longest session in a greeting. Sessions have 32.
pub const MAX_SESSION: usize = 64;

/// The first words on a stream: a length, and the session.
pub fn greeting(session: &str) -> Vec<u8> {
    let session = &session.as_bytes()[..session.len().min(MAX_SESSION)];
    let mut bytes = Vec::with_capacity(1 + session.len());
    bytes.push(session.len() as u8);
    bytes.extend_from_slice(session);
    bytes
}

/// Bytes of the whole frame that begins with this header.
pub fn frame_size(header: &[u8; HEADER_BYTES]) -> Result<usize, FrameError> {
    if header[0] != FRAME_VERSION {
        return Err(FrameError::Version(header[0]));
    }
    let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
    let size = HEADER_BYTES.saturating_add(length as usize);
    if size > MAX_FRAME_BYTES { Err(FrameError::TooLong(length)) } else { Ok(size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_a_length_and_a_session() {
        assert_eq!(greeting("abc"), b"\x03abc");
        assert_eq!(greeting(""), [0]);
        assert_eq!(greeting(&"x".repeat(300)).len(), 1 + MAX_SESSION);
    }

    #[test]
    fn a_frame_is_as_long_as_its_header_says_and_no_longer_than_any_may_be() {
        let mut header = [0; HEADER_BYTES];
        assert_eq!(frame_size(&header), Err(FrameError::Version(0)));
        header[0] = FRAME_VERSION;
        header[4] = 5;
        assert_eq!(frame_size(&header), Ok(HEADER_BYTES + 5));
        let most = (MAX_FRAME_BYTES - HEADER_BYTES) as u32;
        header[4..8].copy_from_slice(&most.to_le_bytes());
        assert_eq!(frame_size(&header), Ok(MAX_FRAME_BYTES));
        header[4..8].copy_from_slice(&(most + 1).to_le_bytes());
        assert_eq!(frame_size(&header), Err(FrameError::TooLong(most + 1)));
        header[4..8].fill(0xff);
        assert_eq!(frame_size(&header), Err(FrameError::TooLong(u32::MAX)));
    }
}
