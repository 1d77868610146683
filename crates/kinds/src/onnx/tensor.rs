//! Tensors as they travel with requests and answers: a head that names them, then their bytes as they lie in memory.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

use super::sight::Sight;

/// Numbers of 16 bits, for whoever computes with others.
pub use half::f16;

/// Tensors of one request or answer: no model has nearly as many inputs or outputs.
pub const MOST_TENSORS: usize = 256;
/// Dimensions of a tensor.
pub const MOST_RANK: usize = 16;
/// Bytes of names and dimensions of one request.
const MOST_HEAD: usize = 1 << 16;
/// Bytes of each tensor begin at a multiple of this, so that an engine reads numbers where they lie.
const ALIGNED: usize = 16;
/// Bytes of the head's length.
const LENGTH: usize = 4;

macro_rules! elements {
    ($($name:ident $bytes:literal $text:literal $wire:literal $numpy:literal;)*) => {
        /// What a tensor is made of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Element { $($name,)* }

        impl Element {
            pub const ALL: &[Element] = &[$(Element::$name,)*];

            pub fn bytes(self) -> usize {
                match self { $(Element::$name => $bytes,)* }
            }

            /// As numpy calls it.
            pub fn name(self) -> &'static str {
                match self { $(Element::$name => $text,)* }
            }

            /// As the Open Inference Protocol calls it.
            pub fn wire_name(self) -> &'static str {
                match self { $(Element::$name => $wire,)* }
            }

            /// As the head of an `.npy` file says it, in little-endian.
            pub fn numpy(self) -> &'static str {
                match self { $(Element::$name => $numpy,)* }
            }
        }
    };
}

elements! {
    F32 4 "float32" "FP32" "<f4";
    F16 2 "float16" "FP16" "<f2";
    F64 8 "float64" "FP64" "<f8";
    U8 1 "uint8" "UINT8" "|u1";
    I8 1 "int8" "INT8" "|i1";
    U16 2 "uint16" "UINT16" "<u2";
    I16 2 "int16" "INT16" "<i2";
    U32 4 "uint32" "UINT32" "<u4";
    I32 4 "int32" "INT32" "<i4";
    U64 8 "uint64" "UINT64" "<u8";
    I64 8 "int64" "INT64" "<i8";
    Bool 1 "bool" "BOOL" "|b1";
}

impl Element {
    pub fn of_wire(name: &str) -> Option<Element> {
        Element::ALL.iter().copied().find(|element| element.wire_name() == name)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A tensor's name, type and shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub name: String,
    pub element: Element,
    pub dims: Vec<u64>,
}

impl Head {
    /// Bytes of the tensor; none if no memory could hold them.
    pub fn bytes(&self) -> Option<usize> {
        let mut all = self.element.bytes();
        if self.dims.len() > MOST_RANK {
            return None;
        }
        for dim in &self.dims {
            all = all.checked_mul(usize::try_from(*dim).ok()?)?;
        }
        isize::try_from(all).ok().map(|_| all)
    }
}

/// A tensor and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor<'a> {
    pub head: Head,
    /// Little-endian, the last dimension first.
    pub bytes: &'a [u8],
}

/// Why bytes are no tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorError {
    /// The head is cut off, too long, or none.
    Head,
    TooMany,
    /// The tensor with this name has fewer bytes than its shape says, or more are left over.
    Length {
        name: String,
    },
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorError::Head => f.write_str("these bytes are not tensors"),
            TensorError::TooMany => write!(f, "there are more than {MOST_TENSORS} tensors"),
            TensorError::Length { name } => {
                write!(
                    f,
                    "the tensor {name:?} does not have the number of bytes that its shape needs"
                )
            }
        }
    }
}

impl core::error::Error for TensorError {}

