//! NumPy's `.npy` files: a short header before plain array bytes. Reading never panics, whatever
//! the bytes.

mod literal;
pub(crate) mod npz;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Read};

use literal::{Fields, Literal};
use shoal_kinds::npy::{self, MAGIC};
use shoal_kinds::onnx::Element;

/// Longest header read. NumPy itself refuses to load more than 10,000 bytes without being told to.
const MAX_HEADER: usize = 64 << 10;

/// Element types a WGSL array can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    F16,
    F32,
    I32,
    U32,
}

impl Dtype {
    pub(crate) const ALL: [Dtype; 4] = [Dtype::F16, Dtype::F32, Dtype::I32, Dtype::U32];

    /// By its name in WGSL.
    pub(crate) fn of_wgsl(name: &str) -> Option<Dtype> {
        Dtype::ALL.into_iter().find(|dtype| dtype.wgsl() == name)
    }

    pub(crate) fn wgsl(self) -> &'static str {
        match self {
            Dtype::F16 => "f16",
            Dtype::F32 => "f32",
            Dtype::I32 => "i32",
            Dtype::U32 => "u32",
        }
    }

    /// By its name in NumPy.
    pub(crate) fn numpy(self) -> &'static str {
        match self {
            Dtype::F16 => "float16",
            Dtype::F32 => "float32",
            Dtype::I32 => "int32",
            Dtype::U32 => "uint32",
        }
    }

    pub(crate) fn bytes(self) -> u64 {
        match self {
            Dtype::F16 => 2,
            Dtype::F32 | Dtype::I32 | Dtype::U32 => 4,
        }
    }

    fn descr(self) -> &'static str {
        match self {
            Dtype::F16 => "<f2",
            Dtype::F32 => "<f4",
            Dtype::I32 => "<i4",
            Dtype::U32 => "<u4",
        }
    }
}

/// What a file holds and where its array starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
    pub(crate) data_start: u64,
}

impl Header {
    /// Bytes of the array; `None` if no file could hold them.
    pub(crate) fn data_bytes(&self) -> Option<u64> {
        self.shape.iter().try_fold(self.dtype.bytes(), |bytes, axis| bytes.checked_mul(*axis))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NpyError {
    NotNpy,
    Version(u8, u8),
    /// The file ends inside its header.
    CutHeader,
    LongHeader(u64),
    /// The header's text is no dictionary with `descr`, `fortran_order` and `shape`.
    Header(&'static str),
    BigEndian(String),
    Dtype(String),
    /// No tensor of a model is of this type.
    NoTensor(String),
    Fortran,
    /// The array's size by the header, and what the file really holds.
    Short {
        expected: u64,
        found: u64,
    },
    Trailing {
        extra: u64,
    },
    TooLarge,
}

impl fmt::Display for NpyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NpyError::NotNpy => f.write_str(
                "is not a .npy file (it does not start with \\x93NUMPY); for raw numbers pass \
                 --raw f32",
            ),
            NpyError::Version(major, minor) => {
                write!(f, "is .npy version {major}.{minor}; 1.0, 2.0 and 3.0 are supported")
            }
            NpyError::CutHeader => {
                f.write_str("is cut short: the file ends inside the .npy header")
            }
            NpyError::LongHeader(bytes) => {
                write!(f, "has an .npy header of {bytes} bytes; at most {MAX_HEADER} are read")
            }
            NpyError::Header(what) => write!(f, "has a broken .npy header: {what}"),
            NpyError::BigEndian(descr) => write!(
                f,
                "holds big-endian numbers ('{descr}'); save it with array.astype('<{}')",
                descr.get(1..).unwrap_or_default()
            ),
            NpyError::Dtype(descr) => {
                write!(f, "holds {}; kernels read ", describe(descr))?;
                f.write_str("float32, int32, uint32 and float16: convert it with array.astype(…)")
            }
            NpyError::NoTensor(descr) => {
                write!(
                    f,
                    "holds {}, which no model takes: convert it with array.astype(…)",
                    describe(descr)
                )
            }
            NpyError::Fortran => f.write_str(
                "is in Fortran order; save it in C order with numpy.ascontiguousarray(array)",
            ),
            NpyError::Short { expected, found } => write!(
                f,
                "is cut short: its header promises {expected} bytes of data, the file has {found}"
            ),
            NpyError::Trailing { extra } => {
                write!(f, "has {extra} bytes after the array its header describes")
            }
            NpyError::TooLarge => f.write_str("has a shape larger than any file"),
        }
    }
}

/// Reads the header of a file of `file_bytes` bytes and checks that the array fills the rest
/// exactly.
pub(crate) fn read_header(
    file: &mut impl Read,
    file_bytes: u64,
) -> io::Result<Result<Header, NpyError>> {
    let mut head = Vec::new();
    file.take(MAX_HEADER as u64 + 12).read_to_end(&mut head)?;
    Ok(parse(&head).and_then(|header| fits(header, file_bytes)))
}

