//! What is believed, and when.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, job};

fn checked(items: u64, verify: Verify) -> JobSpec {
    JobSpec { policy: Policy::checked(verify), sizing: Sizing::fixed(10), ..job(items) }
}

fn rejected(world: &World) -> Vec<NodeId> {
    let rejected = world.facts.iter().filter_map(|fact| {
        let Fact::Rejected { node, .. } = fact else { return None };
        Some(*node)
    });
    rejected.collect()
}

fn proofs(world: &World) -> Vec<Proof> {
    let proofs = world.facts.iter().filter_map(|fact| {
        let Fact::Checked { proof, .. } = fact else { return None };
        Some(proof.clone())
    });
    proofs.collect()
}

/// Every byte of the result is right: the answer 0 was merged everywhere.
fn assert_right(world: &World, id: JobId) {
    assert_eq!(world.state(id), JobState::Done);
    for (span, place) in world.scheduler.merged(id) {
        assert_eq!(place.unwrap().offset, 0, "items {span}");
    }
}

#[test]
fn a_quorum_waits_for_its_votes() {
    let mut world = World::new();
    let (a, b) = (world.join(1), world.join(2));
    let id = world.submit(checked(10, Verify::Quorum { votes: 3 }));
    world.work(&[(a, 0), (b, 0)]);
    assert_eq!((world.state(id), world.view(id).items_done), (JobState::Running, 0));
    let c = world.join(3);
    world.work(&[(c, 0)]);
    assert_right(&world, id);
    assert_eq!(proofs(&world)[0].by.len(), 2);
}

#[test]
fn a_quorum_outvotes_a_liar_and_the_liar_is_named() {
    let mut world = World::new();
    let (liar, b, c) = (world.join(1), world.join(2), world.join(3));
    let id = world.submit(checked(10, Verify::Quorum { votes: 2 }));
    let d = world.join(4);
    world.work(&[(liar, 9), (b, 0), (c, 0), (d, 0)]);
    assert_right(&world, id);
    assert_eq!(rejected(&world), [NodeId(1)]);
}

#[test]
fn where_nobody_else_is_left_two_outvote_one() {
    let mut world = World::new();
    let (liar, b, c) = (world.join(1), world.join(2), world.join(3));
    let id = world.submit(checked(10, Verify::Quorum { votes: 2 }));
    world.work(&[(liar, 9), (b, 0), (c, 0)]);
    world.wait(60_000);
    assert_right(&world, id);
    assert_eq!(rejected(&world), [NodeId(1)]);
}

#[test]
fn tabs_of_one_network_are_one_voice() {
    let mut world = World::new();
    let (a, b) = (world.join_from(1, 77), world.join_from(2, 77));
    let id = world.submit(checked(10, Verify::Quorum { votes: 2 }));
    world.work(&[(a, 0), (b, 0)]);
    assert_eq!(world.state(id), JobState::Running);
    let c = world.join_from(3, 78);
    world.work(&[(c, 0)]);
    assert_right(&world, id);
}

#[test]
fn a_voter_that_left_has_still_spoken_for_its_network() {
    let mut world = World::new();
    let a = world.join_from(1, 77);
    let id = world.submit(checked(10, Verify::Quorum { votes: 2 }));
    world.work(&[(a, 0)]);
    world.leave(a);
    let again = world.join_from(2, 77);
    world.work(&[(again, 0)]);
    assert_eq!(world.state(id), JobState::Running);
}

#[test]
fn two_liars_in_concert_do_not_outweigh_honest_newcomers() {
    let mut world = World::new();
    let nodes: Vec<_> = (1..=9).map(|n| (world.join(n), if n <= 2 { 9 } else { 0 })).collect();
    let id = world.submit(checked(200, Verify::Adaptive));
    world.work(&nodes);
    assert_right(&world, id);
    assert!(rejected(&world).iter().all(|node| node.0 <= 2));
}

#[test]
fn the_operators_own_node_decides_alone() {
    let mut world = World::new();
    let (liar, _) = (world.join(1), world.submit(checked(10, Verify::Adaptive)));
    let id = JobId(1);
    world.join_trusted(2);
    world.work(&[(liar, 9)]);
    assert_eq!(world.view(id).items_done, 0, "nobody confirmed it yet");
    world.work(&[(Conn(2), 0)]);
    assert_right(&world, id);
    assert_eq!(rejected(&world), [NodeId(1)]);
}

#[test]
fn the_operators_own_work_is_not_checked() {
    let mut world = World::new();
    let own = world.join_trusted(1);
    world.join(2);
    let id = world.submit(checked(10, Verify::Adaptive));
    world.work(&[(own, 0)]);
    if world.state(id) == JobState::Running {
        world.work(&[(Conn(2), 0)]);
        world.work(&[(own, 0)]);
    }
    assert_right(&world, id);
    assert!(proofs(&world)[0].vouched);
}

#[test]
fn alone_in_the_pool_a_node_is_believed_and_marked() {
    let mut world = World::new();
    let only = world.join(1);
    let id = world.submit(checked(100, Verify::Adaptive));
    world.work(&[(only, 0)]);
    assert_right(&world, id);
    assert!(proofs(&world).is_empty());
}

#[test]
fn two_strangers_alone_confirm_each_other_but_earn_no_trust_by_it() {
    let mut world = World::new();
    let (a, b) = (world.join(1), world.join(2));
    let id = world.submit(checked(1_000, Verify::Adaptive));
    world.work(&[(a, 0), (b, 0)]);
    assert_right(&world, id);
    let proofs = proofs(&world);
    assert_eq!(proofs.len(), 100, "all is checked");
    assert!(proofs.iter().all(|proof| !proof.sure), "two who may be one are not enough");
    assert_eq!(world.scheduler.trust_of(NodeId(1), Lane::Gpu), Trust::default());
}

