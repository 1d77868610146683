//! The coordinator's data folder, where this node can read it: large inputs are read and large results written where they lie,
//! through no socket. The coordinator says where, and only to nodes of its operator that know the word which stands in the
//! folder. Everybody else, and whoever finds another file than was said, takes the usual way.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shoal_protocol::{BlobRef, Hash};

/// The header that proves it.
pub(super) const HEADER: &str = "x-shoal-beside";
/// Below this one exchange by HTTP is quicker than asking for a place.
pub(super) const LARGE: u64 = 256 << 10;
/// Read and written at a time: stays in a core's own cache between the file and the GPU's memory, or the hash.
const PIECE: usize = 256 << 10;
/// Files of inputs kept open by each working thread.
const MAX_OPEN: usize = 8;

/// The folder of a coordinator on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    pub folder: PathBuf,
    /// The word `beside` of its `running.json`.
    pub word: String,
}

/// Looks for it, anew whenever this node joins: each start of a coordinator has another word.
pub type Beside = Arc<dyn Fn() -> Option<Neighbour> + Send + Sync>;

impl Neighbour {
    /// Whether another process can be told of it: names of folders travel as text.
    pub(super) fn is_tellable(&self) -> bool {
        self.folder.to_str().is_some()
    }

    /// A file that the coordinator names, which is never outside of its folder.
    fn path(&self, file: &str) -> io::Result<PathBuf> {
        let inside = Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
        if file.is_empty() || !inside {
            return Err(io::Error::other(format!("{file} is not in the coordinator's folder")));
        }
        Ok(self.folder.join(file))
    }
}

/// What the coordinator says of a file.
#[derive(Deserialize)]
pub(super) struct Said {
    file: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Deserialize)]
struct Part {
    offset: u64,
    size: u64,
}

/// One thread's open files.
#[derive(Default)]
pub(super) struct Files {
    inputs: Vec<(Hash, File)>,
    buffer: Vec<u8>,
}

impl Files {
    /// Whether the blob's file is open.
    pub(super) fn has(&self, hash: &Hash) -> bool {
        self.inputs.iter().any(|(open, _)| open == hash)
    }

    pub(super) fn open(
        &mut self,
        blob: BlobRef,
        neighbour: &Neighbour,
        said: &Said,
    ) -> io::Result<()> {
        let file = File::open(neighbour.path(&said.file)?)?;
        if file.metadata()?.len() != blob.size {
            return Err(io::Error::other("the file of a blob has another size"));
        }
        if self.inputs.len() >= MAX_OPEN {
            self.inputs.remove(0);
        }
        self.inputs.push((blob.hash, file));
        Ok(())
    }

    /// Hands bytes of a blob to `each`, with their position in the range. All pieces but the last are full.
    pub(super) fn read(
        &mut self,
        hash: &Hash,
        (start, end): (u64, u64),
        each: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let found = self.inputs.iter_mut().find(|(open, _)| open == hash);
        let (_, file) = found.ok_or(io::ErrorKind::NotFound)?;
        self.buffer.resize(PIECE, 0);
        file.seek(SeekFrom::Start(start))?;
        let mut at = 0;
        while at < end - start {
            let take = (end - start - at).min(PIECE as u64) as usize;
            file.read_exact(&mut self.buffer[..take])?;
            each(at, &self.buffer[..take])?;
            at += take as u64;
        }
        Ok(())
    }
}

