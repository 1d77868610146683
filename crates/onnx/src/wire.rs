//! The bytes of protobuf, as far as ONNX uses them. Reading shares the file's bytes and copies none; writing makes a
//! row of pieces, so that weights are never copied. What is not understood keeps its bytes.

use alloc::vec::Vec;
use bytes::Bytes;

use crate::error::ReadError;
use crate::limit::COPIED_BYTES;

/// A message's bytes, and where in the file they begin.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) bytes: Bytes,
    pub(crate) at: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Held {
    Varint(u64),
    /// Nothing in ONNX that is looked at is one of these.
    Fixed64,
    Fixed32([u8; 4]),
    Bytes(Chunk),
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) held: Held,
    /// With its tag, as it stands in the file.
    pub(crate) whole: Bytes,
    pub(crate) at: usize,
}

impl Field {
    /// The bytes of a text or a message.
    pub(crate) fn chunk(self) -> Result<Chunk, ReadError> {
        match self.held {
            Held::Bytes(chunk) => Ok(chunk),
            Held::Varint(_) | Held::Fixed64 | Held::Fixed32(_) => {
                Err(self.wrong("has a number where text or a message belongs"))
            }
        }
    }

    pub(crate) fn varint(&self) -> Result<u64, ReadError> {
        match self.held {
            Held::Varint(number) => Ok(number),
            Held::Bytes(_) | Held::Fixed64 | Held::Fixed32(_) => {
                Err(self.wrong("has bytes where a whole number belongs"))
            }
        }
    }

    pub(crate) fn fixed32(&self) -> Result<[u8; 4], ReadError> {
        match self.held {
            Held::Fixed32(bytes) => Ok(bytes),
            Held::Varint(_) | Held::Fixed64 | Held::Bytes(_) => {
                Err(self.wrong("has something else where a float belongs"))
            }
        }
    }

    fn wrong(&self, what: &'static str) -> ReadError {
        ReadError::Field { at: self.at, field: self.number, what }
    }
}

impl Chunk {
    pub(crate) fn fields(&self) -> Fields {
        Fields { rest: self.clone() }
    }

    pub(crate) fn text(&self) -> Result<&str, ReadError> {
        core::str::from_utf8(&self.bytes).map_err(|error| ReadError::Wire {
            at: self.at + error.valid_up_to(),
            what: "a name that is not UTF-8",
        })
    }
}

/// The fields of a message in their order. Ends after the first error.
pub(crate) struct Fields {
    rest: Chunk,
}

impl Fields {
    fn next_field(&mut self) -> Result<Field, ReadError> {
        let start = self.rest.clone();
        let tag = self.number()?;
        let number = u32::try_from(tag >> 3).unwrap_or(0);
        if number == 0 {
            return Err(ReadError::Wire { at: start.at, what: "a field without a number" });
        }
        let held = match tag & 7 {
            0 => Held::Varint(self.number()?),
            1 => {
                self.take(8)?;
                Held::Fixed64
            }
            2 => {
                let len = usize::try_from(self.number()?).unwrap_or(usize::MAX);
                Held::Bytes(self.take(len)?)
            }
            5 => Held::Fixed32(self.fixed()?),
            _ => return Err(ReadError::Wire { at: start.at, what: "a field of no known form" }),
        };
        let whole = start.bytes.slice(..start.bytes.len() - self.rest.bytes.len());
        Ok(Field { number, held, whole, at: start.at })
    }

    fn number(&mut self) -> Result<u64, ReadError> {
        let (number, len) =
            varint(&self.rest.bytes).map_err(|what| ReadError::Wire { at: self.rest.at, what })?;
        self.take(len)?;
        Ok(number)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let taken = self.take(N)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(&taken.bytes);
        Ok(bytes)
    }

    fn take(&mut self, len: usize) -> Result<Chunk, ReadError> {
        if len > self.rest.bytes.len() {
            return Err(ReadError::Wire { at: self.rest.at, what: "the file ends too early" });
        }
        let taken = Chunk { bytes: self.rest.bytes.split_to(len), at: self.rest.at };
        self.rest.at += len;
        Ok(taken)
    }
}

