//! How much a node may say unasked. Words have a price in time; one that has said more than it can pay is not read any
//! further until it can, so that what it sends too much of waits in its own socket and costs nobody else anything.
//! It is not sent away: an honest node that was wrong about something goes on, a little later. What it was asked for
//! (the answers to units, pieces, auditions) is free.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shoal_protocol::limit::{
    ANSWER_PART_BYTES, CHANGE_PRICE, MAX_LEASES_PER_NODE, TALK_AHEAD, TALK_AT_FIRST, WORD_PRICE,
};
use shoal_protocol::{CrewSay, FromNode, Micros, ShareSay, ShareTold, ToNode};

/// Questions that may wait for an answer: all that can be lent, and what was taken back and may still be answered.
const MOST_ASKED: u64 = 4 * MAX_LEASES_PER_NODE as u64;
/// Parts of one answer: the largest output there may be.
const MOST_PARTS: usize = (256 << 20) / ANSWER_PART_BYTES;
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
}

impl Budget {
    /// A node that comes with units in hand may answer those.
    pub(super) fn new(now: Instant, held: usize) -> Budget {
        let asked = (held as u64).min(MOST_ASKED);
        let paid = now + duration(TALK_AHEAD).saturating_sub(duration(TALK_AT_FIRST));
        Budget(Mutex::new(Account { paid, asked }))
    }

    /// The node is told this: it may answer.
    pub(super) fn ask(&self, message: &ToNode) {
        let questions = questions(message) as u64;
        if questions > 0 {
            let mut account = self.account();
            account.asked = (account.asked + questions).min(MOST_ASKED);
        }
    }

    /// How long the node has to wait for having said this.
    pub(super) fn pay(&self, now: Instant, message: &FromNode) -> Duration {
        let mut account = self.account();
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

/// How many answers a message asks for.
fn questions(message: &ToNode) -> usize {
    match message {
        ToNode::Lend(leases) => leases.len(),
        ToNode::Share(ShareTold::Take { pieces, .. }) => pieces.len(),
        ToNode::Audition { .. } | ToNode::Enlist(_) | ToNode::Warm { .. } => 1,
        // An answer comes in parts.
        ToNode::Ask { .. } => MOST_PARTS,
        ToNode::Share(ShareTold::Give { .. })
        | ToNode::Welcome { .. }
        | ToNode::Refused(_)
        | ToNode::Job { .. }
        | ToNode::Revoke(_)
        | ToNode::Forget(_)
        | ToNode::Challenge { .. }
        | ToNode::Dismiss { .. }
        | ToNode::ToCrew { .. }
        | ToNode::Quic(_) => 0,
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
        | FromNode::Share(ShareSay::Got { .. } | ShareSay::Missed { .. })
        | FromNode::Crew { say: CrewSay::Auditioned { .. } | CrewSay::Failed { .. }, .. } => 1,
        FromNode::Hello(_)
        | FromNode::Alive { .. }
        | FromNode::Caps(_)
        | FromNode::Pause(_)
        | FromNode::Condition(_)
        | FromNode::Declined { .. }
        | FromNode::Links { .. }
        | FromNode::Crew { .. }
        | FromNode::Share(_) => 0,
    }
}

/// What a message costs that is no answer.
fn price(message: &FromNode) -> Micros {
    let times = |price: Micros, times: usize| Micros(price.0.saturating_mul(times as u64));
    match message {
        FromNode::Alive { running, queued } => {
            times(WORD_PRICE, 1 + (running.len() + queued.len()) / NAMES_A_WORD)
        }
        FromNode::Share(ShareSay::Holds { blobs }) => {
            times(CHANGE_PRICE, 1 + blobs.len() / CLAIMS_A_CHANGE)
        }
        FromNode::Declined { .. } => DECLINE_PRICE,
        FromNode::Done(_)
        | FromNode::Returned(_)
        | FromNode::Failed { .. }
        | FromNode::Warm { .. }
        | FromNode::Answer { .. }
        | FromNode::Share(ShareSay::Got { .. } | ShareSay::Missed { .. }) => WORD_PRICE,
        FromNode::Crew { say, .. } => match say {
            CrewSay::Progress { .. }
            | CrewSay::Checkpoint { .. }
            | CrewSay::Slow { .. }
            | CrewSay::Poked { .. }
            | CrewSay::Total { .. } => WORD_PRICE,
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
        | FromNode::Share(ShareSay::Part { .. } | ShareSay::Drops { .. } | ShareSay::Near { .. }) => {
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
    use shoal_protocol::{Attempt, Finished, JobId, Lease, Span, UnitOutput};

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
            budget.ask(&lend(64));
            assert_eq!(budget.pay(now, &done(64)), Duration::ZERO);
        }
        budget.ask(&lend(1));
        assert_eq!(budget.pay(now, &done(1)), Duration::ZERO);
    }

    #[test]
    fn answers_nobody_asked_for_are_not() {
        let (now, budget) = (Instant::now(), Budget::new(Instant::now(), 0));
        let waits = (0..100).filter(|_| !budget.pay(now, &done(64)).is_zero());
        assert!(waits.count() > 90);
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
