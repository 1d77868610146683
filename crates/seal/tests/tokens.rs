//! Tokens as coordinator, holder and receiver have them, and as liars would like them.

#![allow(clippy::unwrap_used)]

use ed25519_dalek::{Signer as _, SigningKey};
use proptest::prelude::*;
use shoal_protocol::{CrewId, Epoch, NodeId, PublicKey, Signature};
use shoal_seal::token::{MAX_BLOCKS, MAX_TOKEN_BYTES};
use shoal_seal::{Claims, Rights, TokenError, attenuate, mint, present, read};

const CLAIMS: Claims = Claims {
    crew: CrewId(1),
    epoch: Epoch(2),
    holder: NodeId(3),
    buffers: (1, 15),
    rights: Rights::ALL,
    until: 1_000_000,
};
const NARROW: Claims = Claims { buffers: (2, 3), rights: Rights::READ, until: 500_000, ..CLAIMS };

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn root(seed: u8) -> PublicKey {
    PublicKey(key(seed).verifying_key().to_bytes())
}

fn minted() -> Vec<u8> {
    mint(|statement| Signature::new(&key(1).sign(statement).to_bytes()), &CLAIMS, [2; 32])
}

#[test]
fn a_minted_token_says_what_was_claimed() {
    let token = minted();
    assert_eq!(read(&token, &root(1)), Ok(CLAIMS));
    assert_eq!(read(&present(&token).unwrap(), &root(1)), Ok(CLAIMS));
    assert_eq!(token, minted(), "the same in, the same out");
    assert_eq!(read(&token, &root(9)), Err(TokenError::Forged { block: 0 }), "another pool's");
}

#[test]
fn the_holder_can_narrow_it_and_nobody_can_widen_it() {
    let narrow = attenuate(&minted(), &NARROW, [3; 32]).unwrap();
    assert_eq!(read(&narrow, &root(1)), Ok(NARROW));
    assert_eq!(read(&present(&narrow).unwrap(), &root(1)), Ok(NARROW));
    assert_eq!(attenuate(&narrow, &CLAIMS, [4; 32]), Err(TokenError::Wider { block: 2 }));
    let longer = Claims { until: 1_000_001, ..CLAIMS };
    assert_eq!(attenuate(&minted(), &longer, [4; 32]), Err(TokenError::Wider { block: 1 }));
}

#[test]
fn a_shown_token_cannot_be_changed() {
    let shown = present(&minted()).unwrap();
    assert_eq!(attenuate(&shown, &NARROW, [3; 32]), Err(TokenError::Shown));
    assert_eq!(present(&shown), Ok(shown.clone()), "showing it again changes nothing");
}

#[test]
fn the_end_cannot_be_cut_off() {
    // Blocks first, counted by the first byte; the proof last: 0 and a secret, or 1 and a signature.
    let narrow = attenuate(&minted(), &NARROW, [3; 32]).unwrap();
    let (wide, proof) = (minted(), 33);
    let mut cut = wide[..wide.len() - proof].to_vec();
    cut.extend(&narrow[narrow.len() - proof..]);
    assert_eq!(read(&cut, &root(1)), Err(TokenError::Cut), "with the narrow one's secret");
    let shown = present(&narrow).unwrap();
    let mut cut = wide[..wide.len() - proof].to_vec();
    cut.extend(&shown[shown.len() - 65..]);
    assert_eq!(read(&cut, &root(1)), Err(TokenError::Cut), "with the narrow one's signature");
}

#[test]
fn blocks_are_bounded() {
    let mut token = minted();
    for block in 1..MAX_BLOCKS {
        token = attenuate(&token, &NARROW, [block as u8; 32]).unwrap();
    }
    assert!(present(&token).unwrap().len() <= MAX_TOKEN_BYTES, "the largest fits");
    let most = Err(TokenError::TooManyBlocks(MAX_BLOCKS + 1));
    assert_eq!(attenuate(&token, &NARROW, [9; 32]), most);
    let long = vec![0; MAX_TOKEN_BYTES + 1];
    assert_eq!(read(&long, &root(1)), Err(TokenError::TooLong(long.len())));
    assert_eq!(read(&[0; 40], &root(1)), Err(TokenError::Garbled), "no blocks");
}

#[test]
fn every_changed_bit_makes_it_worthless() {
    for token in [minted(), present(&attenuate(&minted(), &NARROW, [3; 32]).unwrap()).unwrap()] {
        for at in 0..token.len() * 8 {
            let mut changed = token.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert!(read(&changed, &root(1)).is_err(), "bit {at}");
        }
        for length in 0..token.len() {
            assert!(read(&token[..length], &root(1)).is_err(), "cut to {length} bytes");
        }
        let longer = [token.as_slice(), &[0]].concat();
        assert_eq!(read(&longer, &root(1)), Err(TokenError::Garbled));
    }
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..1100), at in 0usize..200, byte: u8) {
        prop_assert!(read(&bytes, &root(1)).is_err());
        let _ = attenuate(&bytes, &NARROW, [3; 32]);
        let _ = present(&bytes);
        let mut token = minted();
        let at = at % token.len();
        token[at] = byte;
        let _ = (read(&token, &root(1)), attenuate(&token, &NARROW, [3; 32]), present(&token));
    }
}
