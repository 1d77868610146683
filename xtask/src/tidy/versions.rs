//! One version everywhere: the workspace, the pages' packages and the newest heading of the changes.

use super::{Finding, Source};

/// Where a version stands, and what stands before it.
const PLACES: [(&str, &str); 5] = [
    ("Cargo.toml", "\nversion = \""),
    ("crates/browser/Cargo.toml", "\nversion = \""),
    ("web/sdk/package.json", "\"version\": \""),
    ("web/app/package.json", "\"version\": \""),
    ("CHANGELOG.md", "\n## "),
];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut first: Option<(&str, &str)> = None;
    let mut findings = Vec::new();
    for (path, before) in PLACES {
        let Some(source) = sources.iter().find(|source| source.path == path) else { continue };
        let Some(version) = version(&source.text, before) else {
            findings.push(source.found(0, "no version here"));
            continue;
        };
        match first {
            None => first = Some((path, version)),
            Some((other, wanted)) if wanted != version => {
                let text = format!("this is version {version}, but {other} says {wanted}");
                findings.push(source.found(0, text));
            }
            Some(_) => {}
        }
    }
    findings
}

/// Digits and dots.
fn version<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_differs_is_named_with_both() {
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
        let sources = |sdk: &str| {
            [
                source("Cargo.toml", "[workspace.package]\nversion = \"0.3.0\"\n"),
                source("CHANGELOG.md", "# Changes\n\n## 0.3.0, unreleased\n\n## 0.2.0\n"),
                source("web/sdk/package.json", sdk),
            ]
        };
        assert!(check(&sources("{\"version\": \"0.3.0\"}")).is_empty());
        let found = check(&sources("{\"version\": \"0.1.0\"}"));
        assert_eq!(found.len(), 1);
        assert!(found[0].text.contains("0.1.0") && found[0].text.contains("0.3.0"));
        assert!(check(&sources("{}"))[0].text.contains("no version"));
    }
}
