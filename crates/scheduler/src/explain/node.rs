//! How a node stands.

use alloc::vec::Vec;
use core::fmt;
use shoal_protocol::{Lane, Micros, NodeId};

use super::many;
use crate::state::Scheduler;
use crate::verify::Trust;

/// Below this part of its best pace a node is said to be slowed; less is noise.
const SLOWED: u8 = 80;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyNode {
    /// It is not here.
    Left {
        ago: Micros,
        units: u64,
        failed: u64,
    },
    Paused,
    /// Said nothing for too long.
    Silent,
    Hidden,
    /// What is left of its best pace.
    Slowed {
        percent: u8,
    },
    /// Left with units, failed them or held them too long, again and again.
    Unreliable,
    /// The operator's own.
    Operators,
    /// Wrong too often to get more of this kind.
    Barred {
        lane: Lane,
        trust: Trust,
    },
    /// Right so often that little is checked.
    Trusted {
        lane: Lane,
        trust: Trust,
    },
    /// All it does of this kind is checked.
    New {
        lane: Lane,
        trust: Trust,
    },
    /// Others say that it gave them wrong pieces of blobs.
    GaveWrong {
        to: u64,
    },
    /// Of the memory it lends, what its units may take at once; in bytes.
    Memory {
        used: u64,
        lent: u64,
    },
    Holds {
        units: u64,
    },
    Idle,
}

impl fmt::Display for WhyNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyNode::Left { ago, units, failed } => {
                let counted = many(*units, "unit");
                write!(f, "it is not connected; it was last here {} ago", Ago(*ago))?;
                write!(f, "; {counted} that it computed counted, and it failed {failed}")
            }
            WhyNode::Paused => f.write_str("it is paused"),
            WhyNode::Silent => f.write_str("it has gone silent and gets no work until it answers"),
            WhyNode::Unreliable => f.write_str(
                "it left, failed or delayed its work several times: it gets one unit at a time, after a pause",
            ),
            WhyNode::Hidden => f.write_str("its page is in the background, and the browser slows it down"),
            WhyNode::Slowed { percent } => {
                write!(
                    f,
                    "it computes at {percent} % of its best speed, because of heat, power saving or other work"
                )
            }
            WhyNode::Operators => f.write_str("it is your own device: its answers are not checked, and they decide when others disagree"),
            WhyNode::Barred { lane, trust } => {
                write!(
                    f,
                    "{} of its {} answers were wrong: it gets no more of this work",
                    trust.wrong,
                    name(*lane)
                )
            }
            WhyNode::Trusted { lane, trust: Trust { streak, .. } } => write!(
                f,
                "its last {streak} checked {} answers were right: about one in {streak} is checked now",
                name(*lane)
            ),
            WhyNode::New { lane, trust } => {
                let (streak, lane) = (trust.streak, name(*lane));
                write!(
                    f,
                    "{streak} of its {lane} answers in a row were right so far: all are checked"
                )?;
                match trust.wrong {
                    0 => Ok(()),
                    wrong => write!(f, "; {wrong} were wrong before"),
                }
            }
            WhyNode::GaveWrong { to: 1 } => {
                f.write_str("one node says that it sent wrong pieces of a blob")
            }
            WhyNode::GaveWrong { to } => {
                write!(
                    f,
                    "{to} nodes say that it sent wrong pieces of blobs: it may send no more"
                )
            }
            WhyNode::Memory { used, lent } => write!(
                f,
                "its units use up to {} MiB of the {} MiB of memory it lends",
                used.div_ceil(1 << 20),
                lent >> 20
            ),
            WhyNode::Holds { units } => write!(f, "it has {}", many(*units, "unit")),
            WhyNode::Idle => f.write_str("it has nothing to do"),
        }
    }
}

/// A time that passed, in the largest unit that fits.
struct Ago(Micros);

impl fmt::Display for Ago {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.0 / 1_000_000;
        let (count, unit) = match seconds {
            0..60 => (seconds, "second"),
            60..3_600 => (seconds / 60, "minute"),
            3_600..86_400 => (seconds / 3_600, "hour"),
            _ => (seconds / 86_400, "day"),
        };
        f.write_str(&many(count, unit))
    }
}

fn name(lane: Lane) -> &'static str {
    match lane {
        Lane::Inline => "inline",
        Lane::Gpu => "GPU",
        Lane::Cpu => "CPU",
    }
}

impl Scheduler {
    /// How a node stands that is connected or was; empty if nobody remembers it.
    pub fn explain_node(&self, node: NodeId) -> Vec<WhyNode> {
        let Some(peer) = self.peers.get(&node) else { return self.explain_left(node) };
        let states = [
            (peer.paused, WhyNode::Paused),
            (peer.silent, WhyNode::Silent),
            (!peer.condition.visible, WhyNode::Hidden),
            (self.is_poor(node), WhyNode::Unreliable),
            (peer.trusted, WhyNode::Operators),
        ];
        let mut why: Vec<_> =
            states.into_iter().filter(|(is, _)| *is).map(|(_, why)| why).collect();
        let pace = peer.last_job.and_then(|job| peer.paces.get(&job));
        let percent = pace.map(|pace| pace.percent()).filter(|percent| *percent < SLOWED);
        why.extend(percent.map(|percent| WhyNode::Slowed { percent }));
        let lanes =
            Lane::ALL.into_iter().filter(|lane| !peer.trusted && peer.caps.slots(*lane) > 0);
        why.extend(lanes.filter_map(|lane| self.explain_trust(node, lane)));
        let accusers = self.swarms.accusers_of(node);
        why.extend((accusers > 0).then_some(WhyNode::GaveWrong { to: accusers as u64 }));
        let (used, lent) = (self.in_use(peer).memory, peer.caps.memory);
        why.extend((used > 0).then_some(WhyNode::Memory { used, lent }));
        why.push(match peer.loans().len() {
            0 => WhyNode::Idle,
            units => WhyNode::Holds { units: units as u64 },
        });
        why
    }

    fn explain_left(&self, node: NodeId) -> Vec<WhyNode> {
        let Some(seen) = self.register.seen(node) else { return Vec::new() };
        let ago = Micros(self.now.0.saturating_sub(seen.at.0));
        let mut why = Vec::from([WhyNode::Left { ago, units: seen.units, failed: seen.failed }]);
        why.extend(seen.trusted.then_some(WhyNode::Operators));
        let lanes = Lane::ALL.into_iter().filter(|_| !seen.trusted);
        why.extend(lanes.filter_map(|lane| self.explain_trust(node, lane)));
        why
    }

    /// What a stranger's answers of one kind were worth.
    fn explain_trust(&self, node: NodeId, lane: Lane) -> Option<WhyNode> {
        let trust = self.trust.of(node, lane);
        if trust.is_barred() {
            Some(WhyNode::Barred { lane, trust })
        } else if trust.is_veteran() {
            Some(WhyNode::Trusted { lane, trust })
        } else {
            (trust != Trust::default()).then_some(WhyNode::New { lane, trust })
        }
    }
}
