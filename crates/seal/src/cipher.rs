//! ChaCha20-Poly1305 with one key. Compiled anywhere from plain Rust, or, for native shells that ask for `fast`,
//! from the machine's own instructions, which is twice as fast. Both make the same bytes.

use alloc::vec::Vec;

use shoal_protocol::limit::SEAL_BYTES;

#[cfg(feature = "fast")]
pub(crate) use fast::Cipher;
#[cfg(not(feature = "fast"))]
pub(crate) use plain::Cipher;

pub(crate) type Nonce = [u8; 12];
pub(crate) type Tag = [u8; SEAL_BYTES];

/// The beginning of a buffer that only grows: what is written whole anyway is not emptied each time.
fn room(buffer: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    &mut buffer[..length]
}

#[cfg(any(test, not(feature = "fast")))]
mod plain {
    use chacha20poly1305::aead::AeadInPlace as _;
    use chacha20poly1305::{ChaCha20Poly1305, KeyInit as _};

    use super::{Nonce, Tag, Vec, room};

    #[derive(Clone)]
    pub(crate) struct Cipher(ChaCha20Poly1305);

    impl Cipher {
        pub(crate) fn new(key: &[u8; 32]) -> Cipher {
            Cipher(ChaCha20Poly1305::new(key.into()))
        }

        /// Seals in place. Only lengths beyond 256 GiB fail.
        pub(crate) fn seal(&self, nonce: Nonce, header: &[u8], words: &mut [u8]) -> Option<Tag> {
            let tag = self.0.encrypt_in_place_detached(&nonce.into(), header, words);
            tag.ok().map(Tag::from)
        }

        /// Opens into a buffer, whose beginning has the words then.
        pub(crate) fn open<'a>(
            &self,
            nonce: Nonce,
            header: &[u8],
            (sealed, tag): (&[u8], &Tag),
            into: &'a mut Vec<u8>,
        ) -> Option<&'a [u8]> {
            let words = room(into, sealed.len());
            words.copy_from_slice(sealed);
            let opened = self.0.decrypt_in_place_detached(&nonce.into(), header, words, tag.into());
            opened.ok().map(|()| &*words)
        }
    }
}

#[cfg(feature = "fast")]
mod fast {
    use alloc::sync::Arc;

    use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

    use super::{Tag, Vec, room};

    #[derive(Clone)]
    pub(crate) struct Cipher(Option<Arc<LessSafeKey>>);

    impl Cipher {
        pub(crate) fn new(key: &[u8; 32]) -> Cipher {
            // Refuses only keys of another length; without one, nothing is sealed and nothing opens.
            let key = UnboundKey::new(&CHACHA20_POLY1305, key).ok();
            Cipher(key.map(|key| Arc::new(LessSafeKey::new(key))))
        }

        /// Seals in place. Only lengths beyond 256 GiB fail.
        pub(crate) fn seal(
            &self,
            nonce: super::Nonce,
            header: &[u8],
            words: &mut [u8],
        ) -> Option<Tag> {
            let key = self.0.as_ref()?;
            let tag = key.seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(header),
                words,
            );
            tag.ok().and_then(|tag| tag.as_ref().try_into().ok())
        }

        /// Opens into a buffer, whose beginning has the words then.
        pub(crate) fn open<'a>(
            &self,
            nonce: super::Nonce,
            header: &[u8],
            (sealed, tag): (&[u8], &Tag),
            into: &'a mut Vec<u8>,
        ) -> Option<&'a [u8]> {
            let key = self.0.as_ref()?;
            let words = room(into, sealed.len());
            let header = Aad::from(header);
            let opened = key.open_separate_gather(
                Nonce::assume_unique_for_key(nonce),
                header,
                sealed,
                tag,
                words,
            );
            opened.ok().map(|()| &*words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_one_seals_the_other_opens(
            words in prop::collection::vec(any::<u8>(), 0..2000),
            header in prop::collection::vec(any::<u8>(), 0..64),
            key: [u8; 32],
            nonce: [u8; 12],
        ) {
            let (used, plain) = (Cipher::new(&key), plain::Cipher::new(&key));
            let (mut one, mut other) = (words.clone(), words.clone());
            let tag = used.seal(nonce, &header, &mut one).expect("no such length");
            prop_assert_eq!(plain.seal(nonce, &header, &mut other), Some(tag));
            prop_assert_eq!(&one, &other);
            let (mut into, mut longer) = (Vec::new(), vec![7; 3000]);
            let opened = used.open(nonce, &header, (&one, &tag), &mut into);
            prop_assert_eq!(opened, Some(words.as_slice()));
            let opened = plain.open(nonce, &header, (&one, &tag), &mut longer);
            prop_assert_eq!(opened, Some(words.as_slice()));
        }
    }
}
