//! A file given as an array: opened, and checked against what the kernel reads.

use std::fs::{self, File, FileType};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use shoal_engine::intake::ElementType;

use crate::client::{Source, Spooled};
use crate::fail::Fail;
use crate::npy::{self, Dtype, npz};

/// Packed arrays are unpacked in memory: larger ones have to be saved by `numpy.savez`, which does not pack them.
const MAX_UNPACKED: u64 = 8 << 30;

/// What comes through a pipe waits in memory up to here, and in a temporary file beyond.
const MAX_PIPED: u64 = 64 << 20;

/// The bytes of an array and, of an .npy, its shape. `-` is stdin, `FILE.npz:NAME` an array of several.
pub(crate) fn open(
    path: &Path,
    raw: Option<&str>,
    name: &str,
    element: &ElementType,
) -> Result<(Source, Option<Vec<u64>>), Fail> {
    let cannot = |error: std::io::Error| Fail::reading(path, &error);
    if path.as_os_str() == "-" {
        return piped(path, raw, name, element, std::io::stdin().lock());
    }
    if raw.is_none()
        && let Some((archive, array)) = in_archive(path)
    {
        return packed(path, &archive, array, name, element);
    }
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
    piped(path, raw, name, element, file)
}

/// A pipe can be read only once, and only to its end.
fn piped(
    path: &Path,
    raw: Option<&str>,
    name: &str,
    element: &ElementType,
    from: impl Read,
) -> Result<(Source, Option<Vec<u64>>), Fail> {
    match Spooled::read(from, MAX_PIPED, |error| Fail::reading(path, &error))? {
        Spooled::Memory(bytes) => in_memory(path, raw, name, element, bytes),
        Spooled::File { head, spool, size } => {
            let header = check(path, raw, name, element, &mut &head[..], size)?;
            let (start, shape) = header.map_or((0, None), |it| (it.data_start, Some(it.shape)));
            let size = size.saturating_sub(start);
            Ok((Source::Spooled { spool: Arc::new(spool), start, size }, shape))
        }
    }
}

fn in_memory(
    path: &Path,
    raw: Option<&str>,
    name: &str,
    element: &ElementType,
    bytes: Vec<u8>,
) -> Result<(Source, Option<Vec<u64>>), Fail> {
    let header = check(path, raw, name, element, &mut &bytes[..], bytes.len() as u64)?;
    let (start, shape) = header.map_or((0, None), |it| (it.data_start, Some(it.shape)));
    Ok((Source::Memory(Bytes::from(bytes).slice(start as usize..)), shape))
}

/// An archive, and which of its arrays, if the path says that it is one.
fn in_archive(path: &Path) -> Option<(PathBuf, Option<&str>)> {
    let is_npz = |path: &Path| path.extension().is_some_and(|end| end.eq_ignore_ascii_case("npz"));
    if is_npz(path) {
        return Some((path.to_owned(), None));
    }
    let text = path.to_str()?;
    // Names of arrays may hold colons, and so may those of folders.
    let mut colons = text.match_indices(':').map(|(at, _)| text.split_at(at));
    let (archive, array) = colons.find(|(archive, _)| is_npz(Path::new(archive)))?;
    (!path.exists()).then(|| (PathBuf::from(archive), array.strip_prefix(':')))
}

/// An array of an archive: the only one, or the one with that name.
fn packed(
    path: &Path,
    archive: &Path,
    array: Option<&str>,
    name: &str,
    element: &ElementType,
) -> Result<(Source, Option<Vec<u64>>), Fail> {
    let cannot = |error: std::io::Error| Fail::reading(archive, &error);
    let mut file = File::open(archive).map_err(cannot)?;
    let entries = npz::list(&mut file).map_err(cannot)?;
    let found = match (array, entries.as_slice()) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(array), all) => all.iter().find(|entry| entry.name == array),
    };
    let Some(entry) = found else {
        let (place, names) = (archive.display(), entries.iter().map(|entry| entry.name.as_str()));
        let names: Vec<_> = names.collect();
        return Err(Fail::input(match (names.as_slice(), array) {
            ([], _) => format!("{place} holds no arrays"),
            (names, Some(array)) => {
                format!("{place} holds no array {array}: it has {}", names.join(", "))
            }
            ([first, ..], None) => format!(
                "{place} holds {} arrays ({}): name one, such as {place}:{first}",
                names.len(),
                names.join(", ")
            ),
        }));
    };
    match entry.content(&mut file, MAX_UNPACKED).map_err(cannot)? {
        npz::Content::Unpacked(bytes) => in_memory(path, None, name, element, bytes),
        npz::Content::Plain { start, size } => {
            file.seek(SeekFrom::Start(start)).map_err(cannot)?;
            let header = check(path, None, name, element, &mut file.take(size), size)?;
            let (head, shape) = header.map_or((0, None), |it| (it.data_start, Some(it.shape)));
            let (start, size) = (start + head, size.saturating_sub(head));
            Ok((Source::File { path: archive.to_owned(), start, size }, shape))
        }
    }
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
