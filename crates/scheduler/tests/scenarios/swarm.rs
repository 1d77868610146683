//! Blobs that nodes give each other: who gets which piece from where.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use shoal_protocol::limit::PIECE_BYTES;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::World;

const PIECES: u32 = 16;
const ALL: [u32; PIECES as usize] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const BLOB: BlobRef = BlobRef { hash: Hash([9; 32]), size: PIECES as u64 * PIECE_BYTES };

/// Nodes that do at once what they are told, and say so.
#[derive(Default)]
struct Swarm {
    world: Option<World>,
    /// Pieces by node, and where each came from.
    took: BTreeMap<Conn, Vec<(u32, Option<NodeId>)>>,
    /// These give wrong bytes; these nothing at all.
    liars: Vec<NodeId>,
    mute: Vec<NodeId>,
}

impl Swarm {
    fn new() -> Swarm {
        let mut world = World::new();
        world.give(Input::Stored { blob: BLOB });
        Swarm { world: Some(world), ..Swarm::default() }
    }

    fn world(&mut self) -> &mut World {
        self.world.as_mut().unwrap()
    }

    fn say(&mut self, conn: Conn, say: SwarmSay) {
        self.world().say(conn, FromNode::Swarm(say));
    }

    fn wants(&mut self, n: u64) -> Conn {
        self.part(n, &[], &ALL)
    }

    /// A node comes that has some pieces and needs others.
    fn part(&mut self, n: u64, has: &[u32], needs: &[u32]) -> Conn {
        let conn = self.world().able(n, 1);
        self.say_part(conn, has, needs);
        conn
    }

    fn say_part(&mut self, conn: Conn, has: &[u32], needs: &[u32]) {
        let words = |pieces: &[u32]| vec![pieces.iter().map(|piece| 1 << piece).sum()];
        self.say(conn, SwarmSay::Part { blob: BLOB, has: words(has), needs: words(needs) });
    }

    /// The pieces a node took, in order.
    fn pieces(&self, conn: Conn) -> Vec<u32> {
        let took = self.took.get(&conn).into_iter().flatten();
        let mut pieces: Vec<_> = took.map(|(piece, _)| *piece).collect();
        pieces.sort_unstable();
        pieces
    }

    /// All nodes that were called together find a direct way.
    fn meet(&mut self) {
        let calls: Vec<_> = std::mem::take(&mut self.world().calls);
        for (conn, enlist) in calls {
            assert_eq!(enlist.task, CrewTask::Swarm);
            let other = enlist.members[1 - usize::from(enlist.rank)].node;
            self.say(conn, SwarmSay::Near { node: other, near: true });
        }
    }

    /// Whoever was told to take pieces takes them; whether there were any.
    fn turn(&mut self) -> bool {
        let told = std::mem::take(&mut self.world().shared);
        let some = !told.is_empty();
        for (conn, told) in told {
            let SwarmTold::Take { blob, pieces, from } = told else { continue };
            for piece in pieces {
                let fault = |list: &[NodeId]| from.filter(|from| list.contains(from));
                if let Some(from) = fault(&self.mute) {
                    self.say(conn, SwarmSay::Missed { blob, piece, from, why: Missed::Late });
                } else if let Some(from) = fault(&self.liars) {
                    self.say(conn, SwarmSay::Missed { blob, piece, from, why: Missed::Bad });
                } else {
                    self.took.entry(conn).or_default().push((piece, from));
                    self.say(conn, SwarmSay::Got { blob, piece, from });
                }
            }
        }
        some
    }

    /// Until everybody has everything.
    fn run(&mut self) {
        for _ in 0..1000 {
            if self.world().scheduler.swarms().waiting == 0 {
                return;
            }
            self.meet();
            if !self.turn() {
                self.world().wait(500);
            }
        }
        panic!("somebody waits in vain");
    }

    fn fetched(&self) -> usize {
        let all = self.took.values().flatten();
        all.filter(|(_, from)| from.is_none()).count()
    }
}

#[test]
fn the_coordinator_hands_out_each_piece_once_and_nodes_give_each_other_the_rest() {
    let mut swarm = Swarm::new();
    for n in 1..=10 {
        swarm.wants(n);
    }
    swarm.run();
    assert_eq!(swarm.took.values().map(Vec::len).sum::<usize>(), 10 * PIECES as usize);
    assert_eq!(swarm.fetched(), PIECES as usize);
    let between = swarm.world().scheduler.swarms().between;
    assert_eq!(between, 9 * u64::from(PIECES) * PIECE_BYTES);
}

