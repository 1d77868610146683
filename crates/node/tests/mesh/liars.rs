//! Members that have their place and abuse it: each is named, and nothing of it is computed with.

use shoal_node::mesh::*;
use shoal_protocol::limit::SEAL_BYTES;
use shoal_protocol::*;
use shoal_seal::{Claims, Rights, attenuate, mint};
use shoal_sim::Clockwork;

use crate::crew::{CREW, UNIX};
use crate::liar::*;
use crate::world::World;

/// What the victim says of a member that shows this token and then writes.
fn shows(token: impl Fn(&World) -> Vec<u8>) -> String {
    let mut world = world();
    let mut liar = Liar::meet(&mut world);
    let token = token(&world);
    liar.say(&mut world, CONTROL, &token_words(&token));
    liar.say(&mut world, 1, b"poison");
    assert_eq!(world.got(VICTIM, LIAR, 1), Vec::<Vec<u8>>::new());
    assert!(!world.mesh(VICTIM).is_open(NodeId(LIAR)));
    let bad = world.bad(VICTIM, LIAR);
    assert_eq!(bad.len(), 1, "said once: {bad:?}");
    bad[0].clone()
}

#[test]
fn a_good_token_opens_the_link() {
    let mut world = world();
    let mut liar = Liar::trusted(&mut world);
    liar.say(&mut world, 1, b"fine");
    assert_eq!(world.got(VICTIM, LIAR, 1), [b"fine"]);
    world.nobody_is_bad();
}

#[test]
fn tokens_of_another_crew_epoch_holder_or_pool_are_refused() {
    let node = NodeId(LIAR);
    let other = CrewId(8);
    let why = shows(|world| world.token(node, |claims| Claims { crew: other, ..claims }));
    assert_eq!(why, "its token is refused: the token is for crew 8, this is crew 7");
    let why = shows(|world| world.token(node, |claims| Claims { epoch: Epoch(0), ..claims }));
    assert_eq!(why, "its token is refused: the token is for epoch 0, this is epoch 1");
    let why = shows(|world| world.token(NodeId(3), |claims| claims));
    assert_eq!(why, "its token is refused: the token is node 3's, but node 2 shows it");
    let forged = |world: &World| {
        let true_token = world.token(node, |claims| claims);
        assert!(!true_token.is_empty());
        let claims = Claims {
            crew: CREW,
            epoch: Epoch(1),
            holder: node,
            buffers: (0, u32::MAX),
            rights: Rights::ALL,
            until: u64::MAX,
        };
        mint(|_| Signature::new(&[9; 64]), &claims, [9; 32])
    };
    let why = shows(forged);
    assert_eq!(why, "its token is refused: a token that this pool's coordinator did not sign");
}

#[test]
fn an_expired_token_is_refused() {
    let until = UNIX + 999_999;
    let why = shows(|world| world.token(NodeId(LIAR), |claims| Claims { until, ..claims }));
    assert_eq!(why, "its token is refused: the token ended 0 seconds ago");
}

#[test]
fn garbage_is_no_token() {
    assert_eq!(shows(|_| Vec::new()), "its token is refused: bytes that are no token");
    assert_eq!(shows(|_| vec![1; 200]), "its token is refused: bytes that are no token");
}

