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
            ("spot" | "adaptive", _) => Check::of("checking", Ok(self.sampled())),
            (_, _) => {
                let text = format!("{:?} is no policy this program knows", self.policy.verify);
                Check::new("checking", Verdict::Fails, text)
            }
        }
    }

    /// Every unit has its votes, or the word of one of the operator's own nodes.
    fn quorum(&self, votes: usize) -> Result<String, String> {
        let has_votes = |unit: &Unit| unit.confirmed_by.len() + 1 >= votes || unit.vouched;
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
    /// the numbers.
    fn sampled(&self) -> String {
        let all = self.units.len();
        let others = self.units.iter().filter(|unit| !unit.confirmed_by.is_empty()).count();
        let own = self.units.iter().filter(|unit| unit.vouched).count();
        let own = match own {
            0 => String::new(),
            own => format!(", {own} by the operator's own nodes"),
        };
        let verify = &self.policy.verify;
        format!("{verify}: {others} of {all} units confirmed by others{own}")
    }
}
