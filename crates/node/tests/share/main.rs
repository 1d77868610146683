//! One node's part in the exchange of blobs: what it asks, gives, refuses and believes.
#![allow(clippy::unwrap_used)]

use shoal_node::{Share, ShareInput, ShareOutput};
use shoal_protocol::limit::{MAX_PIECES_ASKED, PIECE_BYTES};
use shoal_protocol::share::piece_span;
use shoal_protocol::*;

const PEER: NodeId = NodeId(7);
const PIECES: u32 = 10;

struct World {
    share: Share,
    now: Time,
    blob: BlobRef,
    outputs: Vec<ShareOutput>,
}

impl World {
    /// A node that joined, with a direct way to another.
    fn new() -> World {
        let blob = BlobRef { hash: Hash([3; 32]), size: u64::from(PIECES) * PIECE_BYTES - 9 };
        let mut world = World { share: Share::new(), now: Time(0), blob, outputs: Vec::new() };
        world.give(ShareInput::Joined);
        world.give(ShareInput::Near(PEER, true));
        world
    }

    fn wanting(has: &[u32]) -> World {
        let mut world = World::new();
        let mut set = PieceSet::new(PIECES);
        has.iter().for_each(|piece| assert!(set.insert(*piece)));
        let hashes = (0..PIECES).map(|piece| hash(&world.bytes(piece))).collect();
        let blob = world.blob;
        world.give(ShareInput::Want { blob, hashes, has: set });
        world
    }

    fn having() -> World {
        let mut world = World::new();
        let blob = world.blob;
        world.give(ShareInput::Have(vec![blob]));
        world.outputs.clear();
        world
    }

    fn bytes(&self, piece: u32) -> Vec<u8> {
        vec![piece as u8; piece_span(&self.blob, piece).1 as usize]
    }

    fn give(&mut self, input: ShareInput<'_>) {
        self.share.handle(self.now, input);
        while let Some(output) = self.share.poll_output() {
            self.outputs.push(output);
        }
        self.share.check();
    }

    fn wait(&mut self, seconds: u64) {
        self.now = self.now + Micros::from_secs(seconds);
        self.give(ShareInput::Tick);
    }

    fn take(&mut self, pieces: &[u32], from: Option<NodeId>) {
        let (blob, pieces) = (self.blob, pieces.to_vec());
        self.give(ShareInput::Told(ShareTold::Take { blob, pieces, from }));
    }

    fn hear(&mut self, word: &PieceWord<'_>) {
        self.give(ShareInput::Heard { from: PEER, words: &word.encode() });
    }

    fn allow(&mut self) {
        let blob = self.blob;
        self.give(ShareInput::Told(ShareTold::Give { blob, to: PEER }));
    }

    fn came(&mut self, piece: u32) {
        let (blob, bytes) = (self.blob.hash, self.bytes(piece));
        self.hear(&PieceWord::Here { blob, piece, bytes: &bytes });
    }

    /// What was said to the other node.
    fn words(&self) -> Vec<PieceWord<'_>> {
        let told = self.outputs.iter().filter_map(|output| {
            let ShareOutput::Tell { to: PEER, words } = output else { return None };
            PieceWord::decode(words)
        });
        told.collect()
    }

    fn said(&self, wanted: &ShareSay) -> bool {
        self.outputs.contains(&ShareOutput::Say(wanted.clone()))
    }

    fn loads(&self) -> usize {
        self.outputs.iter().filter(|o| matches!(o, ShareOutput::Load { .. })).count()
    }
}

#[test]
fn a_node_asks_where_it_is_told_and_stores_what_is_right() {
    let mut world = World::wanting(&[0, 1, 2, 3, 6, 7, 8, 9]);
    world.take(&[4], Some(PEER));
    let blob = world.blob;
    assert_eq!(world.words(), [PieceWord::Ask { blob: blob.hash, piece: 4 }]);
    world.came(4);
    assert!(world.said(&ShareSay::Got { blob, piece: 4, from: Some(PEER) }));
    world.take(&[5], None);
    assert!(world.outputs.contains(&ShareOutput::Fetch { blob, piece: 5 }));
    let result = Ok(world.bytes(5));
    world.give(ShareInput::Fetched { blob: blob.hash, piece: 5, result });
    assert_eq!(world.outputs.last(), Some(&ShareOutput::Whole(blob)));
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
    assert!(world.said(&ShareSay::Missed { blob, piece: 1, from: PEER, why: Missed::Bad }));
    assert!(!world.outputs.iter().any(|output| matches!(output, ShareOutput::Store { .. })));
}

