//! A model as a row of parts, each a file of its own with only its weights. Devices that stand in a chain each hold some
//! that stand side by side, and hand on what crosses their end.

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::{BlobRef, Span};

use super::{OnnxWork, Port};
use crate::crew::{Chain, ChainPart, CrewPlan, CrewProblem, Flow, Pace, Recovery};

/// Parts of one model at most: more than devices that ever stand in one chain, few enough that placement tries all.
pub const MOST_PARTS: usize = 24;

/// A part, and what it costs whoever has it. Parts of one model are comparable, no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// An ONNX file with its weights.
    pub blob: BlobRef,
    /// What it reads of what crosses its begin.
    pub inputs: Vec<Port>,
    /// What it makes of what crosses its end.
    pub outputs: Vec<Port>,
    /// Operators that it computes, and numbers it holds for them: what people are shown of it.
    pub operators: u32,
    pub parameters: u64,
    pub work: u64,
    /// Memory while it is loaded and runs.
    pub memory: u64,
    /// All that crosses its end.
    pub out_bytes: u64,
}

/// Parts that stand side by side, as whoever has them sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    /// All that comes in.
    pub enters: Vec<Port>,
    /// What of that is read here.
    pub takes: Vec<Port>,
    /// What is made here and needed behind.
    pub gives: Vec<Port>,
    /// All that goes out: what is made here, and what only passes.
    pub leaves: Vec<Port>,
}

impl OnnxWork {
    /// What crosses the begin of part `at`: all that was made before it, or asked with, and is needed from there on.
    /// Behind the last part, the model's outputs.
    pub fn crossing(&self, at: usize) -> Vec<&Port> {
        let at = at.min(self.parts.len());
        if at == 0 {
            return self.inputs.iter().collect();
        }
        if at == self.parts.len() {
            return self.outputs.iter().collect();
        }
        let (before, behind) = self.parts.split_at(at);
        let is_needed = |port: &&Port| {
            let reads = behind.iter().flat_map(|part| &part.inputs);
            reads.chain(&self.outputs).any(|other| other.name == port.name)
        };
        let made = before.iter().flat_map(|part| &part.outputs);
        self.inputs.iter().chain(made).filter(is_needed).collect()
    }

    /// What whoever has these parts gets and gives; none if there are no such parts.
    pub fn leg(&self, span: Span) -> Option<Leg> {
        let start = usize::try_from(span.start).ok()?;
        let end = usize::try_from(span.end()).ok()?;
        let parts = self.parts.get(start..end).filter(|parts| !parts.is_empty())?;
        let enters = self.crossing(start);
        let leaves = self.crossing(end);
        let reads = |port: &&&Port| {
            parts.iter().flat_map(|part| &part.inputs).any(|input| input.name == port.name)
        };
        let makes = |port: &&&Port| {
            parts.iter().flat_map(|part| &part.outputs).any(|output| output.name == port.name)
        };
        let own = |ports: Vec<&Port>| ports.into_iter().cloned().collect::<Vec<_>>();
        Some(Leg {
            takes: own(enters.iter().filter(reads).copied().collect()),
            gives: own(leaves.iter().filter(makes).copied().collect()),
            enters: own(enters),
            leaves: own(leaves),
        })
    }

    /// What a chain of devices has to do for each request; none if the model runs whole.
    pub(super) fn chain(&self) -> Option<CrewPlan> {
        if self.parts.is_empty() {
            return None;
        }
        let part = |part: &Part| ChainPart {
            work: part.work,
            bytes: part.memory,
            out_bytes: self.wire.bytes(part.out_bytes),
        };
        let parts: Vec<ChainPart> = self.parts.iter().map(part).collect();
        let trial = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.work));
        Some(CrewPlan {
            problem: CrewProblem::Chain(Chain { parts, pace: Pace::Flowing, flow: Flow::Once }),
            members: 0,
            steps: 0,
            keep_every: Some(0),
            guesses: false,
            trial,
            // Requests know nothing of each other: one that is lost is asked again.
            recovery: Recovery::Replay,
            totals: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Element, Side, Wire};
    use super::*;
    use crate::kind::About;
    use alloc::string::String;
    use alloc::vec;
    use shoal_protocol::Hash;

    fn port(name: &str) -> Port {
        let dims = Some(vec![Side::Fixed(1), Side::Fixed(4)]);
        Port { name: name.into(), element: Element::F32, dims }
    }

    fn part(inputs: &[&str], outputs: &[&str]) -> Part {
        Part {
            blob: BlobRef { hash: Hash([7; 32]), size: 9 },
            inputs: inputs.iter().map(|name| port(name)).collect(),
            outputs: outputs.iter().map(|name| port(name)).collect(),
            operators: 3,
            parameters: 5,
            work: 10,
            memory: 100,
            out_bytes: 16,
        }
    }

    /// `x` is read again at the end, `a` passes over the second part, and `b` is an output that is made early.
    fn work() -> OnnxWork {
        OnnxWork {
            model: BlobRef { hash: Hash([1; 32]), size: 1 },
            inputs: vec![port("x")],
            outputs: vec![port("y"), port("b")],
            parts: vec![
                part(&["x"], &["a", "b"]),
                part(&["b"], &["c"]),
                part(&["c", "a", "x"], &["y"]),
            ],
            wire: Wire::F16,
            batch: None,
        }
    }

    fn names(ports: &[Port]) -> Vec<&str> {
        ports.iter().map(|port| port.name.as_str()).collect()
    }

    #[test]
    fn what_later_parts_need_crosses_those_that_do_not() {
        let work = work();
        let at = |at| work.crossing(at).iter().map(|port| port.name.clone()).collect::<Vec<_>>();
        let own = |names: &[&str]| names.iter().map(|name| String::from(*name)).collect::<Vec<_>>();
        assert_eq!(at(0), own(&["x"]));
        assert_eq!(at(1), own(&["x", "a", "b"]));
        assert_eq!(at(2), own(&["x", "a", "b", "c"]));
        assert_eq!(at(3), own(&["y", "b"]));
    }

    #[test]
    fn a_leg_says_what_it_reads_makes_and_passes() {
        let work = work();
        let leg = work.leg(Span { start: 1, len: 1 }).expect("a part");
        assert_eq!(names(&leg.enters), ["x", "a", "b"]);
        assert_eq!((names(&leg.takes), names(&leg.gives)), (vec!["b"], vec!["c"]));
        assert_eq!(names(&leg.leaves), ["x", "a", "b", "c"]);
        let all = work.leg(Span { start: 0, len: 3 }).expect("all parts");
        assert_eq!((names(&all.takes), names(&all.gives)), (vec!["x"], vec!["y", "b"]));
        assert_eq!(work.leg(Span { start: 2, len: 2 }), None);
        assert_eq!(work.leg(Span { start: 1, len: 0 }), None);
        assert_eq!(work.leg(Span { start: u64::MAX, len: 1 }), None);
    }

    #[test]
    fn a_crew_has_as_many_shares_as_there_are_parts() {
        let work = work();
        let plan = work.crew().expect("a chain");
        assert_eq!(plan.problem.shares(), 3);
        assert_eq!(plan.problem.work(Span { start: 0, len: 3 }), 30);
        let CrewProblem::Chain(chain) = plan.problem else { panic!("a chain") };
        assert_eq!(chain.parts[0].out_bytes, 8, "halves");
        let whole = OnnxWork { parts: Vec::new(), ..work };
        assert!(whole.crew().is_none());
    }
}
