//! Who said what about a unit, and whether that is enough.

use alloc::vec::Vec;
use shoal_protocol::{NodeId, Span, Time, Verify};

use super::trust::Standing;
use crate::assign::Rank;
use crate::fact::Place;

/// By how much the best answer must lead under [`Verify::Adaptive`]. Six new nodes, two old hands, or one
/// of the operator's own. If one node in five lies in concert, six that agree by chance are all liars
/// in 6 of 100,000 cases, and a lead of six is on their side in 2 of 10,000 disputes.
const ADAPTIVE_LEAD: u32 = 6;
/// By how much one side of a dispute must lead before the other is called wrong, whatever the policy: with a lead of
/// two, three liars that agree convict an honest node, though dozens who know better were not asked.
const DISPUTED_LEAD: u32 = ADAPTIVE_LEAD;
/// What a node's word weighs after [`super::trust::VETERAN`] right answers, beside 1 of a new one.
const VETERAN_WEIGHT: u32 = 3;
/// The operator's own node decides, whatever others say.
const OPERATOR_WEIGHT: u32 = 1_000;
/// Answers to one unit. Disputes among new nodes end after ten on average; one that goes on for this
/// long says that the program gives everybody something else. Also the bits in [`Answer::fits`].
const MAX_VOTERS: usize = 60;
/// So many answers, each different from every other, are not lies but a program that plays dice: if one
/// node in five lies, that many liars in a row are one case in millions.
const SCATTERED: usize = 12;

/// What a policy asks before an answer is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Nodes that must agree.
    pub(crate) votes: usize,
    /// By what weight they must lead all others.
    pub(crate) lead: u32,
    /// Copies lent before anybody answered.
    pub(crate) at_first: usize,
    /// Whether a voter may compute a part only.
    pub(crate) parts: bool,
    /// Every voice is one, also the operator's.
    counted: bool,
    weighed: bool,
}

impl Rules {
    pub(crate) fn of(verify: Verify) -> Rules {
        match verify {
            Verify::None => Rules {
                votes: 1,
                lead: 1,
                at_first: 1,
                parts: false,
                counted: false,
                weighed: false,
            },
            Verify::Spot { .. } => {
                let (parts, counted, weighed) = (false, false, true);
                Rules { votes: 2, lead: 2, at_first: 1, parts, counted, weighed }
            }
            Verify::Quorum { votes } => {
                let votes = votes.max(1);
                let (lead, count) = (u32::from(votes), usize::from(votes));
                let (parts, counted, weighed) = (false, true, false);
                Rules { votes: count, lead, at_first: count, parts, counted, weighed }
            }
            Verify::Adaptive => {
                let (parts, counted, weighed) = (true, false, true);
                Rules { votes: 2, lead: ADAPTIVE_LEAD, at_first: 1, parts, counted, weighed }
            }
        }
    }

    pub(crate) fn weight(&self, standing: Standing) -> u32 {
        match standing {
            // The operator's own word decides, but where votes are counted it is one of them.
            Standing::Operator if !self.counted => OPERATOR_WEIGHT,
            Standing::Veteran if self.weighed => VETERAN_WEIGHT,
            Standing::Operator | Standing::Veteran | Standing::Newcomer => 1,
        }
    }
}

/// The answers to a unit that is checked.
#[derive(Clone, Debug)]
pub(crate) struct Ballot {
    pub(crate) answers: Vec<Answer>,
    /// For each different whole answer, the position of the first that gave it.
    pub(crate) groups: Vec<usize>,
    /// The comparison that the shell makes now, counted for this unit.
    pub(crate) comparing: Option<u32>,
    pub(crate) comparisons: u32,
    /// The first answer is merged already.
    pub(crate) merged: bool,
    /// Only somebody of this numeric class is asked; 0 if anybody.
    pub(crate) seeks: u64,
    /// Strangers did not come to agree: only one of the operator's own nodes is asked.
    pub(crate) for_own: bool,
    /// Classes of which somebody was asked already.
    pub(crate) sought: Vec<u64>,
    /// When the first answer came.
    pub(crate) since: Time,
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) node: NodeId,
    /// The items it is about: the whole unit or a part.
    pub(crate) span: Span,
    pub(crate) place: Option<Place>,
    pub(crate) class: u64,
    pub(crate) weight: u32,
    /// One of the operator's own nodes said so.
    pub(crate) operator: bool,
    /// What its node's word was worth when it said so, where nobody else decides.
    pub(crate) rank: Rank,
    /// Where its node connected from; 0 if unknown.
    pub(crate) network: u64,
    /// Of an earlier, doubted verdict: judged with the others, but without a say.
    pub(crate) suspect: bool,
    /// About the whole unit, so that it can be merged.
    pub(crate) whole: bool,
    /// A bit for each group it is equal to: one for a whole answer, perhaps several for a part.
    pub(crate) fits: u64,
    /// A bit for each group it is almost equal to, though that is not enough.
    pub(crate) near: u64,
    /// Groups it was compared with.
    pub(crate) tested: usize,
}

