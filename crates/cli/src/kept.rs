//! What `shoal exec --resume FILE` keeps of runs that are done: each by a hash of all that its answer depends on, so that
//! only what is missing or changed runs again.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};

use crate::client::{Sink, Source};
use crate::fail::Fail;

/// What a file of kept runs begins with.
const HEAD: &[u8] = b"shoal exec --resume 1\n";
/// A run: its key, the length of what is kept of it, and that.
const KEY: usize = 32;
const RUN_HEAD: usize = KEY + 8;

/// Of one run: all that its answer depends on.
pub(crate) type Key = [u8; KEY];

/// Runs that are done, in a file that grows as they end.
pub(crate) struct Kept {
    path: PathBuf,
    runs: HashMap<Key, Vec<u8>>,
    file: Option<File>,
}

impl Kept {
    /// Reads what is there. The end of a file whose writer was killed may be torn, and is left out.
    pub(crate) fn read(path: &Path) -> Result<Kept, Fail> {
        let mut bytes = Vec::new();
        match File::open(path) {
            Ok(mut file) => {
                file.read_to_end(&mut bytes).map_err(|error| Fail::reading(path, &error))?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Fail::reading(path, &error)),
        }
        let torn = bytes.len() < HEAD.len() && HEAD.starts_with(&bytes);
        let Some(mut rest) = bytes.strip_prefix(HEAD).or(torn.then_some(&[])) else {
            let path = path.display();
            return Err(Fail::input(format!(
                "{path} was not written by --resume: name a new file, or one that --resume wrote"
            )));
        };
        let mut runs = HashMap::new();
        while let Some((key, kept, after)) = first(rest) {
            runs.insert(key, kept.to_vec());
            rest = after;
        }
        Ok(Kept { path: path.to_owned(), runs, file: None })
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&[u8]> {
        self.runs.get(key).map(Vec::as_slice)
    }

    /// From here on runs are added; only those of these keys stay.
    pub(crate) fn begin(&mut self, wanted: &[Key]) -> Result<(), Fail> {
        let mut sink = Sink::create(&self.path)?;
        sink.write(HEAD)?;
        let mut runs = HashMap::new();
        for key in wanted {
            let Some(kept) = self.runs.remove(key) else { continue };
            sink.write(&run(key, &kept))?;
            runs.insert(*key, kept);
        }
        sink.finish()?;
        self.runs = runs;
        let file = OpenOptions::new().append(true).open(&self.path);
        self.file = Some(file.map_err(|error| Fail::writing(&self.path, &error))?);
        Ok(())
    }

    pub(crate) fn add(&mut self, key: &Key, kept: &[u8]) -> Result<(), Fail> {
        let Some(file) = &mut self.file else { return Ok(()) };
        // In one piece, so that only the last run can be torn.
        let written = file.write_all(&run(key, kept));
        written.map_err(|error| Fail::writing(&self.path, &error))
    }
}

fn run(key: &Key, kept: &[u8]) -> Vec<u8> {
    [&key[..], &(kept.len() as u64).to_le_bytes(), kept].concat()
}

/// The first run, and what follows it.
fn first(bytes: &[u8]) -> Option<(Key, &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(RUN_HEAD)?;
    let (key, length) = head.split_at(KEY);
    let length = u64::from_le_bytes(length.try_into().ok()?);
    let (kept, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((key.try_into().ok()?, kept, rest))
}

/// What all runs of a command have in common.
pub(crate) struct Common(Hasher);

impl Common {
    pub(crate) fn of(
        program: &[u8],
        words: &[impl AsRef<str>],
        shared: &[(String, Source)],
    ) -> Result<Common, Fail> {
        let mut hasher = Hasher::new();
        part(&mut hasher, program);
        for word in words {
            part(&mut hasher, word.as_ref().as_bytes());
        }
        for (name, source) in shared {
            part(&mut hasher, name.as_bytes());
            part(&mut hasher, hash_of(source)?.as_bytes());
        }
        Ok(Common(hasher))
    }

    /// Of the run over this input.
    pub(crate) fn key(&self, name: &str, input: Hash) -> Key {
        let mut hasher = self.0.clone();
        part(&mut hasher, name.as_bytes());
        part(&mut hasher, input.as_bytes());
        *hasher.finalize().as_bytes()
    }
}

/// With its length, so that parts do not run together.
fn part(hasher: &mut Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

pub(crate) fn hash_of(source: &Source) -> Result<Hash, Fail> {
    match source {
        Source::Memory(bytes) => Ok(blake3::hash(bytes)),
        Source::File { path, .. } => hash_file(path),
        Source::Spooled { .. } => source.hash(),
    }
}

/// Of a whole file.
pub(crate) fn hash_file(path: &Path) -> Result<Hash, Fail> {
    let mut hasher = Hasher::new();
    let hashed = File::open(path).and_then(|file| hasher.update_reader(file).map(drop));
    hashed.map_err(|error| Fail::reading(path, &error))?;
    Ok(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("shoal-kept-{name}-{}", std::process::id()))
    }

    #[test]
    fn what_is_kept_is_there_again_however_much_of_the_end_is_torn() {
        let path = path("torn");
        let _ = std::fs::remove_file(&path);
        let (one, two, old) = ([1; KEY], [2; KEY], [3; KEY]);
        let mut kept = Kept::read(&path).expect("nothing yet");
        kept.begin(&[]).expect("a new file");
        kept.add(&old, b"gone").expect("written");
        kept.add(&one, b"first").expect("written");
        let mut kept = Kept::read(&path).expect("two runs");
        assert_eq!((kept.get(&one), kept.get(&two)), (Some(&b"first"[..]), None));
        kept.begin(&[one, two]).expect("begun again");
        kept.add(&two, b"").expect("written");
        let whole = std::fs::read(&path).expect("a file");
        assert_eq!(whole.len(), HEAD.len() + 2 * RUN_HEAD + 5);
        for end in 0..=whole.len() {
            std::fs::write(&path, &whole[..end]).expect("torn");
            let kept = Kept::read(&path).expect("what is whole");
            assert_eq!(kept.get(&one).is_some(), end >= HEAD.len() + RUN_HEAD + 5);
            assert_eq!((kept.get(&two).is_some(), kept.get(&old)), (end == whole.len(), None));
        }
        std::fs::write(&path, "something else").expect("written");
        assert!(Kept::read(&path).is_err());
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn a_key_changes_with_all_that_an_answer_depends_on() {
        let key = |program: &[u8], words: &[&str], name: &str, input: &[u8]| {
            let common = Common::of(program, words, &[]).expect("nothing to read");
            common.key(name, blake3::hash(input))
        };
        let keys = [
            key(b"p", &["a", "b"], "n", b"i"),
            key(b"q", &["a", "b"], "n", b"i"),
            key(b"p", &["ab", ""], "n", b"i"),
            key(b"p", &["a", "b"], "m", b"i"),
            key(b"p", &["a", "b"], "n", b"j"),
        ];
        let all: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(all.len(), keys.len());
        assert_eq!(keys[0], key(b"p", &["a", "b"], "n", b"i"));
    }
}
