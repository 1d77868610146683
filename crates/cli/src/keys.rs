//! Ed25519 keys of this machine, and checking other people's signatures.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use shoal_protocol::{Hash, PublicKey, Signature, Signed, sign};

use crate::fail::{Fail, plain};

/// The submitter's key in the data folder.
const SUBMITTER: &str = "submitter.key";
/// The coordinator's, if one was started from the folder.
const COORDINATOR: &str = "coordinator.key";
/// Digits of a key that people are shown: enough to tell the keys of one pool apart.
const SHORT: usize = 12;

/// A secret key. Never shown.
pub(crate) struct Key(SigningKey);

impl Key {
    pub(crate) fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    pub(crate) fn sign(&self, statement: &[u8]) -> Signature {
        Signature::new(&self.0.sign(statement).to_bytes())
    }

    /// Stands for some code.
    pub(crate) fn sign_code(&self, code: &[u8]) -> Signed {
        let statement = sign::code_statement(&hash(code));
        Signed { by: self.public(), signature: self.sign(&statement) }
    }
}

/// The BLAKE3 hash of some bytes.
pub(crate) fn hash(bytes: &[u8]) -> Hash {
    Hash(*blake3::hash(bytes).as_bytes())
}

/// Whether the key's owner signed exactly this.
pub(crate) fn is_signed(by: &PublicKey, statement: &[u8], signature: &Signature) -> bool {
    let signature = ed25519_dalek::Signature::from_bytes(&signature.bytes());
    VerifyingKey::from_bytes(&by.0)
        .is_ok_and(|key| key.verify_strict(statement, &signature).is_ok())
}

/// A key as people are shown it.
pub(crate) fn short(key: &PublicKey) -> String {
    key.to_string().chars().take(SHORT).collect()
}

/// Whoever submits from this folder.
pub(crate) fn submitter(data: &Path) -> Result<Key, Fail> {
    std::fs::create_dir_all(data).map_err(|error| cannot(data, &error))?;
    from_file(&data.join(SUBMITTER))
}

/// The key in a file, made if there is none.
pub(crate) fn from_file(path: &Path) -> Result<Key, Fail> {
    let mut file = open(path).map_err(|error| cannot(path, &error))?;
    // Two commands at once must not make two keys.
    let _ = file.lock();
    read_or_make(&mut file).map_err(|error| cannot(path, &error))
}

/// The public half of the key of a coordinator that was started from this folder.
pub(crate) fn coordinator(data: &Path) -> Option<PublicKey> {
    look(&data.join(COORDINATOR))
}

/// The public half of the key in a file, if there is one: its seed as bytes or as hex digits.
pub(crate) fn look(path: &Path) -> Option<PublicKey> {
    let bytes = std::fs::read(path).ok()?;
    let seed = <[u8; 32]>::try_from(bytes.as_slice()).ok().or_else(|| parse(&bytes))?;
    Some(Key(SigningKey::from_bytes(&seed)).public())
}

/// Readable by its owner only.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Anything but 64 hex digits, such as a write cut short by a crash, is made anew.
pub(crate) fn read_or_make(file: &mut File) -> io::Result<Key> {
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    if let Some(seed) = parse(&text) {
        return Ok(Key(SigningKey::from_bytes(&seed)));
    }
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(io::Error::other)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(Hash(seed).to_string().as_bytes())?;
    Ok(Key(SigningKey::from_bytes(&seed)))
}

fn parse(text: &[u8]) -> Option<[u8; 32]> {
    let Hash(seed) = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    Some(seed)
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
    fn a_submitter_is_the_same_again() {
        let data = std::env::temp_dir().join(format!("shoal-keys-{}", std::process::id()));
        let first = submitter(&data).expect("a key").public();
        assert_eq!(submitter(&data).expect("a key").public(), first);
        assert_eq!(coordinator(&data), None);
        std::fs::remove_dir_all(&data).expect("removed");
    }
}
