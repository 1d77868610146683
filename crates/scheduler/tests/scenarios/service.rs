//! Services: replicas that come and go, requests that are answered once.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, caps, trap};

pub(crate) const SERVICE: JobId = JobId(1);

pub(crate) fn spec(least: u16, most: u16) -> ServiceSpec {
    ServiceSpec {
        name: "echo".into(),
        owner: "tester".into(),
        work: Kind::Noop(NoopWork),
        needs: Needs::lane(Lane::Cpu),
        limits: Limits::default(),
        signed: None,
        least,
        most,
        queue: 4,
        idle: Micros::from_secs(10),
        strangers: false,
        split: Split::Never,
    }
}

/// Own nodes, and a service that is ready on the least of them.
pub(crate) fn served(nodes: u64, least: u16, most: u16) -> (World, Vec<Conn>) {
    let mut world = World::new();
    let conns: Vec<_> = (1..=nodes).map(|n| world.join_trusted(n)).collect();
    world.give(Input::Serve { request: RequestId(1), spec: spec(least, most) });
    world.get_ready();
    (world, conns)
}

impl World {
    /// All who were told to make it ready are.
    pub(crate) fn get_ready(&mut self) {
        for _ in 0..20 {
            self.wait(100);
            for conn in core::mem::take(&mut self.warm) {
                self.say(conn, FromNode::Warm { job: SERVICE, result: Ok(()) });
            }
        }
    }

    pub(crate) fn ask(&mut self, call: u64, millis: u64) {
        let (deadline, priority) = (self.now + Micros::from_millis(millis), Priority::Interactive);
        let (call, body) = (CallId(call), vec![call as u8]);
        let urgency = Urgency { priority, deadline, budget: None };
        self.give(Input::Ask { call, service: SERVICE, body, urgency });
    }

    pub(crate) fn reply(&mut self, at: usize, part: &[u8], last: bool) {
        let (conn, call, _) = self.asked[at].clone();
        let at = self.said.entry(call).or_default();
        let message = FromNode::Answer { call, at: *at, part: part.to_vec().into(), last };
        *at += part.len() as u64;
        self.say(conn, message);
    }

    fn replicas(&self) -> Vec<ReplicaView> {
        self.scheduler.services().remove(0).replicas
    }
}

#[test]
fn a_large_request_comes_in_parts_and_too_many_large_ones_are_refused() {
    let mut world = World::new();
    world.join_trusted(1);
    let spec = ServiceSpec { queue: 1000, ..spec(1, 1) };
    world.give(Input::Serve { request: RequestId(1), spec });
    world.get_ready();
    let body: Vec<u8> = (0..5_000_000u32).map(|n| n as u8).collect();
    let ask = |call: u64| Input::Ask {
        call: CallId(call),
        service: SERVICE,
        body: body.clone(),
        urgency: Urgency {
            priority: Priority::Interactive,
            deadline: Time(u64::MAX),
            budget: None,
        },
    };
    world.give(ask(1));
    assert!(world.asked[0].2 == body);
    for call in 2..200 {
        world.give(ask(call));
    }
    let waiting = world.scheduler.services()[0].waiting;
    assert!(waiting < 110, "{waiting} requests of 5 MB wait");
    world.reply(0, b"done", true);
    let view = world.scheduler.services().remove(0);
    assert_eq!((view.answered, view.waiting), (1, waiting - 1), "the next one is asked");
}

#[test]
fn a_request_goes_to_a_replica_and_its_answer_comes_back_in_parts() {
    let (mut world, _) = served(1, 1, 1);
    world.ask(7, 1_000);
    assert_eq!(world.asked[0].2, [7]);
    world.reply(0, b"one ", false);
    world.reply(0, b"two", true);
    let parts = [(CallId(7), b"one ".to_vec(), false), (CallId(7), b"two".to_vec(), true)];
    assert_eq!(world.answers, parts);
    assert_eq!(world.scheduler.services()[0].answered, 1);
    world.reply(0, b"again", true);
    assert_eq!(world.answers.len(), 2, "never answered twice");
}