#[test]
fn who_speaks_before_its_token_is_not_heard() {
    for (channel, words) in [(1, b"poison".to_vec()), (CONTROL, radio_words(1, b"offer 1"))] {
        let mut world = world();
        let mut liar = Liar::meet(&mut world);
        liar.say(&mut world, channel, &words);
        assert_eq!(world.bad(VICTIM, LIAR), ["it spoke before it showed its token"]);
        assert_eq!(world.got(VICTIM, LIAR, 1), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn a_token_allows_its_own_buffers_until_its_end() {
    let narrow = |world: &World| {
        let token = world.token(NodeId(LIAR), |claims| claims);
        let narrower = Claims {
            crew: CREW,
            epoch: Epoch(1),
            holder: NodeId(LIAR),
            buffers: (3, 4),
            rights: Rights::WRITE,
            until: UNIX + 10_000_000,
        };
        attenuate(&token, &narrower, [5; 32]).unwrap()
    };
    let begin = || {
        let mut world = world();
        let mut liar = Liar::meet(&mut world);
        let token = narrow(&world);
        liar.say(&mut world, CONTROL, &token_words(&token));
        liar.say(&mut world, 3, b"fine");
        assert_eq!(world.got(VICTIM, LIAR, 3), [b"fine"]);
        (world, liar)
    };
    let (mut outside, mut liar) = begin();
    liar.say(&mut outside, 5, b"poison");
    let why = "it wrote to buffer 5: the token is for buffers 3 to 4, not for 5";
    assert_eq!(outside.bad(VICTIM, LIAR), [why]);
    liar.say(&mut outside, 3, b"more");
    assert_eq!(outside.got(VICTIM, LIAR, 3), [b"fine"], "nothing of it is heard any more");
    let (mut late, mut liar) = begin();
    late.clock.now = Time(10_000_000);
    liar.say(&mut late, 3, b"late");
    assert_eq!(late.bad(VICTIM, LIAR), ["it wrote to buffer 3: the token ended 0 seconds ago"]);
    assert_eq!(late.got(VICTIM, LIAR, 3), [b"fine"]);
}

#[test]
fn a_token_to_read_is_none_to_write() {
    let token = |claims| Claims { rights: Rights::READ | Rights::EXECUTE, ..claims };
    let why = shows(|world| world.token(NodeId(LIAR), token));
    assert_eq!(why, "it wrote to buffer 1: the token allows read and execute, not write");
}

#[test]
fn a_second_token_is_one_too_many() {
    let mut world = world();
    let mut liar = Liar::trusted(&mut world);
    let token = world.token(NodeId(LIAR), |claims| claims);
    liar.say(&mut world, CONTROL, &token_words(&token));
    assert_eq!(world.bad(VICTIM, LIAR), ["it showed a second token in one epoch"]);
}

#[test]
fn words_that_are_none_are_named() {
    let mut world = world();
    let mut liar = Liar::trusted(&mut world);
    liar.say(&mut world, CONTROL, &[2, 1]);
    assert_eq!(world.bad(VICTIM, LIAR), ["it says words on channel 0 that are none"]);
    let mut world = crate::liar::world();
    let liar = Liar::trusted(&mut world);
    let frame = Header { sequence: 500, ..header(FrameKind::Sealed, 5 + SEAL_BYTES) };
    world.give(NodeId(VICTIM), MeshInput::Relay(&liar.seal(frame, b"words")));
    let why = "it sent words that are none, or about what never was";
    assert_eq!(world.bad(VICTIM, LIAR), [why]);
}

#[test]
fn a_newer_members_words_are_skipped() {
    let mut world = world();
    let mut liar = Liar::trusted(&mut world);
    liar.say(&mut world, CONTROL, &[99, 1, 2, 3]);
    liar.say(&mut world, 1, b"fine");
    assert_eq!(world.got(VICTIM, LIAR, 1), [b"fine"]);
    world.nobody_is_bad();
}

#[test]
fn a_radio_that_does_not_stop_talking_is_named() {
    let mut world = world();
    let mut liar = Liar::trusted(&mut world);
    assert_eq!(world.dials(VICTIM), 1);
    for _ in 0..512 {
        liar.say(&mut world, CONTROL, &radio_words(1, b"hm 0"));
    }
    assert_eq!(world.bad(VICTIM, LIAR), Vec::<String>::new());
    liar.say(&mut world, CONTROL, &radio_words(1, b"hm 0"));
    assert_eq!(world.bad(VICTIM, LIAR), ["its radio does not stop talking"]);
}

#[test]
fn a_flood_of_noise_is_named_and_costs_no_memory() {
    let mut world = world();
    let liar = Liar::trusted(&mut world);
    // Words without a chunk: what arrived so far, how much may come.
    let words = [[0].as_slice(), &[0; 24], &(4u64 << 20).to_le_bytes()].concat();
    for sequence in 1_000..20_000 {
        let header = header(FrameKind::Sealed, words.len() + SEAL_BYTES);
        let frame = liar.seal(Header { sequence, ..header }, &words);
        world.give(NodeId(VICTIM), MeshInput::Relay(&frame));
        if !world.bad(VICTIM, LIAR).is_empty() {
            break;
        }
    }
    assert_eq!(world.bad(VICTIM, LIAR), ["it sent more than it may, or only noise"]);
}

#[test]
fn a_flood_of_what_does_not_open_is_named_once() {
    let mut world = world();
    let _ = Liar::trusted(&mut world);
    let frame = [header(FrameKind::Sealed, 40).encode().as_slice(), &[7; 40]].concat();
    for _ in 0..10_000 {
        world.give(NodeId(VICTIM), MeshInput::Relay(&frame));
    }
    assert_eq!(world.mesh(VICTIM).dropped().closed, 10_000);
    let why = "it floods this node with frames that do not open";
    assert_eq!(world.bad(VICTIM, LIAR), [why]);
}

#[test]
fn a_shunned_member_is_heard_again_in_the_epoch_that_names_it() {
    let mut world = world();
    let mut liar = Liar::trusted(&mut world);
    liar.say(&mut world, CONTROL, &[]);
    assert_eq!(world.bad(VICTIM, LIAR).len(), 1);
    world.send(VICTIM, LIAR, 1, b"not to it");
    let refused = MeshOutput::Refused { to: NodeId(LIAR), channel: 1 };
    assert!(world.nodes[&NodeId(VICTIM)].said.contains(&refused));
    world.start(NodeId(LIAR), LIAR as u8, false);
    world.enlist();
    world.until(2_000, World::all_open);
}
