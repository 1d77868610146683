//! Crews: called together by speed, mended from the last checkpoint, ended whole.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, job};

/// What was said about crews.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) auditions: Vec<Conn>,
    pub(crate) enlisted: BTreeMap<Conn, Enlist>,
    pub(crate) dismissed: Vec<Conn>,
    pub(crate) told: Vec<(Conn, CrewTold)>,
    pub(crate) routes: Vec<(Epoch, Vec<(NodeId, Conn)>)>,
    pub(crate) dropped: Vec<BlobRef>,
}

const ROWS: u32 = 120;

fn sim(members: u8) -> JobSpec {
    let pass = Pass { entry: "step".into(), workgroup: [8, 8, 1], times: 1 };
    let work = SimWork {
        source: String::new(),
        width: 1000,
        height: ROWS,
        steps: 100,
        halo: 2,
        passes: vec![pass],
        init: None,
        show: None,
        first: None,
        members,
        keep_every: Some(10),
        speculate: false,
        cell_bytes: 4,
        lanes: 1,
        scalar: "f32".into(),
        slots: SimSlots { params: 0, state: 1, next: 2, picture: None },
        params: Vec::new(),
        fields: Vec::new(),
    };
    JobSpec { work: Work::Sim(work), items: u64::from(ROWS), ..job(1) }
}

impl World {
    /// A node that has links and answers auditions with this many cells per second.
    fn able(&mut self, n: u64, rate: u64) -> Conn {
        let conn = self.join(n);
        let (key, proof) = (LinkKey([n as u8; 32]), Signature([0; 32], [0; 32]));
        self.say(conn, FromNode::Links { key, proof });
        self.audition(conn, rate);
        conn
    }

    fn audition(&mut self, conn: Conn, rate: u64) {
        if self.crews.auditions.contains(&conn) {
            self.crews.auditions.retain(|asked| *asked != conn);
            let say = CrewSay::Auditioned { cells: rate, took: Micros::from_secs(1) };
            self.say_crew(conn, Epoch(0), say);
        }
    }

    fn say_crew(&mut self, conn: Conn, epoch: Epoch, say: CrewSay) {
        self.say(conn, FromNode::Crew { crew: CrewId(1), epoch, say });
    }

    fn place(&self, conn: Conn) -> &Enlist {
        &self.crews.enlisted[&conn]
    }

    fn task(&self, conn: Conn) -> &SimTask {
        match &self.place(conn).task {
            CrewTask::Sim(task) => task,
            CrewTask::Talk => panic!("no simulation"),
        }
    }

    fn rows(&self, conn: Conn) -> Span {
        self.task(conn).bands[usize::from(self.place(conn).rank)]
    }

    /// Everybody in the crew says how far it is, in many small moves.
    fn run_to(&mut self, step: u64) {
        let members: Vec<_> = self.crews.enlisted.keys().copied().collect();
        for conn in members {
            let say = CrewSay::Progress {
                step,
                computed: Micros::from_millis(step),
                waited: Micros(0),
                guessed: 0,
                corrected: 0,
                links: Vec::new(),
            };
            self.say_crew(conn, self.place(conn).epoch, say);
        }
    }

    fn keep(&mut self, conn: Conn, step: u64) {
        let rows = self.rows(conn);
        let mark = (step as u8).wrapping_mul(5) ^ conn.0 as u8;
        let blob = BlobRef { hash: Hash([mark; 32]), size: rows.len * 4000 };
        let say = CrewSay::Kept { step, part: KeptPart { rows, blob } };
        self.say_crew(conn, self.place(conn).epoch, say);
    }

    fn keep_all(&mut self, step: u64) {
        let members: Vec<_> = self.crews.enlisted.keys().copied().collect();
        self.run_to(step);
        members.into_iter().for_each(|conn| self.keep(conn, step));
    }

    fn finish_all(&mut self) {
        let members: Vec<_> = self.crews.enlisted.keys().copied().collect();
        for conn in members {
            let attempt = self.task(conn).attempt;
            self.answer_attempt(conn, attempt, 1);
        }
    }
}

