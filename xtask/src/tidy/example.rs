//! The example kind of CONTRIBUTING.md is where the list there says, and nowhere else: what is in the list is all that
//! a new kind of work needs.

use super::{Finding, Source};

const GUIDE: &str = "CONTRIBUTING.md";
const HEADING: &str = "## Add a kind of work";
/// This rule.
const RULE: &str = "xtask/src/tidy/example.rs";

/// What only those say who know the example.
const MARKS: [&str; 10] = [
    "feature = \"count\"",
    "\"kind\": \"count\"",
    "shoal/count",
    "/count\"]",
    "count = []",
    "\",count\"",
    "[\"count\",",
    "CountWork",
    "Kind::Count(",
    "`shoal count`",
];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let Some(guide) = sources.iter().find(|source| source.path == GUIDE) else {
        return Vec::new();
    };
    let listed = listed(&guide.text);
    let knows = |source: &&Source| {
        let is_talk = source.path == GUIDE || source.path == RULE;
        !is_talk && MARKS.iter().any(|mark| source.text.contains(mark))
    };
    let known: Vec<&Source> = sources.iter().filter(knows).collect();
    let unlisted = known.iter().filter(|it| !listed.iter().any(|(_, at)| covers(at, &it.path)));
    let mut findings: Vec<Finding> = unlisted
        .map(|it| {
            let text = "knows the example kind `count`, but is not in CONTRIBUTING.md's list of places for a new kind";
            it.found(0, text)
        })
        .collect();
    let gone = listed.iter().filter(|(_, at)| !known.iter().any(|it| covers(at, &it.path)));
    findings.extend(gone.map(|(line, at)| {
        guide.found(*line, format!("{at} knows nothing of the example kind `count`: take it out"))
    }));
    findings
}

/// A folder ends in `/` and stands for all that is in it.
fn covers(listed: &str, path: &str) -> bool {
    path == listed || (listed.ends_with('/') && path.starts_with(listed))
}

/// The first thing in backticks in each row of the section's tables, with its line.
fn listed(guide: &str) -> Vec<(usize, String)> {
    let lines = guide.lines().enumerate().skip_while(|(_, line)| *line != HEADING).skip(1);
    let section = lines.take_while(|(_, line)| !line.starts_with("## "));
    let rows = section.filter(|(_, line)| line.starts_with("| "));
    rows.filter_map(|(at, line)| Some((at + 1, line.split('`').nth(1)?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    #[test]
    fn the_list_and_the_tree_must_agree() {
        let guide = "## Add a kind of work\n\n| where | what |\n|---|---|\n| `kinds/count/` | all |\n| `list.rs` | a line |\n\n## Commits\n| `other.rs` | |\n";
        let kind = source("kinds/count/mod.rs", "struct CountWork;");
        let list = source("list.rs", "Kind::Count(work)");
        let mut tree = vec![source(GUIDE, guide), kind, list];
        assert!(check(&tree).is_empty());
        tree.push(source("other.rs", "#[cfg(feature = \"count\")]"));
        assert_eq!(check(&tree)[0].file.to_str(), Some("other.rs"));
        tree.truncate(2);
        assert_eq!((check(&tree)[0].line, check(&tree).len()), (6, 1), "list.rs forgot the kind");
    }
}
