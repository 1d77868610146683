//! What scenarios about crews need: nodes that audition, say how far they are, keep checkpoints and end.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, job};

/// What was said about crews.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) auditions: Vec<Conn>,
    /// The crew that last asked somebody to show its speed.
    pub(crate) auditioning: Option<CrewId>,
    pub(crate) enlisted: BTreeMap<Conn, Enlist>,
    pub(crate) dismissed: Vec<Conn>,
    pub(crate) told: Vec<(Conn, CrewTold)>,
    pub(crate) routes: Vec<(Epoch, Vec<(NodeId, Conn)>)>,
    pub(crate) dropped: Vec<BlobRef>,
}

const ROWS: u32 = 120;

pub(crate) fn sim(members: u8) -> JobSpec {
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
        reduce: None,
    };
    JobSpec { work: Kind::Sim(work), items: u64::from(ROWS), ..job(1) }
}

impl World {
    /// A node that has links and answers auditions with this many cells per second.
    pub(crate) fn able(&mut self, n: u64, rate: u64) -> Conn {
        let conn = self.join(n);
        let (key, proof) = (LinkKey([n as u8; 32]), Signature([0; 32], [0; 32]));
        self.say(conn, FromNode::Links { key, proof });
        self.audition(conn, rate);
        conn
    }

    pub(crate) fn audition(&mut self, conn: Conn, rate: u64) {
        // A stranger is asked twice.
        while self.crews.auditions.contains(&conn) {
            self.audition_once(conn, rate);
        }
    }

    pub(crate) fn audition_once(&mut self, conn: Conn, rate: u64) {
        self.crews.auditions.retain(|asked| *asked != conn);
        let say = CrewSay::Auditioned { cells: rate, took: Micros::from_secs(1) };
        self.say_crew(conn, Epoch(0), say);
    }

    pub(crate) fn say_crew(&mut self, conn: Conn, epoch: Epoch, say: CrewSay) {
        let place = self.crews.enlisted.get(&conn).filter(|_| epoch > Epoch(0));
        let crew = place.map(|place| place.crew).or(self.crews.auditioning).expect("a crew");
        self.say(conn, FromNode::Crew { crew, epoch, say });
    }

    pub(crate) fn place(&self, conn: Conn) -> &Enlist {
        &self.crews.enlisted[&conn]
    }

    pub(crate) fn task(&self, conn: Conn) -> &SimTask {
        match &self.place(conn).task {
            CrewTask::Sim(task) => task,
            CrewTask::Talk | CrewTask::Swarm | CrewTask::Stage(_) => panic!("no simulation"),
        }
    }

    pub(crate) fn rows(&self, conn: Conn) -> Span {
        self.task(conn).bands[usize::from(self.place(conn).rank)]
    }

    /// Everybody in the crew says how far it is, in many small moves.
    pub(crate) fn run_to(&mut self, step: u64) {
        let members: Vec<_> = self.crews.enlisted.keys().copied().collect();
        members.into_iter().for_each(|conn| self.run_to_of(conn, step));
    }

    pub(crate) fn run_to_of(&mut self, conn: Conn, step: u64) {
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

    pub(crate) fn keep(&mut self, conn: Conn, step: u64) {
        let rows = self.rows(conn);
        let mark = (step as u8).wrapping_mul(5) ^ conn.0 as u8;
        let blob = BlobRef { hash: Hash([mark; 32]), size: rows.len * 4000 };
        let say = CrewSay::Checkpoint { step, part: CheckpointPart { rows, blob } };
        self.say_crew(conn, self.place(conn).epoch, say);
    }

    pub(crate) fn keep_all(&mut self, step: u64) {
        let members: Vec<_> = self.crews.enlisted.keys().copied().collect();
        self.run_to(step);
        members.into_iter().for_each(|conn| self.keep(conn, step));
    }

    pub(crate) fn finish_all(&mut self) {
        let members: Vec<_> = self.crews.enlisted.keys().copied().collect();
        for conn in members {
            let attempt = self.task(conn).attempt;
            self.answer_attempt(conn, attempt, 1);
        }
    }
}

/// Three equal nodes and a running simulation.
pub(crate) fn three() -> (World, [Conn; 3], JobId) {
    let mut world = World::new();
    let nodes = [1, 2, 3].map(|n| world.able(n, 1_000_000));
    let id = world.submit(sim(0));
    nodes.iter().for_each(|conn| world.audition(*conn, 1_000_000));
    world.wait(1_000);
    assert_eq!(world.crews.enlisted.len(), 3);
    (world, nodes, id)
}