/// Three equal nodes and a running simulation.
fn three() -> (World, [Conn; 3], JobId) {
    let mut world = World::new();
    let nodes = [1, 2, 3].map(|n| world.able(n, 1_000_000));
    let id = world.submit(sim(0));
    nodes.iter().for_each(|conn| world.audition(*conn, 1_000_000));
    world.wait(1_000);
    assert_eq!(world.crews.enlisted.len(), 3);
    (world, nodes, id)
}

#[test]
fn a_crew_is_called_when_all_have_shown_their_speed_and_ends_whole() {
    let (mut world, nodes, id) = three();
    assert_eq!(world.rows(nodes[0]), Span::new(0, 40));
    assert_eq!(world.crews.routes.last().unwrap().1.len(), 3);
    world.run_to(100);
    world.finish_all();
    assert_eq!(world.state(id), JobState::Done);
    assert_eq!(world.scheduler.merged(id).len(), 3);
    assert_eq!(world.crews.dismissed.len(), 3);
    assert!(world.crews.routes.last().unwrap().1.is_empty(), "nobody may send frames any more");
}

#[test]
fn a_faster_node_has_more_rows_and_a_weak_one_none() {
    let mut world = World::new();
    let id = world.submit(sim(0));
    let (fast, slow) = (world.able(1, 3_000_000), world.able(2, 1_000_000));
    let weak = world.able(3, 1_000);
    world.wait(1_000);
    assert_eq!(world.rows(fast).len, 96);
    assert_eq!(world.rows(slow).len, 24);
    assert!(!world.crews.enlisted.contains_key(&weak));
    let crew = world.view(id).crew.unwrap();
    assert_eq!(crew.spares, 1);
    assert!(crew.predicted < crew.alone.unwrap());
}

#[test]
fn those_who_stay_go_on_from_the_last_whole_checkpoint() {
    let (mut world, nodes, id) = three();
    world.keep_all(10);
    world.keep(nodes[0], 20);
    world.leave(nodes[1]);
    world.crews.enlisted.remove(&nodes[1]);
    let task = world.task(nodes[0]).clone();
    assert_eq!((task.from, task.kept.len()), (10, 3));
    assert_eq!(world.place(nodes[0]).epoch, Epoch(2));
    assert_eq!(task.bands, [Span::new(0, 60), Span::new(60, 60)]);
    assert_eq!(world.crews.dropped.len(), 1, "a part of a checkpoint that will never be whole");
    world.finish_all();
    assert_eq!(world.state(id), JobState::Done);
    assert_eq!(world.crews.dropped.len(), 4, "checkpoints end with their job");
}

#[test]
fn what_an_older_epoch_says_changes_nothing() {
    let (mut world, nodes, id) = three();
    let old = world.task(nodes[0]).attempt;
    world.leave(nodes[2]);
    world.crews.enlisted.remove(&nodes[2]);
    world.answer_attempt(nodes[0], old, 1);
    world.say_crew(nodes[0], Epoch(1), CrewSay::Bad { node: NodeId(2), why: "x".into() });
    assert_eq!(world.place(nodes[0]).epoch, Epoch(2));
    assert_eq!(world.view(id).crew.unwrap().members.len(), 2);
}

#[test]
fn a_new_life_calls_the_crew_again_from_its_checkpoint() {
    let (mut world, _, id) = three();
    world.keep_all(10);
    let mut world = world.restarted();
    assert_eq!(world.state(id), JobState::Running);
    let nodes = [1, 2].map(|n| world.able(n, 1_000_000));
    world.wait(3_000);
    assert_eq!(world.task(nodes[1]).from, 10);
    assert_eq!(world.place(nodes[1]).epoch, Epoch(2));
    world.finish_all();
    assert_eq!(world.state(id), JobState::Done);
}

#[test]
fn a_crew_of_a_wanted_size_waits_for_it() {
    let mut world = World::new();
    let id = world.submit(sim(2));
    let first = world.able(1, 1_000_000);
    world.wait(5_000);
    assert!(!world.view(id).crew.unwrap().works);
    let why = world.scheduler.explain_job(id).iter().map(|why| why.to_string()).collect::<String>();
    assert!(why.contains("wants 2 members"), "{why}");
    world.say(first, FromNode::Alive { running: Vec::new(), queued: Vec::new() });
    world.able(2, 1_000);
    assert_eq!(world.crews.enlisted.len(), 2, "also a weak one, if it is asked for");
}

