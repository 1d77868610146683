//! WASI programs: the module checked, lines and files made into items.

use std::collections::HashSet;
use std::io::Read;

use serde::{Deserialize, Serialize};
use shoal_protocol::limit::MAX_UNIT_BYTES;
use shoal_protocol::{BlobRef, Dtype, ExecItems, ExecWork, Hash, Lane, Limits, Needs, Work};

use super::error::PlanError;
use super::kernel::sizing;
use super::lines::{self, Lines};
use super::{Part, blob};
use crate::intake::Intake;
use crate::json::{ExecRequest, FileRequest, LinesRequest};
use crate::store::blobs::Blobs;
use crate::store::facts::Note;

/// Runs in one unit: a quarter of a second of the smallest programs.
const MAX_RUNS: u64 = 4096;

/// Items of one job: where each ends takes 8 bytes, which have to fit in memory here and on nodes.
const MAX_ITEMS: u64 = 32_000_000;
/// Whole language runtimes fit; anything larger is no program.
const MAX_MODULE_BYTES: u64 = 256 << 20;

/// A file is read whole into the memory of the node that runs it, and devices with 4 GiB are common.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// All files of a folder are in a node's memory together.
const MAX_FOLDER_BYTES: u64 = 1 << 30;

/// An entry of the lists that travel to nodes as blobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    name: String,
    hash: String,
    size: u64,
}

/// What an exec runs over: found and checked, with nothing stored yet.
enum Source {
    Lines {
        data: BlobRef,
        found: Lines,
    },
    Files(Vec<Entry>),
    /// Without any input the program runs once, with nothing on stdin.
    Nothing,
}

pub(super) fn exec(
    request: ExecRequest,
    unit: Option<u64>,
    limits: Limits,
    intake: &dyn Intake,
    blobs: &Blobs,
) -> Result<Part, PlanError> {
    check_words(&request)?;
    let module = blob(blobs, "module", &request.module)?;
    if module.size > MAX_MODULE_BYTES {
        return Err(PlanError::ModuleTooLarge { size: module.size, most: MAX_MODULE_BYTES });
    }
    let lines_per_run = request.lines.as_ref().map(|lines| lines.per_run.unwrap_or(1));
    let source = match (&request.lines, request.files.as_slice()) {
        (Some(_), [_, ..]) => return Err(PlanError::LinesAndFiles),
        (Some(lines), []) => find_lines(lines, blobs)?,
        (None, []) => Source::Nothing,
        (None, files) => Source::Files(entries("files", files, blobs)?),
    };
    check_names(&request.folder)?;
    let folder = entries("folder", &request.folder, blobs)?;
    check_folder(&folder)?;
    let (count, largest) = (source.count(), source.largest());
    let most = (MAX_UNIT_BYTES / largest.max(1)).clamp(1, MAX_RUNS);
    let sizing = sizing(1, most, unit)?;
    intake.module(&read(blobs, module)?, limits.memory)?;
    // Nothing is refused from here on, so nothing is stored in vain.
    let items = source.store(blobs)?;
    let folder = if folder.is_empty() { None } else { Some(list(&folder, blobs)?) };
    let work = Work::Exec(ExecWork {
        module,
        args: request.args,
        env: request.env.into_iter().collect(),
        items,
        folder,
        clock: request.clock,
    });
    let note = Note { lines_per_run, ..Note::default() };
    let needs = Needs::lane(Lane::Cpu);
    Ok(Part { work, items: count, sizing, needs, dtype: Dtype::Bytes, note })
}

/// Name, hash and size of each file in a list, where it can still be read.
pub(crate) fn entries_of(blobs: &Blobs, list: &BlobRef) -> Option<Vec<(String, String, u64)>> {
    let entries = read_list(blobs, list.hash)?;
    Some(entries.into_iter().map(|entry| (entry.name, entry.hash, entry.size)).collect())
}

