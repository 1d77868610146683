//! Ed25519: the coordinator's own key, and looking whether others really signed.

use std::fs;
use std::io;
use std::path::Path;

use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use shoal_protocol::{PublicKey, Signature};

use crate::data::write_private;
use crate::options::OpenError;

const SEED_BYTES: usize = 32;

/// What the coordinator signs with: receipts, and code that came without a signature.
pub(crate) struct Signer {
    key: SigningKey,
}

impl Signer {
    /// Reads the key of a file, or makes one there.
    pub(crate) fn load(path: &Path) -> Result<Signer, OpenError> {
        match fs::read(path) {
            Ok(bytes) => match <[u8; SEED_BYTES]>::try_from(bytes.as_slice()) {
                Ok(seed) => Ok(Signer::new(&seed)),
                Err(_) => Err(no_key(path, bytes.len())),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Signer::make(path),
            Err(error) => Err(OpenError::file(path, error)),
        }
    }

    fn make(path: &Path) -> Result<Signer, OpenError> {
        let mut seed = [0; SEED_BYTES];
        getrandom::fill(&mut seed).map_err(|error| OpenError::Random(error.to_string()))?;
        write_private(path, &seed).map_err(|error| OpenError::file(path, error))?;
        Ok(Signer::new(&seed))
    }

    fn new(seed: &[u8; SEED_BYTES]) -> Signer {
        Signer { key: SigningKey::from_bytes(seed) }
    }

    pub(crate) fn public(&self) -> PublicKey {
        PublicKey(self.key.verifying_key().to_bytes())
    }

    pub(crate) fn sign(&self, statement: &[u8]) -> Signature {
        Signature::new(&self.key.sign(statement).to_bytes())
    }
}

/// Whether the holder of a key signed exactly this. Strict, so that there is one signature for one
/// statement and no key that fits all.
pub(crate) fn has_signed(by: &PublicKey, statement: &[u8], signature: &Signature) -> bool {
    let Ok(key) = VerifyingKey::from_bytes(&by.0) else { return false };
    let signature = ed25519_dalek::Signature::from_bytes(&signature.bytes());
    key.verify_strict(statement, &signature).is_ok()
}

fn no_key(path: &Path, found: usize) -> OpenError {
    let message = format!(
        "it holds {found} bytes, but a signing key has {SEED_BYTES}: put the right file back, or remove it to have a new key made (receipts signed before then name the old one)"
    );
    OpenError::Folder { path: path.into(), source: io::Error::other(message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_its_statement_and_key_only() {
        let (one, two) = (Signer::new(&[1; 32]), Signer::new(&[2; 32]));
        let signature = one.sign(b"this");
        assert!(has_signed(&one.public(), b"this", &signature));
        assert!(!has_signed(&one.public(), b"that", &signature));
        assert!(!has_signed(&two.public(), b"this", &signature));
        // The neutral element of the curve would fit every statement.
        let mut neutral = [0; 32];
        neutral[0] = 1;
        let nothing = Signature::new(&std::array::from_fn(|at| u8::from(at == 0)));
        assert!(!has_signed(&PublicKey(neutral), b"this", &nothing));
    }
}
