//! Blobs that go again. Checkpoints of simulations are blobs in a folder of their own, so that dropping one
//! never takes anybody's upload with it.

use std::fs;
use std::io;

use shoal_protocol::Hash;

use super::blobs::Blobs;

impl Blobs {
    /// Drops a blob that is not what its name says.
    pub(crate) fn drop_torn(&self, hash: Hash) {
        tracing::warn!(%hash, "a blob is not what its name says: dropping it");
        self.remove(hash);
    }

    pub(crate) fn remove(&self, hash: Hash) {
        match fs::remove_file(self.path(hash)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // It goes at the next start.
            Err(error) => tracing::warn!(%hash, "a blob could not be removed: {error}"),
        }
    }

    /// Removes all blobs but those that are needed.
    pub(crate) fn retain(&self, is_needed: impl Fn(Hash) -> bool) -> io::Result<()> {
        for dir in fs::read_dir(self.root())? {
            let dir = dir?;
            if dir.file_name().len() != 2 {
                continue;
            }
            for entry in fs::read_dir(dir.path())? {
                let entry = entry?;
                let named = entry.file_name().to_str().and_then(|name| name.parse().ok());
                if !named.is_some_and(&is_needed) {
                    fs::remove_file(entry.path())?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_stays() {
        let root = std::env::temp_dir().join(format!("shoal-kept-{}", std::process::id()));
        let kept = Blobs::open(&root).unwrap();
        let (one, two) = (kept.put(b"one").unwrap(), kept.put(b"two").unwrap());
        kept.retain(|hash| hash == one.hash).unwrap();
        assert_eq!(kept.find(one.hash).unwrap(), Some(one));
        assert_eq!(kept.find(two.hash).unwrap(), None);
        kept.remove(one.hash);
        kept.remove(one.hash);
        assert_eq!(kept.find(one.hash).unwrap(), None);
        fs::remove_dir_all(root).unwrap();
    }
}
