//! What a node may say for nothing costs next to nothing: claims about blobs, and changing its mind.
#![allow(clippy::unwrap_used)]

use shoal_protocol::limit::{MAX_SHARED_BLOBS, PIECE_BYTES};
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, caps, hello, job};

const PIECES: u32 = 16;
const BLOB: BlobRef = BlobRef { hash: Hash([9; 32]), size: PIECES as u64 * PIECE_BYTES };
const HUGE: u64 = 64 << 30;

fn share(say: SwarmSay) -> FromNode {
    FromNode::Swarm(say)
}

/// All of it is needed, and nothing is here.
fn wants(blob: BlobRef) -> SwarmSay {
    SwarmSay::Part { blob, has: Vec::new(), needs: vec![u64::MAX; 1024] }
}

fn invented() -> Vec<BlobRef> {
    let blob = |n: usize| BlobRef { hash: Hash([n as u8; 32]), size: HUGE };
    (0..MAX_SHARED_BLOBS).map(blob).collect()
}

#[test]
fn claims_about_blobs_that_are_not_stored_leave_no_trace() {
    let mut world = World::new();
    for n in 1..=63 {
        let conn = world.able(n, 1);
        world.say(conn, share(SwarmSay::Holds { blobs: invented() }));
        for blob in invented() {
            let (has, needs) = (vec![u64::MAX; 1024], vec![7; 1024]);
            world.say(conn, share(SwarmSay::Part { blob, has, needs }));
            world.say(conn, share(SwarmSay::Got { blob, piece: 7, from: None }));
        }
    }
    assert_eq!(world.scheduler.swarms(), SwarmView::default());
    assert!(world.shared.is_empty() && world.calls.is_empty());
}

#[test]
fn the_size_of_a_blob_is_the_stored_one_and_not_the_claimed_one() {
    let mut world = World::new();
    world.give(Input::Stored { blob: BLOB });
    let (liar, node) = (world.able(1, 1), world.able(2, 1));
    let blob = BlobRef { size: HUGE, ..BLOB };
    world.say(liar, share(SwarmSay::Holds { blobs: vec![blob] }));
    world.say(node, share(wants(blob)));
    assert_eq!(world.scheduler.swarms(), SwarmView::default());
    world.say(node, share(wants(BLOB)));
    assert_eq!(world.scheduler.swarms().blobs, 1);
    assert!(!world.shared.is_empty(), "nobody helps it, so the coordinator does");
}

#[test]
fn books_end_with_the_last_who_has_a_part() {
    let mut world = World::new();
    world.give(Input::Stored { blob: BLOB });
    let conn = world.able(1, 1);
    world.say(conn, share(SwarmSay::Holds { blobs: vec![BLOB] }));
    assert_eq!(world.scheduler.swarms().blobs, 1);
    world.leave(conn);
    assert_eq!(world.scheduler.swarms().blobs, 0);
}

#[test]
fn a_donor_who_pauses_and_goes_on_a_thousand_times_bothers_others_once() {
    let mut world = World::new();
    world.give(Input::Stored { blob: BLOB });
    let (holder, node) = (world.able(1, 1), world.able(2, 1));
    world.say(holder, share(SwarmSay::Holds { blobs: vec![BLOB] }));
    world.say(node, share(wants(BLOB)));
    assert_eq!(world.calls.len(), 2, "the two are called together");
    for n in 0..1000 {
        world.say(holder, FromNode::Pause(n % 2 == 0));
    }
    assert_eq!((world.calls.len(), world.crews.dismissed.len()), (2, 2));
    world.wait(500);
    assert_eq!(world.calls.len(), 4, "they meet again when swarms are looked at");
}

#[test]
fn saying_the_same_again_changes_nothing() {
    let mut world = World::new();
    let node = world.join(1);
    world.submit(job(1_000));
    let hidden = Condition { visible: false, ..Condition::default() };
    world.say(node, FromNode::Condition(hidden));
    let lent = world.lent.len();
    for _ in 0..100 {
        world.say(node, FromNode::Condition(hidden));
        world.say(node, FromNode::Pause(false));
    }
    assert_eq!(world.lent.len(), lent);
}