fn fits(header: Header, file_bytes: u64) -> Result<Header, NpyError> {
    let expected = header.data_bytes().ok_or(NpyError::TooLarge)?;
    let found = file_bytes.saturating_sub(header.data_start);
    if found < expected {
        return Err(NpyError::Short { expected, found });
    }
    if found > expected {
        return Err(NpyError::Trailing { extra: found - expected });
    }
    Ok(header)
}

/// Reads a header from the first bytes of a file.
pub(crate) fn parse(head: &[u8]) -> Result<Header, NpyError> {
    let (fields, data_start) = fields(head)?;
    Ok(Header { dtype: dtype(fields.descr)?, shape: fields.shape, data_start })
}

/// A tensor for a model: its type, its shape and its bytes.
pub(crate) fn tensor(file: &[u8]) -> Result<(Element, Vec<u64>, &[u8]), NpyError> {
    let (element, shape, start) = tensor_head(file, file.len() as u64)?;
    Ok((element, shape, file.get(start as usize..).unwrap_or_default()))
}

/// A type, a shape, and where the bytes begin.
pub(crate) type TensorHead = (Element, Vec<u64>, u64);

/// Reads the head of a file with a tensor: its type, its shape and where its bytes begin.
pub(crate) fn read_tensor_head(
    file: &mut impl Read,
    file_bytes: u64,
) -> io::Result<Result<TensorHead, NpyError>> {
    let mut head = Vec::new();
    file.take(MAX_HEADER as u64 + 12).read_to_end(&mut head)?;
    Ok(tensor_head(&head, file_bytes))
}

fn tensor_head(head: &[u8], file_bytes: u64) -> Result<TensorHead, NpyError> {
    let (fields, start) = fields(head)?;
    let none = || NpyError::NoTensor(fields.descr.into());
    let (order, kind) = fields.descr.split_at_checked(1).ok_or_else(none)?;
    let is_it = |element: &&Element| element.numpy().get(1..) == Some(kind);
    let element = *Element::ALL.iter().find(is_it).ok_or_else(none)?;
    if order == ">" && element.bytes() > 1 {
        return Err(NpyError::BigEndian(fields.descr.into()));
    }
    let size = |size: u64, axis: &u64| size.checked_mul(*axis);
    let expected = fields.shape.iter().try_fold(element.bytes() as u64, size);
    let expected = expected.ok_or(NpyError::TooLarge)?;
    let found = file_bytes.saturating_sub(start);
    if found < expected {
        return Err(NpyError::Short { expected, found });
    }
    if found > expected {
        return Err(NpyError::Trailing { extra: found - expected });
    }
    Ok((element, fields.shape, start))
}

/// What a header says, and where the array starts.
fn fields(head: &[u8]) -> Result<(Fields<'_>, u64), NpyError> {
    let rest = head.strip_prefix(MAGIC).ok_or(NpyError::NotNpy)?;
    let (&[major, minor], rest) = rest.split_first_chunk().ok_or(NpyError::CutHeader)?;
    let (len, rest) = match (major, minor) {
        (1, 0) => {
            let (len, rest) = rest.split_first_chunk().ok_or(NpyError::CutHeader)?;
            (u64::from(u16::from_le_bytes(*len)), rest)
        }
        (2 | 3, 0) => {
            let (len, rest) = rest.split_first_chunk().ok_or(NpyError::CutHeader)?;
            (u64::from(u32::from_le_bytes(*len)), rest)
        }
        _ => return Err(NpyError::Version(major, minor)),
    };
    if len > MAX_HEADER as u64 {
        return Err(NpyError::LongHeader(len));
    }
    let text = rest.get(..len as usize).ok_or(NpyError::CutHeader)?;
    let data_start = (head.len() - rest.len()) as u64 + len;
    let text = std::str::from_utf8(text).map_err(|_| NpyError::Header("it is not text"))?;
    let fields = Literal::new(text).dictionary()?;
    if fields.fortran && fields.shape.len() > 1 {
        return Err(NpyError::Fortran);
    }
    Ok((fields, data_start))
}

/// The bytes of a header for an array in C order; the array's bytes follow directly.
pub(crate) fn header(dtype: Dtype, shape: &[u64]) -> Vec<u8> {
    npy::head(dtype.descr(), shape)
}

fn dtype(descr: &str) -> Result<Dtype, NpyError> {
    let (order, kind) = descr.split_at_checked(1).unwrap_or(("", descr));
    match order {
        ">" => Err(NpyError::BigEndian(descr.into())),
        "<" | "=" | "|" => Dtype::ALL
            .into_iter()
            .find(|dtype| dtype.descr().get(1..) == Some(kind))
            .ok_or_else(|| NpyError::Dtype(descr.into())),
        _ => Err(NpyError::Dtype(descr.into())),
    }
}

/// A dtype as people call it.
fn describe(descr: &str) -> String {
    let name = match descr.get(1..).unwrap_or_default() {
        "f8" => "float64",
        "i8" => "int64",
        "u8" => "uint64",
        "i2" => "int16",
        "u2" => "uint16",
        "i1" => "int8",
        "u1" => "uint8",
        "b1" => "bool",
        "c8" => "complex64",
        "c16" => "complex128",
        _ => return format!("numbers of type '{}'", descr.chars().take(40).collect::<String>()),
    };
    format!("{name} ('{descr}')")
}
