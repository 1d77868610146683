//! Services and the memory that nodes lend: who leaves, who comes back, what fits nowhere.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::service::spec;
use crate::world::{World, caps};

/// A service that takes so many tenths of what a node lends.
fn tenths(name: &str, tenths: u64) -> ServiceSpec {
    let takes = Footprint { memory: (1 << 30) * tenths / 10, ..Footprint::NOTHING };
    ServiceSpec { name: name.into(), needs: Needs::lane(Lane::Cpu).takes(takes), ..spec(1, 1) }
}

/// Own nodes with these services, which are added a second after one another.
fn lodged(nodes: u64, specs: &[ServiceSpec]) -> World {
    let mut world = World::new();
    for n in 1..=nodes {
        world.join_trusted(n);
    }
    for (at, spec) in specs.iter().enumerate() {
        world.give(Input::Serve { request: RequestId(at as u64), spec: spec.clone() });
        world.all_ready(1_000);
    }
    world
}

impl World {
    /// Whatever nodes are told to make ready in this time, they do. The first one beats.
    fn all_ready(&mut self, millis: u64) {
        for _ in 0..millis / 100 {
            self.wait(100);
            for conn in core::mem::take(&mut self.warm) {
                for job in 1..8 {
                    self.say(conn, FromNode::Warm { job: JobId(job), result: Ok(()) });
                }
            }
            self.say(Conn(1), FromNode::Alive { running: vec![], queued: vec![] });
        }
    }

    /// Which services are ready somewhere, by their names.
    fn lodgers(&self) -> Vec<String> {
        let services = self.scheduler.services();
        let ready = services.iter().filter(|of| of.replicas.iter().any(|replica| replica.ready));
        ready.map(|of| of.spec.name.clone()).collect()
    }

    fn ask_of(&mut self, call: u64, service: u64) {
        let deadline = self.now + Micros::from_secs(60);
        let (call, service) = (CallId(call), JobId(service));
        let (body, priority) = (vec![call.0 as u8], Priority::Interactive);
        let urgency = Urgency { priority, deadline, budget: None };
        self.give(Input::Ask { call, service, body, urgency });
    }
}

#[test]
fn who_was_not_asked_for_longest_leaves_when_another_needs_the_room() {
    let mut world = lodged(1, &[tenths("a", 4), tenths("b", 4)]);
    assert_eq!(world.lodgers(), ["a", "b"]);
    world.ask_of(1, 1);
    world.reply(0, b"asked later than b", true);
    world.wait(1_000);
    world.give(Input::Serve { request: RequestId(9), spec: tenths("c", 4) });
    world.all_ready(1_000);
    assert_eq!(world.lodgers(), ["a", "c"], "b was not asked at all");
    world.all_ready(60_000);
    assert_eq!(world.lodgers(), ["a", "c"], "what nobody asks drives nobody out");
    world.ask_of(2, 2);
    world.all_ready(1_000);
    assert_eq!(world.lodgers(), ["b", "c"], "what is asked comes back");
    world.reply(1, b"from b", true);
    assert_eq!(world.answers.last(), Some(&(CallId(2), b"from b".to_vec(), true)));
    world.give(Input::Unserve { service: JobId(2) });
    world.all_ready(1_000);
    assert_eq!(world.lodgers(), ["a", "c"], "and so does what has room again");
}

#[test]
fn nobody_leaves_while_it_is_at_work_and_as_many_leave_as_must() {
    let mut world = lodged(1, &[tenths("a", 3), tenths("b", 3), tenths("c", 3)]);
    world.ask_of(1, 1);
    world.give(Input::Serve { request: RequestId(9), spec: tenths("d", 7) });
    world.all_ready(1_000);
    assert_eq!(world.lodgers(), ["a", "d"]);
    world.give(Input::Unserve { service: JobId(4) });
    world.all_ready(1_000);
    world.give(Input::Serve { request: RequestId(10), spec: tenths("e", 8) });
    world.all_ready(1_000);
    assert_eq!(world.lodgers(), ["a", "b", "c"], "a has a request, and there is no room beside it");
    world.reply(0, b"done", true);
    world.all_ready(1_000);
    assert_eq!(world.lodgers(), ["e"]);
}

#[test]
fn a_donor_that_lends_less_keeps_what_was_asked_last() {
    let mut world = lodged(1, &[tenths("a", 4), tenths("b", 4)]);
    world.ask_of(1, 1);
    world.reply(0, b"done", true);
    let conn = world.asked[0].0;
    let less = Caps { memory: (1 << 30) / 2, ..caps(100) };
    world.say(conn, FromNode::Caps(less));
    world.all_ready(1_000);
    assert_eq!(world.lodgers(), ["a"]);
}

#[test]
fn what_fits_on_no_node_is_refused_with_both_numbers_unless_it_is_split() {
    let mut world = lodged(2, &[tenths("large", 15)]);
    let Some(Err(error)) = world.replies.last().cloned() else { panic!("it is refused") };
    assert_eq!(error, SubmitError::TooLarge { takes: (1 << 30) * 15 / 10, most: 1 << 30 });
    let words = error.to_string();
    assert!(words.contains("1536 MiB") && words.contains("1024 MiB"), "{words}");
    assert!(words.contains("--split"), "{words}");
    let split = ServiceSpec { split: Split::Auto, ..tenths("split", 15) };
    world.give(Input::Serve { request: RequestId(2), spec: split });
    assert!(matches!(world.replies.last(), Some(Ok(_))), "parts of it may fit");
    let mut nobody = lodged(0, &[tenths("large", 15)]);
    assert!(matches!(nobody.replies.last(), Some(Ok(_))), "it waits for a node");
    nobody.join_trusted(1);
    nobody.wait(1_000);
    let trouble = nobody.scheduler.services().remove(0).trouble;
    assert!(trouble.is_some_and(|words| words.contains("1536 MiB")));
}
