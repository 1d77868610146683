//! Lengths of files and functions. What is too long today is recorded and may only get shorter.

use std::collections::BTreeMap;

use super::source::code_only;
use super::{Finding, Source};
use crate::shell::{Outcome, read, root, write};

/// A file that grew beyond this is about more than one thing. Below it, meaning decides where a file ends: the aim of 100 to 500
/// lines in CONTRIBUTING.md is for people to judge.
const FILE_STOP: usize = 800;
/// What fits a reader's head.
const FUNCTION_STOP: usize = 70;

const RATCHET: &str = "xtask/tidy-ratchet.txt";
/// Files that are made and not written, as long as what they are made from.
const MADE: &str = "web/sdk/src/api/";
const WRITTEN: [&str; 7] = [".rs", ".ts", ".mjs", ".js", ".html", ".wgsl", ".py"];

/// A file (`path`) or a function (`path::name`) and its lines.
type Lengths = BTreeMap<String, usize>;

pub(super) fn check(sources: &[Source], lower: bool) -> Outcome<Vec<Finding>> {
    let now = too_long(sources);
    let allowed = recorded(&read(&root().join(RATCHET))?)?;
    if lower {
        return lowered(&now, &allowed).map(|()| Vec::new());
    }
    let mut findings = Vec::new();
    for (name, &lines) in &now {
        let path = name.split("::").next().unwrap_or(name);
        let is_file = path == name;
        let stop = if is_file { FILE_STOP } else { FUNCTION_STOP };
        let most = allowed.get(name).copied().unwrap_or(stop);
        if lines <= most {
            continue;
        }
        let text = format!("`{name}` has {lines} lines, at most {most} are allowed: split it");
        findings.push(Finding { file: path.into(), line: 0, text });
    }
    Ok(findings)
}

fn too_long(sources: &[Source]) -> Lengths {
    let mut lengths = Lengths::new();
    let written = |source: &&Source| {
        let path = &source.path;
        !path.starts_with(MADE) && WRITTEN.iter().any(|end| path.ends_with(end))
    };
    for source in sources.iter().filter(written) {
        let lines = source.text.lines().count();
        if lines > FILE_STOP {
            lengths.insert(source.path.clone(), lines);
        }
        if source.is_rust() {
            let long = functions(&source.text).into_iter().filter(|(_, n)| *n > FUNCTION_STOP);
            lengths.extend(long.map(|(name, lines)| (format!("{}::{name}", source.path), lines)));
        }
    }
    lengths
}

/// Every function with a body, and its lines from `fn` to the closing brace.
fn functions(text: &str) -> Vec<(String, usize)> {
    let code = code_only(text);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = code[from..].find("fn ").map(|at| at + from) {
        from = at + 3;
        let starts_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let name: String =
            code[from..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !starts_word || name.is_empty() {
            continue;
        }
        if let Some(end) = body_end(&code[from..]) {
            let lines = code[at..from + end].matches('\n').count() + 1;
            found.push((name, lines));
        }
    }
    found
}

/// Where the body of the function that starts here ends; `None` if it has none.
fn body_end(code: &str) -> Option<usize> {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            b'{' => braces += 1,
            b'}' if braces <= 1 => return Some(at),
            b'}' => braces -= 1,
            b';' if braces == 0 && brackets == 0 => return None,
            _ => {}
        }
    }
    None
}

fn recorded(text: &str) -> Outcome<Lengths> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let parts = line.split_once(' ');
            let entry =
                parts.and_then(|(lines, name)| Some((name.to_owned(), lines.parse().ok()?)));
            entry.ok_or_else(|| format!("{RATCHET}: `{line}` is not `LINES NAME`"))
        })
        .collect()
}

/// Rewrites the record with today's lengths where they are shorter. It never adds an entry.
fn lowered(now: &Lengths, allowed: &Lengths) -> Outcome {
    let mut text = String::from(
        "# Files over 800 lines and functions over 70, with the most they may have.\n\
         # Numbers only go down: `cargo xtask tidy --ratchet` lowers them to today's.\n",
    );
    for (name, most) in allowed {
        if let Some(lines) = now.get(name) {
            text.push_str(&format!("{} {name}\n", lines.min(most)));
        }
    }
    write(&root().join(RATCHET), text)
}

#[cfg(test)]
mod tests {
    use super::{Source, functions, too_long};

    #[test]
    fn meaning_decides_how_long_a_file_is_until_the_stop() {
        let file = |lines: usize| Source { path: "a.rs".into(), text: "x\n".repeat(lines) };
        assert!(too_long(&[file(800)]).is_empty());
        assert_eq!(too_long(&[file(801)]).get("a.rs"), Some(&801));
    }

    #[test]
    fn functions_are_measured_from_fn_to_brace() {
        let text = "fn a() {\n    b(|x| { x });\n}\ntrait T {\n    fn c(&self) -> [u8; 2];\n    \
                    fn d() {}\n}\n// fn e() {\n";
        let found = functions(text);
        assert_eq!(found, [("a".to_owned(), 3), ("d".to_owned(), 1)]);
    }
}
