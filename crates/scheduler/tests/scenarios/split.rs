//! Services that several nodes keep ready together: placed, asked, mended.

use shoal_kinds::onnx::{Part, Wire};
use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, caps};

const SERVICE: JobId = JobId(1);
pub(crate) const MIB: u64 = 1 << 20;

/// Six equal parts of 100 MiB; all of it takes a little more.
pub(crate) fn spec(split: Split) -> ServiceSpec {
    spec_of(split, 1_000_000)
}

/// With so much work in each part.
fn spec_of(split: Split, work: u64) -> ServiceSpec {
    let part = Part {
        blob: BlobRef { hash: Hash([1; 32]), size: 1 },
        inputs: Vec::new(),
        outputs: Vec::new(),
        operators: 1,
        parameters: 1,
        work,
        memory: 100 * MIB,
        out_bytes: 1_000,
    };
    let work = OnnxWork {
        model: BlobRef { hash: Hash([2; 32]), size: 1 },
        inputs: Vec::new(),
        outputs: Vec::new(),
        parts: vec![part; 6],
        wire: Wire::F32,
        batch: None,
    };
    let takes = Footprint { memory: 700 * MIB, ..Footprint::NOTHING };
    ServiceSpec {
        name: "long".into(),
        owner: "tester".into(),
        work: work.into(),
        needs: Needs::lane(Lane::Cpu).takes(takes),
        limits: Limits::default(),
        signed: None,
        least: 1,
        most: 1,
        queue: 100,
        idle: Micros::from_secs(10),
        strangers: false,
        split,
    }
}

/// Own nodes with so many MiB each, numbered from 1, and the service.
fn pool(memory: &[u64], split: Split) -> World {
    let mut world = World::new();
    for (n, memory) in (1..).zip(memory) {
        world.linked(n, *memory);
    }
    world.give(Input::Serve { request: RequestId(1), spec: spec(split) });
    world.wait(100);
    world
}

/// Three of them have it ready.
fn ready(memory: &[u64]) -> World {
    let mut world = pool(memory, Split::Exactly(3));
    world.all_load();
    world
}

impl World {
    pub(crate) fn linked(&mut self, n: u64, memory: u64) -> Conn {
        self.linked_as(n, Caps { memory: memory * MIB, ..caps(100) })
    }

    pub(crate) fn linked_as(&mut self, n: u64, caps: Caps) -> Conn {
        let conn = self.join_own_with(n, caps);
        let (key, proof) = (LinkKey([n as u8; 32]), Signature([0; 32], [0; 32]));
        self.say(conn, FromNode::Links { key, proof });
        conn
    }

    fn split(&self) -> Option<SplitView> {
        self.scheduler.services().remove(0).split
    }

    /// Who has which parts, by rank.
    pub(crate) fn parts(&self) -> Vec<(u64, u64)> {
        let stages = self.split().map(|split| split.stages).unwrap_or_default();
        stages.iter().map(|stage| (stage.node.0, stage.parts.len)).collect()
    }

    pub(crate) fn all_load(&mut self) {
        let members: Vec<_> = self.crews.enlisted.keys().copied().collect();
        members.into_iter().for_each(|conn| self.loads(conn));
    }

    fn loads(&mut self, conn: Conn) {
        self.say_crew(conn, self.place(conn).epoch, CrewSay::Loaded);
    }

    /// Everybody who has a place says that it is alive, for so long.
    pub(crate) fn live(&mut self, millis: u64, but: Option<Conn>) {
        for _ in 0..millis / 500 {
            self.wait(500);
            let members: Vec<_> = self.crews.enlisted.keys().copied().collect();
            for conn in members.into_iter().filter(|conn| Some(*conn) != but) {
                self.say(conn, FromNode::Alive { running: vec![], queued: vec![] });
                let report = StageReport { held: u32::from(conn.0 == 2), ..Default::default() };
                self.say_crew(conn, self.place(conn).epoch, CrewSay::Staged(report));
            }
        }
    }