#[test]
fn trust_survives_a_restart() {
    let mut world = World::new();
    let nodes: Vec<_> = (1..=8).map(|n| (world.join(n), 0)).collect();
    world.submit(checked(2_000, Verify::Adaptive));
    world.work(&nodes);
    let restarted = world.restarted();
    let trust = |world: &World, n| world.scheduler.trust_of(NodeId(n), Lane::Gpu);
    for n in 1..=8 {
        assert!(trust(&world, n).streak >= 10, "{:?}", trust(&world, n));
        assert_eq!(trust(&world, n), trust(&restarted, n));
    }
}

#[test]
fn whoever_earns_trust_and_then_lies_takes_its_work_with_it() {
    let mut world = World::new();
    let nodes: Vec<_> = (1..=8).map(|n| (world.join(n), 0)).collect();
    world.submit(checked(2_000, Verify::Adaptive));
    world.work(&nodes);
    let lying: Vec<_> = nodes.iter().map(|(n, _)| (*n, if n.0 == 3 { 9 } else { 0 })).collect();
    let id = world.submit(checked(4_000, Verify::Adaptive));
    world.work(&lying);
    assert_right(&world, id);
    assert!(rejected(&world).contains(&NodeId(3)));
    let unmerged = world.facts.iter().filter(|fact| matches!(fact, Fact::Unmerged { .. }));
    assert!(unmerged.count() > 0, "what it had been believed for was computed again");
}

#[test]
fn a_proven_liar_gets_no_more_work() {
    let mut world = World::new();
    let nodes: Vec<_> = (1..=8).map(|n| (world.join(n), if n == 1 { 9 } else { 0 })).collect();
    world.submit(checked(400, Verify::Quorum { votes: 3 }));
    world.work(&nodes);
    assert!(world.scheduler.trust_of(NodeId(1), Lane::Gpu).is_barred());
    world.submit(job(1_000));
    assert!(world.held_by(Conn(1)).is_empty());
}

#[test]
fn a_program_that_plays_dice_fails_its_job_and_nobody_is_blamed() {
    let mut world = World::new();
    let nodes: Vec<_> = (1..=8).map(|n| (world.join(n), n as u8)).collect();
    let id = world.submit(checked(10, Verify::Quorum { votes: 3 }));
    world.work(&nodes);
    assert_eq!(world.state(id), JobState::Failed);
    let failure = world.view(id).failure.unwrap().failure.to_string();
    assert!(failure.contains("do not agree"), "{failure}");
    assert!(rejected(&world).is_empty());
}

#[test]
fn new_nodes_are_checked_whole_and_old_hands_in_parts_that_nobody_could_foresee() {
    let mut world = World::new();
    let own = world.join_trusted(1);
    let stranger = world.join(2);
    let spec = JobSpec { sizing: Sizing::loose(1, 64), ..checked(6_400, Verify::Adaptive) };
    let id = world.submit(JobSpec { strategy: Strategy::RoundRobin, ..spec });
    let mut parts = 0;
    for _ in 0..400 {
        let lease = world.answer_with(own, 0);
        let part = lease.is_some_and(|lease| lease.span.len == 8);
        let old_hand = world.scheduler.trust_of(NodeId(2), Lane::Gpu).is_veteran();
        assert!(!part || old_hand, "a small lie of a new node must not hide");
        parts += usize::from(part);
        world.answer_with(stranger, 0);
    }
    assert_right(&world, id);
    assert!(parts > 0, "{parts}");
}

#[test]
fn an_unreadable_answer_is_asked_for_again_and_nobody_is_blamed() {
    let mut world = World::new();
    let (a, b) = (world.join(1), world.join(2));
    let mut spec = checked(10, Verify::Quorum { votes: 2 });
    spec.policy.tolerance = Tolerance::usual(Dtype::F32);
    let id = world.submit(spec);
    world.unreadable = true;
    for conn in [a, b] {
        let class = conn.0;
        let caps = Caps { class, ..crate::world::caps(100) };
        world.say(conn, FromNode::Caps(caps));
    }
    world.answer_with(a, 0);
    world.answer_with(b, 1);
    assert_eq!(world.state(id), JobState::Running);
    world.unreadable = false;
    let c = world.join(3);
    world.work(&[(b, 0), (c, 0)]);
    assert_right(&world, id);
    assert!(rejected(&world).is_empty());
}

#[test]
fn a_spot_check_finds_what_it_looks_at() {
    let mut world = World::new();
    let nodes: Vec<_> = (1..=5).map(|n| (world.join(n), if n == 1 { 9 } else { 0 })).collect();
    let id = world.submit(checked(2_000, Verify::Spot { per_million: 300_000 }));
    world.work(&nodes);
    assert_right(&world, id);
    let checks = proofs(&world).len();
    assert!((30..120).contains(&checks), "{checks} of 200 units");
}

#[test]
fn at_every_fact_a_crash_leaves_nothing_merged_without_its_votes() {
    let mut world = World::new();
    let nodes: Vec<_> = (1..=5).map(|n| (world.join(n), if n == 1 { 9 } else { 0 })).collect();
    let id = world.submit(checked(100, Verify::Quorum { votes: 3 }));
    world.work(&nodes);
    for cut in 0..=world.facts.len() {
        let replayed = Scheduler::replay(world.facts[..cut].iter().cloned());
        replayed.check();
        for (span, place) in replayed.merged(id) {
            assert_eq!(place.unwrap().offset, 0, "items {span} after {cut} facts");
        }
    }
}
