//! Devices that talk and talk: what a node may say for nothing, as often as it likes. Whatever they say, they compute
//! on, so that all jobs still finish, and nothing of it is left in the coordinator's books.

use shoal_protocol::limit::MAX_SHARED_BLOBS;
use shoal_protocol::{
    Attempt, BlobRef, Condition, CrewId, CrewSay, Epoch, Failure, FromNode, Hash, JobId, Missed,
    NodeId, SwarmSay,
};

use crate::random::Random;
use crate::world::{Event, Probe, World};

/// Words of one flood, and microseconds between two: 250 a second.
const WORDS: u64 = 100;
const EVERY: u64 = 4_000;
/// What a claimed blob is said to measure.
const HUGE: u64 = 64 << 30;

impl<P: Probe> World<P> {
    pub(crate) fn plan_flood(&mut self) {
        let mean = self.scenario.faults.floods;
        if mean == 0 {
            return;
        }
        let at = self.now.0 + self.random.range(1, mean * 2);
        if at < self.scenario.faults.until {
            self.at(at, Event::Flood);
        }
    }

    /// A device says one thing after another; in the end all that it is.
    pub(crate) fn flood(&mut self) {
        self.report.faults += 1;
        let at = self.random.range(0, self.devices.len() as u64) as usize;
        if let Some(conn) = self.devices[at].conn {
            for word in 0..WORDS {
                let message = idle_word(word, &mut self.random);
                self.at(self.now.0 + word * EVERY, Event::FromNode(conn, message));
            }
            let mut last = vec![FromNode::Pause(false), FromNode::Condition(Condition::default())];
            let jobs = 1..=(self.scenario.jobs.len() + self.scenario.crews.len() + 1) as u64;
            last.extend(jobs.map(|job| FromNode::Declined { job: JobId(job), declined: false }));
            for message in last {
                self.at(self.now.0 + WORDS * EVERY, Event::FromNode(conn, message));
            }
        }
        self.plan_flood();
    }
}

/// Something that a node may say unasked. Every other is a change of mind.
pub(crate) fn idle_word(word: u64, random: &mut Random) -> FromNode {
    if word.is_multiple_of(2) {
        return FromNode::Pause(word.is_multiple_of(4));
    }
    let blob = BlobRef { hash: Hash([random.draw() as u8; 32]), size: HUGE };
    let (piece, node) = (random.draw() as u32, NodeId(random.range(0, 50)));
    let (crew, epoch) =
        (CrewId((1 << 40) + (1 << 20) + random.range(0, 4)), Epoch(random.range(0, 2) as u32));
    let job = JobId(random.range(0, 6));
    match random.range(0, 11) {
        0 => FromNode::Condition(Condition {
            visible: random.chance(500_000),
            ..Condition::default()
        }),
        1 => FromNode::Swarm(SwarmSay::Holds { blobs: vec![blob; MAX_SHARED_BLOBS] }),
        2 => {
            let (has, needs) = (vec![u64::MAX; 64], vec![random.draw(); 1024]);
            FromNode::Swarm(SwarmSay::Part { blob, has, needs })
        }
        3 => FromNode::Swarm(SwarmSay::Got { blob, piece, from: Some(node) }),
        4 => FromNode::Swarm(SwarmSay::Missed { blob, piece, from: node, why: Missed::Bad }),
        5 => FromNode::Swarm(SwarmSay::Drops { blob }),
        6 => FromNode::Swarm(SwarmSay::Near { node, near: random.chance(500_000) }),
        7 => FromNode::Declined { job, declined: random.chance(500_000) },
        8 => FromNode::Returned(vec![Attempt::new(0, piece); 16]),
        9 => FromNode::Crew { crew, epoch, say: CrewSay::Leave },
        _ => {
            let failure = Failure::Internal { message: String::from("made up") };
            FromNode::Failed { attempt: Attempt::new(0, piece), failure }
        }
    }
}
