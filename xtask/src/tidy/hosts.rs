//! Nothing of one machine in the repository: no home folders, no private package mirrors.

use super::{Finding, Source};

/// Written in two pieces, so that this file keeps its own rule.
const MACHINE: [(&str, &str); 3] = [("/wo", "rk/"), ("/ro", "ot/"), ("/home", "/")];

/// Where a lock file may say that packages come from.
const PUBLIC: [&str; 2] =
    ["registry+https://github.com/rust-lang/crates.io-index", "https://registry.npmjs.org/"];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        for (first, second) in MACHINE {
            let path = format!("{first}{second}");
            if line.contains(&path) {
                findings
                    .push(source.found(index + 1, format!("`{path}` is a path of one machine")));
            }
        }
        if let Some(place) = origin(source, line)
            && !PUBLIC.iter().any(|public| place.starts_with(public))
        {
            findings.push(source.found(index + 1, format!("`{place}` is not a public registry")));
        }
    }
    findings
}

/// The place a lock file's line names.
fn origin<'a>(source: &Source, line: &'a str) -> Option<&'a str> {
    let line = line.trim();
    let value = if source.path.ends_with("Cargo.lock") {
        line.strip_prefix("source = ")?
    } else if source.path.ends_with("package-lock.json") {
        line.strip_prefix("\"resolved\": ").filter(|value| value.contains("://"))?
    } else {
        return None;
    };
    Some(value.trim_end_matches(',').trim_matches('"'))
}
