//! How much a node may say unasked. Words have a price in time; one that has said more than it can pay is not read any
//! further until it can, so that what it sends too much of waits in its own socket and costs nobody else anything.
//! It is not sent away: an honest node that was wrong about something goes on, a little later. What it was asked for
//! (the answers to units, pieces, auditions) is free.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shoal_protocol::limit::{
    ANSWER_PART_BYTES, CHANGE_PRICE, MAX_CALLS_PER_NODE, MAX_LEASES_PER_NODE, TALK_AHEAD,
    TALK_AT_FIRST, WORD_PRICE,
};
use shoal_protocol::{Attempt, CrewSay, FromNode, Micros, SwarmSay, SwarmTold, ToNode};

/// Questions that may wait for an answer: all that can be lent, and what was taken back and may still be answered.
const MOST_ASKED: u64 = 4 * MAX_LEASES_PER_NODE as u64;
/// Requests that may be answered: all that a node takes, and as many that were taken back and may still be answered.
const MOST_CALLS: usize = 2 * MAX_CALLS_PER_NODE;
/// Parts of one answer that may come at once: those of the largest output there may be.
const FULL_PARTS: u64 = ((256 << 20) / ANSWER_PART_BYTES) as u64;
/// And one more for each such time: twice what engines give of an answer that is written slowly.
const PART_EVERY: Duration = Duration::from_millis(10);
/// Names in one message for the price of a word: looking one up takes a tenth of a microsecond.
const NAMES_A_WORD: usize = 64;
/// Claims in one message for the price of a change: each is looked up on the disk.
const CLAIMS_A_CHANGE: usize = 16;
/// A donor's new rule makes a node say this of every job it knows, a thousand perhaps.
const DECLINE_PRICE: Micros = Micros(2 * WORD_PRICE.0);

/// Of one connection.
pub(super) struct Budget(Mutex<Account>);

struct Account {
    /// When all that was said is paid for.
    paid: Instant,
    /// Questions that were not answered.
    asked: u64,
    /// Requests that were not answered to their end.
    calls: BTreeMap<Attempt, Parts>,
}

/// Of one answer.
struct Parts {
    since: Instant,
    said: u64,
}

impl Budget {
    /// A node that comes with units in hand may answer those.
    pub(super) fn new(now: Instant, held: usize) -> Budget {
        let asked = (held as u64).min(MOST_ASKED);
        let paid = now + duration(TALK_AHEAD).saturating_sub(duration(TALK_AT_FIRST));
        Budget(Mutex::new(Account { paid, asked, calls: BTreeMap::new() }))
    }

    /// The node is told this: it may answer.
    pub(super) fn ask(&self, now: Instant, message: &ToNode) {
        if let ToNode::Ask { call, .. } = message {
            self.account().open(now, *call);
        }
        let questions = questions(message) as u64;
        if questions > 0 {
            let mut account = self.account();
            account.asked = (account.asked + questions).min(MOST_ASKED);
        }
    }