#[test]
fn an_answer_beyond_the_limit_is_broken_off() {
    let (mut world, _) = served(1, 1, 1);
    world.ask(7, 60_000);
    let most = Limits::default().output as usize;
    world.reply(0, &vec![1; most], false);
    assert_eq!(world.unanswered.len(), 0);
    world.reply(0, b"x", false);
    let (_, error) = &world.unanswered[0];
    assert!(matches!(error, CallError::Failed { failure: Failure::Limit { .. }, .. }), "{error:?}");
}

#[test]
fn strangers_serve_only_where_they_may() {
    let mut world = World::new();
    world.join(1);
    world.give(Input::Serve { request: RequestId(1), spec: spec(1, 1) });
    world.get_ready();
    assert_eq!(world.replicas(), []);
    let open = ServiceSpec { name: "open".into(), strangers: true, ..spec(1, 1) };
    world.give(Input::Serve { request: RequestId(2), spec: open });
    world.wait(200);
    assert_eq!(world.warm.len(), 1);
}

#[test]
fn a_request_that_is_lost_with_its_node_is_asked_again_and_nothing_is_said_twice() {
    let (mut world, conns) = served(2, 2, 2);
    world.ask(1, 5_000);
    let (first, ..) = world.asked[0];
    world.reply(0, b"half ", false);
    world.leave(first);
    let (second, ..) = world.asked[1];
    assert!(second != first && conns.contains(&second));
    world.wait(30);
    world.reply(1, b"half an answer", true);
    let (one, other) = (world.ran[0], world.ran[1]);
    assert!(one.node != other.node);
    assert_eq!(other.took, Micros::from_millis(30), "only the node that answered counts");
    let whole: Vec<u8> = world.answers.iter().flat_map(|(_, part, _)| part.clone()).collect();
    assert_eq!(whole, b"half an answer");
}

#[test]
fn requests_that_are_lost_with_their_node_wait_beside_a_full_queue() {
    let (mut world, conns) = served(1, 1, 1);
    (0..20).for_each(|call| world.ask(call, 60_000));
    let at_work = world.asked.len();
    world.leave(conns[0]);
    assert_eq!(world.scheduler.services()[0].waiting, 4 + at_work);
    world.join_trusted(1);
    world.get_ready();
    assert_eq!(world.asked.len(), 2 * at_work, "those first");
}

#[test]
fn a_silent_node_loses_its_requests_to_another() {
    let (mut world, _) = served(2, 2, 2);
    world.ask(1, 60_000);
    let (other, attempt, _) = world.asked[0].clone();
    for _ in 0..30 {
        world.wait(100);
        let awake = if other == Conn(1) { Conn(2) } else { Conn(1) };
        world.say(awake, FromNode::Alive { running: vec![], queued: vec![] });
    }
    assert_eq!(world.asked.len(), 2);
    assert!(world.asked[1].0 != other);
    assert!(world.revoked.contains(&attempt), "it is told to stop, should it wake up");
}

#[test]
fn a_node_whose_answer_has_a_gap_is_told_to_stop() {
    let (mut world, _) = served(2, 2, 2);
    world.ask(1, 60_000);
    let (conn, call, _) = world.asked[0].clone();
    world.say(conn, FromNode::Answer { call, at: 7, part: b"late"[..].into(), last: false });
    assert_eq!(world.asked.len(), 2);
    assert!(world.revoked.contains(&call));
}

#[test]
fn what_the_program_does_wrong_is_told_at_once_and_what_nodes_do_wrong_after_three() {
    let (mut world, _) = served(1, 1, 1);
    world.ask(1, 60_000);
    let (conn, attempt, _) = world.asked[0].clone();
    world.say(conn, FromNode::Failed { attempt, failure: trap() });
    assert!(matches!(world.unanswered[0].1, CallError::Failed { .. }));
    world.ask(2, 60_000);
    for _ in 0..3 {
        let (conn, attempt, _) = world.asked.last().cloned().expect("it is asked");
        let failure = Failure::DeviceLost { message: "gone".into() };
        world.say(conn, FromNode::Failed { attempt, failure });
        world.wait(200);
    }
    assert!(matches!(world.unanswered[1].1, CallError::Lost { tries: 3, .. }));
}

