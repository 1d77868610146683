//! Skipping what is already built: a stamp holds the hash of the inputs a build was made from.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::shell::{Outcome, root, target, write};

/// Folders that are made, not written: never an input.
const MADE: [&str; 5] = ["target", "node_modules", "dist", "generated", ".git"];

/// One build's inputs as they are now.
pub(crate) struct Stamp {
    file: PathBuf,
    inputs: String,
}

impl Stamp {
    /// `inputs` are files or folders, relative to the repository; missing ones count as empty.
    pub(crate) fn of(name: &str, inputs: &[&str]) -> Outcome<Stamp> {
        let root = root();
        let mut hasher = DefaultHasher::new();
        for input in inputs {
            let mut files = Vec::new();
            files_below(&root.join(input), &mut files)?;
            files.sort();
            for file in files {
                let bytes = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
                file.strip_prefix(&root).unwrap_or(&file).hash(&mut hasher);
                bytes.hash(&mut hasher);
            }
        }
        // A kept target folder may serve several clones, whose outputs differ.
        let mut place = DefaultHasher::new();
        root.hash(&mut place);
        let file = target().join("stamps").join(format!("{name}-{:016x}", place.finish()));
        Ok(Stamp { file, inputs: format!("{:016x}", hasher.finish()) })
    }

    /// The same inputs, for a build that differs otherwise.
    pub(crate) fn with(self, how: &str) -> Stamp {
        Stamp { inputs: format!("{} {how}", self.inputs), ..self }
    }

    /// Whether the last build was made from these inputs and its outputs are still there.
    pub(crate) fn is_fresh(&self, outputs: &[PathBuf]) -> bool {
        outputs.iter().all(|output| output.exists())
            && std::fs::read_to_string(&self.file).is_ok_and(|last| last == self.inputs)
    }

    /// Call after the build succeeded.
    pub(crate) fn keep(&self) -> Outcome {
        write(&self.file, &self.inputs)
    }
}

/// Every written file at or below `path`, in no order.
pub(crate) fn files_below(path: &Path, files: &mut Vec<PathBuf>) -> Outcome {
    if path.is_file() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    let Ok(entries) = std::fs::read_dir(path) else { return Ok(()) };
    for entry in entries {
        let entry = entry.map_err(|error| format!("{}: {error}", path.display()))?;
        let made = MADE.iter().any(|name| entry.file_name() == *name);
        if !made {
            files_below(&entry.path(), files)?;
        }
    }
    Ok(())
}
