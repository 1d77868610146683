//! What people are told.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::{Checked, Input, JobState};

use crate::world::{World, job};

fn words<W: ToString>(why: Vec<W>) -> String {
    why.iter().map(W::to_string).collect::<Vec<_>>().join("; ")
}

fn checked(items: u64) -> JobSpec {
    JobSpec { policy: Policy::checked(Verify::Adaptive), ..job(items) }
}

fn quorum(items: u64, votes: u16) -> JobSpec {
    let policy = Policy::checked(Verify::Quorum { votes });
    JobSpec { policy, sizing: Sizing::fixed(10), ..job(items) }
}

#[test]
fn a_job_says_that_nobody_could_compute_it() {
    let mut world = World::new();
    let id = world.submit(job(100));
    assert_eq!(
        words(world.scheduler.explain_job(id)),
        "no connected node can compute it; 100 items are waiting for a node"
    );
    let waits = |world: &World| world.scheduler.waiting_for(id).map(|why| why.to_string());
    assert_eq!(waits(&world).as_deref(), Some("no connected node can compute it"));
    let node = world.join(1);
    assert_eq!(waits(&world), None);
    world.finish(&[(node, 10)]);
    assert_eq!((world.state(id), waits(&world)), (JobState::Done, None));
}

#[test]
fn who_left_is_remembered_with_what_it_did() {
    let mut world = World::new();
    let (one, own, idle) = (world.join(1), world.join_trusted(2), world.join(3));
    world.submit(JobSpec { sizing: Sizing::fixed(10), ..job(20) });
    world.work(&[(one, 0)]);
    for conn in [one, own, idle] {
        world.leave(conn);
    }
    world.wait(3 * 3_600_000);
    let gone: Vec<_> = world.scheduler.gone();
    let gone: Vec<_> = gone.iter().map(|it| (it.node.0, it.seen.units, it.seen.trusted)).collect();
    // The stranger that did nothing is not.
    assert_eq!(gone, [(1, 2, false), (2, 0, true)]);
    let why = words(world.scheduler.explain_node(NodeId(1)));
    assert!(why.contains("not connected; it was last here 3 hours ago; 2 units"), "{why}");
    // The same after a restart; the number of the one that nobody remembers is not given again.
    let mut world = world.restarted();
    assert_eq!(world.scheduler.gone().len(), 2);
    assert!(world.scheduler.explain_node(NodeId(3)).is_empty());
    world.join(4);
    assert!(world.scheduler.nodes(Time(0)).iter().all(|node| node.node > NodeId(3)));
}

#[test]
fn a_quorum_says_how_many_voices_it_lacks() {
    let mut world = World::new();
    let (a, _b) = (world.join_from(1, 7), world.join_from(2, 7));
    let id = world.submit(quorum(10, 3));
    world.work(&[(a, 0)]);
    let why = words(world.scheduler.explain_job(id));
    assert!(why.contains("needs 3 nodes of different owners and has 1"), "{why}");
    let why = words(world.scheduler.explain_unit(id, 3));
    assert!(why.contains("one node answered; it waits for another"), "{why}");
}

#[test]
fn a_unit_says_who_computed_and_who_agreed() {
    let mut world = World::new();
    let nodes: Vec<_> = (1..=3).map(|n| (world.join(n), 0)).collect();
    let id = world.submit(quorum(10, 3));
    world.work(&nodes);
    let why = words(world.scheduler.explain_unit(id, 9));
    let said = "items 0..10 were computed by node 1; agreed by 3 devices: nodes 1, 2, 3";
    assert!(why.contains(said), "{why}");
    assert!(world.scheduler.explain_unit(id, 10).is_empty());
    let why = words(world.scheduler.explain_job(id));
    assert_eq!(why, "done: 1 unit agreed by 3 devices");
}

#[test]
fn what_only_the_operators_own_node_computed_is_not_called_checked() {
    let mut world = World::new();
    let own = world.join_trusted(1);
    let id = world.submit(JobSpec { sizing: Sizing::fixed(10), ..checked(110) });
    world.work(&[(own, 0)]);
    assert_eq!(world.view(id).checked, Checked { others: 0, own: 11, nobody: 0 });
    let why = words(world.scheduler.explain_job(id));
    assert_eq!(why, "done: 11 units computed by your own devices, not checked");
    let why = words(world.scheduler.explain_unit(id, 3));
    assert!(why.ends_with("by node 1; computed by your own device, not checked"), "{why}");
    assert_eq!(world.restarted().view(id).checked, world.view(id).checked);
}