/// A fault of the node that was asked last.
fn fail_last(world: &mut World) {
    let (conn, attempt, _) = world.asked.last().cloned().expect("it is asked");
    let failure = Failure::Internal { message: "the disk is full".into() };
    world.say(conn, FromNode::Failed { attempt, failure });
}

/// A service that strangers serve too, on an own node and on a stranger that claims far more room.
fn beside_a_boaster() -> (World, Conn, Conn) {
    let mut world = World::new();
    let own = world.join_trusted(1);
    let boaster = world.join_as(2, 2, Caps { cpu_slots: u16::MAX, ..caps(u32::MAX) }, vec![]);
    let open = ServiceSpec { strangers: true, ..spec(2, 2) };
    world.give(Input::Serve { request: RequestId(1), spec: open });
    world.get_ready();
    (world, own, boaster)
}

#[test]
fn a_request_that_failed_by_its_nodes_fault_is_asked_of_another() {
    let mut world = World::new();
    let large = world.join_own_with(1, Caps { cpu_slots: 16, ..caps(100) });
    let small = world.join_own_with(2, Caps { cpu_slots: 4, ..caps(100) });
    world.give(Input::Serve { request: RequestId(1), spec: spec(2, 2) });
    world.get_ready();
    world.ask(1, 60_000);
    assert_eq!(world.asked[0].0, large);
    fail_last(&mut world);
    assert_eq!(world.asked[1].0, small, "the other is asked, though it has less room");
    world.reply(1, b"", true);
    assert_eq!(world.scheduler.services()[0].answered, 1);
}

/// Two own nodes that each answered once: the one with eight slots after 80 ms, the one with a single slot after 10 ms.
fn slow_with_room_beside_fast_without() -> (World, Conn, Conn) {
    let mut world = World::new();
    let slow = world.join_own_with(1, Caps { cpu_slots: 8, ..caps(100) });
    let fast = world.join_own_with(2, Caps { cpu_slots: 1, ..caps(100) });
    world.give(Input::Serve { request: RequestId(1), spec: spec(2, 2) });
    world.get_ready();
    world.ask(1, 60_000);
    world.wait(80);
    world.reply(0, b"", true);
    world.ask(2, 60_000);
    world.wait(10);
    world.reply(1, b"", true);
    let asked: Vec<_> = world.asked.iter().map(|(conn, ..)| *conn).collect();
    assert_eq!(asked, [slow, fast], "of whom nothing is known is tried");
    (world, slow, fast)
}

#[test]
fn a_request_goes_where_it_is_answered_first_and_not_where_most_room_is() {
    let (mut world, slow, fast) = slow_with_room_beside_fast_without();
    for call in 3..8 {
        world.ask(call, 60_000);
        assert_eq!(world.asked.last().expect("it is asked").0, fast);
        world.wait(10);
        world.reply(world.asked.len() - 1, b"", true);
    }
    // The fast one has no room for two.
    world.ask(8, 60_000);
    world.ask(9, 60_000);
    let last: Vec<_> = world.asked.iter().rev().take(2).map(|(conn, ..)| *conn).collect();
    assert_eq!(last, [slow, fast]);
}

