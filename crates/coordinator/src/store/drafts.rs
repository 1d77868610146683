//! Blobs that programs beside the coordinator write themselves: it names a file that nobody else writes, they fill it and say
//! what its hash is. Who can do that could write any file of this folder, so the hash is believed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use shoal_protocol::{BlobRef, Hash};

use super::blobs::{Blobs, NAMELESS, nameless};

/// Sizes remembered: some tens of kilobytes.
const MAX_SIZES: usize = 4096;

/// Which sizes stored blobs have, of some of them at least. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Sizes(Arc<Mutex<BTreeSet<u64>>>);

impl Sizes {
    pub(super) fn note(&self, size: u64) {
        let mut sizes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sizes.len() >= MAX_SIZES && !sizes.contains(&size) {
            sizes.pop_first();
        }
        sizes.insert(size);
    }

    fn know(&self, size: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&size)
    }
}

impl Blobs {
    /// The name of a new draft, and whether a blob of that size may be stored already.
    pub(crate) fn draft(&self, size: u64) -> io::Result<(String, bool)> {
        Ok((nameless()?, self.sizes.know(size)))
    }

    /// Takes a draft that is complete; `None` if there is none of that name.
    pub(crate) fn adopt(&self, draft: &str, hash: Hash) -> io::Result<Option<BlobRef>> {
        let word = draft.strip_prefix(NAMELESS).unwrap_or_default();
        if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let path = self.root().join("partial").join(draft);
        // Another user's file that cannot be read is of no use, and no link leads out of the folder.
        let size = match fs::symlink_metadata(&path) {
            Ok(about) if about.is_file() => File::open(&path)?.metadata()?.len(),
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match self.find(hash)? {
            Some(_) => fs::remove_file(&path)?,
            None => self.settle(&path, hash)?,
        }
        Ok(Some(BlobRef { hash, size }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_draft_becomes_a_blob() {
        let root = std::env::temp_dir().join(format!("shoal-drafts-{}", std::process::id()));
        let blobs = Blobs::open(&root).unwrap();
        let hash = Hash(*blake3::hash(b"bytes").as_bytes());
        let (name, known) = blobs.draft(5).unwrap();
        assert!(!known);
        assert_eq!(blobs.adopt(&name, hash).unwrap(), None, "nobody wrote it");
        fs::write(root.join("secret"), "bytes").unwrap();
        for other in ["../secret", "post-../../secret", "post-", ""] {
            assert_eq!(blobs.adopt(other, hash).unwrap(), None, "{other}");
        }
        let path = root.join("partial").join(&name);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.join("secret"), &path).unwrap();
            assert_eq!(blobs.adopt(&name, hash).unwrap(), None, "a link");
            fs::remove_file(&path).unwrap();
        }
        fs::write(&path, "bytes").unwrap();
        let blob = Some(BlobRef { hash, size: 5 });
        assert_eq!(blobs.adopt(&name, hash).unwrap(), blob);
        assert_eq!(blobs.find(hash).unwrap(), blob);
        assert!(!path.exists());
        let (second, known) = blobs.draft(5).unwrap();
        assert!(known && second != name);
        fs::write(root.join("partial").join(&second), "bytes").unwrap();
        assert_eq!(blobs.adopt(&second, hash).unwrap(), blob);
        assert_eq!(fs::read_dir(root.join("partial")).unwrap().count(), 0);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn sizes_are_remembered_within_a_bound() {
        let sizes = Sizes::default();
        for size in 0..2 * MAX_SIZES as u64 {
            sizes.note(size);
        }
        assert!(!sizes.know(0) && sizes.know(2 * MAX_SIZES as u64 - 1));
        assert_eq!(sizes.0.lock().unwrap().len(), MAX_SIZES);
    }
}
