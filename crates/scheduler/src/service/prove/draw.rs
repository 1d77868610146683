//! Which answers of strangers are looked at, and which of their steps are said again.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::{Micros, NodeId};

use super::look::Look;
use crate::service::Crew;
use crate::service::call::{Asked, By, CallId};
use crate::state::Scheduler;

/// One in so many answers of proven strangers is looked at, drawn by chance, so that none knows which.
const LOOK_ONE_IN: u64 = 8;
/// Of the time that strangers take to answer, looking takes one part in so many at most: a few percent are little beside
/// what they bring.
const PART_OF_TIME: u64 = 50;
/// Steps of an answer that are said again at most. Between two of them an engine only reads, which is many times faster:
/// whoever changes every step is found by one, whoever changes one in ten by five looks in nine.
const STEPS: usize = 8;
/// Questions and answers that are longer together are not kept until somebody has time for them.
const MOST_LOOKED_AT: u64 = 4 << 20;
/// Answers that wait for that at most, beside the one that is looked at: each takes seconds.
const MOST_WAITING: usize = 16;
/// Whoever made all of it ready to look at answers keeps it for so long after the last look began.
const LOOKER_STAYS: Micros = Micros::from_secs(60);

impl Scheduler {
    /// An answer is complete. If strangers had part in it, it may be looked at.
    pub(in crate::service) fn consider_answer(&mut self, id: CallId, asked: Asked) {
        let now = self.now;
        let Some(call) = self.services.calls.get(&id) else { return };
        let service = call.service;
        let Some(of) = self.services.services.get_mut(&service) else { return };
        let together = asked.by == By::Crew;
        let all = match asked.by {
            By::Node(node) => Vec::from([node]),
            By::Crew => of.crew.as_ref().map(Crew::nodes).unwrap_or_default(),
        };
        let is_own = |node: &NodeId| self.peers.get(node).is_some_and(|peer| peer.trusted);
        let by: Vec<_> = all.iter().copied().filter(|node| !is_own(node)).collect();
        if by.is_empty() || of.spec.work.steps_again(&[], false).is_none() {
            return;
        }
        of.proofs.answers += 1;
        of.proofs.answering.0 += (now - asked.since).0;
        let Some(ends) = of.spec.work.steps_again(&call.answer, together) else {
            return of.proofs.nobody_could(String::from(
                "what its devices send each other is rounded, so one device may well answer otherwise",
            ));
        };
        // What came before is another's, who was lost.
        let first = ends.iter().filter(|end| **end as u64 <= asked.from).count();
        let held = call.bytes() + call.answer.len() as u64;
        let due = of.proofs.looking.0.saturating_mul(PART_OF_TIME) <= of.proofs.answering.0;
        // While one answer is looked at, others of newcomers wait, or all that came at the same time would go unseen.
        let new = by.iter().any(|node| of.proofs.lacks(*node) > 0);
        let seldom = due && of.proofs.pending().next().is_none();
        let may = first < ends.len() && held <= MOST_LOOKED_AT;
        let drawn = new || seldom && self.chance.hits(1, LOOK_ONE_IN);
        if !may || !drawn {
            of.proofs.passed += 1;
            return;
        }
        let all_held = of.proofs.pending().fold(held, |sum, look| sum + look.held());
        if of.proofs.waiting.len() >= MOST_WAITING || all_held > MOST_LOOKED_AT {
            return of.proofs.nobody_could(String::from("too many others waited to be checked"));
        }
        if call.is_torn {
            return of.proofs.nobody_could(String::from(
                "a device said the beginning of a word and left, and the next one said another word",
            ));
        }
        let (request, answer) = (call.body(), call.answer.clone());
        let steps = self.draw_steps(first, ends.len());
        let Some(of) = self.services.services.get(&service) else { return };
        let engine = self.engine_of_all(of, &all);
        let Some(of) = self.services.services.get_mut(&service) else { return };
        let Some(engine) = engine else {
            let why = "its devices have different versions of the engine";
            return of.proofs.nobody_could(String::from(why));
        };
        of.proofs.waiting.push_back(Look::new(now, (request, answer), (ends, steps), by, engine));
        of.proofs.wanted = now + LOOKER_STAYS;
        self.services.due = Some(now);
    }

    /// Some steps of those from the first to the end, each as likely as any other; all if they are few.
    fn draw_steps(&mut self, first: usize, end: usize) -> BTreeSet<usize> {
        let count = STEPS.min(end - first);
        let mut steps = BTreeSet::new();
        for last in end - count..end {
            let drawn = first + self.chance.below((last - first + 1) as u64) as usize;
            if !steps.insert(drawn) {
                steps.insert(last);
            }
        }
        steps
    }
}