#[test]
fn requests_at_work_count_against_a_device_as_they_slow_it() {
    let mut world = World::new();
    let first = world.join_own_with(1, Caps { cpu_slots: 4, ..caps(100) });
    let other = world.join_own_with(2, Caps { cpu_slots: 2, ..caps(100) });
    world.give(Input::Serve { request: RequestId(1), spec: spec(2, 2) });
    world.get_ready();
    for (at, millis) in [(0, 10), (1, 14)] {
        world.ask(at as u64 + 1, 60_000);
        world.wait(millis);
        world.reply(at, b"", true);
    }
    // 10 ms of four slots: with one, two at work a request would take 12.5 and 15 ms. The other one takes 14.
    (3..6).for_each(|call| world.ask(call, 60_000));
    let asked: Vec<_> = world.asked.iter().skip(2).map(|(conn, ..)| *conn).collect();
    assert_eq!(asked, [first, first, other]);
}

#[test]
fn a_device_that_was_slow_once_is_tried_again_after_a_while() {
    let (mut world, slow, fast) = slow_with_room_beside_fast_without();
    let mut seconds = 0;
    let again = loop {
        for _ in 0..2 {
            world.wait(500);
            for conn in [slow, fast] {
                world.say(conn, FromNode::Alive { running: vec![], queued: vec![] });
            }
        }
        seconds += 1;
        world.ask(100 + seconds, 60_000);
        let whom = world.asked.last().expect("it is asked").0;
        world.wait(10);
        world.reply(world.asked.len() - 1, b"", true);
        if whom == slow {
            break seconds;
        }
        assert!(seconds < 300, "it is never tried again");
    };
    assert!((60..=150).contains(&again), "after {again} s");
    // It was as fast this time, which counts a quarter: for now the other one is asked.
    world.ask(999, 60_000);
    assert_eq!(world.asked.last().expect("it is asked").0, fast);
}

#[test]
fn who_comes_after_a_request_that_waits_for_another_node_need_not_wait() {
    let (mut world, conns) = served(2, 2, 2);
    world.ask(1, 60_000);
    world.ask(2, 60_000);
    let (first, attempt, _) = world.asked[0].clone();
    let failure = Failure::Internal { message: "once".into() };
    world.say(first, FromNode::Failed { attempt, failure });
    assert_eq!(world.asked.len(), 2, "it waits: the other node is busy");
    world.ask(3, 60_000);
    assert_eq!(world.asked[2].0, first);
    world.reply(1, b"", true);
    assert!(world.asked[3].0 != first && conns.contains(&world.asked[3].0));
}

#[test]
fn a_node_that_fails_again_and_again_makes_way_for_another() {
    let (mut world, _) = served(2, 1, 1);
    world.ask(1, 60_000);
    let bad = world.asked[0].0;
    fail_last(&mut world);
    assert_eq!(world.asked[1].0, bad, "once may be bad luck, and nobody else is ready");
    fail_last(&mut world);
    assert_eq!(world.asked.len(), 2, "now it waits for another");
    world.get_ready();
    assert!(world.asked[2].0 != bad);
    world.reply(2, b"", true);
    assert_eq!(world.unanswered, []);
    let trouble = &world.scheduler.services()[0].trouble;
    assert_eq!(trouble, &None, "the other is ready");
    assert_eq!(world.replicas().len(), 1);
}

#[test]
fn a_stranger_that_claims_much_and_does_nothing_does_not_draw_requests_from_own_nodes() {
    let (mut world, own, boaster) = beside_a_boaster();
    world.ask(1, 60_000);
    assert_eq!(world.asked[0].0, own);
    for call in 2..=5 {
        world.ask(call, 60_000);
        let (conn, attempt, _) = world.asked.last().cloned().expect("it is asked");
        if conn == boaster {
            let failure = Failure::Unable { message: "no".into() };
            world.say(conn, FromNode::Failed { attempt, failure });
        }
    }
    let drawn = world.asked.iter().filter(|(conn, ..)| *conn == boaster);
    assert_eq!(drawn.count(), 2, "after two in a row it is not asked any more");
    for answered in 1..=5 {
        let at = world.asked.iter().rposition(|(conn, ..)| *conn == own).expect("it is asked");
        world.reply(at, b"", true);
        assert_eq!(world.answers.len(), answered, "the own node does it all");
    }
    assert_eq!(world.unanswered, []);
}