/// Where the answers stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Poll {
    pub(crate) best: Option<usize>,
    pub(crate) votes: usize,
    pub(crate) weight: u32,
    pub(crate) against: u32,
    open_votes: usize,
    open_weight: u32,
}

impl Ballot {
    pub(crate) fn new(now: Time) -> Ballot {
        Ballot {
            answers: Vec::new(),
            groups: Vec::new(),
            comparing: None,
            comparisons: 0,
            merged: false,
            seeks: 0,
            for_own: false,
            sought: Vec::new(),
            since: now,
        }
    }

    /// Whether somebody disagrees, or did.
    pub(crate) fn is_disputed(&self) -> bool {
        let odd = |answer: &Answer| answer.suspect || answer.is_alone();
        self.groups.len() > 1 || self.answers.iter().any(odd)
    }

    pub(crate) fn poll(&self) -> Poll {
        let weight = |group: usize| {
            let of_group = self.answers.iter().filter(|answer| answer.backs() == Some(group));
            of_group.map(|answer| answer.weight).sum::<u32>()
        };
        // The earlier one where two weigh the same.
        let best = (0..self.groups.len()).rev().max_by_key(|group| weight(*group));
        let mut poll = Poll { best, ..Poll::default() };
        for answer in self.answers.iter().filter(|answer| !answer.suspect) {
            if self.is_open(answer) {
                poll.open_votes += 1;
                poll.open_weight += answer.weight;
            } else if answer.backs().is_some() && answer.backs() == best {
                poll.votes += 1;
                poll.weight += answer.weight;
            } else if answer.backs().is_some() || answer.is_alone() {
                poll.against += answer.weight;
            }
        }
        poll
    }

    /// The answer to believe, once enough nodes gave it.
    pub(crate) fn decided(&self, rules: &Rules) -> Option<usize> {
        let poll = self.poll();
        let settled = poll.open_votes == 0 && self.comparing.is_none();
        let enough = enough(rules, poll.votes, poll.weight, poll.against);
        poll.best.filter(|_| settled && enough)
    }

    /// Whether another voter is needed even if all who are asked now agree.
    pub(crate) fn wants(&self, rules: &Rules, asked: usize, asked_weight: u32) -> bool {
        if self.seeks != 0 || self.for_own {
            return asked == 0;
        }
        let poll = self.poll();
        let votes = poll.votes + poll.open_votes + asked;
        let weight = poll.weight + poll.open_weight + asked_weight;
        !enough(rules, votes, weight, poll.against) && self.voters() + asked < MAX_VOTERS
    }

    /// No further voter will bring agreement.
    pub(crate) fn is_hopeless(&self, rules: &Rules) -> bool {
        let scattered = self.groups.len() >= SCATTERED && self.poll().votes <= 1;
        let settled = self.comparing.is_none() && self.poll().open_votes == 0;
        settled && self.decided(rules).is_none() && (scattered || self.is_full())
    }

    /// So many have answered that nobody else is asked.
    pub(crate) fn is_full(&self) -> bool {
        self.voters() >= MAX_VOTERS
    }

    /// Whether it is yet unknown what the answer is equal to.
    pub(crate) fn is_open(&self, answer: &Answer) -> bool {
        if answer.whole { answer.fits == 0 } else { answer.tested < self.groups.len() }
    }

    /// The answer to merge for a group: a whole one, if possible of somebody not under suspicion.
    pub(crate) fn first_of(&self, group: usize) -> Answer {
        let mut able = self.answers.iter().filter(|a| a.whole && !a.suspect && a.fits(group));
        able.next().unwrap_or(&self.answers[self.groups[group]]).clone()
    }

    /// Whether nobody of an answer's own numeric class gave the winning one.
    pub(crate) fn only_rounds(&self, answer: &Answer, winner: usize) -> bool {
        let mut winners = self.answers.iter().filter(|a| a.backs() == Some(winner) && !a.suspect);
        answer.class == 0 || winners.all(|other| other.class != answer.class)
    }

    /// Whether whoever gave an answer lied, now that another one is believed. A class is what a node says of itself:
    /// that others of the same one come to other bits makes nobody a liar who is near them, unless one of the
    /// operator's own nodes is among them. Else new keys that claim a device's class would have it called wrong.
    pub(crate) fn is_wrong(&self, answer: &Answer, winner: usize) -> bool {
        let mut winners = self.answers.iter().filter(|a| a.backs() == Some(winner) && !a.suspect);
        let near = answer.near & 1 << winner != 0;
        let known = winners.any(|other| other.operator && other.class == answer.class);
        !answer.fits(winner) && (!near || known)
    }