#[test]
fn a_latecomer_gets_everything_from_those_who_have_it() {
    let mut swarm = Swarm::new();
    for n in 1..=3 {
        swarm.wants(n);
    }
    swarm.run();
    let late = swarm.wants(4);
    swarm.run();
    assert!(swarm.took[&late].iter().all(|(_, from)| from.is_some()));
}

#[test]
fn a_node_that_says_again_what_it_has_gives_it_after_a_restart() {
    let mut swarm = Swarm::new();
    let holder = swarm.world().able(1, 1);
    swarm.say(holder, SwarmSay::Holds { blobs: vec![BLOB] });
    swarm.wants(2);
    swarm.run();
    assert_eq!(swarm.fetched(), 0);
}

#[test]
fn a_node_starts_from_the_pieces_it_has() {
    let mut swarm = Swarm::new();
    let conn = swarm.part(1, &[0, 1, 2, 3], &ALL);
    swarm.run();
    assert_eq!(swarm.took[&conn].len(), PIECES as usize - 4);
}

#[test]
fn each_gets_the_pieces_it_needs_and_no_others() {
    let mut swarm = Swarm::new();
    let needs: [&[u32]; 4] = [&[0, 1, 2], &[2, 3], &[9], &ALL];
    let nodes: Vec<_> = (1..).zip(needs).map(|(n, needs)| swarm.part(n, &[], needs)).collect();
    swarm.run();
    for (conn, needs) in nodes.into_iter().zip(needs) {
        assert_eq!(swarm.pieces(conn), needs);
    }
    assert_eq!(swarm.fetched(), PIECES as usize, "each came from the coordinator once");
}

#[test]
fn a_holder_of_a_part_gives_it_and_the_coordinator_the_rest() {
    let mut swarm = Swarm::new();
    swarm.part(1, &[4, 5, 6], &[]);
    let node = swarm.part(2, &[], &[3, 4, 5]);
    swarm.run();
    let mut took = swarm.took[&node].clone();
    took.sort_unstable();
    assert_eq!(took, [(3, None), (4, Some(NodeId(1))), (5, Some(NodeId(1)))]);
}

#[test]
fn holders_of_parts_make_a_whole_together() {
    let mut swarm = Swarm::new();
    swarm.part(1, &ALL[..8], &[]);
    swarm.part(2, &ALL[8..], &[]);
    let node = swarm.wants(3);
    swarm.run();
    assert_eq!((swarm.pieces(node), swarm.fetched()), (ALL.to_vec(), 0));
}

#[test]
fn two_who_need_different_parts_do_not_meet() {
    let mut swarm = Swarm::new();
    let nodes = [swarm.part(1, &[], &ALL[..8]), swarm.part(2, &[], &ALL[8..])];
    assert!(swarm.world().calls.is_empty());
    swarm.run();
    assert!(nodes.iter().all(|conn| swarm.took[conn].len() == 8));
    swarm.say_part(nodes[0], &ALL[..8], &[12]);
    swarm.run();
    assert_eq!(swarm.took[&nodes[0]].last(), Some(&(12, Some(NodeId(2)))));
}

#[test]
fn what_is_on_its_way_is_not_dealt_again_when_a_node_needs_more() {
    let mut swarm = Swarm::new();
    let node = swarm.part(1, &[], &[3]);
    assert_eq!(swarm.world().shared.len(), 1);
    swarm.say_part(node, &[], &[3, 4]);
    swarm.run();
    assert_eq!(swarm.took[&node], [(3, None), (4, None)]);
}

#[test]
fn a_piece_that_a_holder_lost_comes_from_elsewhere() {
    let mut swarm = Swarm::new();
    let holder = swarm.world().able(1, 1);
    swarm.say(holder, SwarmSay::Holds { blobs: vec![BLOB] });
    swarm.say_part(holder, &ALL[1..], &[]);
    let node = swarm.wants(2);
    swarm.run();
    let from_coordinator = swarm.took[&node].iter().filter(|(_, from)| from.is_none());
    assert_eq!(from_coordinator.map(|(piece, _)| *piece).collect::<Vec<_>>(), [0]);
}

