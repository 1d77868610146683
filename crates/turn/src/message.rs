//! Messages of STUN: a header of 20 bytes and attributes, each padded to four.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hmac::{Hmac, Mac};
use sha1::Sha1;

/// Names a question, so that only answers to it are heard.
pub type Id = [u8; 12];

const COOKIE: [u8; 4] = 0x2112_a442_u32.to_be_bytes();
const HEADER: usize = 20;
/// The integrity attribute: its head and an HMAC-SHA1.
const SEAL: usize = 4 + 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Method {
    Binding = 0x001,
    Allocate = 0x003,
    Refresh = 0x004,
    Send = 0x006,
    Data = 0x007,
    CreatePermission = 0x008,
    ChannelBind = 0x009,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Class {
    Request = 0x000,
    Indication = 0x010,
    Success = 0x100,
    Error = 0x110,
}

pub(crate) mod attribute {
    pub(crate) const USERNAME: u16 = 0x0006;
    pub(crate) const INTEGRITY: u16 = 0x0008;
    pub(crate) const ERROR: u16 = 0x0009;
    pub(crate) const CHANNEL: u16 = 0x000c;
    pub(crate) const LIFETIME: u16 = 0x000d;
    pub(crate) const PEER: u16 = 0x0012;
    pub(crate) const DATA: u16 = 0x0013;
    pub(crate) const REALM: u16 = 0x0014;
    pub(crate) const NONCE: u16 = 0x0015;
    pub(crate) const RELAYED: u16 = 0x0016;
    pub(crate) const TRANSPORT: u16 = 0x0019;
    pub(crate) const MAPPED: u16 = 0x0020;
}

/// A message being written.
pub(crate) struct Draft(Vec<u8>);

impl Draft {
    pub(crate) fn new(class: Class, method: Method, id: &Id) -> Draft {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend((class as u16 | method as u16).to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(COOKIE);
        bytes.extend(id);
        Draft(bytes)
    }

    /// Values that do not fit are the caller's mistake: they come from bounded places.
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Draft {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.0.extend(kind.to_be_bytes());
        self.0.extend(length.to_be_bytes());
        self.0.extend(&value[..usize::from(length)]);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.measured(0)
    }

    pub(crate) fn with_address(self, kind: u16, address: SocketAddr) -> Draft {
        let mask: Vec<u8> = self.0[4..HEADER].to_vec();
        let masked = |bytes: &[u8]| -> Vec<u8> {
            bytes.iter().zip(&mask).map(|(byte, mask)| byte ^ mask).collect()
        };
        let (family, ip) = match address.ip() {
            IpAddr::V4(ip) => (1, masked(&ip.octets())),
            IpAddr::V6(ip) => (2, masked(&ip.octets())),
        };
        let mut value = Vec::from([0, family]);
        value.extend(masked(&address.port().to_be_bytes()));
        value.extend(ip);
        self.with(kind, &value)
    }

    /// With proof that the writer has the key.
    pub(crate) fn sealed(self, key: &[u8]) -> Vec<u8> {
        let mut draft = self.measured(SEAL);
        let proof = proof(&draft.0, key);
        draft.0.extend(attribute::INTEGRITY.to_be_bytes());
        draft.0.extend(20_u16.to_be_bytes());
        draft.0.extend(proof);
        draft.0
    }

    pub(crate) fn plain(self) -> Vec<u8> {
        self.0
    }

    /// Writes the length of what is there and what follows.
    fn measured(mut self, more: usize) -> Draft {
        let length = u16::try_from(self.0.len() - HEADER + more).unwrap_or(u16::MAX);
        self.0[2..4].copy_from_slice(&length.to_be_bytes());
        self
    }
}

/// A message that came.
pub(crate) struct Message<'a> {
    pub(crate) class: Class,
    /// `None` for one that is none of ours.
    pub(crate) method: Option<Method>,
    pub(crate) id: Id,
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Message<'a>> {
        let (head, rest) = bytes.split_first_chunk::<HEADER>()?;
        let kind = u16::from_be_bytes([head[0], head[1]]);
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        if kind & 0xc000 != 0 || head[4..8] != COOKIE || length != rest.len() {
            return None;
        }
        let class = match kind & 0x110 {
            0x000 => Class::Request,
            0x010 => Class::Indication,
            0x100 => Class::Success,
            _ => Class::Error,
        };
        let methods = [
            Method::Binding,
            Method::Allocate,
            Method::Refresh,
            Method::Send,
            Method::Data,
            Method::CreatePermission,
            Method::ChannelBind,
        ];
        let method = methods.into_iter().find(|method| *method as u16 == kind & !0x110);
        let id = core::array::from_fn(|at| head[8 + at]);
        Some(Message { class, method, id, bytes })
    }

    pub(crate) fn get(&self, wanted: u16) -> Option<&'a [u8]> {
        self.place(wanted).map(|at| &self.bytes[at])
    }

    /// Where in the message the first attribute of this kind has its value.
    pub(crate) fn place(&self, wanted: u16) -> Option<core::ops::Range<usize>> {
        let mut at = HEADER;
        loop {
            let head = self.bytes.get(at..at + 4)?;
            let kind = u16::from_be_bytes([head[0], head[1]]);
            let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
            let value = at + 4..at + 4 + length;
            self.bytes.get(value.clone())?;
            if kind == wanted {
                return Some(value);
            }
            at = value.end.next_multiple_of(4);
        }
    }

    pub(crate) fn number(&self, wanted: u16) -> Option<u32> {
        let bytes = self.get(wanted)?.first_chunk::<4>()?;
        Some(u32::from_be_bytes(*bytes))
    }

    pub(crate) fn address(&self, wanted: u16) -> Option<SocketAddr> {
        let ([_, family, port0, port1], ip) = self.get(wanted)?.split_first_chunk::<4>()?;
        let mask = &self.bytes[4..HEADER];
        let port = u16::from_be_bytes([port0 ^ mask[0], port1 ^ mask[1]]);
        let plain: Vec<u8> = ip.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
        let ip: IpAddr = match family {
            1 => Ipv4Addr::from(<[u8; 4]>::try_from(plain).ok()?).into(),
            2 => Ipv6Addr::from(<[u8; 16]>::try_from(plain).ok()?).into(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, port))
    }

    /// The number and the words of an error.
    pub(crate) fn error(&self) -> Option<(u16, &'a [u8])> {
        let ([_, _, class, number], words) =
            self.get(attribute::ERROR)?.split_first_chunk::<4>()?;
        Some((u16::from(class & 7) * 100 + u16::from(*number), words))
    }

    /// Whether whoever wrote it has the key.
    pub(crate) fn is_sealed(&self, key: &[u8]) -> bool {
        let Some(value) = self.place(attribute::INTEGRITY).filter(|value| value.len() == 20) else {
            return false;
        };
        let mut signed = self.bytes[..value.start - 4].to_vec();
        let Ok(length) = u16::try_from(value.end - HEADER) else { return false };
        signed[2..4].copy_from_slice(&length.to_be_bytes());
        let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(key) else { return false };
        mac.update(&signed);
        mac.verify_slice(&self.bytes[value]).is_ok()
    }
}

fn proof(bytes: &[u8], key: &[u8]) -> [u8; 20] {
    // Keys of any length are taken.
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(key) else { return [0; 20] };
    mac.update(bytes);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let address: SocketAddr = "[2001:db8::7]:4000".parse().unwrap();
        let draft = Draft::new(Class::Request, Method::ChannelBind, b"twelve bytes")
            .with(attribute::USERNAME, b"crab")
            .with(attribute::REALM, b"shoal")
            .with_address(attribute::PEER, address);
        let bytes = draft.sealed(b"key");
        let message = Message::read(&bytes).unwrap();
        assert_eq!((message.class, message.method), (Class::Request, Some(Method::ChannelBind)));
        assert_eq!(&message.id, b"twelve bytes");
        assert_eq!(message.get(attribute::REALM), Some(&b"shoal"[..]));
        assert_eq!(message.address(attribute::PEER), Some(address));
        assert!(message.is_sealed(b"key") && !message.is_sealed(b"another"));
        for cut in 0..bytes.len() {
            assert!(Message::read(&bytes[..cut]).is_none(), "cut at {cut}");
        }
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x55;
            if let Some(message) = Message::read(&wrong) {
                assert!(!message.is_sealed(b"key"), "changed at {at}");
            }
        }
    }
}