#[test]
fn a_silent_member_and_one_that_stalls_are_left_behind() {
    let (mut world, nodes, id) = three();
    for _ in 0..10 {
        world.wait(500);
        world.crews.enlisted.remove(&nodes[2]);
        world.run_to(5);
    }
    assert_eq!(world.view(id).crew.unwrap().members.len(), 2, "one fell silent");
    for step in 0..20 {
        world.wait(500);
        world.run_to(5);
        if step > 4 {
            let slow = CrewSay::Slow { node: NodeId(2) };
            world.say_crew(nodes[0], world.place(nodes[0]).epoch, slow);
        }
    }
    let members = world.view(id).crew.unwrap().members;
    assert_eq!(members.iter().map(|m| m.node).collect::<Vec<_>>(), [NodeId(1)], "one stalled");
}

#[test]
fn a_kernel_that_two_nodes_refuse_fails_its_job_with_their_words() {
    let mut world = World::new();
    let nodes = [1, 2, 3].map(|n| world.join(n));
    let id = world.submit(sim(0));
    for conn in &nodes[..2] {
        let failure = Failure::Kernel { message: "no".into() };
        world.say_crew(*conn, Epoch(0), CrewSay::Failed { failure });
    }
    assert_eq!(world.state(id), JobState::Failed);
    assert_eq!(world.view(id).failure.unwrap().nodes, [NodeId(1), NodeId(2)]);
}

#[test]
fn an_accused_member_goes_and_so_does_whoever_accuses_all() {
    let (mut world, nodes, id) = three();
    let bad = |node| CrewSay::Bad { node: NodeId(node), why: "a forged frame".into() };
    world.say_crew(nodes[0], Epoch(1), bad(2));
    assert_eq!(world.view(id).crew.unwrap().members.len(), 2);
    world.crews.enlisted.remove(&nodes[1]);
    world.say_crew(nodes[0], Epoch(2), bad(3));
    assert!(world.view(id).crew.unwrap().members.is_empty(), "nobody is left");
}

#[test]
fn a_better_crew_is_called_at_a_checkpoint() {
    let (mut world, nodes, id) = three();
    world.crews.enlisted.clone().keys().for_each(|conn| assert!(nodes.contains(conn)));
    let strong = world.able(4, 50_000_000);
    for step in 1..=2 {
        for _ in 0..14 {
            world.wait(500);
            world.run_to(10 * step);
        }
        world.keep_all(10 * step);
    }
    assert!(world.crews.enlisted.contains_key(&strong));
    assert_eq!(world.task(strong).from, 20);
    assert_eq!(world.state(id), JobState::Running);
}

#[test]
fn two_applications_meet_and_part() {
    let mut world = World::new();
    let [a, b] = [1, 2].map(|n| world.able(n, 1));
    let meet = |with| FromNode::Crew {
        crew: CrewId(0),
        epoch: Epoch(0),
        say: CrewSay::Meet { with: NodeId(with) },
    };
    world.say(a, meet(9));
    assert_eq!(world.crews.told, [(a, CrewTold::NotMet { with: NodeId(9) })]);
    world.say(a, meet(2));
    assert_eq!(world.place(a).members, world.place(b).members);
    assert_eq!(world.place(b).task, CrewTask::Talk);
    world.leave(a);
    assert_eq!(world.crews.dismissed, [b]);
    assert!(world.crews.routes.last().unwrap().1.is_empty());
}

#[test]
fn a_cancelled_simulation_leaves_nothing_behind() {
    let (mut world, _, id) = three();
    world.keep_all(10);
    world.give(Input::Cancel { job: id });
    assert_eq!(world.state(id), JobState::Cancelled);
    assert_eq!((world.crews.dismissed.len(), world.crews.dropped.len()), (3, 3));
}
