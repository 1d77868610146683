//! Which tests take longest, from what their runners print.

use std::time::Duration;

/// So many are named: the next ones matter little.
const NAMED: usize = 15;

/// Tests and how long they took, the longest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slowest(Vec<(Duration, String)>);

impl Slowest {
    pub(crate) const NONE: Slowest = Slowest(Vec::new());

    pub(super) fn of_line(line: &str) -> Slowest {
        Slowest(timed(line).map(|(took, name)| (took, name.to_owned())).into_iter().collect())
    }

    pub(super) fn add(&mut self, other: Slowest) {
        self.0.extend(other.0);
        self.0.sort_by(|a, b| b.cmp(a));
        self.0.truncate(NAMED);
    }

    pub(super) fn print(&self) {
        if !self.0.is_empty() {
            println!("\nslowest tests, seconds");
        }
        for (took, name) in &self.0 {
            println!("{:>8.1} {name}", took.as_secs_f64());
        }
    }
}

/// `test NAME ... ok <1.234s>` of Rust's runner, `✔ NAME (1234.5ms)` of Node.
pub(super) fn timed(line: &str) -> Option<(Duration, &str)> {
    if let Some(rest) = line.strip_prefix("test ") {
        let (name, rest) = rest.split_once(" ... ")?;
        let seconds = rest.rsplit_once('<')?.1.strip_suffix("s>")?.parse().ok()?;
        return Some((Duration::try_from_secs_f64(seconds).ok()?, name));
    }
    let (name, rest) = line.trim_start().strip_prefix("✔ ")?.rsplit_once(" (")?;
    let millis: f64 = rest.strip_suffix("ms)")?.parse().ok()?;
    Some((Duration::try_from_secs_f64(millis / 1e3).ok()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_what_runners_print() {
        let wanted = Some((Duration::from_millis(1_250), "a::b"));
        assert_eq!(timed("test a::b ... ok <1.250s>"), wanted);
        assert_eq!(timed("test a::b ... ok"), None);
        let wanted = Some((Duration::from_millis(2_500), "two tabs (native)"));
        assert_eq!(timed("  ✔ two tabs (native) (2500ms)"), wanted);
        assert_eq!(timed("✖ two tabs (12ms)"), None);
    }

    #[test]
    fn the_slowest_come_first_and_are_few() {
        let mut all = Slowest::default();
        for at in 0..40 {
            all.add(Slowest::of_line(&format!("test t{at} ... ok <{at}.0s>")));
        }
        assert_eq!(all.0.len(), NAMED);
        assert_eq!(all.0[0], (Duration::from_secs(39), "t39".into()));
    }
}