impl Iterator for Fields {
    type Item = Result<Field, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.bytes.is_empty() {
            return None;
        }
        let field = self.next_field();
        if field.is_err() {
            self.rest.bytes = Bytes::new();
        }
        Some(field)
    }
}

/// A number and how many bytes it took.
pub(crate) fn varint(bytes: &[u8]) -> Result<(u64, usize), &'static str> {
    let mut number = 0u64;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        // The tenth byte has one bit of room; what others ignore is ignored.
        number |= u64::from(byte & 0x7f).checked_shl(7 * at as u32).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok((number, at + 1));
        }
    }
    Err(if bytes.len() < 10 { "the file ends too early" } else { "a number without an end" })
}

/// Whether a file that begins with these bytes may be an ONNX model: they are fields one after another, as far as they
/// reach. Says no to pages, archives and other formats of models, and to nothing that [`crate::Model::read`] takes.
pub fn may_begin(first: &[u8]) -> bool {
    /// ONNX has used 26 so far.
    const HIGHEST: u64 = 63;
    let mut rest = first;
    while !rest.is_empty() {
        let Ok((tag, len)) = varint(rest) else { return rest.len() < 10 };
        if !(1..=HIGHEST).contains(&(tag >> 3)) {
            return false;
        }
        rest = &rest[len..];
        let held = match (tag & 7, varint(rest)) {
            (1, _) => 8,
            (5, _) => 4,
            (0, Ok((_, len))) => len as u64,
            (2, Ok((number, len))) => number.saturating_add(len as u64),
            (0 | 2, Err(_)) => return rest.len() < 10,
            _ => return false,
        };
        match usize::try_from(held).ok().and_then(|held| rest.get(held..)) {
            Some(after) => rest = after,
            None => return true,
        }
    }
    !first.is_empty()
}

/// The numbers of a packed list, one by one.
pub(crate) fn packed(chunk: &Chunk) -> impl Iterator<Item = Result<u64, ReadError>> + use<'_> {
    let mut at = 0;
    core::iter::from_fn(move || {
        let rest = chunk.bytes.get(at..).filter(|rest| !rest.is_empty())?;
        match varint(rest) {
            Ok((number, len)) => {
                at += len;
                Some(Ok(number))
            }
            Err(what) => {
                let error = ReadError::Wire { at: chunk.at + at, what };
                at = chunk.bytes.len();
                Some(Err(error))
            }
        }
    })
}

/// The bytes of a file in pieces, most of them shared with the file they come from.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    pieces: Vec<Bytes>,
    len: usize,
}

impl Pieces {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// In order. One after another they are the file.
    pub fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.pieces.iter()
    }

    /// All in one place: copies everything, weights included.
    pub fn to_bytes(&self) -> Bytes {
        let mut all = Vec::with_capacity(self.len);
        self.pieces.iter().for_each(|piece| all.extend_from_slice(piece));
        all.into()
    }
}

/// Writes a message.
#[derive(Default)]
pub(crate) struct Writer {
    done: Pieces,
    /// What is not a piece yet.
    open: Vec<u8>,
}

impl Writer {
    /// A field as it stood in another file.
    pub(crate) fn whole(&mut self, field: &Bytes) {
        if field.len() <= COPIED_BYTES {
            self.open.extend_from_slice(field);
            return;
        }
        self.close();
        self.piece(field.clone());
    }

    pub(crate) fn varint(&mut self, field: u32, number: u64) {
        self.number(u64::from(field) << 3);
        self.number(number);
    }

    pub(crate) fn text(&mut self, field: u32, text: &str) {
        self.head(field, text.len());
        self.open.extend_from_slice(text.as_bytes());
    }

    /// A message that was read.
    pub(crate) fn bytes(&mut self, field: u32, bytes: &Bytes) {
        self.head(field, bytes.len());
        self.whole(bytes);
    }

    pub(crate) fn message(&mut self, field: u32, inner: Writer) {
        let inner = inner.finish();
        self.head(field, inner.len);
        inner.pieces.iter().for_each(|piece| self.whole(piece));
    }