/// All tensors in one row of bytes.
pub fn pack(tensors: &[Tensor<'_>]) -> Vec<u8> {
    pack_asked(tensors, &Sight::default())
}

/// The same in memory that is there.
pub fn pack_into(tensors: &[Tensor<'_>], memory: &mut Vec<u8>) {
    *memory = packing(tensors, &[], core::mem::take(memory)).packed();
}

/// The same for a request that has pictures, or wants boxes: that is said behind the names, where who does not know of it
/// reads no further.
pub fn pack_asked(tensors: &[Tensor<'_>], sight: &Sight) -> Vec<u8> {
    pack_behind(tensors, &asked_behind(sight))
}

/// What is asked beside the tensors, as it stands behind their names.
pub(super) fn asked_behind(sight: &Sight) -> Vec<u8> {
    let asked = (!sight.is_nothing()).then(|| postcard::to_allocvec(sight).unwrap_or_default());
    asked.unwrap_or_default()
}

/// With these bytes behind the names.
pub(super) fn pack_behind(tensors: &[Tensor<'_>], behind: &[u8]) -> Vec<u8> {
    packing(tensors, behind, Vec::new()).packed()
}

fn packing(tensors: &[Tensor<'_>], behind: &[u8], memory: Vec<u8>) -> Packing {
    let heads: Vec<&Head> = tensors.iter().map(|tensor| &tensor.head).collect();
    let all = tensors.iter().map(|tensor| tensor.bytes.len()).sum();
    let mut packing = Packing::new(&heads, behind, (all, memory));
    for tensor in tensors {
        packing.begin();
        packing.add(tensor.bytes);
    }
    packing
}

/// Tensors that are packed one after another, each in pieces.
pub(super) struct Packing {
    bytes: Vec<u8>,
}

impl Packing {
    /// With room for so many bytes of tensors, in this memory.
    pub(super) fn new(heads: &[&Head], behind: &[u8], (room, memory): (usize, Vec<u8>)) -> Packing {
        let mut head = postcard::to_allocvec(heads).unwrap_or_default();
        head.extend(behind);
        let all = (heads.len() + 1) * ALIGNED + room;
        let mut bytes = memory;
        bytes.clear();
        bytes.reserve(LENGTH + head.len() + all);
        bytes.extend((head.len() as u32).to_le_bytes());
        bytes.extend(head);
        Packing { bytes }
    }

    /// The next tensor begins.
    pub(super) fn begin(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNED), 0);
    }

    /// More of the tensor that was begun last.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn packed(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads what [`pack`] wrote; bytes are not copied.
pub fn unpack(bytes: &[u8]) -> Result<Vec<Tensor<'_>>, TensorError> {
    unpack_asked(bytes).map(|(tensors, _)| tensors)
}

/// Reads what [`pack_asked`] wrote.
pub fn unpack_asked(bytes: &[u8]) -> Result<(Vec<Tensor<'_>>, Sight), TensorError> {
    let (tensors, behind) = unpack_behind(bytes)?;
    let sight = match behind {
        [] => Sight::default(),
        behind => postcard::from_bytes(behind).map_err(|_| TensorError::Head)?,
    };
    Ok((tensors, sight))
}

/// Reads what [`pack_behind`] wrote.
pub(super) fn unpack_behind(bytes: &[u8]) -> Result<(Vec<Tensor<'_>>, &[u8]), TensorError> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>().ok_or(TensorError::Head)?;
    let length = u32::from_le_bytes(*length) as usize;
    let head = rest.get(..length).filter(|_| length <= MOST_HEAD).ok_or(TensorError::Head)?;
    let (heads, behind): (Vec<Head>, _) =
        postcard::take_from_bytes(head).map_err(|_| TensorError::Head)?;
    if heads.len() > MOST_TENSORS {
        return Err(TensorError::TooMany);
    }
    let mut at = LENGTH + length;
    let mut tensors = Vec::with_capacity(heads.len());
    for head in heads {
        let wrong = || TensorError::Length { name: head.name.clone() };
        let from = at.next_multiple_of(ALIGNED);
        let until = head.bytes().and_then(|long| from.checked_add(long)).ok_or_else(wrong)?;
        let found = bytes.get(from..until).ok_or_else(wrong)?;
        at = until;
        tensors.push(Tensor { head, bytes: found });
    }
    if at < bytes.len() {
        let name = tensors.last().map(|tensor| tensor.head.name.clone()).unwrap_or_default();
        return Err(TensorError::Length { name });
    }
    Ok((tensors, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(name: &str, element: Element, dims: &[u64]) -> Head {
        Head { name: name.into(), element, dims: dims.into() }
    }

    #[test]
    fn what_is_packed_is_unpacked_and_numbers_lie_where_an_engine_reads_them() {
        let a = Tensor { head: head("a", Element::U8, &[3]), bytes: &[1, 2, 3] };
        let b = Tensor { head: head("longer", Element::F32, &[2, 1]), bytes: &[7; 8] };
        let none = Tensor { head: head("none", Element::I64, &[0, 4]), bytes: &[] };
        let all = [a, b, none];
        let packed = pack(&all);
        let again = unpack(&packed).expect("they are tensors");
        assert_eq!(again, all);
        for tensor in &again {
            let at = tensor.bytes.as_ptr() as usize - packed.as_ptr() as usize;
            assert_eq!(at % ALIGNED, 0);
        }
    }

    #[test]
    fn pictures_and_boxes_are_said_behind_the_names() {
        use crate::onnx::sight::{Boxes, Fit, Normalize, Pictured};
        let x = Tensor { head: head("x", Element::U8, &[1, 1, 1, 3]), bytes: &[1, 2, 3] };
        let (fit, normalize) = (Fit::Letterbox, Normalize::Imagenet);
        let pictures = alloc::vec![Pictured { name: "x".into(), fit, normalize }];
        let boxes = Some(Boxes { score: 0.5, overlap: 0.25, classes: Some(80) });
        let sight = Sight { pictures, boxes };
        let all = [x];
        let packed = pack_asked(&all, &sight);
        assert_eq!(unpack_asked(&packed), Ok((all.to_vec(), sight)));
        assert_eq!(unpack(&packed), Ok(all.to_vec()));
        for cut in 0..packed.len() {
            assert!(unpack_asked(&packed[..cut]).is_err(), "{cut}");
        }
        assert_eq!(unpack_asked(&pack(&all)), Ok((all.to_vec(), Sight::default())));
    }

    #[test]
    fn memory_is_used_again() {
        let one = [Tensor { head: head("x", Element::U8, &[3]), bytes: &[1, 2, 3] }];
        let two = [Tensor { head: head("y", Element::U8, &[1]), bytes: &[4] }];
        let mut memory = Vec::new();
        pack_into(&one, &mut memory);
        let (at, first) = (memory.as_ptr(), memory.clone());
        pack_into(&two, &mut memory);
        assert_eq!((memory.as_ptr(), &memory), (at, &pack(&two)));
        assert_eq!(first, pack(&one));
    }

    #[test]
    fn bytes_of_strangers_are_refused_with_the_tensors_name() {
        let packed = pack(&[Tensor { head: head("x", Element::F32, &[2]), bytes: &[0; 8] }]);
        for cut in 0..packed.len() {
            assert!(unpack(&packed[..cut]).is_err(), "{cut}");
        }
        let long = [packed.as_slice(), &[0]].concat();
        assert_eq!(unpack(&long), Err(TensorError::Length { name: "x".into() }));
        let huge = Tensor { head: head("huge", Element::F64, &[u64::MAX, 2]), bytes: &[] };
        assert_eq!(unpack(&pack(&[huge])), Err(TensorError::Length { name: "huge".into() }));
        let many = Tensor { head: head("deep", Element::U8, &[1; 40]), bytes: &[0] };
        assert!(unpack(&pack(&[many])).is_err());
    }
}
