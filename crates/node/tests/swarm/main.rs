//! One node's part in the exchange of blobs: what it asks, gives, refuses and believes.
#![allow(clippy::unwrap_used)]

use shoal_node::{SwarmInput, SwarmOutput, Swarms};
use shoal_protocol::limit::{MAX_PIECES_ASKED, PIECE_BYTES};
use shoal_protocol::swarm::piece_span;
use shoal_protocol::*;

const PEER: NodeId = NodeId(7);
const PIECES: u32 = 10;

struct World {
    swarms: Swarms,
    now: Time,
    blob: BlobRef,
    outputs: Vec<SwarmOutput>,
}

fn set(pieces: &[u32]) -> PieceSet {
    let mut set = PieceSet::new(PIECES);
    pieces.iter().for_each(|piece| assert!(set.insert(*piece)));
    set
}

impl World {
    /// A node that joined, with a direct way to another.
    fn new() -> World {
        let blob = BlobRef { hash: Hash([3; 32]), size: u64::from(PIECES) * PIECE_BYTES - 9 };
        let mut world = World { swarms: Swarms::new(), now: Time(0), blob, outputs: Vec::new() };
        world.give(SwarmInput::Joined);
        world.give(SwarmInput::Near(PEER, true));
        world
    }

    fn wanting(has: &[u32]) -> World {
        let mut world = World::new();
        world.want(PieceSet::full(PIECES), has);
        world
    }

    /// One that needs only these pieces, and has none.
    fn wanting_part(needs: &[u32]) -> World {
        let mut world = World::new();
        world.want(set(needs), &[]);
        world
    }

    fn want(&mut self, needs: PieceSet, has: &[u32]) {
        let hashes = (0..PIECES).map(|piece| hash(&self.bytes(piece))).collect();
        let (blob, has) = (self.blob, set(has));
        self.give(SwarmInput::Want { blob, hashes, needs, has });
    }

    fn fetched(&mut self, piece: u32) {
        let (blob, result) = (self.blob.hash, Ok(self.bytes(piece)));
        self.give(SwarmInput::Fetched { blob, piece, result });
    }

    fn has(&self) -> Vec<u32> {
        self.swarms.has(self.blob.hash).map(|has| has.iter().collect()).unwrap_or_default()
    }

    fn having() -> World {
        let mut world = World::new();
        let blob = world.blob;
        world.give(SwarmInput::Have(vec![blob]));
        world.outputs.clear();
        world
    }

    fn bytes(&self, piece: u32) -> Vec<u8> {
        vec![piece as u8; piece_span(&self.blob, piece).1 as usize]
    }

    fn give(&mut self, input: SwarmInput<'_>) {
        self.swarms.handle(self.now, input);
        while let Some(output) = self.swarms.poll_output() {
            self.outputs.push(output);
        }
        self.swarms.check();
    }

    fn wait(&mut self, seconds: u64) {
        self.now = self.now + Micros::from_secs(seconds);
        self.give(SwarmInput::Tick);
    }

    fn take(&mut self, pieces: &[u32], from: Option<NodeId>) {
        let (blob, pieces) = (self.blob, pieces.to_vec());
        self.give(SwarmInput::Told(SwarmTold::Take { blob, pieces, from }));
    }

    fn hear(&mut self, word: &PieceWord<'_>) {
        self.give(SwarmInput::Heard { from: PEER, words: &word.encode() });
    }

    fn allow(&mut self) {
        let blob = self.blob;
        self.give(SwarmInput::Told(SwarmTold::Give { blob, to: PEER }));
    }

    fn came(&mut self, piece: u32) {
        let (blob, bytes) = (self.blob.hash, self.bytes(piece));
        self.hear(&PieceWord::Here { blob, piece, bytes: &bytes });
    }

    /// What was said to the other node.
    fn words(&self) -> Vec<PieceWord<'_>> {
        let told = self.outputs.iter().filter_map(|output| {
            let SwarmOutput::Tell { to: PEER, words } = output else { return None };
            PieceWord::decode(words)
        });
        told.collect()
    }

    fn said(&self, wanted: &SwarmSay) -> bool {
        self.outputs.contains(&SwarmOutput::Say(wanted.clone()))
    }

    fn loads(&self) -> usize {
        self.outputs.iter().filter(|o| matches!(o, SwarmOutput::Load { .. })).count()
    }
}

