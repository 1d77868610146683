//! The bytes of a WebSocket as a server sees them: heads of frames in both directions, and the mask.

use std::fmt;

/// What a frame of ours may need before its payload. A client's always needs four more, its mask.
pub(super) const MOST_HEAD: usize = 10;
/// What a client's may need.
pub(super) const MOST_CLIENT_HEAD: usize = MOST_HEAD + 4;
/// Payload of pings, pongs and goodbyes, by the standard.
const MOST_CONTROL: u64 = 125;

const FINAL: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
/// Follows in two bytes, in eight.
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Continued,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Continued => 0,
            Kind::Text => 1,
            Kind::Binary => 2,
            Kind::Close => 8,
            Kind::Ping => 9,
            Kind::Pong => 10,
        }
    }

    fn from_code(code: u8) -> Option<Kind> {
        let kinds =
            [Kind::Continued, Kind::Text, Kind::Binary, Kind::Close, Kind::Ping, Kind::Pong];
        kinds.into_iter().find(|kind| kind.code() == code)
    }

    fn is_control(self) -> bool {
        self.code() >= Kind::Close.code()
    }
}

/// A client's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    /// The last of its message.
    pub(super) last: bool,
    pub(super) length: u64,
    pub(super) mask: [u8; 4],
    /// Bytes of the head itself.
    pub(super) size: usize,
}

/// Why bytes are no WebSocket frame of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadError {
    Reserved(u8),
    Kind(u8),
    NotMasked,
    /// A ping, pong or goodbye that is long or in pieces.
    Control,
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeadError::Reserved(bits) => write!(f, "reserved bits {bits:#x} are set"),
            HeadError::Kind(code) => write!(f, "there is no kind {code}"),
            HeadError::NotMasked => f.write_str("a client's frame is not masked"),
            HeadError::Control => {
                write!(f, "a control frame is in pieces or longer than {MOST_CONTROL} bytes")
            }
        }
    }
}

impl Head {
    /// The head that `bytes` begin with; `None` if they are too few to tell.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Head>, HeadError> {
        let &[first, second, ref rest @ ..] = bytes else { return Ok(None) };
        if first & RESERVED != 0 {
            return Err(HeadError::Reserved(first & RESERVED));
        }
        let kind = Kind::from_code(first & 0x0f).ok_or(HeadError::Kind(first & 0x0f))?;
        if second & MASKED == 0 {
            return Err(HeadError::NotMasked);
        }
        let (length, rest) = match second & !MASKED {
            LENGTH_16 => match rest.split_first_chunk() {
                Some((length, rest)) => (u16::from_be_bytes(*length).into(), rest),
                None => return Ok(None),
            },
            LENGTH_64 => match rest.split_first_chunk() {
                Some((length, rest)) => (u64::from_be_bytes(*length), rest),
                None => return Ok(None),
            },
            short => (short.into(), rest),
        };
        let last = first & FINAL != 0;
        if kind.is_control() && (!last || length > MOST_CONTROL) {
            return Err(HeadError::Control);
        }
        let Some((&mask, rest)) = rest.split_first_chunk() else { return Ok(None) };
        Ok(Some(Head { kind, last, length, mask, size: bytes.len() - rest.len() }))
    }
}

/// Writes a server's head right before the payload that begins at [`MOST_HEAD`], of which so much more comes from
/// elsewhere. Gives where it begins.
pub(super) fn write_head(kind: Kind, message: &mut [u8], more: usize) -> usize {
    let length = message.len() - MOST_HEAD + more;
    let mut head = [0; MOST_HEAD];
    head[0] = FINAL | kind.code();
    let size = match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < LENGTH_16 => {
            head[1] = short;
            2
        }
        (_, Ok(middling)) => {
            head[1] = LENGTH_16;
            head[2..4].copy_from_slice(&middling.to_be_bytes());
            4
        }
        (_, Err(_)) => {
            head[1] = LENGTH_64;
            head[2..].copy_from_slice(&(length as u64).to_be_bytes());
            MOST_HEAD
        }
    };
    let from = MOST_HEAD - size;
    message[from..MOST_HEAD].copy_from_slice(&head[..size]);
    from
}

/// Takes the mask off bytes that begin `at` bytes into their frame. A native node's mask is nothing, because it
/// has no proxy to protect from scripts.
pub(super) fn unmask(bytes: &mut [u8], mask: [u8; 4], at: u64) {
    /// What every machine does in one or two steps.
    const STRIDE: usize = 32;
    if mask == [0; 4] {
        return;
    }
    let turned = (at % 4) as usize;
    let pattern: [u8; STRIDE] = std::array::from_fn(|i| mask[(i + turned) % 4]);
    let mut strides = bytes.chunks_exact_mut(STRIDE);
    for stride in strides.by_ref() {
        stride.iter_mut().zip(&pattern).for_each(|(byte, mask)| *byte ^= mask);
    }
    strides.into_remainder().iter_mut().zip(&pattern).for_each(|(byte, mask)| *byte ^= mask);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(kind: Kind, payload: usize) -> Vec<u8> {
        let mut message = vec![0; MOST_HEAD + payload];
        let from = write_head(kind, &mut message, 0);
        message.split_off(from)
    }

    #[test]
    fn our_heads_are_as_short_as_can_be() {
        assert_eq!(server(Kind::Binary, 0), [0x82, 0]);
        assert_eq!(server(Kind::Pong, 125)[..2], [0x8a, 125]);
        assert_eq!(server(Kind::Binary, 126)[..4], [0x82, 126, 0, 126]);
        assert_eq!(server(Kind::Binary, 65_535)[..4], [0x82, 126, 255, 255]);
        assert_eq!(server(Kind::Binary, 65_536)[..10], [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_clients_head_is_read_once_it_is_there() {
        let bytes = [0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 2, 1, 2, 3, 4, 99];
        for some in 0..14 {
            assert_eq!(Head::read(&bytes[..some]), Ok(None));
        }
        let head =
            Head { kind: Kind::Binary, last: true, length: 65_538, mask: [1, 2, 3, 4], size: 14 };
        assert_eq!(Head::read(&bytes), Ok(Some(head)));
        assert_eq!(
            Head::read(&[0x02, 0x80, 0, 0, 0, 0]).map(|head| head.map(|h| (h.last, h.size))),
            Ok(Some((false, 6)))
        );
    }

    #[test]
    fn what_the_standard_forbids_is_refused() {
        assert_eq!(Head::read(&[0xc2, 0x80]), Err(HeadError::Reserved(0x40)));
        assert_eq!(Head::read(&[0x83, 0x80]), Err(HeadError::Kind(3)));
        assert_eq!(Head::read(&[0x82, 0x01]), Err(HeadError::NotMasked));
        assert_eq!(Head::read(&[0x09, 0x80]), Err(HeadError::Control));
        assert_eq!(Head::read(&[0x89, 0xfe, 0, 126]), Err(HeadError::Control));
    }

    #[test]
    fn masks_come_off_in_pieces_of_any_size() {
        let (plain, mask): (Vec<u8>, _) = ((0..=255).collect(), [0x12, 0x34, 0x56, 0x78]);
        let masked: Vec<u8> =
            plain.iter().enumerate().map(|(i, byte)| byte ^ mask[i % 4]).collect();
        for piece in [1, 3, 7, 32, 33, 100, 256] {
            let mut bytes = masked.clone();
            for (number, part) in bytes.chunks_mut(piece).enumerate() {
                unmask(part, mask, (number * piece) as u64);
            }
            assert_eq!(bytes, plain);
        }
    }
}
