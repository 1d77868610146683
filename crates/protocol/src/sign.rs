//! Keys and signatures, and exactly which bytes are signed. Making and checking signatures (Ed25519) is the
//! shells' work: browsers have it built in, native shells use a library.

use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

use crate::id::{Hash, NotAHash};

/// An Ed25519 public key. Written as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PublicKey(pub [u8; 32]);

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Hash(self.0), f)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<PublicKey, NotAKey> {
        let Hash(bytes) = text.parse().map_err(|NotAHash| NotAKey)?;
        Ok(PublicKey(bytes))
    }
}

/// The X25519 public key with which a node seals its links, made anew at each of its starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LinkKey(pub [u8; 32]);

/// Text that is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAKey;

impl fmt::Display for NotAKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected an Ed25519 public key: 64 hexadecimal digits")
    }
}

/// An Ed25519 signature, in two halves because serde's arrays end at 32. Written as 128 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature(pub [u8; 32], pub [u8; 32]);

impl Signature {
    pub fn new(bytes: &[u8; 64]) -> Signature {
        let half = |from: usize| core::array::from_fn(|at| bytes[from + at]);
        Signature(half(0), half(32))
    }

    pub fn bytes(&self) -> [u8; 64] {
        core::array::from_fn(|at| if at < 32 { self.0[at] } else { self.1[at - 32] })
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Hash(self.0), Hash(self.1))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is not a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASignature;

impl fmt::Display for NotASignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected an Ed25519 signature: 128 hexadecimal digits")
    }
}

impl FromStr for Signature {
    type Err = NotASignature;

    fn from_str(text: &str) -> Result<Signature, NotASignature> {
        let (first, second) = text.split_at_checked(64).ok_or(NotASignature)?;
        let half = |text: &str| text.parse().map_err(|NotAHash| NotASignature);
        let (Hash(first), Hash(second)) = (half(first)?, half(second)?);
        Ok(Signature(first, second))
    }
}

/// Somebody stands for some code with their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    pub by: PublicKey,
    pub signature: Signature,
}

/// What a signature of code begins with, so that none can be taken for one of another kind.
pub const CODE_DOMAIN: &str = "shoal code 1\0";

/// What a node signs to prove who it is: this coordinator's challenge, good for one connection.
pub fn join_statement(coordinator: &PublicKey, nonce: &[u8; 32]) -> Vec<u8> {
    statement(b"shoal join 1\0", &[&coordinator.0, nonce])
}

/// What whoever submits code signs: the BLAKE3 hash of a kernel's source or of a module's bytes.
pub fn code_statement(code: &Hash) -> Vec<u8> {
    statement(CODE_DOMAIN.as_bytes(), &[&code.0])
}

/// What a coordinator signs of a receipt: the BLAKE3 hash of its canonical text.
pub fn receipt_statement(text: &Hash) -> Vec<u8> {
    statement(b"shoal receipt 1\0", &[&text.0])
}

/// What a node signs so that others know its links: the X25519 key they are sealed with, in this pool.
pub fn link_statement(coordinator: &PublicKey, key: &LinkKey) -> Vec<u8> {
    statement(b"shoal link 1\0", &[&coordinator.0, &key.0])
}

/// What the coordinator, or the holder of a capability token, signs of one of its blocks: the BLAKE3 hash.
pub fn token_statement(block: &Hash) -> Vec<u8> {
    statement(b"shoal token 1\0", &[&block.0])
}

/// Each kind of statement begins with its own words, so that none can be taken for another.
fn statement(domain: &[u8], parts: &[&[u8; 32]]) -> Vec<u8> {
    let parts = parts.iter().flat_map(|part| part.iter());
    domain.iter().chain(parts).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn signatures_and_keys_read_back_what_they_write() {
        let signature = Signature::new(&core::array::from_fn(|at| at as u8 * 3));
        assert_eq!(signature.to_string().parse(), Ok(signature));
        assert_eq!(Signature::new(&signature.bytes()), signature);
        assert_eq!("ab".parse::<Signature>(), Err(NotASignature));
        let key = PublicKey([9; 32]);
        assert_eq!(key.to_string().parse(), Ok(key));
        assert_eq!("é".repeat(32).parse::<PublicKey>(), Err(NotAKey));
    }

    #[test]
    fn no_statement_is_another() {
        let (hash, key) = (Hash([1; 32]), PublicKey([1; 32]));
        assert_ne!(code_statement(&hash), receipt_statement(&hash));
        assert_ne!(join_statement(&key, &hash.0), code_statement(&hash));
    }
}
