//! BLAKE3, the one hash: of blobs, of code, and of messages between nodes.

use crate::id::Hash;

/// The hash of bytes that are all there.
pub fn hash(bytes: &[u8]) -> Hash {
    Hash(*blake3::hash(bytes).as_bytes())
}

/// The hash of bytes that come piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Hasher(blake3::Hasher);

impl Hasher {
    pub fn new() -> Hasher {
        Hasher::default()
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(&self) -> Hash {
        Hash(*self.0.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn the_hash_of_nothing_is_the_published_one() {
        let nothing = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(hash(&[]).to_string(), nothing);
    }

    #[test]
    fn pieces_hash_like_the_whole() {
        let bytes: alloc::vec::Vec<u8> = (0..10_000).map(|at| (at % 251) as u8).collect();
        let mut hasher = Hasher::new();
        bytes.chunks(777).for_each(|piece| hasher.update(piece));
        assert_eq!(hasher.finish(), hash(&bytes));
    }
}