#[test]
fn a_node_asks_where_it_is_told_and_stores_what_is_right() {
    let mut world = World::wanting(&[0, 1, 2, 3, 6, 7, 8, 9]);
    world.take(&[4], Some(PEER));
    let blob = world.blob;
    assert_eq!(world.words(), [PieceWord::Ask { blob: blob.hash, piece: 4 }]);
    world.came(4);
    assert!(world.said(&SwarmSay::Got { blob, piece: 4, from: Some(PEER) }));
    world.take(&[5], None);
    assert!(world.outputs.contains(&SwarmOutput::Fetch { blob, piece: 5 }));
    let result = Ok(world.bytes(5));
    world.give(SwarmInput::Fetched { blob: blob.hash, piece: 5, result });
    assert_eq!(world.outputs.last(), Some(&SwarmOutput::Whole(blob)));
}

#[test]
fn only_what_is_missing_is_asked_for() {
    let mut world = World::wanting(&[0, 1]);
    world.take(&[0, 1, 2, 2, 99], Some(PEER));
    assert_eq!(world.words().len(), 1);
}

#[test]
fn wrong_bytes_name_their_sender_and_are_not_kept() {
    let mut world = World::wanting(&[]);
    world.take(&[1], Some(PEER));
    let (blob, mut bytes) = (world.blob, world.bytes(1));
    bytes[77] ^= 1;
    world.hear(&PieceWord::Here { blob: blob.hash, piece: 1, bytes: &bytes });
    assert!(world.said(&SwarmSay::Missed { blob, piece: 1, from: PEER, why: Missed::Bad }));
    assert!(!world.outputs.iter().any(|output| matches!(output, SwarmOutput::Store { .. })));
}

#[test]
fn a_late_piece_is_dealt_anew_and_still_welcome() {
    let mut world = World::wanting(&[]);
    world.take(&[1], Some(PEER));
    world.wait(20);
    let blob = world.blob;
    assert!(world.said(&SwarmSay::Missed { blob, piece: 1, from: PEER, why: Missed::Late }));
    world.came(1);
    assert_eq!(world.has(), [1]);
}

#[test]
fn a_coordinator_that_says_nothing_keeps_nobody_waiting() {
    let mut world = World::wanting(&[]);
    world.wait(60);
    for piece in 0..PIECES {
        let (blob, result) = (world.blob, Ok(world.bytes(piece)));
        assert!(world.outputs.contains(&SwarmOutput::Fetch { blob, piece }), "piece {piece}");
        world.give(SwarmInput::Fetched { blob: blob.hash, piece, result });
    }
    assert_eq!(world.outputs.last(), Some(&SwarmOutput::Whole(world.blob)));
}

#[test]
fn a_coordinator_that_gives_nothing_is_asked_a_few_times() {
    let mut world = World::wanting(&[]);
    world.take(&[0], None);
    for _ in 0..10 {
        let (blob, result) = (world.blob.hash, Err("no".into()));
        world.give(SwarmInput::Fetched { blob, piece: 0, result });
        world.wait(2);
    }
    let failed = world.outputs.iter().filter(|o| matches!(o, SwarmOutput::Failed { .. })).count();
    assert_eq!(failed, 1);
}

#[test]
fn after_a_reconnect_it_says_again_what_it_has_and_needs() {
    let mut world = World::wanting(&[0, 5]);
    world.outputs.clear();
    world.give(SwarmInput::Away);
    world.give(SwarmInput::Joined);
    let (has, needs) = (vec![0b10_0001], vec![0b11_1101_1110]);
    assert!(world.said(&SwarmSay::Part { blob: world.blob, has, needs }));
    let mut world = World::having();
    world.give(SwarmInput::Joined);
    assert!(world.said(&SwarmSay::Holds { blobs: vec![world.blob] }));
}

#[test]
fn nothing_is_given_before_the_coordinator_allows_it() {
    let mut world = World::having();
    let (blob, piece) = (world.blob.hash, 2);
    world.hear(&PieceWord::Ask { blob, piece });
    assert_eq!(world.loads(), 0);
    world.allow();
    assert_eq!(world.loads(), 1);
    let bytes = world.bytes(piece);
    world.give(SwarmInput::Loaded { blob, piece, to: PEER, bytes: Some(&bytes) });
    assert_eq!(world.words(), [PieceWord::Here { blob, piece, bytes: &bytes }]);
    assert_eq!(world.swarms.exchanged().given, PIECE_BYTES);
}