    fn voters(&self) -> usize {
        self.answers.iter().filter(|answer| !answer.suspect).count()
    }
}

impl Answer {
    /// The group it speaks for. A part that fits several speaks for none.
    pub(crate) fn backs(&self) -> Option<usize> {
        (self.fits.count_ones() == 1).then(|| self.fits.trailing_zeros() as usize)
    }

    pub(crate) fn fits(&self, group: usize) -> bool {
        self.fits & 1 << group != 0
    }

    /// Whether it is plainly another answer.
    pub(crate) fn contradicts(&self, group: usize) -> bool {
        (self.fits | self.near) & 1 << group == 0
    }

    /// A part that is equal to none of the groups it was compared with.
    fn is_alone(&self) -> bool {
        !self.whole && self.tested > 0 && self.fits == 0
    }
}

fn enough(rules: &Rules, votes: usize, weight: u32, against: u32) -> bool {
    let agreed = votes >= rules.votes || weight >= OPERATOR_WEIGHT;
    let lead = if against > 0 { rules.lead.max(DISPUTED_LEAD) } else { rules.lead };
    agreed && weight >= against + lead
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;
    use crate::fact::Failed;
    use alloc::vec;
    use shoal_protocol::Hash;

    fn answer(group: usize, weight: u32) -> Answer {
        Answer {
            node: NodeId(1),
            span: Span::new(0, 1),
            place: None,
            class: 0,
            weight,
            operator: false,
            rank: Rank::New,
            network: 0,
            suspect: false,
            whole: true,
            fits: 1 << group,
            near: 0,
            tested: 0,
        }
    }

    fn ballot(votes: &[(usize, u32)]) -> Ballot {
        let answers = votes.iter().map(|(group, weight)| answer(*group, *weight)).collect();
        Ballot { answers, groups: vec![0, 1], ..Ballot::new(Time(0)) }
    }

    #[test]
    fn two_old_hands_or_six_newcomers_decide() {
        let rules = Rules::of(Verify::Adaptive);
        assert_eq!(ballot(&[(0, 3), (0, 3)]).decided(&rules), Some(0));
        assert_eq!(ballot(&[(0, 1); 5]).decided(&rules), None);
        assert_eq!(ballot(&[(0, 1); 6]).decided(&rules), Some(0));
        assert_eq!(ballot(&[(0, 6)]).decided(&rules), None, "one voice is no agreement");
        assert_eq!(ballot(&[(0, 1_000), (1, 3)]).decided(&rules), Some(0), "but the operator's");
    }

    #[test]
    fn a_dispute_asks_for_a_clear_lead() {
        let rules = Rules::of(Verify::Quorum { votes: 2 });
        assert_eq!(ballot(&[(1, 1), (1, 1)]).decided(&rules), Some(1), "nobody disagrees");
        for rules in [rules, Rules::of(Verify::Spot { per_million: 1 })] {
            let mut votes = vec![(0, 1), (1, 1), (1, 1), (1, 1)];
            let four = ballot(&votes);
            assert_eq!(four.decided(&rules), None);
            assert!(four.wants(&rules, 0, 0));
            votes.extend([(1, 1); 4]);
            assert_eq!(ballot(&votes).decided(&rules), Some(1));
        }
    }

    #[test]
    fn of_two_who_are_near_each_other_only_an_own_node_calls_the_other_wrong() {
        let of = |hash: u8| {
            let place = Some(Place {
                offset: 0,
                size: 4,
                hash: Hash([hash; 32]),
                failed: Failed::default(),
            });
            Answer { place, class: 7, fits: 0, ..answer(0, 1) }
        };
        let mut ballot = Ballot { answers: vec![of(1), of(2)], ..Ballot::new(Time(0)) };
        assert_eq!(ballot.next_comparison(false), Some((1, 0)));
        ballot.compared(1, Outcome::Near);
        assert_eq!(ballot.next_comparison(false), None);
        let is_wrong =
            |ballot: &Ballot, at: usize, winner| ballot.is_wrong(&ballot.answers[at], winner);
        assert!(!is_wrong(&ballot, 0, 1) && !is_wrong(&ballot, 1, 0));
        // Whoever comes later and says the same as the first is as near the second.
        ballot.answers.push(of(1));
        assert_eq!(ballot.next_comparison(false), None);
        assert!(!is_wrong(&ballot, 2, 1));
        ballot.answers[1].operator = true;
        assert!(is_wrong(&ballot, 0, 1) && is_wrong(&ballot, 2, 1), "its class is known");
    }
}
