//! Ed25519 keys of this machine, and checking other people's signatures.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use shoal_protocol::{Hash, PublicKey, Signature, Signed, sign};

use crate::fail::{Fail, plain};

/// Digits of a key that people are shown: enough to tell the keys of one pool apart.
const SHORT: usize = 12;
/// More of a file is not read to see that it is no key.
const MAX_BYTES: u64 = 4096;

/// A secret key. Never shown.
pub struct Key(SigningKey);

impl Key {
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    pub fn sign(&self, statement: &[u8]) -> Signature {
        Signature::new(&self.0.sign(statement).to_bytes())
    }

    /// Another key, made of this one and the place of a pool: whoever is shown it learns nothing of this
    /// key or of those for other places.
    pub(crate) fn within(&self, place: &str) -> Key {
        let mut hasher = blake3::Hasher::new_derive_key("shoal: a node's key within one pool, 1");
        hasher.update(self.0.as_bytes()).update(place.as_bytes());
        Key(SigningKey::from_bytes(hasher.finalize().as_bytes()))
    }

    /// Stands for some code.
    pub fn sign_code(&self, code: &[u8]) -> Signed {
        let statement = sign::code_statement(&hash(code));
        Signed { by: self.public(), signature: self.sign(&statement) }
    }
}

/// The BLAKE3 hash of some bytes.
pub fn hash(bytes: &[u8]) -> Hash {
    Hash(*blake3::hash(bytes).as_bytes())
}

/// Whether the key's owner signed exactly this.
pub fn is_signed(by: &PublicKey, statement: &[u8], signature: &Signature) -> bool {
    let signature = ed25519_dalek::Signature::from_bytes(&signature.bytes());
    VerifyingKey::from_bytes(&by.0)
        .is_ok_and(|key| key.verify_strict(statement, &signature).is_ok())
}

/// A key as people are shown it.
pub fn short(key: &PublicKey) -> String {
    key.to_string().chars().take(SHORT).collect()
}

/// The key in a file, made if the file is missing or empty. Anything else is somebody's, and stays as it is.
pub fn from_file(path: &Path) -> Result<Key, Fail> {
    match std::fs::metadata(path) {
        Ok(about) if !about.is_file() => {
            return Err(Fail::input(format!("{} is no regular file", path.display())));
        }
        // A key may well be in a file that nobody may write to.
        Ok(about) if about.len() > 0 => {
            let mut file = File::open(path).map_err(|error| cannot(path, &error))?;
            return read_or_make(path, &mut file, Old::Stays);
        }
        Ok(_) | Err(_) => {}
    }
    let mut file = open(path).map_err(|error| cannot(path, &error))?;
    // Two commands at once must not make two keys.
    let _ = file.lock();
    read_or_make(path, &mut file, Old::Stays)
}

/// The key in a file, if there is one.
pub fn look(path: &Path) -> Option<Key> {
    let bytes = std::fs::read(path).ok()?;
    match Content::of(&bytes) {
        Content::Seed(seed) => Some(Key(SigningKey::from_bytes(&seed))),
        Content::Nothing | Content::Old | Content::Other(_) => None,
    }
}

/// Readable by its owner only.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// What becomes of a node's identity from before it was a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Old {
    Replaced,
    Stays,
}

/// The key in an open file; made if the file is empty.
pub(crate) fn read_or_make(path: &Path, file: &mut File, old: Old) -> Result<Key, Fail> {
    let mut bytes = Vec::new();
    let read = Read::by_ref(file).take(MAX_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| cannot(path, &error))?;
    let what = match Content::of(&bytes) {
        Content::Seed(seed) => return Ok(Key(SigningKey::from_bytes(&seed))),
        Content::Nothing => return make(file).map_err(|error| cannot(path, &error)),
        Content::Old if old == Old::Replaced => {
            return make(file).map_err(|error| cannot(path, &error));
        }
        Content::Old => "an older node's identity or half a key".to_owned(),
        Content::Other(what) => what,
    };
    Err(Fail::input(format!(
        "{} contains {what}, and is unchanged; expected an Ed25519 key as 64 hexadecimal digits or 32 \
         raw bytes, or a missing or empty file, in which Shoal makes a key",
        path.display()
    )))
}

