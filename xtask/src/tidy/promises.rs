//! What README promises is held by tests: `docs/promises.md` has every sentence of three of its sections, and below each
//! the tests that hold it. Here both are compared, and the tests looked for.

use std::collections::BTreeMap;

use super::{Finding, Source};

const README: &str = "README.md";
const PAGE: &str = "docs/promises.md";
const SECTIONS: [&str; 3] = ["What you can rely on", "Trust", "Safety and limits"];
/// Shorter ones are labels and cells of tables.
const FEWEST_WORDS: usize = 4;

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let by_path: BTreeMap<&str, &Source> =
        sources.iter().map(|source| (source.path.as_str(), source)).collect();
    let (Some(readme), Some(page)) = (by_path.get(README), by_path.get(PAGE)) else {
        return Vec::new();
    };
    let listed = listed(&page.text);
    let mut findings = Vec::new();
    let promised = SECTIONS.iter().flat_map(|name| sentences(section(&readme.text, name)));
    let promised: Vec<String> = promised.collect();
    for sentence in &promised {
        if !listed.iter().any(|entry| entry.sentence == *sentence) {
            let text =
                format!("README promises {sentence:?}: list it here, with the tests that hold it");
            findings.push(page.found(0, text));
        }
    }
    for Entry { line, sentence, held } in &listed {
        if !promised.iter().any(|other| other == sentence) {
            findings.push(page.found(*line, "README does not say this any more: remove it"));
        }
        if held.is_empty() {
            findings.push(
                page.found(*line, "no test holds this: name one, or say [why] there is none"),
            );
        }
        for (line, test) in held {
            if let Some(wrong) = missing(test, &by_path) {
                findings.push(page.found(*line, wrong));
            }
        }
    }
    findings
}

/// A sentence of the page, and what stands below it.
struct Entry {
    line: usize,
    sentence: String,
    held: Vec<(usize, String)>,
}

fn listed(page: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for (at, line) in page.lines().enumerate() {
        if let Some(sentence) = line.strip_prefix("- ") {
            entries.push(Entry { line: at + 1, sentence: sentence.into(), held: Vec::new() });
        } else if let (Some(held), Some(entry)) = (line.strip_prefix("  - "), entries.last_mut()) {
            entry.held.push((at + 1, held.into()));
        }
    }
    entries
}

/// What is wrong with a reference to a test, if anything is.
fn missing(test: &str, sources: &BTreeMap<&str, &Source>) -> Option<String> {
    if test.starts_with('[') && test.ends_with(']') {
        return None;
    }
    let named = test.strip_prefix('`').and_then(|test| test.strip_suffix('`'));
    let Some((path, name)) = named.and_then(|named| named.split_once("::")) else {
        return Some("expected `FILE::TEST`, or in brackets why there is none".into());
    };
    let Some(source) = sources.get(path) else { return Some(format!("there is no {path}")) };
    let is_there = match source.is_rust() {
        true => is_rust_test(&source.text, name),
        false => source.text.contains(&format!("test(\"{name}\"")),
    };
    (!is_there).then(|| format!("{path} has no test named {name:?}"))
}

/// Whether there is a function of that name with `#[test]` or the like above it.
fn is_rust_test(text: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.iter().enumerate().filter(|(_, line)| line.contains(&head)).any(|(at, _)| {
        let above = lines[..at].iter().rev();
        let mut above = above.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        above.any(|line| line.starts_with("#[test]") || line.contains("::test"))
    })
}

/// The text below a heading, up to the next of its kind.
fn section<'a>(text: &'a str, name: &str) -> &'a str {
    let rest = text.split_once(&format!("\n## {name}\n")).map_or("", |(_, rest)| rest);
    rest.split_once("\n## ").map_or(rest, |(section, _)| section)
}

/// Of paragraphs, items of lists and cells of tables.
fn sentences(section: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in section.lines().map(str::trim) {
        if line.starts_with('|') {
            is_open = false;
            if !line.chars().all(|c| "|- ".contains(c)) {
                blocks.extend(line.trim_matches('|').split('|').map(|cell| cell.trim().into()));
            }
        } else if line.is_empty() {
            is_open = false;
        } else if let Some(item) = line.strip_prefix("- ") {
            blocks.push(item.into());
            is_open = true;
        } else {
            match blocks.last_mut().filter(|_| is_open) {
                Some(block) => *block = format!("{block} {line}"),
                None => blocks.push(line.into()),
            }
            is_open = true;
        }
    }
    let all = blocks.iter().flat_map(|block| split(&plain(block)));
    all.filter(|sentence| sentence.split_whitespace().count() >= FEWEST_WORDS).collect()
}

/// Without bold words and links to more.
fn plain(block: &str) -> String {
    let mut text = block.replace("**", "");
    while let Some(start) = text.find(" ([") {
        let Some(length) = text[start..].find("))") else { break };
        text.replace_range(start..start + length + 2, "");
    }
    text
}

/// After a full stop or a colon, where the next one begins.
fn split(block: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut rest = block;
    let mut from = 0;
    while let Some(at) = rest[from..].find(". ").into_iter().chain(rest[from..].find(": ")).min() {
        let end = from + at + 1;
        let begins = rest[end + 1..].starts_with(|c: char| c.is_ascii_uppercase() || c == '`');
        if begins {
            sentences.push(rest[..end].to_owned());
            rest = &rest[end + 1..];
            from = 0;
        } else {
            from = end;
        }
    }
    sentences.push(rest.to_owned());
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    const SAID: &str = "# X\n\n## Trust\n\n- **It is right.** It is always right ([more](a.md)), but:\n  Not here.\n\n\
        | what | is `quick:` It runs fast |\n|---|---|\n\n## More\n\nNot this one at all.\n";

    #[test]
    fn sentences_are_found_in_paragraphs_lists_and_tables() {
        let found = sentences(section(SAID, "Trust"));
        assert_eq!(found, ["It is always right, but:", "is `quick:` It runs fast"]);
    }

    #[test]
    fn what_is_promised_must_be_listed_and_held() {
        let test = source("a/tests/t.rs", "#[test]\nfn it_is_right() {}\nfn helps() {}\n");
        let check = |page: &str| {
            let page = source(PAGE, page);
            let sources = [source(README, SAID), page, source("a/tests/t.rs", &test.text)];
            check(&sources).iter().map(|finding| finding.text.clone()).collect::<Vec<_>>()
        };
        let good = "- It is always right, but:\n  - `a/tests/t.rs::it_is_right`\n\
            - is `quick:` It runs fast\n  - [measured]\n";
        assert!(check(good).is_empty(), "{:?}", check(good));
        assert!(check("")[0].contains("always right"));
        assert!(check(&good.replace("it_is_right", "it_was"))[0].contains("no test named"));
        assert!(check(&good.replace("it_is_right", "helps"))[0].contains("no test named"));
        assert!(check(&good.replace("t.rs", "u.rs"))[0].contains("there is no"));
        assert!(check(&good.replace("  - [measured]\n", ""))[0].contains("no test holds this"));
        let more = format!("{good}- It is cheap as well, always.\n  - [no]\n");
        assert!(check(&more)[0].contains("does not say this any more"));
    }
}
