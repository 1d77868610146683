//! Whether a receipt shows what its policy asks.

use super::{Check, Receipt, Unit, Verdict};

impl Receipt {
    pub(super) fn policy_kept(&self) -> Check {
        let (name, votes) = match self.policy.verify.split_once(':') {
            Some((name, rest)) => (name, rest.parse::<usize>().ok()),
            None => (self.policy.verify.as_str(), None),
        };
        match (name, votes) {
            ("none", _) => {
                let text = "none was asked: every answer was believed";
                Check::new("checking", Verdict::Unknown, text)
            }
            ("quorum", Some(votes)) => Check::of("checking", self.quorum(votes)),
            ("spot" | "adaptive", _) => self.sampled(),
            (_, _) => {
                let text = format!("{:?} is no policy this program knows", self.policy.verify);
                Check::new("checking", Verdict::Fails, text)
            }
        }
    }

    /// Every unit has its votes; the operator's own nodes have one each, like everybody.
    fn quorum(&self, votes: usize) -> Result<String, String> {
        let has_votes = |unit: &Unit| unit.confirmed_by.len() + 1 >= votes;
        let short = self.units.iter().filter(|unit| !unit.sure || !has_votes(unit));
        let (count, first) = (short.clone().count(), short.map(|unit| unit.start).next());
        match first {
            None => Ok(format!("all {} units have {votes} votes", self.units.len())),
            Some(item) => Err(format!(
                "{count} of {} units lack their {votes} votes, the first at item {item}",
                self.units.len()
            )),
        }
    }

    /// These policies leave to chance and trust what is looked at, which no receipt can show: told are
    /// the numbers, and nothing holds where some units have nobody's word but their own node's.
    fn sampled(&self) -> Check {
        let all = self.units.len();
        let count = |has: fn(&Unit) -> bool| self.units.iter().filter(|unit| has(unit)).count();
        let confirmed = count(|unit| !unit.confirmed_by.is_empty());
        let own = count(|unit| unit.vouched);
        let neither = count(|unit| unit.confirmed_by.is_empty() && !unit.vouched);
        let verify = &self.policy.verify;
        let mut text = format!("{verify}: {confirmed} of {all} units confirmed by another node");
        if own > 0 {
            text += &format!(", {own} vouched for by the operator's own nodes");
        }
        if neither == 0 {
            return Check::new("checking", Verdict::Holds, text);
        }
        text += &format!("; {neither} have only the word of the node that computed them");
        Check::new("checking", Verdict::Unknown, text)
    }
}
