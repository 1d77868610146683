//! Whose code runs here.

use shoal_node::*;
use shoal_protocol::*;

use crate::world::World;

const ASKER: PublicKey = PublicKey([5; 32]);

fn signed() -> Option<Signed> {
    Some(Signed { by: ASKER, signature: Signature([0; 32], [0; 32]) })
}

fn told() -> World {
    let mut world = World::joined();
    world.hear(ToNode::Forget(JobId(1)));
    world.tell(signed());
    world
}

fn rules(only: &[PublicKey], never: &[PublicKey]) -> Input {
    Input::Rules(Rules { only: only.to_vec(), never: never.to_vec() })
}

#[test]
fn the_greeting_waits_for_the_challenge_and_proves_the_identity() {
    let mut world = World::new();
    world.give(Input::Start);
    world.give(Input::Opened);
    assert!(world.said.is_empty(), "the coordinator speaks first");
    let (nonce, coordinator) = ([8; 32], PublicKey([2; 32]));
    world.hear(ToNode::Challenge { nonce, coordinator });
    assert_eq!(world.to_sign, [sign::join_statement(&coordinator, &nonce)]);
    world.sign();
    let FromNode::Hello(hello) = &world.said[0] else { panic!("no greeting") };
    assert_eq!(hello.proof, Signature([3; 32], [4; 32]));
}

#[test]
fn a_signature_for_an_earlier_connection_is_not_sent() {
    let mut world = World::new();
    world.give(Input::Start);
    world.give(Input::Opened);
    world.hear(ToNode::Challenge { nonce: [8; 32], coordinator: PublicKey([2; 32]) });
    let statement = world.to_sign.remove(0);
    world.give(Input::Closed);
    world.wait(60_000);
    world.give(Input::Opened);
    world.hear(ToNode::Challenge { nonce: [9; 32], coordinator: PublicKey([2; 32]) });
    world.give(Input::Signed { statement, proof: Signature([3; 32], [4; 32]) });
    assert!(world.said.is_empty());
}

#[test]
fn nothing_runs_before_its_code_was_checked() {
    let mut world = told();
    world.lend(1..3);
    assert_eq!((world.to_check.as_slice(), world.runs.len()), ([JobId(1)].as_slice(), 0));
    world.give(Input::Checked { job: JobId(1), result: Ok(()) });
    assert_eq!(world.runs.len(), 1);
}

#[test]
fn changed_code_is_refused_by_the_node_now_and_later() {
    let mut world = told();
    world.lend(1..2);
    world.give(Input::Checked { job: JobId(1), result: Err("other bytes".into()) });
    world.lend(2..3);
    assert!(world.runs.is_empty());
    let failures = world.said.iter().filter(|message| {
        matches!(message, FromNode::Failed { failure: Failure::Signature { .. }, .. })
    });
    assert_eq!(failures.count(), 2);
}

#[test]
fn a_donor_declines_somebodys_work_and_takes_it_again() {
    let mut world = told();
    world.give(Input::Checked { job: JobId(1), result: Ok(()) });
    world.lend(1..4);
    world.give(rules(&[], &[ASKER]));
    assert_eq!(world.aborted, [Attempt(1)]);
    let declined = FromNode::Declined { job: JobId(1), declined: true };
    assert!(world.said.contains(&declined));
    assert!(world.said.contains(&FromNode::Returned(vec![Attempt(2), Attempt(3), Attempt(1)])));
    world.lend(4..5);
    assert_eq!(world.runs.len(), 1, "nothing of theirs any more");
    world.give(rules(&[ASKER], &[]));
    world.give(Input::Checked { job: JobId(1), result: Ok(()) });
    assert!(world.said.contains(&FromNode::Declined { job: JobId(1), declined: false }));
    world.lend(5..6);
    assert_eq!(world.runs.len(), 2);
}

#[test]
fn with_a_list_of_keys_all_others_are_declined_at_once() {
    let mut world = World::joined();
    world.give(rules(&[PublicKey([6; 32])], &[]));
    world.hear(ToNode::Forget(JobId(1)));
    world.tell(signed());
    assert_eq!(world.said.last(), Some(&FromNode::Declined { job: JobId(1), declined: true }));
    assert!(world.to_check.is_empty());
}

#[test]
fn a_verdict_about_other_code_with_the_same_number_counts_for_nothing() {
    let mut world = told();
    world.hear(ToNode::Forget(JobId(1)));
    world.tell(signed());
    assert_eq!(world.to_check, [JobId(1)], "one check at a time");
    world.lend(1..2);
    world.give(Input::Checked { job: JobId(1), result: Ok(()) });
    assert!(world.runs.is_empty());
    assert_eq!(world.to_check, [JobId(1), JobId(1)]);
    world.give(Input::Checked { job: JobId(1), result: Ok(()) });
    assert_eq!(world.runs.len(), 1);
}

#[test]
fn a_job_that_becomes_another_is_refused_for_good() {
    let mut world = told();
    world.lend(1..2);
    world.give(Input::Checked { job: JobId(1), result: Ok(()) });
    world.tell(None);
    assert_eq!(world.aborted, [Attempt(1)]);
    world.lend(2..3);
    assert_eq!(world.runs.len(), 1);
}

#[test]
fn who_declined_a_service_that_went_elsewhere_says_when_it_no_longer_does() {
    let mut world = World::joined();
    world.tell_service(signed());
    world.give(rules(&[], &[ASKER]));
    world.hear(ToNode::Forget(JobId(1)));
    world.give(rules(&[], &[]));
    assert_eq!(world.said.last(), Some(&FromNode::Declined { job: JobId(1), declined: false }));
}
