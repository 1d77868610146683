//! A peer that floods, forges, replays, cuts wrong or garbles: each is found out, and memory stays bounded.

use shoal_node::link::*;
use shoal_protocol::limit::*;
use shoal_protocol::*;
use shoal_sim::Clockwork;

use crate::world::{CREW, PEER, World, message};

/// Words as a liar writes them, after the layout of `link/chunk.rs`.
#[derive(Clone, Default)]
struct Lie {
    next: u64,
    have: u128,
    number: u64,
    message: u64,
    total: Option<u64>,
    hash: Option<Hash>,
    bytes: Vec<u8>,
}

impl Lie {
    /// A whole message in one chunk.
    fn honest(number: u64, bytes: &[u8]) -> Lie {
        let (total, hash) = (Some(bytes.len() as u64), Some(hash(bytes)));
        Lie { number, message: number, total, hash, bytes: bytes.to_vec(), ..Lie::default() }
    }

    fn payload(&self) -> Vec<u8> {
        let first = if self.total.is_some() { 16 } else { 0 };
        let last = if self.hash.is_some() { 32 } else { 0 };
        let mut payload = vec![8 | first | last];
        payload.extend(self.next.to_le_bytes());
        payload.extend(self.have.to_le_bytes());
        payload.extend(LINK_WINDOW.to_le_bytes());
        payload.extend(self.number.to_le_bytes());
        payload.extend(self.message.to_le_bytes());
        payload.extend(self.total.iter().flat_map(|total| total.to_le_bytes()));
        payload.extend(self.hash.iter().flat_map(|hash| hash.0));
        payload.extend(&self.bytes);
        payload
    }
}

fn header(sequence: u64, length: usize) -> Header {
    Header {
        kind: FrameKind::Plain,
        channel: 1,
        length: length as u32,
        source: PEER[0],
        destination: PEER[1],
        crew: CREW,
        epoch: Epoch(1),
        sequence,
    }
}

/// End 1 hears end 0 lie on the direct path.
fn hear(world: &mut World, sequence: u64, payload: &[u8]) {
    let header = header(sequence, payload.len());
    world.give(1, LinkInput::Frame { path: Path::Direct, header, payload });
}

fn told(lies: &[Lie]) -> World {
    let mut world = World::usual();
    for (sequence, lie) in lies.iter().enumerate() {
        hear(&mut world, sequence as u64, &lie.payload());
    }
    world
}

#[test]
fn the_honest_words_of_this_file_are_understood() {
    let world = told(&[Lie::honest(0, b"one"), Lie::honest(1, b"two")]);
    assert_eq!(world.broken(1), None);
    assert_eq!(world.got[1], [(1, b"one".to_vec()), (1, b"two".to_vec())]);
}

#[test]
fn lengths_that_do_not_fit_break_the_link() {
    let good = Lie::honest(0, &[7; 100]);
    let cases = [
        (Lie { total: Some(99), ..good.clone() }, Broken::WrongLength),
        (Lie { total: Some(101), ..good.clone() }, Broken::WrongLength),
        (Lie { hash: None, ..good.clone() }, Broken::WrongLength),
        (
            Lie { hash: None, total: Some(200), bytes: Vec::new(), ..good.clone() },
            Broken::WrongLength,
        ),
        (Lie { total: Some(MAX_MESSAGE_BYTES + 1), ..good.clone() }, Broken::TooLong),
        (Lie { bytes: vec![0; CHUNK_BYTES + 1], ..good.clone() }, Broken::WrongLength),
        (Lie { total: None, ..good.clone() }, Broken::Disorder),
        (Lie { message: 1, ..good.clone() }, Broken::Disorder),
        (Lie { next: 1, ..good.clone() }, Broken::Garbled),
        (Lie { next: u64::MAX, have: u128::MAX, ..good.clone() }, Broken::Garbled),
        (Lie { have: 1, ..good.clone() }, Broken::Garbled),
        (Lie { number: MAX_CHUNKS_AHEAD, ..good.clone() }, Broken::Flood),
        (Lie { number: u64::MAX, ..good }, Broken::Flood),
    ];
    for (at, (lie, reason)) in cases.into_iter().enumerate() {
        assert_eq!(told(&[lie]).broken(1), Some(reason), "case {at}");
    }
}

#[test]
fn a_frame_that_is_not_as_long_as_its_header_says_breaks_the_link() {
    let mut world = World::usual();
    let payload = Lie::honest(0, b"one").payload();
    let header = header(0, payload.len() + 1);
    world.give(1, LinkInput::Frame { path: Path::Direct, header, payload: &payload });
    assert_eq!(world.broken(1), Some(Broken::WrongLength));
}

