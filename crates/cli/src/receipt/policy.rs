//! Whether a receipt shows what its policy asks.

use shoal_scheduler::Checked;

use super::{Check, Receipt, Unit, Verdict};
use crate::show;

impl Receipt {
    pub(super) fn policy_kept(&self) -> Check {
        let verify = self.policy.verify.as_str();
        let name = verify.split_once(':').map_or(verify, |(name, _)| name);
        match (name, show::votes(verify)) {
            ("none", _) => Check::new("checking", Verdict::Unknown, self.told()),
            ("quorum", Some(votes)) => Check::of("checking", self.quorum(votes)),
            ("spot" | "adaptive", _) => self.sampled(),
            (_, _) => {
                let text = format!("this program does not know the policy {verify:?}");
                Check::new("checking", Verdict::Fails, text)
            }
        }
    }

    /// Every unit has its votes; your own nodes have one each, like everybody.
    fn quorum(&self, votes: u64) -> Result<String, String> {
        let agreed = |unit: &Unit| unit.checked_by.len() as u64 + 1;
        let short = self.units.iter().filter(|unit| !unit.sure || agreed(unit) < votes);
        let (count, first) = (short.clone().count(), short.map(|unit| unit.start).next());
        match first {
            None => Ok(self.told()),
            Some(item) => Err(format!(
                "{count} of {} units are not agreed by {votes} devices, the first at item {item}",
                self.units.len()
            )),
        }
    }

    /// These policies leave to chance and trust what is looked at, which no receipt can show: told are
    /// the numbers, and nothing holds where some units have nobody's word but that of a stranger's node.
    fn sampled(&self) -> Check {
        let verdict = if self.checked().nobody == 0 { Verdict::Holds } else { Verdict::Unknown };
        Check::new("checking", verdict, self.told())
    }

    fn told(&self) -> String {
        let verify = &self.policy.verify;
        format!("{verify}: {}", show::in_words(self.checked(), verify))
    }

    fn checked(&self) -> Checked {
        let mut checked = Checked::default();
        for unit in &self.units {
            match (unit.checked_by.is_empty(), unit.own) {
                (false, _) => checked.others += 1,
                (true, true) => checked.own += 1,
                (true, false) => checked.nobody += 1,
            }
        }
        checked
    }
}
