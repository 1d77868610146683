//! How merged units were checked: counted as they come and go, and in the one wording for pages, the
//! command line and receipts.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Deref;
use shoal_protocol::Verify;

use crate::job::{Job, Proof};

/// Merged units by how they were checked; each is in exactly one of the three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Another node computed the unit too, or a part of it, and gave the same answer.
    pub others: u64,
    /// One of the operator's own nodes computed it, and nobody else.
    pub own: u64,
    /// Merged on the word of one stranger, or under a policy that checks nothing.
    pub nobody: u64,
}

impl Checked {
    pub fn units(&self) -> u64 {
        self.others + self.own + self.nobody
    }

    /// `12 units: 4 checked by another device; 8 not checked`. Under `quorum:N`, `votes` is N.
    pub fn in_words(&self, votes: Option<u64>) -> String {
        let others = match votes {
            Some(votes) => format!("agreed by {votes} devices"),
            None => String::from("checked by another device"),
        };
        let own = String::from("computed by your own devices, not checked");
        let nobody = String::from("not checked");
        let parts = [(self.others, others), (self.own, own), (self.nobody, nobody)];
        let parts: Vec<_> = parts.iter().filter(|(count, _)| *count > 0).collect();
        let units = self.units();
        let all = if units == 1 { String::from("1 unit") } else { format!("{units} units") };
        match parts.as_slice() {
            [] => all,
            [(_, how)] => format!("{all} {how}"),
            many => {
                let many: Vec<_> =
                    many.iter().map(|(count, how)| format!("{count} {how}")).collect();
                format!("{all}: {}", many.join("; "))
            }
        }
    }
}

/// Why merged units are believed, by their first item. Counts what it holds, because pages ask often.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proofs {
    by_start: BTreeMap<u64, Proof>,
    others: u64,
    own: u64,
}

impl Proofs {
    /// Of so many merged units, how each was checked.
    pub(crate) fn of(&self, merged: usize) -> Checked {
        let (others, own) = (self.others, self.own);
        Checked { others, own, nobody: (merged as u64).saturating_sub(others + own) }
    }

    pub(crate) fn insert(&mut self, start: u64, proof: Proof) {
        self.remove(start);
        self.count(&proof, true);
        self.by_start.insert(start, proof);
    }

    pub(crate) fn remove(&mut self, start: u64) {
        if let Some(old) = self.by_start.remove(&start) {
            self.count(&old, false);
        }
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        let gone: Vec<_> = self.by_start.keys().copied().filter(|start| !keep(*start)).collect();
        for start in gone {
            self.remove(start);
        }
    }

    fn count(&mut self, proof: &Proof, more: bool) {
        let counter = match proof {
            Proof { by, .. } if !by.is_empty() => &mut self.others,
            Proof { vouched: true, .. } => &mut self.own,
            Proof { .. } => return,
        };
        *counter = if more { *counter + 1 } else { *counter - 1 };
    }
}

/// Reading is as of any map; what is written is counted.
impl Deref for Proofs {
    type Target = BTreeMap<u64, Proof>;

    fn deref(&self) -> &Self::Target {
        &self.by_start
    }
}

impl Job {
    /// How many nodes must agree on each unit, if the policy is a quorum.
    pub(crate) fn quorum(&self) -> Option<u64> {
        match self.spec.policy.verify {
            Verify::Quorum { votes } => Some(votes.into()),
            Verify::None | Verify::Spot { .. } | Verify::Adaptive => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use shoal_protocol::NodeId;

    #[test]
    fn each_way_of_checking_has_its_words() {
        let words = |others, own, nobody, votes| Checked { others, own, nobody }.in_words(votes);
        assert_eq!(words(11, 0, 0, None), "11 units checked by another device");
        assert_eq!(words(11, 0, 0, Some(3)), "11 units agreed by 3 devices");
        assert_eq!(words(0, 11, 0, None), "11 units computed by your own devices, not checked");
        assert_eq!(words(0, 0, 1, None), "1 unit not checked");
        assert_eq!(
            words(4, 5, 3, None),
            "12 units: 4 checked by another device; 5 computed by your own devices, not checked; 3 not checked"
        );
        assert_eq!(words(0, 0, 0, None), "0 units");
    }

    #[test]
    fn what_is_held_is_counted_once() {
        let own = Proof { by: vec![], sure: true, vouched: true };
        let checked = Proof { by: vec![NodeId(2)], sure: true, vouched: true };
        let mut proofs = Proofs::default();
        proofs.insert(0, own.clone());
        proofs.insert(10, own);
        proofs.insert(0, checked);
        assert_eq!(proofs.of(5), Checked { others: 1, own: 1, nobody: 3 });
        proofs.retain(|start| start == 0);
        assert_eq!(proofs.of(1), Checked { others: 1, own: 0, nobody: 0 });
        proofs.remove(0);
        proofs.remove(0);
        assert_eq!(proofs.of(0), Checked::default());
    }
}
