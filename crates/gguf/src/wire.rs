//! The head's bytes, read from the front. Nothing is copied, and nothing is made of a count before its bytes are there.

use alloc::format;
use alloc::string::String;
use bytes::Bytes;

use crate::error::ReadError;
use crate::limit::MOST_HEAD_BYTES;

pub(crate) struct Wire {
    bytes: Bytes,
    at: usize,
    /// Of the whole file.
    size: u64,
}

impl Wire {
    pub(crate) fn new(bytes: Bytes, size: u64) -> Wire {
        Wire { bytes, at: 0, size }
    }

    pub(crate) fn at(&self) -> u64 {
        self.at as u64
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The bytes read so far.
    pub(crate) fn read_so_far(&self) -> Bytes {
        self.bytes.slice(..self.at)
    }

    /// The next bytes, shared. `what` they are is said when they are missing.
    pub(crate) fn take(
        &mut self,
        count: u64,
        what: impl FnOnce() -> String,
    ) -> Result<Bytes, ReadError> {
        let end = self.at().saturating_add(count);
        if end > self.size {
            return Err(ReadError::CutOff { what: what(), end, size: self.size });
        }
        if end > MOST_HEAD_BYTES {
            let most = MOST_HEAD_BYTES;
            return Err(ReadError::TooMany { what: "bytes of head", found: end, most });
        }
        if end > self.bytes.len() as u64 {
            return Err(ReadError::Short { needed: end });
        }
        let taken = self.bytes.slice(self.at..end as usize);
        self.at = end as usize;
        Ok(taken)
    }

    pub(crate) fn u32(&mut self, what: &str) -> Result<u32, ReadError> {
        let bytes = self.take(4, || what.into())?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(crate) fn u64(&mut self, what: &str) -> Result<u64, ReadError> {
        let bytes = self.take(8, || what.into())?;
        Ok(u64_of(&bytes))
    }

    /// A string: its length, then as many bytes of UTF-8.
    pub(crate) fn text(&mut self, what: &str, most: u64) -> Result<Bytes, ReadError> {
        let at = self.at();
        let length = self.u64(what)?;
        if length > most {
            let words = format!("{what} is {length} bytes long, at most {most} are supported");
            return Err(ReadError::wire(at, words));
        }
        let bytes = self.take(length, || what.into())?;
        match core::str::from_utf8(&bytes) {
            Ok(_) => Ok(bytes),
            Err(_) => Err(ReadError::wire(at, format!("{what} is not UTF-8"))),
        }
    }
}

pub(crate) fn u64_of(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(eight)
}