#[test]
fn what_a_stranger_alone_computed_is_not_checked() {
    let mut world = World::new();
    let stranger = world.join(1);
    let id = world.submit(JobSpec { sizing: Sizing::fixed(10), ..checked(20) });
    world.work(&[(stranger, 0)]);
    while world.view(id).state == JobState::Running {
        world.wait(100);
    }
    assert_eq!(world.view(id).checked, Checked { others: 0, own: 0, nobody: 2 });
    assert_eq!(words(world.scheduler.explain_job(id)), "done: 2 units not checked");
    let why = words(world.scheduler.explain_unit(id, 3));
    assert!(why.ends_with("not checked: no other device computed it"), "{why}");
}

#[test]
fn an_answer_that_one_other_gave_too_is_checked_by_another() {
    let mut world = World::new();
    let stranger = world.join(1);
    let id = world.submit(JobSpec { sizing: Sizing::fixed(10), ..checked(10) });
    let own = world.join_trusted(2);
    world.work(&[(stranger, 0), (own, 0)]);
    assert_eq!(world.view(id).checked, Checked { others: 1, own: 0, nobody: 0 });
    let why = words(world.scheduler.explain_unit(id, 3));
    assert!(why.ends_with("by node 1; checked by another device: node 2"), "{why}");
    let why = words(world.scheduler.explain_job(id));
    assert_eq!(why, "done: 1 unit checked by another device");
}

#[test]
fn a_node_says_what_its_word_is_worth() {
    let mut world = World::new();
    let nodes: Vec<_> = (1..=7).map(|n| (world.join(n), if n == 1 { 9 } else { 0 })).collect();
    world.submit(quorum(400, 2));
    world.work(&nodes);
    let liar = words(world.scheduler.explain_node(NodeId(1)));
    assert!(liar.contains("of its GPU answers were wrong: it gets no more"), "{liar}");
    let honest = words(world.scheduler.explain_node(NodeId(2)));
    assert!(honest.contains("GPU answers were right"), "{honest}");
}

#[test]
fn a_receipt_has_everybody_and_everything_and_survives_a_restart() {
    let mut world = World::new();
    let nodes: Vec<_> = (1..=3).map(|n| (world.join(n), 0)).collect();
    let id = world.submit(quorum(40, 2));
    world.work(&nodes);
    let receipt = world.scheduler.receipt(id).unwrap();
    assert_eq!(receipt.units.iter().map(|unit| unit.span.len).sum::<u64>(), 40);
    assert!(receipt.units.iter().all(|unit| unit.proof.as_ref().unwrap().by.len() == 1));
    assert!(receipt.units.iter().all(|unit| unit.at > receipt.submitted));
    assert_eq!(receipt.nodes.iter().map(|node| node.class).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(world.restarted().scheduler.receipt(id), Some(receipt));
}

#[test]
fn a_crews_past_is_told_from_facts_after_a_restart() {
    let (mut world, nodes, id) = crate::crew_world::three();
    let called = world.now;
    world.keep_all(10);
    world.keep_all(20);
    world.leave(nodes[1]);
    world.crews.enlisted.remove(&nodes[1]);
    world.keep_all(30);
    let mut world = world.restarted();
    let why = words(world.scheduler.explain_job(id));
    let past = [
        "epoch 1: a crew computed from step 0 on",
        "epoch 1: all rows were stored after step 20",
        "epoch 2: a crew computed from step 20 on",
        "epoch 2: all rows were stored after step 30",
        "epoch 2: the coordinator started again; of before only facts are known",
    ];
    let known: Vec<_> = past.iter().filter_map(|line| why.find(line)).collect();
    assert!(known.len() == past.len() && known.is_sorted(), "{why}");
    assert!(!why.contains("after step 10"), "of an epoch the last one is enough: {why}");
    let first = world.view(id).crew.unwrap().changes[0].at;
    assert_eq!(first, called, "facts tell the time, too");
    world.give(Input::Cancel { job: id });
    let why = words(world.restarted().scheduler.explain_job(id));
    assert!(why.contains(past[0]) && why.contains(past[3]), "also of one that has ended: {why}");
}
