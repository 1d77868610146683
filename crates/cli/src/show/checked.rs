//! How units were checked, in the scheduler's words.

use shoal_api::JobJson;
use shoal_scheduler::Checked;

/// For the line that ends a job.
pub(crate) fn checked(job: &JobJson) -> String {
    let (others, own, nobody) = (job.units_checked, job.units_own, job.units_unchecked);
    in_words(Checked { others, own, nobody }, &job.verify)
}

/// `verify` as the API and receipts write it: under `quorum:3` three agreed.
pub(crate) fn in_words(checked: Checked, verify: &str) -> String {
    checked.in_words(votes(verify))
}

/// How many a policy asks to agree on each unit.
pub(crate) fn votes(verify: &str) -> Option<u64> {
    verify.strip_prefix("quorum:")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_says_how_many_agreed() {
        let two = Checked { others: 2, ..Checked::default() };
        assert_eq!(in_words(two, "quorum:3"), "2 units agreed by 3 devices");
        assert_eq!(in_words(two, "adaptive"), "2 units checked by another device");
        assert_eq!(votes("quorum:many"), None);
    }
}