#[test]
fn a_question_nobody_allows_is_refused_after_a_while() {
    let mut world = World::having();
    let (blob, piece) = (world.blob.hash, 2);
    world.hear(&PieceWord::Ask { blob, piece });
    world.wait(10);
    assert_eq!(world.words(), [PieceWord::Not { blob, piece }]);
}

#[test]
fn one_that_asks_too_much_is_refused_the_rest() {
    let mut world = World::having();
    world.allow();
    for piece in 0..PIECES {
        let blob = world.blob.hash;
        world.hear(&PieceWord::Ask { blob, piece });
    }
    assert_eq!(world.loads(), MAX_PIECES_ASKED);
    assert_eq!(world.words().len(), PIECES as usize - MAX_PIECES_ASKED);
}

#[test]
fn by_the_relay_nothing_is_given() {
    let mut world = World::having();
    world.allow();
    world.give(SwarmInput::Near(PEER, false));
    let (blob, piece) = (world.blob.hash, 0);
    world.hear(&PieceWord::Ask { blob, piece });
    assert_eq!(world.words(), [PieceWord::Not { blob, piece }]);
}

#[test]
fn a_blob_that_is_dropped_is_not_given_any_more() {
    let mut world = World::having();
    world.allow();
    let (blob, piece) = (world.blob.hash, 0);
    world.give(SwarmInput::Drop(blob));
    assert!(world.said(&SwarmSay::Drops { blob: world.blob }));
    world.hear(&PieceWord::Ask { blob, piece });
    assert_eq!(world.words(), [PieceWord::Not { blob, piece }]);
}

#[test]
fn a_shelf_full_of_others_keeps_nobody_from_what_it_needs() {
    let mut world = World::new();
    let other = |n: usize| BlobRef { hash: Hash([n as u8; 32]), size: 8 * PIECE_BYTES };
    world.give(SwarmInput::Have((10..200).map(other).collect()));
    world.want(PieceSet::full(PIECES), &[]);
    let (blob, needs) = (world.blob, vec![0b11_1111_1111]);
    assert!(world.said(&SwarmSay::Part { blob, has: vec![], needs }));
}

#[test]
fn a_part_is_enough_and_nothing_else_is_taken() {
    let mut world = World::wanting_part(&[3, 4]);
    let blob = world.blob;
    assert!(world.said(&SwarmSay::Part { blob, has: vec![], needs: vec![0b1_1000] }));
    world.take(&[2, 3, 4, 5], Some(PEER));
    assert_eq!(world.words().len(), 2, "what is not needed is not asked for");
    world.came(5);
    world.came(3);
    assert!(!world.outputs.contains(&SwarmOutput::Part(blob)));
    world.came(4);
    assert_eq!(world.outputs.last(), Some(&SwarmOutput::Part(blob)));
    assert_eq!(world.has(), [3, 4]);
    assert_eq!(world.swarms.next_timeout(), None, "nothing more is waited for");
}

#[test]
fn a_holder_of_a_part_gives_what_it_has() {
    let mut world = World::wanting_part(&[3]);
    world.take(&[3], Some(PEER));
    world.came(3);
    world.allow();
    world.outputs.clear();
    let blob = world.blob.hash;
    world.hear(&PieceWord::Ask { blob, piece: 4 });
    assert_eq!(world.words(), [PieceWord::Not { blob, piece: 4 }]);
    world.hear(&PieceWord::Ask { blob, piece: 3 });
    assert_eq!(world.loads(), 1);
}

#[test]
fn a_part_is_extended_while_it_comes_and_later() {
    let mut world = World::wanting_part(&[3, 4]);
    let blob = world.blob;
    world.take(&[3, 4], None);
    world.fetched(3);
    world.want(set(&[4, 8]), &[]);
    assert!(world.said(&SwarmSay::Part { blob, has: vec![0b1000], needs: vec![0b1_0001_0000] }));
    // It was on its way, and is not asked for again.
    world.fetched(4);
    assert!(!world.outputs.contains(&SwarmOutput::Part(blob)));
    world.take(&[8], None);
    world.fetched(8);
    assert_eq!(world.outputs.last(), Some(&SwarmOutput::Part(blob)));
    world.want(PieceSet::full(PIECES), &[3, 4, 8]);
    let missing = [0, 1, 2, 5, 6, 7, 9];
    world.take(&missing, None);
    missing.into_iter().for_each(|piece| world.fetched(piece));
    assert_eq!(world.outputs.last(), Some(&SwarmOutput::Whole(blob)));
}