/// Chance, from the machine.
pub(crate) fn random() -> Result<[u8; 32], Fail> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Fail::world("internal", error.to_string()))?;
    Ok(bytes)
}

fn make(file: &mut File) -> io::Result<Key> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(io::Error::other)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(Hash(seed).to_string().as_bytes())?;
    Ok(Key(SigningKey::from_bytes(&seed)))
}

/// What a file is that should hold a key.
enum Content {
    Seed([u8; 32]),
    Nothing,
    /// 16 bytes or 32 digits: what a node's identity was before it was a key.
    Old,
    /// Something of somebody's, in words.
    Other(String),
}

impl Content {
    fn of(bytes: &[u8]) -> Content {
        let text = std::str::from_utf8(bytes).map(str::trim).ok();
        if let Some(Hash(seed)) = text.and_then(|text| text.parse().ok()) {
            return Content::Seed(seed);
        }
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (bytes.len(), text) {
            (0, _) => Content::Nothing,
            // No random seed looks like this.
            (_, Some(text)) if text.len() == 32 && is_hex(text) => Content::Old,
            (16, _) => Content::Old,
            (32, _) => <[u8; 32]>::try_from(bytes).map_or(Content::Nothing, Content::Seed),
            (_, Some(text)) if text.starts_with("-----BEGIN") => {
                let first = text.lines().next().unwrap_or_default();
                Content::Other(format!("another kind of key ({first})"))
            }
            (count, _) if count as u64 >= MAX_BYTES => {
                Content::Other(format!("{MAX_BYTES} bytes or more"))
            }
            (count, Some(_)) => Content::Other(format!("{count} bytes of other text")),
            (count, None) => Content::Other(format!("{count} bytes")),
        }
    }
}

fn cannot(path: &Path, error: &io::Error) -> Fail {
    let message = format!("cannot use {}: {}", path.display(), plain(error));
    Fail::world("data_folder", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_its_statement_and_key_only() {
        let key = |seed: u8| Key(SigningKey::from_bytes(&[seed; 32]));
        let signed = key(1).sign_code(b"code");
        let holds = |by: &PublicKey, code: &[u8]| {
            is_signed(by, &sign::code_statement(&hash(code)), &signed.signature)
        };
        assert!(holds(&signed.by, b"code"));
        assert!(!holds(&signed.by, b"c0de"));
        assert!(!holds(&key(2).public(), b"code"));
        assert!(!is_signed(&PublicKey([255; 32]), b"", &signed.signature));
        assert_eq!(short(&PublicKey([0xab; 32])), "abababababab");
    }

    #[test]
    fn a_file_that_holds_something_else_is_left_as_it_is() {
        let folder = std::env::temp_dir().join(format!("shoal-other-keys-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("file");
        let long = [b'x'; 5000];
        let others: [&[u8]; 7] = [
            b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA\n",
            b"notes",
            b"\n",
            &[7; 16],
            &[200; 33],
            b"0123456789abcdef0123456789abcdef",
            &long,
        ];
        for other in others {
            std::fs::write(&path, other).expect("written");
            let Err(Fail::Input { message, .. }) = from_file(&path) else { panic!("{other:?}") };
            assert!(message.contains("64 hexadecimal digits or 32 raw bytes"), "{message}");
            assert_eq!(std::fs::read(&path).expect("there"), other);
        }
        std::fs::write(&path, [200; 32]).expect("written");
        let raw = from_file(&path).expect("raw bytes").public();
        std::fs::write(&path, format!("{}\n", "c8".repeat(32))).expect("written");
        assert_eq!(from_file(&path).expect("digits").public(), raw);
        std::fs::write(&path, "").expect("written");
        let made = from_file(&path).expect("made").public();
        assert_eq!(from_file(&path).expect("kept").public(), made);
        assert!(matches!(from_file(&folder), Err(Fail::Input { .. })), "a folder is no file");
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