#[test]
fn without_a_direct_way_the_coordinator_gives_everything() {
    let mut swarm = Swarm::new();
    let nodes = [1, 2].map(|n| swarm.wants(n));
    for _ in 0..1000 {
        swarm.turn();
        swarm.world().calls.clear();
        swarm.world().wait(500);
    }
    assert!(nodes.iter().all(|conn| swarm.took[conn].len() == PIECES as usize));
    assert!(swarm.world().crews.dismissed.len() >= 2, "the two are parted");
}

#[test]
fn a_vanished_holder_is_replaced() {
    let mut swarm = Swarm::new();
    let holder = swarm.world().able(1, 1);
    swarm.say(holder, SwarmSay::Holds { blobs: vec![BLOB] });
    let node = swarm.wants(2);
    swarm.meet();
    assert!(!swarm.world().shared.is_empty());
    // What it was told to take from the holder does not come.
    swarm.world().shared.clear();
    swarm.world().leave(holder);
    swarm.run();
    assert_eq!(swarm.took[&node].len(), PIECES as usize);
    assert_eq!(swarm.fetched(), PIECES as usize);
}

#[test]
fn a_holder_that_gives_nothing_is_asked_once() {
    let mut swarm = Swarm::new();
    let holder = swarm.world().able(1, 1);
    swarm.say(holder, SwarmSay::Holds { blobs: vec![BLOB] });
    swarm.mute.push(NodeId(1));
    let node = swarm.wants(2);
    swarm.run();
    assert_eq!(swarm.took[&node].len(), PIECES as usize);
}

#[test]
fn two_who_got_wrong_bytes_are_believed_and_one_is_not() {
    let mut swarm = Swarm::new();
    let liar = swarm.world().able(1, 1);
    swarm.say(liar, SwarmSay::Holds { blobs: vec![BLOB] });
    swarm.liars.push(NodeId(1));
    swarm.wants(2);
    swarm.run();
    let wrong = |swarm: &mut Swarm| {
        let now = swarm.world().now;
        swarm.world().scheduler.nodes(now)[0].gave_wrong
    };
    assert_eq!(wrong(&mut swarm), 1);
    swarm.wants(3);
    swarm.run();
    swarm.wants(4);
    swarm.run();
    assert!(wrong(&mut swarm) <= 2, "after two nobody is sent to it");
}

#[test]
fn who_was_not_sent_there_cannot_complain() {
    let mut swarm = Swarm::new();
    let (holder, node) = (swarm.world().able(1, 1), swarm.wants(2));
    swarm.say(holder, SwarmSay::Holds { blobs: vec![BLOB] });
    let from = NodeId(1);
    swarm.say(node, SwarmSay::Missed { blob: BLOB, piece: 0, from, why: Missed::Bad });
    let now = swarm.world().now;
    assert_eq!(swarm.world().scheduler.nodes(now)[0].gave_wrong, 0);
}

#[test]
fn a_donor_who_pauses_or_runs_on_battery_gives_nothing() {
    for battery in [false, true] {
        let mut swarm = Swarm::new();
        let holder = swarm.world().able(1, 1);
        swarm.say(holder, SwarmSay::Holds { blobs: vec![BLOB] });
        swarm.wants(2);
        swarm.meet();
        swarm.world().shared.clear();
        let condition = Condition { battery_percent: Some(90), ..Condition::default() };
        let message = if battery { FromNode::Condition(condition) } else { FromNode::Pause(true) };
        swarm.world().say(holder, message);
        swarm.wants(3);
        swarm.run();
        let given = swarm.took.values().flatten().filter(|(_, from)| *from == Some(NodeId(1)));
        assert!(given.count() == 0, "battery: {battery}");
    }
}

#[test]
fn small_blobs_and_impossible_sizes_have_no_books() {
    let mut swarm = Swarm::new();
    let conn = swarm.world().able(1, 1);
    for size in [0, 1, PIECE_BYTES, u64::MAX] {
        let blob = BlobRef { hash: Hash([1; 32]), size };
        swarm.say(conn, SwarmSay::Part { blob, has: Vec::new(), needs: vec![u64::MAX] });
        swarm.say(conn, SwarmSay::Holds { blobs: vec![blob; 3] });
        swarm.say(conn, SwarmSay::Got { blob, piece: u32::MAX, from: Some(NodeId(77)) });
    }
    assert_eq!(swarm.world().scheduler.swarms().blobs, 0);
}
