//! Two nodes agree on keys, and others try to.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use shoal_protocol::limit::SEAL_BYTES;
use shoal_protocol::{CrewId, Epoch, FrameKind, Header, NodeId, PublicKey};
use shoal_seal::{Handshake, Keys, MAX_WORD_BYTES, Parties, Seal, SealError, ShakeError};

const PARTIES: Parties = Parties {
    coordinator: PublicKey([7; 32]),
    crew: CrewId(1),
    caller: NodeId(2),
    called: NodeId(3),
};

fn keys(seed: u8) -> Keys {
    Keys::new([seed; 32])
}

fn call(seed: u8) -> (Handshake, Vec<u8>) {
    Handshake::initiate(&keys(1), &keys(2).public(), &PARTIES, [seed; 32], b"call").unwrap()
}

fn answer(seed: u8, first: &[u8]) -> Result<(Seal, Vec<u8>), ShakeError> {
    let answering = Handshake::respond(&keys(2), &keys(1).public(), &PARTIES, [seed; 32], first)?;
    assert_eq!(answering.word(), b"call");
    answering.answer(b"answer")
}

fn agreed() -> (Seal, Seal) {
    let (mut calling, first) = call(10);
    let (called, second) = answer(20, &first).unwrap();
    let (caller, word) = calling.finish(&second).unwrap();
    assert_eq!(word, b"answer");
    (caller, called)
}

/// Whether what one seals opens for the other.
fn talk(from: &Seal, to: &Seal) -> bool {
    let header = Header {
        kind: FrameKind::Sealed,
        channel: 0,
        length: (5 + SEAL_BYTES) as u32,
        source: NodeId(2),
        destination: NodeId(3),
        crew: CrewId(1),
        epoch: Epoch(1),
        sequence: 0,
    };
    let mut frame = [header.encode().as_slice(), b"words"].concat();
    from.seal(&mut frame);
    to.open(&frame, &mut Vec::new()) == Ok(b"words".as_slice())
}

#[test]
fn both_have_the_same_seal_and_each_direction_its_own_key() {
    let (caller, called) = agreed();
    assert_eq!(caller.id(), called.id());
    assert!(talk(&caller, &called) && talk(&called, &caller));
    assert!(!talk(&caller, &caller), "nothing can be sent back to its sender");
}

#[test]
fn the_same_seeds_give_the_same_bytes_and_others_give_others() {
    let (one, two) = (call(10).1, call(11).1);
    assert_eq!(one, call(10).1);
    assert_ne!(one, two);
    assert_eq!(answer(20, &one).unwrap().1, answer(20, &one).unwrap().1);
    assert_ne!(answer(20, &one).unwrap().0.id(), answer(21, &one).unwrap().0.id());
}

#[test]
fn words_are_for_the_peer_alone_and_bounded() {
    assert!(!call(10).1.windows(4).any(|window| window == b"call"));
    let long = [0; MAX_WORD_BYTES + 1];
    let called = Handshake::initiate(&keys(1), &keys(2).public(), &PARTIES, [1; 32], &long);
    assert!(matches!(called.err(), Some(ShakeError::Length(_))));
}

#[test]
fn another_key_cannot_call_and_cannot_answer() {
    let (_, forged) =
        Handshake::initiate(&keys(9), &keys(2).public(), &PARTIES, [10; 32], b"call").unwrap();
    assert!(matches!(answer(20, &forged).err(), Some(ShakeError::Forged)));
    let (mut calling, first) = call(10);
    let liar = Handshake::respond(&keys(9), &keys(1).public(), &PARTIES, [20; 32], &first);
    assert!(matches!(liar.err(), Some(ShakeError::Forged)), "it was not called");
    let (_, other) =
        Handshake::initiate(&keys(1), &keys(9).public(), &PARTIES, [10; 32], b"call").unwrap();
    let liar = Handshake::respond(&keys(9), &keys(1).public(), &PARTIES, [20; 32], &other);
    let (_, lie) = liar.unwrap().answer(b"answer").unwrap();
    assert!(matches!(calling.finish(&lie).err(), Some(ShakeError::Forged)));
    let (seal, second) = answer(20, &first).unwrap();
    let (caller, _) = calling.finish(&second).unwrap();
    assert!(talk(&caller, &seal), "the true answer still counts");
}

#[test]
fn pool_crew_and_members_must_be_the_same() {
    let (_, first) = call(10);
    let others = [
        Parties { coordinator: PublicKey([8; 32]), ..PARTIES },
        Parties { crew: CrewId(9), ..PARTIES },
        Parties { caller: NodeId(9), ..PARTIES },
        Parties { called: NodeId(9), ..PARTIES },
        Parties { caller: PARTIES.called, called: PARTIES.caller, ..PARTIES },
    ];
    for parties in others {
        let heard = Handshake::respond(&keys(2), &keys(1).public(), &parties, [20; 32], &first);
        assert!(matches!(heard.err(), Some(ShakeError::Forged)), "{parties:?}");
    }
}

#[test]
fn a_replayed_call_gives_a_seal_that_nobody_else_has() {
    let (mut calling, first) = call(10);
    let (called, second) = answer(20, &first).unwrap();
    let (caller, _) = calling.finish(&second).unwrap();
    let (replayed, _) = answer(21, &first).unwrap();
    assert!(!talk(&caller, &replayed), "frames of the first agreement do not open with it");
    assert!(talk(&caller, &called));
    // An answer to another call is no answer to this one.
    let (mut other, _) = call(11);
    assert!(matches!(other.finish(&second).err(), Some(ShakeError::Forged)));
}

#[test]
fn every_changed_bit_is_seen() {
    let (mut calling, first) = call(10);
    let (_, second) = answer(20, &first).unwrap();
    for at in 0..first.len() * 8 {
        let mut changed = first.clone();
        changed[at / 8] ^= 1 << (at % 8);
        // X25519 skips the highest bit of a key, but the key's bytes are bound as they were sent.
        assert!(answer(20, &changed).is_err(), "bit {at} of the call");
    }
    for at in 0..second.len() * 8 {
        let mut changed = second.clone();
        changed[at / 8] ^= 1 << (at % 8);
        assert!(calling.finish(&changed).is_err(), "bit {at} of the answer");
    }
    assert!(calling.finish(&second).is_ok());
}

#[test]
fn a_key_of_small_order_opens_nothing() {
    // Whoever lists such a key for a peer still does not know this node's secret half.
    let none = shoal_protocol::LinkKey([0; 32]);
    let (_, first) = Handshake::initiate(&keys(1), &none, &PARTIES, [10; 32], b"call").unwrap();
    assert!(answer(20, &first).is_err());
    let (caller, _) = agreed();
    assert_eq!(caller.open(&[0; 100], &mut Vec::new()), Err(SealError::Closed));
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..150)) {
        prop_assert!(answer(20, &bytes).is_err());
        prop_assert!(call(10).0.finish(&bytes).is_err());
    }
}