#[test]
fn deadlines_full_queues_and_hanging_up_end_requests() {
    let (mut world, _) = served(1, 1, 1);
    for call in 1..=6 {
        world.ask(call, 1_000);
    }
    assert_eq!(world.unanswered, [(CallId(6), CallError::Full { waiting: 4 })]);
    world.give(Input::HangUp { call: CallId(1) });
    assert_eq!(world.revoked.len(), 1);
    assert_eq!(world.asked.len(), 2, "the next one is asked");
    world.wait(1_100);
    let over = |call, begun| (CallId(call), CallError::Deadline { begun, why: None });
    assert_eq!(
        world.unanswered[1..],
        [over(2, true), over(3, false), over(4, false), over(5, false)]
    );
    assert_eq!(world.scheduler.services()[0].running, 0);
}

#[test]
fn interactive_requests_go_first() {
    let (mut world, _) = served(1, 1, 1);
    world.ask(1, 60_000);
    let (deadline, body) = (world.now + Micros::from_secs(60), vec![2]);
    let (call, priority) = (CallId(2), Priority::Batch);
    let urgency = Urgency { priority, deadline, budget: None };
    world.give(Input::Ask { call, service: SERVICE, body, urgency });
    world.ask(3, 60_000);
    world.reply(0, b"", true);
    assert_eq!(world.asked[1].2, [3]);
}

#[test]
fn replicas_follow_demand_and_leave_after_idling() {
    let (mut world, _) = served(3, 1, 3);
    assert_eq!(world.replicas().len(), 1);
    (1..=4).for_each(|call| world.ask(call, 60_000));
    world.get_ready();
    assert_eq!(world.replicas().len(), 3);
    while let Some(at) = (0..world.asked.len()).find(|at| world.answers.len() == *at) {
        world.reply(at, b"", true);
    }
    for _ in 0..300 {
        world.wait(100);
        (1..=3)
            .for_each(|n| world.say(Conn(n), FromNode::Alive { running: vec![], queued: vec![] }));
    }
    assert_eq!(world.replicas().len(), 1, "after ten seconds of nothing");
}

#[test]
fn a_replica_moves_when_its_page_hides_or_its_donor_pauses() {
    let (mut world, conns) = served(2, 1, 1);
    let at = world.replicas()[0].node;
    let (here, there) = if at == NodeId(1) { (conns[0], conns[1]) } else { (conns[1], conns[0]) };
    let hidden = Condition { visible: false, ..Condition::default() };
    world.say(here, FromNode::Condition(hidden));
    world.get_ready();
    assert_eq!(world.replicas().len(), 1);
    assert!(world.replicas()[0].node != at);
    world.say(there, FromNode::Pause(true));
    world.get_ready();
    assert!(world.replicas().iter().all(|replica| replica.node == at));
}

#[test]
fn where_all_pages_are_hidden_a_service_does_not_spread_over_them() {
    for (least, most) in [(1, 1), (1, 3), (2, 3)] {
        let mut world = World::new();
        let hidden = Condition { visible: false, ..Condition::default() };
        for n in 1..=4 {
            let conn = world.join(n);
            world.say(conn, FromNode::Condition(hidden));
        }
        let open = ServiceSpec { strangers: true, ..spec(least, most) };
        world.give(Input::Serve { request: RequestId(1), spec: open });
        world.get_ready();
        assert_eq!(world.replicas().len(), usize::from(least));
        // One that is seen takes over.
        world.say(Conn(4), FromNode::Condition(Condition::default()));
        world.get_ready();
        assert!(world.replicas().iter().any(|replica| replica.node == NodeId(4) && replica.ready));
        assert!(world.replicas().len() <= usize::from(most));
    }
}

