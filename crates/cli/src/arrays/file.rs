//! A file given as an array: opened, and checked against what the kernel reads.

use std::fs::{self, File, FileType};
use std::io::Read;
use std::path::Path;

use bytes::Bytes;
use shoal_engine::intake::ElementType;

use crate::client::Source;
use crate::fail::Fail;
use crate::npy::{self, Dtype};

/// The bytes of an array and, of an .npy, its shape.
pub(crate) fn open(
    path: &Path,
    raw: Option<&str>,
    name: &str,
    element: &ElementType,
) -> Result<(Source, Option<Vec<u64>>), Fail> {
    let cannot = |error: std::io::Error| Fail::reading(path, &error);
    let about = fs::metadata(path).map_err(cannot)?;
    if about.is_dir() {
        return Err(Fail::input(format!("{} is a folder: expected an array", path.display())));
    }
    if !about.is_file() && !is_pipe(about.file_type()) {
        return Err(Fail::irregular(path));
    }
    let mut file = File::open(path).map_err(cannot)?;
    if about.is_file() {
        let size = about.len();
        let header = check(path, raw, name, element, &mut file, size)?;
        let (start, shape) = header.map_or((0, None), |it| (it.data_start, Some(it.shape)));
        let source = Source::File { path: path.to_owned(), start, size: size - start };
        return Ok((source, shape));
    }
    // A pipe can be read only once, and only to its end.
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(cannot)?;
    let header = check(path, raw, name, element, &mut &bytes[..], bytes.len() as u64)?;
    let (start, shape) = header.map_or((0, None), |it| (it.data_start, Some(it.shape)));
    Ok((Source::Memory(Bytes::from(bytes).slice(start as usize..)), shape))
}

/// A pipe ends when its writer does; a device such as /dev/zero never may.
#[cfg(unix)]
fn is_pipe(kind: FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: FileType) -> bool {
    false
}

/// Whether a file's numbers are what the kernel reads; the header of an .npy.
fn check(
    path: &Path,
    raw: Option<&str>,
    name: &str,
    element: &ElementType,
    file: &mut impl Read,
    size: u64,
) -> Result<Option<npy::Header>, Fail> {
    let wanted = Dtype::of_wgsl(&element.scalar);
    if let Some(raw) = raw {
        return match wanted {
            Some(wanted) if wanted.wgsl() != raw => Err(Fail::input(format!(
                "--raw {raw} does not fit: the kernel's {name} is array<{}>",
                element.name
            ))),
            _ => Ok(None),
        };
    }
    let header = npy::read_header(file, size)
        .map_err(|error| Fail::reading(path, &error))?
        .map_err(|error| Fail::input(format!("{} {error}", path.display())))?;
    if Some(header.dtype) == wanted {
        check_rows(path, name, element, &header.shape)?;
        return Ok(Some(header));
    }
    let hint = wanted.map(|wanted| format!(": convert it with array.astype('{}')", wanted.numpy()));
    Err(Fail::input(format!(
        "{} holds {}, but the kernel's {name} is array<{}>{}",
        path.display(),
        header.dtype.numpy(),
        element.name,
        hint.unwrap_or_default()
    )))
}

/// Rows of three are no vectors of three: in memory those take four numbers each.
fn check_rows(path: &Path, name: &str, element: &ElementType, shape: &[u64]) -> Result<(), Fail> {
    let padded = element.name.starts_with("vec3<");
    if !padded || shape.last() != Some(&3) {
        return Ok(());
    }
    Err(Fail::input(format!(
        "{} has rows of 3 numbers, but the kernel's {name} is array<{}>, whose elements take 4 in \
         memory: add a column with numpy.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, 1)])",
        path.display(),
        element.name,
    )))
}