/// Writes a result to the place that the coordinator gave for it. Says where that is, and the hash of what was written.
///
/// The file is opened each time, which costs little beside [`LARGE`] bytes: a log that stayed open would keep its blocks when
/// the job is removed, and a disk that is full would stay so.
pub(super) fn write(neighbour: &Neighbour, said: &Said, result: &[u8]) -> io::Result<(u64, Hash)> {
    let [Part { offset, size }] = said.parts[..] else {
        return Err(io::Error::other("a result has one place"));
    };
    if size != result.len() as u64 {
        return Err(io::Error::other("the place has another size"));
    }
    // The coordinator made it. A job that is gone has none, and gets none.
    let mut file = File::options().write(true).open(neighbour.path(&said.file)?)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut hasher = blake3::Hasher::new();
    for piece in result.chunks(PIECE) {
        hasher.update(piece);
        file.write_all(piece)?;
    }
    Ok((offset, Hash(*hasher.finalize().as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> Neighbour {
        let folder = std::env::temp_dir().join(format!("shoal-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("deep")).expect("a folder");
        Neighbour { folder, word: "word".into() }
    }

    fn said(file: &str, offset: u64, size: u64) -> Said {
        Said { file: file.into(), parts: vec![Part { offset, size }] }
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let here = folder("beside-names");
        assert_eq!(here.path("deep/file").expect("inside"), here.folder.join("deep/file"));
        for name in ["", "/etc/passwd", "../file", "deep/../../file", "./file"] {
            assert!(here.path(name).is_err(), "{name}");
        }
        std::fs::remove_dir_all(&here.folder).expect("removed");
    }

    #[test]
    fn ranges_are_read_in_full_pieces() {
        let here = folder("beside-read");
        let bytes: Vec<u8> = (0..3 * PIECE as u32).map(|at| (at * 7 / 3) as u8).collect();
        std::fs::write(here.folder.join("deep/blob"), &bytes).expect("a blob");
        let hash = Hash(*blake3::hash(&bytes).as_bytes());
        let blob = BlobRef { hash, size: bytes.len() as u64 };
        let mut files = Files::default();
        let other = BlobRef { size: 5, ..blob };
        assert!(files.open(other, &here, &said("deep/blob", 0, 5)).is_err(), "another size");
        assert!(!files.has(&hash));
        files.open(blob, &here, &said("deep/blob", 0, blob.size)).expect("there");
        let (start, end) = (5, 2 * PIECE + 9);
        let mut found = Vec::new();
        let read = files.read(&hash, (start as u64, end as u64), &mut |at, piece| {
            assert_eq!(at, found.len() as u64);
            assert!(piece.len() == PIECE || found.len() + piece.len() == end - start);
            found.extend_from_slice(piece);
            Ok(())
        });
        read.expect("read");
        assert!(found == bytes[start..end]);
        let beyond = (blob.size - 1, blob.size + 1);
        assert!(files.read(&hash, beyond, &mut |_, _| Ok(())).is_err(), "the file ends");
        std::fs::remove_dir_all(&here.folder).expect("removed");
    }

    #[test]
    fn a_result_is_written_in_its_place_and_nowhere_else() {
        let here = folder("beside-write");
        let log = here.folder.join("deep/1.log");
        let result = vec![7; PIECE + 1];
        let size = result.len() as u64;
        let place = said("deep/1.log", 4, size);
        assert!(write(&here, &place, &result).is_err(), "the job is gone");
        assert!(!log.exists());
        std::fs::write(&log, vec![1; PIECE + 9]).expect("a log");
        assert!(write(&here, &said("deep/1.log", 4, size - 1), &result).is_err());
        let (offset, hash) = write(&here, &place, &result).expect("written");
        assert_eq!((offset, hash.0), (4, *blake3::hash(&result).as_bytes()));
        let found = std::fs::read(&log).expect("a log");
        assert!(
            found[..4] == [1; 4] && found[4..PIECE + 5] == result && found[PIECE + 5..] == [1; 4]
        );
        #[cfg(target_os = "linux")]
        {
            // Else its blocks would stay when the job is removed.
            let open = std::fs::read_dir("/proc/self/fd").expect("what is open").flatten();
            let mut open = open.filter_map(|file| std::fs::read_link(file.path()).ok());
            assert!(!open.any(|file| file == log), "the log stays open");
        }
        std::fs::remove_dir_all(&here.folder).expect("removed");
    }
}