#[test]
fn a_part_from_before_is_told_of_and_need_not_come_again() {
    let mut world = World::new();
    let blob = world.blob;
    world.give(SwarmInput::HavePart { blob, has: set(&[1, 2]) });
    assert!(world.said(&SwarmSay::Part { blob, has: vec![0b110], needs: vec![] }));
    world.want(set(&[1, 2]), &[1, 2]);
    assert_eq!(world.outputs.last(), Some(&SwarmOutput::Part(blob)));
    world.outputs.clear();
    world.give(SwarmInput::Away);
    world.give(SwarmInput::Joined);
    assert!(world.said(&SwarmSay::Part { blob, has: vec![0b110], needs: vec![] }));
}

#[test]
fn what_came_another_way_is_told_of_and_the_rest_is_given_up() {
    let mut world = World::wanting_part(&[3, 4, 5]);
    let blob = world.blob;
    world.take(&[3], Some(PEER));
    world.take(&[4], None);
    assert_eq!(world.swarms.awaited(blob.hash), [3], "the coordinator is no other node");
    world.outputs.clear();
    world.give(SwarmInput::HavePart { blob, has: set(&[4]) });
    assert!(world.said(&SwarmSay::Part { blob, has: vec![0b1_0000], needs: vec![] }));
    assert_eq!(world.swarms.next_timeout(), None, "nothing more is waited for");
    world.came(3);
    assert_eq!(world.has(), [4], "nobody needs it any more");
    world.outputs.clear();
    world.give(SwarmInput::HavePart { blob, has: set(&[4]) });
    assert_eq!(world.outputs, [], "nothing is said twice");
}

#[test]
fn a_part_whose_rest_came_another_way_is_a_whole() {
    let mut world = World::wanting_part(&[3, 4]);
    let blob = world.blob;
    world.give(SwarmInput::Have(vec![blob]));
    assert!(world.said(&SwarmSay::Holds { blobs: vec![blob] }));
    assert_eq!((world.has().len(), world.swarms.next_timeout()), (PIECES as usize, None));
}

#[test]
fn of_what_is_given_up_without_a_piece_there_are_no_books() {
    let mut world = World::wanting_part(&[3]);
    let blob = world.blob;
    world.give(SwarmInput::HavePart { blob, has: set(&[]) });
    assert!(world.said(&SwarmSay::Drops { blob }));
    world.want(set(&[3]), &[]);
    world.take(&[3], None);
    world.fetched(3);
    assert_eq!(world.outputs.last(), Some(&SwarmOutput::Part(blob)));
}

#[test]
fn a_piece_that_the_disk_lost_is_not_offered_any_more_and_comes_again() {
    let mut world = World::having();
    world.allow();
    let blob = world.blob;
    world.hear(&PieceWord::Ask { blob: blob.hash, piece: 2 });
    world.give(SwarmInput::Loaded { blob: blob.hash, piece: 2, to: PEER, bytes: None });
    assert!(world.said(&SwarmSay::Part { blob, has: vec![0b11_1111_1011], needs: vec![] }));
    world.want(set(&[1, 2]), &[1]);
    world.take(&[1, 2], None);
    assert!(!world.outputs.contains(&SwarmOutput::Fetch { blob, piece: 1 }));
    world.fetched(2);
    assert_eq!(world.outputs.last(), Some(&SwarmOutput::Whole(blob)));
}

#[test]
fn without_a_word_from_the_coordinator_only_the_part_is_fetched() {
    let mut world = World::wanting_part(&[5, 7]);
    world.wait(60);
    let blob = world.blob;
    for piece in 0..PIECES {
        let fetched = world.outputs.contains(&SwarmOutput::Fetch { blob, piece });
        assert_eq!(fetched, piece == 5 || piece == 7, "piece {piece}");
    }
}

#[test]
fn garbage_is_heard_without_harm() {
    let mut world = World::wanting(&[]);
    for words in [&[][..], &[9; 50], &[1; 37], &[1; 100]] {
        world.give(SwarmInput::Heard { from: PEER, words });
    }
    let blob = world.blob;
    world.give(SwarmInput::Told(SwarmTold::Take { blob, pieces: vec![u32::MAX], from: None }));
    let (hashes, needs, has) = (Vec::new(), PieceSet::full(3), PieceSet::new(1));
    let other = BlobRef { hash: Hash([8; 32]), ..blob };
    world.give(SwarmInput::Want { blob: other, hashes, needs, has });
    assert!(matches!(world.outputs.last(), Some(SwarmOutput::Failed { .. })));
}