    /// How long the node has to wait for having said this.
    pub(super) fn pay(&self, now: Instant, message: &FromNode) -> Duration {
        let mut account = self.account();
        if account.is_part(now, message) {
            return Duration::ZERO;
        }
        let answers = answers(message) as u64;
        let unasked = answers.saturating_sub(account.asked);
        account.asked -= answers - unasked;
        let price = match answers {
            0 => price(message),
            _ => Micros(WORD_PRICE.0.saturating_mul(unasked)),
        };
        account.paid = account.paid.max(now) + duration(price);
        account.paid.saturating_duration_since(now).saturating_sub(duration(TALK_AHEAD))
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    fn open(&mut self, now: Instant, call: Attempt) {
        self.calls.insert(call, Parts { since: now, said: 0 });
        // The oldest was taken back long ago.
        while self.calls.len() > MOST_CALLS {
            self.calls.pop_first();
        }
    }

    /// Whether this belongs to the answer of a request, as much of it as there can be by now.
    fn is_part(&mut self, now: Instant, message: &FromNode) -> bool {
        let (call, ends) = match message {
            FromNode::Answer { call, last, .. } => (call, *last),
            FromNode::Failed { attempt, .. } => (attempt, true),
            FromNode::Hello(_)
            | FromNode::Done(_)
            | FromNode::Returned(_)
            | FromNode::Warm { .. }
            | FromNode::Alive { .. }
            | FromNode::Caps(_)
            | FromNode::Pause(_)
            | FromNode::Condition(_)
            | FromNode::Declined { .. }
            | FromNode::Links { .. }
            | FromNode::Crew { .. }
            | FromNode::Swarm(_) => return false,
        };
        let Some(parts) = self.calls.get_mut(call) else { return false };
        let elapsed = now.saturating_duration_since(parts.since).as_millis();
        let slowly = u64::try_from(elapsed / PART_EVERY.as_millis()).unwrap_or(u64::MAX);
        parts.said += 1;
        let free = parts.said <= FULL_PARTS.saturating_add(slowly);
        if ends {
            self.calls.remove(call);
        }
        free
    }
}

/// How many answers a message asks for.
fn questions(message: &ToNode) -> usize {
    match message {
        ToNode::Lend(leases) => leases.len(),
        ToNode::Swarm(SwarmTold::Take { pieces, .. }) => pieces.len(),
        ToNode::Audition { .. } | ToNode::Enlist(_) | ToNode::Warm { .. } => 1,
        // Requests have an account of their own: their answers come in parts.
        ToNode::Ask { .. }
        | ToNode::AskMore { .. }
        | ToNode::Swarm(SwarmTold::Give { .. })
        | ToNode::Welcome { .. }
        | ToNode::Refused(_)
        | ToNode::Job { .. }
        | ToNode::Revoke(_)
        | ToNode::Forget(_)
        | ToNode::Challenge { .. }
        | ToNode::Dismiss { .. }
        | ToNode::ToCrew { .. }
        | ToNode::Quic(_)
        | ToNode::Link => 0,
    }
}

/// How many answers a message is.
fn answers(message: &FromNode) -> usize {
    match message {
        FromNode::Done(finished) => finished.len(),
        FromNode::Returned(attempts) => attempts.len(),
        FromNode::Failed { .. }
        | FromNode::Warm { .. }
        | FromNode::Answer { .. }
        | FromNode::Swarm(SwarmSay::Got { .. } | SwarmSay::Missed { .. })
        | FromNode::Crew {
            say: CrewSay::Auditioned { .. } | CrewSay::Failed { .. } | CrewSay::Loaded,
            ..
        } => 1,
        FromNode::Hello(_)
        | FromNode::Alive { .. }
        | FromNode::Caps(_)
        | FromNode::Pause(_)
        | FromNode::Condition(_)
        | FromNode::Declined { .. }
        | FromNode::Links { .. }
        | FromNode::Crew { .. }
        | FromNode::Swarm(_) => 0,
    }
}

/// What a message costs that is no answer.
fn price(message: &FromNode) -> Micros {
    let times = |price: Micros, times: usize| Micros(price.0.saturating_mul(times as u64));
    match message {
        FromNode::Alive { running, queued } => {
            times(WORD_PRICE, 1 + (running.len() + queued.len()) / NAMES_A_WORD)
        }
        FromNode::Swarm(SwarmSay::Holds { blobs }) => {
            times(CHANGE_PRICE, 1 + blobs.len() / CLAIMS_A_CHANGE)
        }
        FromNode::Declined { .. } => DECLINE_PRICE,
        FromNode::Done(_)
        | FromNode::Returned(_)
        | FromNode::Failed { .. }
        | FromNode::Warm { .. }
        | FromNode::Answer { .. }
        | FromNode::Swarm(SwarmSay::Got { .. } | SwarmSay::Missed { .. }) => WORD_PRICE,
        FromNode::Crew { say, .. } => match say {
            CrewSay::Progress { .. }
            | CrewSay::Checkpoint { .. }
            | CrewSay::Slow { .. }
            | CrewSay::Poked { .. }
            | CrewSay::Total { .. }
            | CrewSay::Loaded
            | CrewSay::Staged(_) => WORD_PRICE,
            CrewSay::Auditioned { .. }
            | CrewSay::Failed { .. }
            | CrewSay::Bad { .. }
            | CrewSay::Meet { .. }
            | CrewSay::Leave => CHANGE_PRICE,
        },
        FromNode::Hello(_)
        | FromNode::Caps(_)
        | FromNode::Pause(_)
        | FromNode::Condition(_)
        | FromNode::Links { .. }
        | FromNode::Swarm(SwarmSay::Part { .. } | SwarmSay::Drops { .. } | SwarmSay::Near { .. }) => {
            CHANGE_PRICE
        }
    }
}

fn duration(micros: Micros) -> Duration {
    Duration::from_micros(micros.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_protocol::{Attempt, Bytes, Finished, JobId, Lease, Span, UnitOutput};

    fn lend(units: u32) -> ToNode {
        let lease = |n| Lease { attempt: Attempt::new(1, n), job: JobId(1), span: Span::new(0, 1) };
        ToNode::Lend((0..units).map(lease).collect())
    }

    fn done(units: u32) -> FromNode {
        let output = UnitOutput::Inline(Vec::new());
        let unit =
            |n| Finished { attempt: Attempt::new(1, n), took: Micros(1), output: output.clone() };
        FromNode::Done((0..units).map(unit).collect())
    }

    #[test]
    fn answers_to_what_was_lent_are_free_however_many() {
        let (now, budget) = (Instant::now(), Budget::new(Instant::now(), 0));
        for _ in 0..100_000 {
            budget.ask(now, &lend(64));
            assert_eq!(budget.pay(now, &done(64)), Duration::ZERO);
        }
        budget.ask(now, &lend(1));
        assert_eq!(budget.pay(now, &done(1)), Duration::ZERO);
    }

    #[test]
    fn answers_nobody_asked_for_are_not() {
        let (now, budget) = (Instant::now(), Budget::new(Instant::now(), 0));
        let waits = (0..100).filter(|_| !budget.pay(now, &done(64)).is_zero());
        assert!(waits.count() > 90);
    }

    fn ask(n: u32) -> ToNode {
        ToNode::Ask { call: Attempt::new(1, n), job: JobId(1), body: Bytes::new(), rest: 0 }
    }

    fn part(n: u32, last: bool) -> FromNode {
        FromNode::Answer { call: Attempt::new(1, n), at: 0, part: vec![1].into(), last }
    }

    #[test]
    fn parts_of_answers_are_free_on_all_slots_at_once() {
        let (now, budget) = (Instant::now(), Budget::new(Instant::now(), 0));
        (0..16).for_each(|n| budget.ask(now, &ask(n)));
        for _ in 0..1000 {
            (0..16).for_each(|n| assert_eq!(budget.pay(now, &part(n, false)), Duration::ZERO));
        }
        // And for as long as they are written.
        for tick in 0..100_000 {
            let now = now + tick * Duration::from_millis(20);
            (0..16).for_each(|n| assert_eq!(budget.pay(now, &part(n, false)), Duration::ZERO));
        }
    }

    #[test]
    fn what_an_answer_did_not_need_is_not_left_over_for_talk() {
        let (now, budget) = (Instant::now(), Budget::new(Instant::now(), 0));
        for n in 0..1000 {
            budget.ask(now, &ask(n));
            assert_eq!(budget.pay(now, &part(n, true)), Duration::ZERO);
        }
        let waits = (0..1000).filter(|n| !budget.pay(now, &part(*n, false)).is_zero());
        assert!(waits.count() > 400, "they are not asked for any more");
        budget.ask(now, &ask(5000));
        let waits = (0..2000).filter(|_| !budget.pay(now, &part(5000, false)).is_zero());
        assert!(waits.count() > 900, "nobody needs so many");
    }

    #[test]
    fn whoever_changes_its_mind_all_the_time_waits_and_is_heard_33_times_a_second() {
        let start = Instant::now();
        let budget = Budget::new(start, 0);
        let (mut now, mut heard) = (start, 0);
        while now < start + Duration::from_secs(60) {
            let wait = budget.pay(now, &FromNode::Pause(heard % 2 == 0));
            now += wait;
            heard += 1;
        }
        assert!((60 * 33..60 * 34 + 34).contains(&heard), "{heard} in a minute");
    }

    #[test]
    fn a_beating_node_with_all_it_can_hold_pays_less_than_it_earns() {
        let start = Instant::now();
        let budget = Budget::new(start, 0);
        let (running, queued) = (vec![Attempt::new(1, 1); 8], vec![Attempt::new(1, 2); 1016]);
        let beat = FromNode::Alive { running, queued };
        for n in 0..1000 {
            let now = start + n * Duration::from_millis(500);
            assert_eq!(budget.pay(now, &beat), Duration::ZERO);
        }
    }

    #[test]
    fn a_list_without_end_costs_without_end() {
        let (now, budget) = (Instant::now(), Budget::new(Instant::now(), 0));
        let endless = FromNode::Returned(vec![Attempt::new(1, 1); 500_000]);
        assert!(budget.pay(now, &endless) > Duration::from_secs(900));
    }
}