    pub(crate) fn finish(mut self) -> Pieces {
        self.close();
        self.done
    }

    fn head(&mut self, field: u32, len: usize) {
        self.number((u64::from(field) << 3) | 2);
        self.number(len as u64);
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.open.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.open.push(number as u8);
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            let open = core::mem::take(&mut self.open);
            self.piece(open.into());
        }
    }

    fn piece(&mut self, piece: Bytes) {
        self.done.len += piece.len();
        self.done.pieces.push(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn chunk(bytes: &[u8]) -> Chunk {
        Chunk { bytes: Bytes::copy_from_slice(bytes), at: 0 }
    }

    #[test]
    fn a_model_is_told_from_what_is_fetched_instead_of_it_by_its_first_bytes() {
        let mut model = Writer::default();
        model.varint(1, 8);
        model.text(2, "test");
        let whole = model.finish().to_bytes();
        assert!((1..=whole.len()).all(|cut| may_begin(&whole[..cut])));
        // A graph that goes on for longer than what is here of it.
        assert!(may_begin(&[8, 8, 58, 0xff, 0xff, 3, 10]));
        let safetensors = [0x40, 0x1f, 0, 0, 0, 0, 0, 0, b'{'];
        let others: [&[u8]; 8] = [
            b"",
            b"<!DOCTYPE html>",
            b"{\"error\": 404}",
            b"version https://git-lfs.github.com/spec/v1",
            b"PK\x03\x04\x00\x00",
            b"\x80\x02ctorch",
            b"GGUF\x03\x00\x00\x00",
            &safetensors,
        ];
        for other in others {
            assert!(!may_begin(other), "{other:?}");
        }
    }

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut writer = Writer::default();
            writer.varint(7, number);
            let bytes = writer.finish().to_bytes();
            let field = chunk(&bytes).fields().next().expect("a field").expect("readable");
            assert_eq!((field.number, field.varint()), (7, Ok(number)));
            assert_eq!(field.whole, bytes);
        }
    }

    #[test]
    fn torn_bytes_name_their_place() {
        let bytes = [0x0a, 2, b'x', b'y', 0x12, 200, 1, b'z'];
        let fields: Vec<_> = chunk(&bytes).fields().collect();
        assert_eq!(fields.len(), 2);
        let error = fields[1].as_ref().expect_err("200 bytes are not there");
        assert_eq!(*error, ReadError::Wire { at: 7, what: "the file ends too early" });
        let endless = [0x08; 1].iter().chain(&[0xff; 12]).copied().collect::<Vec<u8>>();
        let error = chunk(&endless).fields().next().expect("a field").expect_err("no end");
        assert_eq!(error, ReadError::Wire { at: 1, what: "a number without an end" });
        assert!(
            chunk(&[0x0b]).fields().next().expect("a field").is_err(),
            "groups are of no known form"
        );
        assert!(chunk(&[0x02, 0]).fields().next().expect("a field").is_err(), "field 0");
    }

    #[test]
    fn long_fields_are_shared() {
        let weights = Bytes::from(vec![7; 10_000]);
        let mut inner = Writer::default();
        inner.text(8, "w");
        inner.bytes(9, &weights);
        let mut outer = Writer::default();
        outer.varint(1, 8);
        outer.message(7, inner);
        let pieces = outer.finish();
        assert!(pieces.iter().any(|piece| piece.as_ptr() == weights.as_ptr()));
        let bytes = pieces.to_bytes();
        assert_eq!(bytes.len(), pieces.len());
        let graph = chunk(&bytes).fields().nth(1).expect("two").expect("readable").chunk();
        let raw = graph.expect("a message").fields().nth(1).expect("two").expect("readable");
        assert_eq!(raw.chunk().expect("bytes").bytes, weights);
    }

    #[test]
    fn packed_numbers_end_at_the_first_that_is_torn() {
        let list = chunk(&[1, 0xac, 2, 0x80]);
        let read: Vec<_> = packed(&list).collect();
        assert_eq!(read[..2], [Ok(1), Ok(300)]);
        assert!(read[2].is_err() && read.len() == 3);
    }
}