/// Nodes that do at once what they are told, without a check after each step: that costs more than the steps.
struct Crowd {
    scheduler: Scheduler,
    now: Time,
    blob: BlobRef,
    /// Who has to be told what, oldest first.
    told: Vec<(Conn, ToNode)>,
}

impl Crowd {
    /// Everybody needs everything.
    fn new(nodes: u64, pieces: u32) -> Crowd {
        Crowd::wanting(nodes, pieces, |_| PieceSet::full(pieces))
    }

    fn wanting(nodes: u64, pieces: u32, needs: impl Fn(u64) -> PieceSet) -> Crowd {
        let blob = BlobRef { hash: Hash([9; 32]), size: u64::from(pieces) * PIECE_BYTES };
        let (scheduler, now) = (Scheduler::new(), Time(1_000_000_000));
        let mut crowd = Crowd { scheduler, now, blob, told: Vec::new() };
        crowd.give(Input::Start { seed: 7 });
        crowd.give(Input::Stored { blob });
        for n in 1..=nodes {
            let (conn, session) = (Conn(n), String::new());
            let mut hello = hello(0, caps(100), Vec::new());
            hello.identity.0[..8].copy_from_slice(&n.to_le_bytes());
            crowd.give(Input::Connected { conn, hello, session, trusted: false, network: 0 });
            let key = LinkKey([n as u8; 32]);
            let proof = Signature([0; 32], [0; 32]);
            crowd.say(conn, FromNode::Links { key, proof });
            let needs = needs(n).words();
            crowd.say(conn, share(SwarmSay::Part { blob, has: Vec::new(), needs }));
        }
        crowd
    }

    fn say(&mut self, conn: Conn, message: FromNode) {
        self.give(Input::Said { conn, message });
    }

    fn give(&mut self, input: Input) {
        self.scheduler.handle(self.now, input);
        while let Some(output) = self.scheduler.poll_output() {
            if let Output::Send { conn, message } = output {
                self.told.push((conn, message));
            }
        }
    }

    fn act(&mut self, conn: Conn, message: ToNode) {
        if let ToNode::Enlist(enlist) = &message {
            let node = enlist.members[1 - usize::from(enlist.rank)].node;
            self.say(conn, share(SwarmSay::Near { node, near: true }));
        }
        if let ToNode::Swarm(SwarmTold::Take { blob, pieces, from }) = message {
            for piece in pieces {
                self.say(conn, share(SwarmSay::Got { blob, piece, from }));
            }
        }
    }

    /// Until all have all; gives how many words were heard.
    fn run(&mut self) -> u64 {
        let mut words = 0;
        while self.scheduler.swarms().waiting > 0 {
            let told = std::mem::take(&mut self.told);
            words += told.len() as u64;
            if told.is_empty() {
                self.now = self.now + Micros::from_millis(500);
                self.give(Input::Tick);
            }
            told.into_iter().for_each(|(conn, message)| self.act(conn, message));
        }
        self.scheduler.check();
        words
    }
}

#[test]
fn a_large_blob_reaches_a_crowd_mostly_from_each_other() {
    let mut crowd = Crowd::new(40, 128);
    crowd.run();
    let between = crowd.scheduler.swarms().between;
    assert!(between > 38 * crowd.blob.size, "{} of 40 copies", between / crowd.blob.size);
}

#[test]
fn those_who_need_the_same_tenth_get_it_from_each_other() {
    let tenth = |n: u64| {
        let mut needs = PieceSet::new(200);
        (0..20).for_each(|at| assert!(needs.insert((n % 10) as u32 * 20 + at)));
        needs
    };
    let mut crowd = Crowd::wanting(100, 200, tenth);
    crowd.run();
    let between = crowd.scheduler.swarms().between;
    let all = 100 * 20 * PIECE_BYTES;
    assert!(between > all * 8 / 10, "{} of {} pieces", between / PIECE_BYTES, all / PIECE_BYTES);
}