#[test]
fn after_a_restart_services_are_there_and_nodes_that_come_back_serve_again() {
    let (world, _) = served(1, 1, 1);
    let mut world = world.restarted();
    assert_eq!(world.replicas().len(), 1);
    world.join_trusted(1);
    assert_eq!(world.warm.len(), 1, "it is told again");
    world.get_ready();
    world.ask(1, 1_000);
    assert_eq!(world.asked.len(), 1);
    world.give(Input::Unserve { service: SERVICE });
    assert_eq!(world.unanswered, [(CallId(1), CallError::Gone)]);
    assert_eq!(world.restarted().scheduler.services(), []);
}

#[test]
fn two_services_do_not_have_one_name_and_a_node_that_cannot_is_not_asked_at_once_again() {
    let (mut world, _) = served(1, 1, 1);
    world.give(Input::Serve { request: RequestId(2), spec: spec(1, 1) });
    assert!(matches!(world.replies.last(), Some(Err(SubmitError::NameTaken { .. }))));
    let other = ServiceSpec { name: "other".into(), ..spec(1, 1) };
    world.give(Input::Serve { request: RequestId(3), spec: other });
    let failure = Failure::Fetch { message: "no module".into() };
    world.say(Conn(1), FromNode::Warm { job: JobId(2), result: Err(failure) });
    world.warm.clear();
    world.wait(1_000);
    assert_eq!(world.warm, []);
    assert!(
        world.scheduler.services()[1].trouble.as_deref().is_some_and(|t| t.contains("no module"))
    );
}

/// A service that is not ready anywhere, because whoever is told to make it ready does not answer.
fn unready(nodes: u64, most: u16) -> World {
    let mut world = World::new();
    for n in 1..=nodes {
        world.join_trusted(n);
    }
    world.give(Input::Serve { request: RequestId(1), spec: spec(1, most) });
    world.wait(100);
    assert_eq!(world.warm.len(), 1);
    world
}

impl World {
    /// Time passes, and the first so many nodes beat.
    pub(crate) fn wait_awake(&mut self, nodes: u64, seconds: u64) {
        for _ in 0..seconds * 2 {
            self.wait(500);
            for conn in (1..=nodes).map(Conn) {
                self.say(conn, FromNode::Alive { running: vec![], queued: vec![] });
            }
        }
    }
}

#[test]
fn a_node_that_does_not_get_ready_does_not_keep_others_from_it() {
    let mut world = unready(2, 1);
    world.wait_awake(2, 21);
    assert_eq!(world.warm.len(), 2);
    let (first, second) = (world.warm[0], world.warm[1]);
    assert!(first != second, "another is asked");
    let trouble = world.scheduler.services()[0].trouble.clone();
    assert!(trouble.is_some_and(|trouble| trouble.contains("did not get ready")));
    world.say(second, FromNode::Warm { job: SERVICE, result: Ok(()) });
    world.wait_awake(2, 1);
    assert_eq!(world.replicas().len(), 1, "the late one is not waited for any more");
    world.ask(1, 1_000);
    assert_eq!(world.asked[0].0, second);
    world.wait_awake(2, 120);
    assert_eq!(world.warm.len(), 2, "nobody is asked for ever");
}

#[test]
fn of_many_that_do_not_get_ready_each_is_asked_in_turn() {
    let mut world = unready(4, 1);
    world.wait_awake(4, 65);
    let mut asked = world.warm.clone();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), 4, "{:?}", world.warm);
    assert_eq!(world.warm.len(), 4, "none twice");
}

#[test]
fn what_takes_long_is_waited_for_where_nobody_else_can() {
    let mut world = unready(1, 1);
    world.wait_awake(1, 60);
    assert_eq!(world.warm.len(), 1, "it does not begin again");
    world.get_ready();
    assert!(world.replicas()[0].ready);
    // Two that take long: the first that gets there stays.
    let mut world = unready(2, 1);
    world.wait_awake(2, 45);
    let first = world.warm[0];
    world.say(first, FromNode::Warm { job: SERVICE, result: Ok(()) });
    world.wait_awake(2, 1);
    assert_eq!((world.warm.len(), world.replicas().len()), (2, 1));
    assert!(world.replicas()[0].ready);
}