    /// Every member has done so many requests for so long; a part takes those on nodes 1, 2 and 3 so many
    /// milliseconds.
    fn measure(&mut self, done: u64, seconds: u64, millis: [u64; 3]) {
        for _ in 0..seconds * 2 {
            self.wait(500);
            for (node, parts) in self.parts() {
                let conn = Conn(node);
                let computed = Micros::from_millis(done * parts * millis[node as usize - 1]);
                let report = StageReport { done, computed, ..Default::default() };
                self.say(conn, FromNode::Alive { running: vec![], queued: vec![] });
                self.say_crew(conn, self.place(conn).epoch, CrewSay::Staged(report));
            }
        }
    }

    fn parts_of(&self, node: u64) -> u64 {
        self.parts().iter().find(|(one, _)| *one == node).map_or(0, |(_, parts)| *parts)
    }

    pub(crate) fn request(&mut self, call: u64, millis: u64) {
        let (deadline, priority) = (self.now + Micros::from_millis(millis), Priority::Interactive);
        let (call, body) = (CallId(call), vec![call as u8]);
        let urgency = Urgency { priority, deadline, budget: None };
        self.give(Input::Ask { call, service: SERVICE, body, urgency });
    }

    fn says(&mut self, conn: Conn, call: Attempt) {
        self.say(conn, FromNode::Answer { call, at: 0, part: b"yes"[..].into(), last: true });
    }

    pub(crate) fn forget_calls(&mut self) {
        self.crews.enlisted.clear();
        self.asked.clear();
    }
}

#[test]
fn several_keep_it_ready_together_and_the_last_one_answers() {
    let mut world = pool(&[200, 200, 200], Split::Exactly(3));
    assert_eq!(world.parts().iter().map(|(_, parts)| parts).collect::<Vec<_>>(), [&2, &2, &2]);
    world.request(1, 10_000);
    assert!(world.asked.is_empty(), "not before all have loaded");
    world.all_load();
    let (conn, call, _) = world.asked[0].clone();
    assert_eq!(world.place(conn).rank, 0);
    for conn in [1, 2, 3].map(Conn) {
        if world.place(conn).rank < 2 {
            world.says(conn, call);
        }
    }
    assert!(world.answers.is_empty(), "whoever is not the last has no answer");
    let last = [1, 2, 3].map(Conn).into_iter().find(|conn| world.place(*conn).rank == 2);
    world.says(last.unwrap(), call);
    world.says(last.unwrap(), call);
    assert_eq!(world.answers, [(CallId(1), b"yes".to_vec(), true)], "once");
}

#[test]
fn parts_are_placed_by_what_donors_lend() {
    let world = pool(&[100, 400, 100], Split::Exactly(3));
    let mut parts = world.parts();
    parts.sort();
    assert_eq!(parts, [(1, 1), (2, 4), (3, 1)]);
    assert_eq!(world.scheduler.services()[0].replicas, []);
}

#[test]
fn one_node_keeps_all_of_it_where_that_is_enough() {
    let world = pool(&[300, 800, 300], Split::Auto);
    assert_eq!((world.split(), world.warm.as_slice()), (None, [Conn(2)].as_slice()));
    let world = pool(&[300, 500, 300], Split::Auto);
    assert!(world.parts().len() >= 2, "nobody has the memory for all of it");
}