#[test]
fn a_forged_source_breaks_the_link_and_a_broken_link_says_nothing_more() {
    let payload = Lie::honest(0, b"one").payload();
    let good = header(0, payload.len());
    for forged in [Header { source: NodeId(9), ..good }, Header { destination: NodeId(9), ..good }]
    {
        let mut world = World::usual();
        world.give(1, LinkInput::Frame { path: Path::Direct, header: forged, payload: &payload });
        assert_eq!(world.broken(1), Some(Broken::Forged));
        world.give(1, LinkInput::Frame { path: Path::Direct, header: good, payload: &payload });
        assert!(world.got[1].is_empty());
        assert_eq!(world.ends[1].next_timeout(), None);
    }
}

#[test]
fn another_crew_and_unsealed_words_by_relay_are_not_heard() {
    let payload = Lie::honest(0, b"one").payload();
    let good = header(0, payload.len());
    let mut world = World::usual();
    let strays = [
        (Path::Direct, Header { crew: CrewId(8), ..good }),
        (Path::Relay, good),
        (Path::Direct, Header { kind: FrameKind::Sealed, ..good }),
        (Path::Direct, Header { kind: FrameKind::Handshake, ..good }),
    ];
    for (path, header) in strays {
        world.give(1, LinkInput::Frame { path, header, payload: &payload });
    }
    assert!(world.got[1].is_empty() && world.broken(1).is_none());
    assert_eq!(world.ends[1].dropped().stray, 4);
}

#[test]
fn replayed_frames_are_dropped_and_counted() {
    let mut world = World::usual();
    for _ in 0..3 {
        hear(&mut world, 0, &Lie::honest(0, b"one").payload());
    }
    assert_eq!(world.got[1].len(), 1);
    assert_eq!(world.ends[1].dropped().replayed, 2);
}

#[test]
fn reordered_frames_are_put_in_order() {
    let mut world = World::usual();
    for number in [3, 1, 4, 0, 2] {
        hear(&mut world, number, &Lie::honest(number, &[number as u8]).payload());
    }
    let heard: Vec<_> = world.got[1].iter().map(|(_, bytes)| bytes[0]).collect();
    assert_eq!(heard, [0, 1, 2, 3, 4]);
}

#[test]
fn a_peer_that_sends_more_than_it_was_granted_is_a_flood() {
    let mut world = World::usual();
    let chunk = message(1, CHUNK_BYTES);
    // The first never comes, so that nothing is taken and nothing more granted.
    for number in 1..MAX_CHUNKS_AHEAD {
        hear(&mut world, number, &Lie::honest(number, &chunk).payload());
    }
    assert_eq!(world.broken(1), Some(Broken::Flood));
}

#[test]
fn a_peer_that_only_makes_noise_is_a_flood() {
    let mut world = World::usual();
    let payload = Lie::honest(0, b"one").payload();
    for _ in 0..20_000 {
        hear(&mut world, 0, &payload);
    }
    assert_eq!(world.broken(1), Some(Broken::Flood));
}

#[test]
fn a_peer_that_begins_everything_and_ends_nothing_is_a_flood() {
    let mut world = World::usual();
    for number in 0..MAX_CHANNELS as u64 {
        let lie = Lie { number, total: Some(MAX_MESSAGE_BYTES), bytes: vec![1], ..Lie::default() };
        let payload = lie.payload();
        let header = Header { channel: number as u16, ..header(number, payload.len()) };
        world.give(1, LinkInput::Frame { path: Path::Direct, header, payload: &payload });
    }
    assert_eq!(world.broken(1), Some(Broken::Flood));
}

#[test]
fn garbage_never_panics() {
    for seed in 0..2_000 {
        let mut world = World::usual();
        let length = (world.chance() + seed) as usize % 200;
        let mut garbage = message(seed, length);
        if let Some(flags) = garbage.first_mut() {
            *flags &= 63;
        }
        hear(&mut world, 0, &garbage);
        world.run(10);
    }
}

#[test]
fn a_message_that_fails_its_hash_is_asked_for_again() {
    let mut world = World::usual();
    world.corrupt = Some((10_000, 1));
    let sent: Vec<_> = (0..5).map(|n| (1, message(n, 200_000))).collect();
    for (channel, bytes) in &sent {
        world.send(0, *channel, bytes.clone());
    }
    world.send(0, 2, message(9, 100_000));
    world.settle(5_000);
    assert_eq!(world.broken(1), None);
    let (other, same): (Vec<_>, Vec<_>) =
        world.got[1].iter().cloned().partition(|(channel, _)| *channel == 2);
    assert_eq!(world.corrupt, Some((10_000, 0)), "one chunk was garbled");
    assert!(same == sent && other == [(2, message(9, 100_000))]);
}

#[test]
fn a_message_that_fails_its_hash_twice_is_reported() {
    let mut world = World::usual();
    world.corrupt = Some((10_000, 1_000));
    world.send(0, 1, message(1, 200_000));
    world.settle(5_000);
    assert_eq!(world.broken(1), Some(Broken::WrongHash));
    assert!(world.got[1].is_empty());
}