#[test]
fn a_late_piece_is_dealt_anew_and_still_welcome() {
    let mut world = World::wanting(&[]);
    world.take(&[1], Some(PEER));
    world.wait(20);
    let blob = world.blob;
    assert!(world.said(&ShareSay::Missed { blob, piece: 1, from: PEER, why: Missed::Late }));
    world.came(1);
    assert_eq!(world.share.has(blob.hash), 1);
}

#[test]
fn a_coordinator_that_says_nothing_keeps_nobody_waiting() {
    let mut world = World::wanting(&[]);
    world.wait(60);
    for piece in 0..PIECES {
        let (blob, result) = (world.blob, Ok(world.bytes(piece)));
        assert!(world.outputs.contains(&ShareOutput::Fetch { blob, piece }), "piece {piece}");
        world.give(ShareInput::Fetched { blob: blob.hash, piece, result });
    }
    assert_eq!(world.outputs.last(), Some(&ShareOutput::Whole(world.blob)));
}

#[test]
fn a_coordinator_that_gives_nothing_is_asked_a_few_times() {
    let mut world = World::wanting(&[]);
    world.take(&[0], None);
    for _ in 0..10 {
        let (blob, result) = (world.blob.hash, Err("no".into()));
        world.give(ShareInput::Fetched { blob, piece: 0, result });
        world.wait(2);
    }
    let failed = world.outputs.iter().filter(|o| matches!(o, ShareOutput::Failed { .. })).count();
    assert_eq!(failed, 1);
}

#[test]
fn after_a_reconnect_it_says_again_what_it_has_and_needs() {
    let mut world = World::wanting(&[0, 5]);
    world.outputs.clear();
    world.give(ShareInput::Away);
    world.give(ShareInput::Joined);
    assert!(world.said(&ShareSay::Wants { blob: world.blob, has: vec![0b10_0001] }));
    let mut world = World::having();
    world.give(ShareInput::Joined);
    assert!(world.said(&ShareSay::Holds { blobs: vec![world.blob] }));
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
    world.give(ShareInput::Loaded { blob, piece, to: PEER, bytes: Some(&bytes) });
    assert_eq!(world.words(), [PieceWord::Here { blob, piece, bytes: &bytes }]);
    assert_eq!(world.share.exchanged().given, PIECE_BYTES);
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
    world.give(ShareInput::Near(PEER, false));
    let (blob, piece) = (world.blob.hash, 0);
    world.hear(&PieceWord::Ask { blob, piece });
    assert_eq!(world.words(), [PieceWord::Not { blob, piece }]);
}

#[test]
fn a_blob_that_is_dropped_is_not_given_any_more() {
    let mut world = World::having();
    world.allow();
    let (blob, piece) = (world.blob.hash, 0);
    world.give(ShareInput::Drop(blob));
    assert!(world.said(&ShareSay::Drops { blob: world.blob }));
    world.hear(&PieceWord::Ask { blob, piece });
    assert_eq!(world.words(), [PieceWord::Not { blob, piece }]);
}

#[test]
fn a_shelf_full_of_others_keeps_nobody_from_what_it_needs() {
    let mut world = World::new();
    let other = |n: usize| BlobRef { hash: Hash([n as u8; 32]), size: 8 * PIECE_BYTES };
    world.give(ShareInput::Have((10..200).map(other).collect()));
    let (blob, has) = (world.blob, PieceSet::new(PIECES));
    let hashes = (0..PIECES).map(|piece| hash(&world.bytes(piece))).collect();
    world.give(ShareInput::Want { blob, hashes, has });
    assert!(world.said(&ShareSay::Wants { blob, has: vec![0] }));
}

#[test]
fn garbage_is_heard_without_harm() {
    let mut world = World::wanting(&[]);
    for words in [&[][..], &[9; 50], &[1; 37], &[1; 100]] {
        world.give(ShareInput::Heard { from: PEER, words });
    }
    let blob = world.blob;
    world.give(ShareInput::Told(ShareTold::Take { blob, pieces: vec![u32::MAX], from: None }));
    let (hashes, has) = (Vec::new(), PieceSet::new(1));
    let other = BlobRef { hash: Hash([8; 32]), ..blob };
    world.give(ShareInput::Want { blob: other, hashes, has });
    assert!(matches!(world.outputs.last(), Some(ShareOutput::Failed { .. })));
}