#[test]
fn who_can_keep_it_ready_is_told_and_why_others_cannot() {
    let mut world = pool(&[800, 300, 50, 800], Split::Auto);
    world.say(Conn(4), FromNode::Pause(true));
    world.join(5);
    let able = world.scheduler.explain_service(world.now, SERVICE).expect("it is").able;
    let told: Vec<_> =
        able.iter().map(|one| (one.node.0, one.can, one.why.as_deref().unwrap_or(""))).collect();
    let lends = |mib| format!("it lends {mib} MiB of memory; the whole service takes 700");
    let expected = [
        (1, Can::Whole, ""),
        (2, Can::Parts, &*lends(300)),
        (3, Can::Nothing, &*lends(50)),
        (4, Can::Nothing, "it is paused"),
        (5, Can::Nothing, "it belongs to somebody else, and strangers may not serve this"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn where_too_few_are_there_one_keeps_all_of_it_until_the_others_come() {
    let mut world = pool(&[800, 300], Split::Exactly(3));
    assert_eq!((world.split(), world.warm.as_slice()), (None, [Conn(1)].as_slice()));
    world.say(Conn(1), FromNode::Warm { job: SERVICE, result: Ok(()) });
    world.request(1, 10_000);
    assert_eq!(world.asked[0].0, Conn(1));
    world.says(Conn(1), world.asked[0].1);
    world.linked(3, 300);
    world.wait(100);
    assert_eq!(world.parts().len(), 3);
    world.all_load();
    world.wait(100);
    assert_eq!(world.scheduler.services()[0].replicas, []);
}

#[test]
fn a_request_that_nobody_can_take_says_why() {
    let mut world = pool(&[300, 300], Split::Exactly(3));
    world.request(1, 1_000);
    world.wait(2_000);
    let words = world.unanswered[0].1.to_string();
    assert!(words.ends_with("3 devices must share it; 2 can take part"), "{words}");
}

#[test]
fn a_spare_takes_the_place_of_a_lost_member_and_all_is_asked_again_once() {
    let mut world = ready(&[200, 200, 200, 200]);
    let before = world.parts();
    (0..4).for_each(|call| world.request(call, 60_000));
    assert_eq!(world.asked.len(), 4, "each of the three has something to do");
    let old: Vec<_> = world.asked.iter().map(|(_, call, _)| *call).collect();
    let (lost, last) = (before[1].0, Conn(before[2].0));
    world.forget_calls();
    world.leave(Conn(lost));
    let now = world.parts();
    let same = now.iter().zip(&before).filter(|(now, before)| now == before).count();
    assert_eq!((now.len(), same), (3, 2), "{before:?} {now:?}");
    assert!(world.asked.is_empty());
    world.all_load();
    assert_eq!(world.asked.len(), 4);
    old.iter().for_each(|call| world.says(last, *call));
    assert!(world.answers.is_empty(), "an answer of the epoch before");
    let asked: Vec<_> = world.asked.iter().map(|(_, call, body)| (*call, body[0])).collect();
    assert_eq!(asked.iter().map(|(_, body)| *body).collect::<Vec<_>>(), [0, 1, 2, 3], "in order");
    asked.iter().for_each(|(call, _)| world.says(last, *call));
    let view = world.scheduler.services().remove(0);
    assert_eq!((view.answered, view.repeated, view.failed), (4, 4, 0));
}

#[test]
fn a_silent_member_makes_way_and_so_does_one_that_stalls() {
    for stalls in [false, true] {
        let mut world = ready(&[200, 200, 200, 200]);
        let silent = world.parts().iter().map(|(node, _)| Conn(*node)).find(|c| *c == Conn(2));
        let second = silent.expect("it has a place");
        world.request(1, 120_000);
        world.live(35_000, (!stalls).then_some(second));
        assert!(world.parts().iter().all(|(node, _)| *node != 2), "{stalls}");
        assert_eq!(world.parts().len(), 3);
    }
}

#[test]
fn a_hidden_page_makes_way_only_for_one_that_is_shown() {
    let mut world = ready(&[200, 200, 200]);
    let before = world.parts();
    let hidden = Condition { visible: false, ..Condition::default() };
    world.say(Conn(2), FromNode::Condition(hidden));
    world.wait(200);
    assert_eq!(world.parts(), before);
    world.linked(4, 200);
    world.wait(200);
    assert!(world.parts().iter().any(|(node, _)| *node == 4));
    assert!(world.parts().iter().all(|(node, _)| *node != 2));
}

#[test]
fn a_donor_who_takes_memory_back_or_pauses_is_left_alone_at_once() {
    for pauses in [false, true] {
        let mut world = ready(&[200, 200, 200, 200]);
        let message = match pauses {
            true => FromNode::Pause(true),
            false => FromNode::Caps(Caps { memory: 150 * MIB, ..caps(100) }),
        };
        world.say(Conn(2), message);
        world.wait(100);
        assert!(world.parts().iter().all(|(node, _)| *node != 2), "{pauses}");
        assert!(world.crews.dismissed.contains(&Conn(2)));
    }
}

#[test]
fn one_that_fails_its_parts_again_and_again_makes_way() {
    let mut world = ready(&[200, 200, 200, 200]);
    let bad = Conn(world.parts()[1].0);
    for call in 1..=2 {
        world.request(call, 60_000);
        let (_, attempt, _) = world.asked.last().cloned().unwrap();
        let failure = Failure::OutOfMemory { message: "no".into() };
        world.say(bad, FromNode::Failed { attempt, failure });
    }
    assert!(world.parts().iter().all(|(node, _)| *node != bad.0), "{:?}", world.parts());
    assert!(world.unanswered.is_empty(), "they are asked again");
}

#[test]
fn what_the_model_refuses_is_told_at_once_whoever_of_them_says_it() {
    let mut world = ready(&[200, 200, 200]);
    world.request(1, 60_000);
    let attempt = world.asked[0].1;
    let failure = Failure::Model { message: "NaN".into() };
    let middle = Conn(world.parts()[1].0);
    world.say(middle, FromNode::Failed { attempt, failure });
    assert!(matches!(world.unanswered[0].1, CallError::Failed { .. }));
}

#[test]
fn who_hangs_up_is_forgotten_by_all_members() {
    let mut world = ready(&[200, 200, 200]);
    world.request(1, 60_000);
    let call = world.asked[0].1;
    world.give(Input::HangUp { call: CallId(1) });
    let told = world.crews.told.iter().filter(|(_, say)| *say == CrewTold::Drop { call });
    assert_eq!(told.count(), 3);
}

#[test]
fn after_a_restart_the_same_members_have_the_same_parts() {
    let before = ready(&[200, 200, 200, 200]);
    let mut world = before.restarted();
    assert_eq!(world.parts(), before.parts());
    for n in 1..=4 {
        world.linked(n, 200);
    }
    world.wait(100);
    assert_eq!(world.parts(), before.parts());
    let epochs = [&before, &world].map(|world| world.split().unwrap().epoch);
    assert!(epochs[1] > epochs[0]);
    world.all_load();
    assert!(world.split().unwrap().ready);
}

#[test]
fn a_removed_service_leaves_nothing_with_its_members() {
    let mut world = ready(&[200, 200, 200]);
    world.request(1, 60_000);
    world.give(Input::Unserve { service: SERVICE });
    assert_eq!(world.crews.dismissed.len(), 3);
    assert_eq!(world.unanswered, [(CallId(1), CallError::Gone)]);
    let (_, members) = world.crews.routes.last().unwrap();
    assert!(members.is_empty());
}

#[test]
fn what_members_say_of_their_times_is_shown() {
    let mut world = ready(&[200, 200, 200]);
    let first = Conn(world.parts()[0].0);
    let report = StageReport {
        done: 10,
        computed: Micros::from_millis(200),
        passed: 10,
        bytes: 5_000,
        travelled: Micros::from_millis(30),
        ..StageReport::default()
    };
    world.say_crew(first, world.place(first).epoch, CrewSay::Staged(report));
    let stage = world.split().unwrap().stages.remove(0);
    assert_eq!((stage.computes, stage.hands_on), (Some(Micros::from_millis(20)), Some(500)));
    assert_eq!((stage.travels, stage.memory), (Some(Micros::from_millis(3)), 200 * MIB));
}

#[test]
fn devices_that_claim_about_the_same_get_the_same_work_until_they_are_measured() {
    let mut world = World::new();
    for (n, speed) in [(1, 100), (2, 130), (3, 190)] {
        world.linked_as(n, Caps { memory: 1 << 30, ..caps(speed) });
    }
    world.give(Input::Serve { request: RequestId(1), spec: spec(Split::Exactly(3)) });
    world.wait(100);
    assert_eq!(world.parts().iter().map(|(_, parts)| *parts).collect::<Vec<_>>(), [2, 2, 2]);
}

#[test]
fn parts_are_dealt_anew_when_a_measured_member_turns_out_to_be_slow() {
    let mut world = ready(&[400, 400, 400]);
    world.measure(40, 30, [100, 20, 20]);
    assert_eq!([1, 2, 3].map(|node| world.parts_of(node)).iter().sum::<u64>(), 6);
    assert_eq!(world.parts_of(1), 1, "{:?}", world.parts());
    assert_eq!(world.split().unwrap().epoch, Epoch(2), "once");
}

#[test]
fn what_is_under_way_ends_before_parts_are_dealt_anew_and_what_comes_then_waits() {
    let mut world = ready(&[400, 400, 400]);
    world.measure(40, 18, [100, 20, 20]);
    world.request(1, 120_000);
    world.measure(41, 4, [100, 20, 20]);
    world.request(2, 120_000);
    assert_eq!((world.asked.len(), world.split().unwrap().epoch), (1, Epoch(1)));
    let (last, call) = (Conn(world.parts()[2].0), world.asked[0].1);
    world.says(last, call);
    world.wait(100);
    assert_eq!((world.answers.len(), world.split().unwrap().epoch), (1, Epoch(2)));
    world.all_load();
    assert_eq!(world.asked.len(), 2);
    assert_eq!(world.scheduler.services()[0].repeated, 0, "nothing is asked twice");
}

#[test]
fn parts_stay_where_little_would_be_gained_or_few_requests_came() {
    for (done, millis) in [(40, [25, 20, 20]), (10, [100, 20, 20])] {
        let mut world = ready(&[400, 400, 400]);
        world.measure(done, 60, millis);
        assert_eq!(world.split().unwrap().epoch, Epoch(1), "{done} requests, {millis:?} ms");
    }
}

#[test]
fn a_crew_that_is_hardly_asked_is_not_made_to_load_again() {
    let mut world = pool(&[400, 400, 400], Split::Exactly(3));
    world.live(30_000, None);
    world.all_load();
    world.measure(40, 60, [100, 20, 20]);
    assert_eq!(world.split().unwrap().epoch, Epoch(1), "loading took 30 s, 40 requests cost 4 s");
}

#[test]
fn who_has_no_key_for_links_is_asked_for_it_once_and_then_takes_part() {
    let mut world = World::new();
    world.linked(1, 1_000);
    let tab = world.join_own_with(2, Caps { memory: 1_000 * MIB, ..caps(100) });
    world.give(Input::Serve { request: RequestId(1), spec: spec(Split::Exactly(2)) });
    world.wait(500);
    assert_eq!((&world.linking[..], world.split()), (&[tab][..], None));
    let (key, proof) = (LinkKey([2; 32]), Signature([0; 32], [0; 32]));
    world.say(tab, FromNode::Links { key, proof });
    world.wait(500);
    let nodes: Vec<_> = world.parts().into_iter().map(|(node, _)| node).collect();
    assert_eq!((nodes, world.linking), (vec![1, 2], vec![tab]));
}

#[test]
fn who_may_not_serve_is_not_asked_for_links() {
    let mut world = World::new();
    world.join(1);
    world.join_own_with(2, caps(100));
    world.give(Input::Serve { request: RequestId(1), spec: spec(Split::Never) });
    world.wait(500);
    assert_eq!(world.linking, []);
    let shared = ServiceSpec { name: "shared".into(), ..spec(Split::Exactly(2)) };
    world.give(Input::Serve { request: RequestId(2), spec: shared });
    world.wait(500);
    assert_eq!(world.linking.len(), 1, "only the operator's own");
}

/// Own nodes, by memory and what they say of their speed, and a service that computes for long, split as seems best.
fn uneven(nodes: &[(u64, u32)]) -> World {
    let mut world = World::new();
    for (n, (memory, speed)) in (1..).zip(nodes) {
        world.linked_as(n, Caps { memory: memory * MIB, ..caps(*speed) });
    }
    let spec = spec_of(Split::Auto, 100_000_000);
    world.give(Input::Serve { request: RequestId(1), spec });
    world.wait(100);
    world.all_load();
    world
}

fn kept_alone_by(world: &World) -> Vec<u64> {
    let service = world.scheduler.services().remove(0);
    service.replicas.iter().map(|replica| replica.node.0).collect()
}

#[test]
fn one_node_takes_over_where_it_was_measured_to_be_faster_alone() {
    // The first says that it is fast, and has no room for all of it.
    let mut world = uneven(&[(450, 1_000), (1_000, 100)]);
    assert_eq!(world.parts(), [(1, 4), (2, 2)], "together they seem to be faster");
    world.measure(40, 15, [50, 5, 0]);
    assert_eq!(world.parts().len(), 2, "that is too early to say");
    world.measure(40, 10, [50, 5, 0]);
    assert_eq!((world.parts(), kept_alone_by(&world)), (vec![], vec![2]));
    world.say(Conn(2), FromNode::Warm { job: SERVICE, result: Ok(()) });
    world.request(1, 5_000);
    let call = world.asked.last().expect("it is asked").1;
    world.says(Conn(2), call);
    assert_eq!(world.scheduler.services()[0].answered, 1);
}

#[test]
fn a_crew_that_is_as_fast_as_it_seemed_stays() {
    let mut world = uneven(&[(450, 1_000), (1_000, 100)]);
    world.measure(40, 60, [5, 50, 0]);
    assert_eq!((world.parts(), kept_alone_by(&world)), (vec![(1, 4), (2, 2)], vec![]));
}

#[test]
fn whoever_wants_two_devices_keeps_two_however_slow_one_is() {
    let mut world = pool(&[1_000, 1_000], Split::Exactly(2));
    world.all_load();
    world.measure(40, 60, [90, 5, 0]);
    assert_eq!(world.parts().len(), 2);
}

#[test]
fn a_member_that_only_slows_the_others_is_left_out() {
    let mut world = uneven(&[(200, 1_000), (300, 300), (600, 100)]);
    assert_eq!(world.parts().len(), 3, "all seem to help: {:?}", world.parts());
    world.measure(40, 25, [100, 5, 10]);
    let mut members: Vec<_> = world.parts().iter().map(|(node, _)| *node).collect();
    members.sort_unstable();
    assert_eq!(members, [2, 3], "{:?}", world.parts());
    world.all_load();
    world.request(1, 5_000);
    assert_eq!(world.asked.len(), 1);
}

#[test]
fn a_crew_whose_answers_come_late_is_tried_again_after_a_rest_that_doubles() {
    let mut world = uneven(&[(450, 1_000), (1_000, 100)]);
    let mut calls = 0;
    // What members compute looks good; what they answer does not.
    let mut disappoints = |world: &mut World| {
        world.measure(40, 22, [5, 50, 0]);
        assert_eq!(world.parts(), [(1, 4), (2, 2)]);
        calls += 1;
        world.request(calls, 10_000);
        let call = world.asked.last().expect("it is asked").1;
        world.measure(41, 2, [5, 50, 0]);
        world.says(Conn(2), call);
        world.measure(41, 1, [5, 50, 0]);
        assert_eq!(kept_alone_by(world), [2]);
        let why = world.scheduler.explain_service(world.now, SERVICE).expect("it is");
        assert!(why.lines[1].starts_with("one device has all of it, because several"), "{why:?}");
    };
    // Whoever has all of it has a pause: after that all are placed anew.
    let again = |world: &mut World, seconds: u64| {
        world.say(Conn(2), FromNode::Warm { job: SERVICE, result: Ok(()) });
        for _ in 0..seconds * 2 {
            world.wait(500);
            for conn in [1, 2] {
                world.say(Conn(conn), FromNode::Alive { running: vec![], queued: vec![] });
            }
        }
        world.say(Conn(2), FromNode::Pause(true));
        world.wait(200);
        world.say(Conn(2), FromNode::Pause(false));
        world.wait(200);
        world.all_load();
        world.parts().len()
    };
    disappoints(&mut world);
    assert_eq!(again(&mut world, 40), 0, "it rests for a minute");
    assert_eq!(again(&mut world, 25), 2);
    disappoints(&mut world);
    assert_eq!(again(&mut world, 65), 0, "and then for two");
    assert_eq!(again(&mut world, 60), 2);
}