fn read_list(blobs: &Blobs, list: Hash) -> Option<Vec<Entry>> {
    let (mut file, _) = blobs.open_blob(list).ok()??;
    let mut text = Vec::new();
    file.read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The name of an item in a list of files, where the list can still be read.
pub(crate) fn file_name(blobs: &Blobs, manifest: Hash, item: u64) -> Option<String> {
    let entries = read_list(blobs, manifest)?;
    let entry = entries.into_iter().nth(usize::try_from(item).ok()?)?;
    Some(entry.name).filter(|name| !name.is_empty())
}

impl Source {
    fn count(&self) -> u64 {
        match self {
            Source::Lines { found, .. } => found.items,
            Source::Files(files) => files.len() as u64,
            Source::Nothing => 1,
        }
    }

    /// Bytes of the largest item.
    fn largest(&self) -> u64 {
        match self {
            Source::Lines { found, .. } => found.longest,
            Source::Files(files) => files.iter().map(|file| file.size).max().unwrap_or(0),
            Source::Nothing => 0,
        }
    }

    fn store(self, blobs: &Blobs) -> Result<ExecItems, PlanError> {
        let manifest = match self {
            Source::Lines { data, found } => {
                let ends = blobs.put(&found.ends).map_err(PlanError::Disk)?;
                return Ok(ExecItems::Lines { data, ends });
            }
            Source::Files(files) => list(&files, blobs)?,
            Source::Nothing => {
                let nothing = blobs.put(&[]).map_err(PlanError::Disk)?;
                let hash = nothing.hash.to_string();
                list(&[Entry { name: String::new(), hash, size: 0 }], blobs)?
            }
        };
        Ok(ExecItems::Files { manifest })
    }
}

fn find_lines(lines: &LinesRequest, blobs: &Blobs) -> Result<Source, PlanError> {
    let data = blob(blobs, "lines", &lines.blob)?;
    let per_run = lines.per_run.unwrap_or(1);
    if per_run == 0 {
        return Err(PlanError::Zero { what: "\"perRun\"" });
    }
    let (file, _) = open(blobs, data)?;
    let found = lines::find(file, per_run, MAX_ITEMS).map_err(PlanError::Disk)?;
    if found.items > MAX_ITEMS {
        return Err(PlanError::TooManyRuns { most: MAX_ITEMS });
    }
    if found.items == 0 {
        return Err(PlanError::EmptyInput { what: "the text of lines".into() });
    }
    if found.longest > MAX_UNIT_BYTES {
        return Err(PlanError::ItemTooLarge { bytes: found.longest });
    }
    Ok(Source::Lines { data, found })
}

fn entries(what: &str, files: &[FileRequest], blobs: &Blobs) -> Result<Vec<Entry>, PlanError> {
    let entry = |file: &FileRequest| {
        let found = blob(blobs, &format!("{what}: {}", file.name), &file.blob)?;
        let (name, size, most) = (file.name.clone(), found.size, MAX_FILE_BYTES);
        if size > most {
            return Err(PlanError::FileTooLarge { name, size, most });
        }
        Ok(Entry { name, hash: found.hash.to_string(), size })
    };
    files.iter().map(entry).collect()
}

fn list(entries: &[Entry], blobs: &Blobs) -> Result<BlobRef, PlanError> {
    let text = serde_json::to_vec(entries).map_err(|error| PlanError::Disk(error.into()))?;
    blobs.put(&text).map_err(PlanError::Disk)
}

/// Arguments and environment end at a NUL, and names of the environment at a "=".
fn check_words(request: &ExecRequest) -> Result<(), PlanError> {
    let bad = |what, text: &str| Err(PlanError::Unpassable { what, text: text.into() });
    if let Some(arg) = request.args.iter().find(|arg| arg.contains('\0')) {
        return bad("an argument", arg);
    }
    for (name, value) in &request.env {
        if name.is_empty() || name.contains(['\0', '=']) || value.contains('\0') {
            return bad("an environment variable", name);
        }
    }
    Ok(())
}

/// Names that a program can open below `/data`, and nothing else.
fn check_names(files: &[FileRequest]) -> Result<(), PlanError> {
    let mut seen = HashSet::new();
    for FileRequest { name, .. } in files {
        let plain = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !plain || name.contains(['\\', '\0']) || !seen.insert(name) {
            return Err(PlanError::FolderName { name: name.clone() });
        }
    }
    Ok(())
}

fn check_folder(files: &[Entry]) -> Result<(), PlanError> {
    let size = files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.size));
    let most = MAX_FOLDER_BYTES;
    if size > most { Err(PlanError::FolderTooLarge { size, most }) } else { Ok(()) }
}

fn read(blobs: &Blobs, blob: BlobRef) -> Result<Vec<u8>, PlanError> {
    let (mut file, size) = open(blobs, blob)?;
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.read_to_end(&mut bytes).map_err(PlanError::Disk)?;
    if blake3::hash(&bytes).as_bytes() != &blob.hash.0 {
        // Gone, so that it can be uploaded again.
        blobs.drop_torn(blob.hash);
        return Err(PlanError::Torn { what: "module".into(), hash: blob.hash });
    }
    Ok(bytes)
}

fn open(blobs: &Blobs, blob: BlobRef) -> Result<(std::fs::File, u64), PlanError> {
    let found = blobs.open_blob(blob.hash).map_err(PlanError::Disk)?;
    found.ok_or(PlanError::NoBlob { what: "blob".into(), hash: blob.hash })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_stay_inside_the_folder() {
        let file = |name: &str| FileRequest { name: name.into(), blob: String::new() };
        assert!(check_names(&[file("a/b.txt"), file("c")]).is_ok());
        for bad in ["", "/a", "../a", "a//b", "a/./b", "a\\b"] {
            assert!(check_names(&[file(bad)]).is_err(), "{bad:?}");
        }
        assert!(check_names(&[file("a"), file("a")]).is_err());
    }

    #[test]
    fn a_folder_has_to_fit_in_memory_as_a_whole() {
        let file = |size| Entry { name: "a".into(), hash: String::new(), size };
        assert!(check_folder(&[file(MAX_FOLDER_BYTES - 1), file(1)]).is_ok());
        let error = check_folder(&[file(MAX_FOLDER_BYTES), file(1)]).unwrap_err();
        assert!(error.to_string().contains("1073741825"), "{error}");
        assert!(check_folder(&[file(u64::MAX), file(1)]).is_err());
    }
}
