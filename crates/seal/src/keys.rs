//! A node's own half of a key agreement, and looking whether others really signed.

use core::fmt;

use curve25519_dalek::MontgomeryPoint;
use ed25519_dalek::VerifyingKey;
use shoal_protocol::{LinkKey, Signature};

/// An X25519 key pair. Made anew at each start of a node, so that what was sealed in an earlier life stays
/// closed even if the device is taken.
#[derive(Clone)]
pub struct Keys {
    pub(crate) secret: [u8; 32],
    public: LinkKey,
}

impl Keys {
    /// From 32 random bytes.
    pub fn new(secret: [u8; 32]) -> Keys {
        let public = LinkKey(MontgomeryPoint::mul_base_clamped(secret).to_bytes());
        Keys { secret, public }
    }

    pub fn public(&self) -> LinkKey {
        self.public
    }
}

/// Never shows the secret.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.public).finish()
    }
}

/// Whether the holder of an Ed25519 key signed exactly this. Strict, so that there is one signature for one
/// statement and no key that fits all.
pub fn is_signed(by: &[u8; 32], statement: &[u8], signature: &Signature) -> bool {
    let Ok(key) = VerifyingKey::from_bytes(by) else { return false };
    let signature = ed25519_dalek::Signature::from_bytes(&signature.bytes());
    key.verify_strict(statement, &signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use ed25519_dalek::{Signer as _, SigningKey};
    use shoal_protocol::Hash;

    #[test]
    fn the_public_half_is_that_of_the_standard() {
        // RFC 7748, section 5.2: the base point is 9, and so is the first scalar of its iterated test.
        let expected = "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079";
        let nine = core::array::from_fn(|at| if at == 0 { 9 } else { 0 });
        assert_eq!(Hash(Keys::new(nine).public().0).to_string(), expected);
    }

    #[test]
    fn a_signature_holds_for_its_statement_and_key_only() {
        let (one, two) = (SigningKey::from_bytes(&[1; 32]), SigningKey::from_bytes(&[2; 32]));
        let signature = Signature::new(&one.sign(b"this").to_bytes());
        let by = one.verifying_key().to_bytes();
        assert!(is_signed(&by, b"this", &signature));
        assert!(!is_signed(&by, b"that", &signature));
        assert!(!is_signed(&two.verifying_key().to_bytes(), b"this", &signature));
        // The neutral element of the curve would fit every statement.
        let neutral = core::array::from_fn(|at| u8::from(at == 0));
        let nothing = Signature::new(&core::array::from_fn(|at| u8::from(at == 0)));
        assert!(!is_signed(&neutral, b"this", &nothing));
    }
}
