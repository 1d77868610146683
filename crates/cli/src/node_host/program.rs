//! Computes units of WASI programs: fetches module, folder and inputs, runs each item, packs the
//! answers.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use serde::Deserialize;
use shoal_engine::wasi::{Module, Run, Wasi};
use shoal_node::JobInfo;
use shoal_protocol::{BlobRef, ExecItems, ExecWork, Failure, Hash, LimitKind, Span};

use super::courier::Courier;
use super::keep::Keep;

/// Compiled programs, folders and lists kept at a time: jobs of one user alternate between a few.
const KEPT: usize = 8;

/// What all working threads share.
pub(super) struct Programs {
    wasi: Wasi,
    modules: Keep<Module>,
    folders: Keep<Arc<Folder>>,
    lists: Keep<Arc<Vec<Entry>>>,
    /// Where folders for programs are laid out.
    work: PathBuf,
}

/// A named blob in a JSON list.
#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    hash: String,
    size: u64,
}

impl Entry {
    fn blob(&self) -> Result<BlobRef, Failure> {
        let hash = self.hash.parse::<Hash>().map_err(|error| Failure::Fetch {
            message: format!("the list names {:?} by a wrong hash: {error}", self.name),
        })?;
        Ok(BlobRef { hash, size: self.size })
    }
}

/// A folder on disk that goes when nobody uses it any more.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Programs {
    pub(super) fn new(work: PathBuf) -> Result<Programs, String> {
        Ok(Programs {
            wasi: Wasi::new()?,
            modules: Keep::new(KEPT),
            folders: Keep::new(KEPT),
            lists: Keep::new(KEPT),
            work,
        })
    }

    /// Runs the program for each item of the span: `[u32 length] * items`, then all answers.
    pub(super) fn unit(
        &self,
        courier: &mut Courier,
        work: &ExecWork,
        info: &JobInfo,
        span: Span,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Vec<u8>, Failure> {
        let module = self.modules.get(work.module.hash, || {
            let wasm = courier.whole(work.module)?;
            self.wasi.compile(&wasm)
        })?;
        let folder = match work.folder {
            Some(list) => Some(self.folders.get(list.hash, || self.lay_out(courier, list))?),
            None => None,
        };
        let mut inputs = self.inputs(courier, work.items, span)?;
        let mut lengths = Vec::with_capacity(span.len as usize * 4);
        let mut answers = Vec::new();
        for item in span.start..span.end() {
            if cancel.load(Ordering::Relaxed) {
                return Err(Failure::Internal { message: "ended on request".into() });
            }
            let (input, stdin) = inputs.next(courier, (item - span.start) as usize)?;
            let answer = self.wasi.run(
                &module,
                Run {
                    item,
                    args: work.args.clone(),
                    env: work.env.clone(),
                    input,
                    stdin,
                    folder: folder.as_ref().map(|folder| folder.0.clone()),
                    limits: info.limits,
                    clock: work.clock,
                    cancel: cancel.clone(),
                },
            )?;
            let length = u32::try_from(answer.len()).map_err(|_| Failure::Limit {
                item: Some(item),
                which: LimitKind::Output,
                allowed: u64::from(u32::MAX),
                stderr: String::new(),
            })?;
            lengths.extend(length.to_le_bytes());
            answers.extend_from_slice(&answer);
        }
        lengths.append(&mut answers);
        Ok(lengths)
    }

    fn inputs(
        &self,
        courier: &mut Courier,
        items: ExecItems,
        span: Span,
    ) -> Result<Inputs, Failure> {
        match items {
            ExecItems::Lines { data, ends } => {
                // The end of the item before the first is where the first starts.
                let before = span.start.min(1);
                let bytes = courier.part(ends, (span.start - before) * 8..span.end() * 8)?;
                let (ends, _) = bytes.as_chunks::<8>();
                let mut ends: Vec<u64> = ends.iter().map(|end| u64::from_le_bytes(*end)).collect();
                if before == 0 {
                    ends.insert(0, 0);
                }
                let (first, last) = (ends[0], ends[ends.len() - 1]);
                let bytes = courier.part(data, first..last)?;
                Ok(Inputs::Lines { bytes, ends })
            }
            ExecItems::Files { manifest } => {
                let list = self.list(courier, manifest)?;
                if span.end() > list.len() as u64 {
                    let message = format!("items {span} of a list of {}", list.len());
                    return Err(Failure::Fetch { message });
                }
                Ok(Inputs::Files { list, start: span.start as usize })
            }
        }
    }

    fn list(&self, courier: &mut Courier, list: BlobRef) -> Result<Arc<Vec<Entry>>, Failure> {
        self.lists.get(list.hash, || {
            let bytes = courier.once(list)?;
            serde_json::from_slice(&bytes).map(Arc::new).map_err(|error| Failure::Fetch {
                message: format!("the list of files cannot be read: {error}"),
            })
        })
    }

    /// Writes the shared files of a job to a folder of this machine.
    fn lay_out(&self, courier: &mut Courier, list: BlobRef) -> Result<Arc<Folder>, Failure> {
        let entries = self.list(courier, list)?;
        let place = self.work.join(list.hash.to_string());
        let cannot = |error: std::io::Error| Failure::Internal {
            message: format!("cannot lay out the program's folder: {error}"),
        };
        fs::create_dir_all(&place).map_err(cannot)?;
        let folder = Folder(place);
        for entry in entries.iter() {
            let path = inside(&folder.0, &entry.name)?;
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(cannot)?;
            }
            fs::write(&path, courier.once(entry.blob()?)?).map_err(cannot)?;
        }
        Ok(Arc::new(folder))
    }
}

/// The inputs of one unit.
enum Inputs {
    Lines { bytes: Bytes, ends: Vec<u64> },
    Files { list: Arc<Vec<Entry>>, start: usize },
}

impl Inputs {
    /// Name and bytes of the unit's `index`-th item.
    fn next(
        &mut self,
        courier: &mut Courier,
        index: usize,
    ) -> Result<(Option<String>, Bytes), Failure> {
        match self {
            Inputs::Lines { bytes, ends } => {
                let first = ends[0];
                let (from, to) = (ends[index] - first, ends[index + 1] - first);
                if from > to || to > bytes.len() as u64 {
                    let message = "the list of line ends does not ascend".into();
                    return Err(Failure::Fetch { message });
                }
                Ok((None, bytes.slice(from as usize..to as usize)))
            }
            Inputs::Files { list, start } => {
                let entry = &list[*start + index];
                Ok((Some(entry.name.clone()), courier.once(entry.blob()?)?))
            }
        }
    }
}

/// A path below `folder`. Names come over the network: none may lead out of it.
fn inside(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let relative = Path::new(name);
    let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_plain || name.is_empty() {
        let message = format!("the folder has a file named {name:?}, which leads out of it");
        return Err(Failure::Fetch { message });
    }
    Ok(folder.join(relative))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let folder = Path::new("f");
        assert_eq!(inside(folder, "a/b.txt"), Ok(folder.join("a/b.txt")));
        for bad in ["", "/etc/passwd", "../x", "a/../../x"] {
            assert!(inside(folder, bad).is_err(), "{bad:?}");
        }
    }
}
