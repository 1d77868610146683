//! Calls that are banned somewhere, each with what to use instead.

use super::source::code_only;
use super::{Finding, Source};

struct Ban {
    /// Text that must not appear.
    what: &'static str,
    instead: &'static str,
    applies: fn(&Source) -> bool,
}

const BANS: [Ban; 20] = [
    Ban { what: "Instant", instead: "`Time` as an argument", applies: decides },
    Ban { what: "SystemTime", instead: "`Time` as an argument", applies: decides },
    Ban {
        what: "HashMap",
        instead: "`BTreeMap`: the same inputs give the same order",
        applies: decides,
    },
    Ban {
        what: "HashSet",
        instead: "`BTreeSet`: the same inputs give the same order",
        applies: decides,
    },
    Ban { what: "thread::", instead: "an `Output` for the shell", applies: decides },
    Ban {
        what: "f32",
        instead: "integers in thousandths: no two CPUs need to agree on rounding",
        applies: scores,
    },
    Ban {
        what: "f64",
        instead: "integers in thousandths: no two CPUs need to agree on rounding",
        applies: scores,
    },
    Ban { what: "println!", instead: "`tracing`, or a returned error", applies: is_silent },
    Ban { what: "eprintln!", instead: "`tracing`, or a returned error", applies: is_silent },
    Ban { what: "dbg!", instead: "nothing: remove it", applies: Source::is_rust },
    Ban {
        what: "todo!(",
        instead: "the code, or an error that says what is missing",
        applies: Source::is_rust,
    },
    Ban {
        what: "unimplemented!(",
        instead: "the code, or an error that says what is missing",
        applies: Source::is_rust,
    },
    Ban {
        what: "cfg(target_arch",
        instead: "a feature, or a crate of its own",
        applies: beyond_engine,
    },
    Ban {
        what: "unsafe {",
        instead: "safe code: `unsafe` lives in crates/engine only",
        applies: beyond_engine,
    },
    Ban { what: ": any", instead: "a type, or `unknown` and a check", applies: is_typescript },
    Ban { what: " as any", instead: "a type, or `unknown` and a check", applies: is_typescript },
    Ban { what: "@ts-ignore", instead: "a type", applies: is_typescript },
    Ban {
        what: "innerHTML",
        instead: "`textContent` and elements: names come from strangers",
        applies: is_web,
    },
    Ban { what: "eval(", instead: "nothing: the content policy forbids it", applies: is_web },
    Ban { what: "waitForTimeout(", instead: "waiting for the condition itself", applies: is_web },
];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    if source.path.starts_with("xtask/src/tidy/") {
        return Vec::new();
    }
    let bans: Vec<&Ban> = BANS.iter().filter(|ban| (ban.applies)(source)).collect();
    if bans.is_empty() {
        return Vec::new();
    }
    let code =
        if source.path.ends_with(".html") { source.text.clone() } else { code_only(&source.text) };
    let mut findings = Vec::new();
    for (index, line) in code.lines().enumerate() {
        for ban in bans.iter().filter(|ban| has_word(line, ban.what)) {
            let text = format!("`{}` is banned here: use {}", ban.what.trim(), ban.instead);
            findings.push(source.found(index + 1, text));
        }
    }
    findings
}

/// Whether `what` stands in the line and does not merely end a longer name.
fn has_word(line: &str, what: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(what).any(|(at, _)| {
        let glued_before = what.starts_with(is_name) && line[..at].ends_with(is_name);
        let glued_after = what.ends_with(is_name) && line[at + what.len()..].starts_with(is_name);
        !glued_before && !glued_after
    })
}

/// The crates that decide: no clock, no chance, no order that differs between runs.
fn decides(source: &Source) -> bool {
    let crates = [
        "crates/protocol/src/",
        "crates/kinds/src/",
        "crates/scheduler/src/",
        "crates/node/src/",
        "crates/onnx/src/",
        "crates/gguf/src/",
        "crates/text/src/",
        "crates/vision/src/",
    ];
    source.is_rust() && crates.iter().any(|start| source.path.starts_with(start))
}

/// All of them but where users' own numbers are compared or folded, which are floats by nature.
fn scores(source: &Source) -> bool {
    let numbers = [
        "crates/protocol/src/policy.rs",
        "crates/scheduler/src/verify/compare.rs",
        "crates/node/src/collective/number.rs",
        "crates/node/src/collective/narrow.rs",
        "crates/node/src/session/sim/halo.rs",
        "crates/node/src/session/sim/total.rs",
        "crates/scheduler/src/assign/crew/total.rs",
        "crates/protocol/src/crew.rs",
    ];
    // Requests hold users' numbers, and scripts know no others.
    let kinds = source.path.starts_with("crates/kinds/");
    // Models compute the sizes of pictures in floats, and weights and chances are floats.
    let models = ["crates/onnx/", "crates/gguf/", "crates/text/"];
    let models = models.iter().any(|start| source.path.starts_with(start));
    // Pictures and what models say of them are floats for models' sake.
    let pictures = source.path.starts_with("crates/vision/");
    decides(source) && !kinds && !models && !pictures && !numbers.contains(&source.path.as_str())
}

fn is_silent(source: &Source) -> bool {
    let talks = source.path.starts_with("crates/cli/")
        || source.path.starts_with("xtask/")
        || source.path.contains("examples/")
        || source.path.ends_with("build.rs")
        || source.path.ends_with("main.rs")
        || is_test(source);
    source.is_rust() && !talks
}

fn is_test(source: &Source) -> bool {
    source.is_rust() && (source.path.contains("/tests/") || source.path.ends_with("/tests.rs"))
}

fn beyond_engine(source: &Source) -> bool {
    source.is_rust() && !source.path.starts_with("crates/engine/")
}

fn is_typescript(source: &Source) -> bool {
    source.path.ends_with(".ts")
}

fn is_web(source: &Source) -> bool {
    let written = [".ts", ".mjs", ".js", ".html"];
    source.path.starts_with("web/") && written.iter().any(|end| source.path.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::has_word;

    #[test]
    fn words_are_whole() {
        assert!(has_word("let x: HashMap<u8, u8>;", "HashMap"));
        assert!(!has_word("let x: MyHashMap<u8, u8>;", "HashMap"));
        assert!(!has_word("x.f32_bits()", "f32"));
        assert!(!has_word("eprintln!()", "println!"));
    }
}
