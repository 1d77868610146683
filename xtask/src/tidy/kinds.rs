//! Who looks which kind of work it is. Others ask the kind: a new kind of work is then one folder.

use std::collections::BTreeSet;

use super::source::{code_only, uncommented};
use super::{Finding, Source};

/// Where kinds are at home: their own folders, and engines, which have an arm for each.
const HOME: [&str; 2] = ["crates/kinds/", "crates/engine/"];

/// Places elsewhere that may look, how often, and why.
const EXCEPTIONS: &[(&str, usize, &str)] = &[
    ("crates/coordinator/src/driver/crew.rs", 1, GRIDS),
    ("crates/host/src/crews.rs", 1, GRIDS),
    ("crates/host/src/gpu/band.rs", 1, GRIDS),
    ("crates/browser/src/sim.rs", 1, GRIDS),
    ("crates/browser/src/crew/mod.rs", 1, GRIDS),
    ("crates/sim/src/crew/shell.rs", 1, GRIDS),
    ("web/sdk/src/workers/bands.ts", 1, GRIDS),
    ("web/sdk/src/workers/engine.ts", 1, GRIDS),
    ("crates/coordinator/src/driver/effect.rs", 2, INTERFACES),
    ("crates/cli/src/verbs/model.rs", 2, INTERFACES),
    ("web/sdk/src/models/index.ts", 1, INTERFACES),
    ("crates/host/src/cpu.rs", 3, ENGINES),
    ("crates/host/src/stages.rs", 2, ENGINES),
    ("crates/browser/src/onnx.rs", 1, ENGINES),
    ("crates/browser/src/stage.rs", 1, ENGINES),
    ("crates/browser/src/talk.rs", 1, ENGINES),
    ("web/sdk/src/workers/lanes.ts", 3, ENGINES),
    ("web/sdk/src/workers/layers.ts", 1, ENGINES),
    ("web/sdk/src/workers/languages.ts", 1, ENGINES),
    ("crates/cli/src/receipt/files.rs", 1, RECEIPTS),
    (
        "web/sdk/src/sign.ts",
        5,
        "a client writes what it signs before anybody else has seen the job",
    ),
    ("web/app/src/pages/job/head.ts", 1, SHOWN),
    ("web/app/src/pages/job/index.ts", 3, SHOWN),
    ("web/app/src/pages/playground/output.ts", 1, SHOWN),
    ("web/app/src/pages/playground/run.ts", 1, SHOWN),
];
const GRIDS: &str = "bands of a grid are computed for simulations only";
const INTERFACES: &str = "the protocols that clients of models speak are about one kind each";
const RECEIPTS: &str = "in a map's result alone its units' answers stand one after the other";
const ENGINES: &str = "an engine is handed the work of its own kind";
const SHOWN: &str = "a picture, a table and a moving field are shown each in its own way";

/// Functions of engines that look whether work is theirs.
const ASKED: [&str; 2] = ["onnx::model(", "wasi::program("];

/// Made of Rust's types.
const MADE: &str = "web/sdk/src/api/";

/// Where the list of kinds is.
const LIST: &str = "crates/kinds/src/kind.rs";

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let looks = sources.iter().find(|source| source.path == LIST).map(|list| looks(&list.text));
    let looks = looks.unwrap_or_default();
    let found = sources.iter().flat_map(|source| looked(source, &looks));
    let gone = EXCEPTIONS.iter().filter(|(path, _, _)| !sources.iter().any(|it| it.path == *path));
    let gone = gone.map(|(path, _, _)| Finding {
        file: LIST.into(),
        line: 0,
        text: format!(
            "{path} may look at the kind, but there is no such file: remove the exception"
        ),
    });
    found.chain(gone).collect()
}

/// What a look at the kind is: in Rust by its type, there by its name, and on the web.
#[derive(Debug, Default, PartialEq)]
struct Looks {
    rust: Vec<String>,
    named: Vec<String>,
    web: Vec<String>,
}

/// An arm of the list, the question for one arm, or a kind's name where it is compared.
fn looks(list: &str) -> Looks {
    // `map: Map(MapWork, MapRequest);`
    let arms = list.lines().filter_map(|line| {
        let (name, rest) = line.trim().split_once(": ")?;
        let (arm, names) = rest.split_once('(')?;
        names.starts_with(&format!("{arm}Work, ")).then_some((name, arm))
    });
    let arms: Vec<_> = arms.collect();
    // `pub fn sim(&self) -> Option<&SimWork> {`
    let asks = list.lines().filter_map(|line| {
        let (name, gives) =
            line.trim().strip_prefix("pub fn ")?.split_once("(&self) -> Option<&")?;
        gives.ends_with("Work> {").then(|| format!("work.{name}()"))
    });
    let named = arms.iter().map(|(_, arm)| format!("Kind::{arm}("));
    let rust = named.chain(asks).chain(ASKED.map(String::from)).collect();
    let compared =
        |(name, _): &(&str, &str)| ["case", "===", "!=="].map(|word| format!("{word} \"{name}\""));
    let matched = |(name, _): &(&str, &str)| {
        let before = ["==", "!=", "|"].map(|word| format!("{word} \"{name}\""));
        let behind = [" =>", " |", ") =", ") |"].map(|word| format!("\"{name}\"{word}"));
        before.into_iter().chain(behind)
    };
    let named = arms.iter().flat_map(matched).collect();
    Looks { rust, named, web: arms.iter().flat_map(compared).collect() }
}

fn looked(source: &Source, looks: &Looks) -> Vec<Finding> {
    let path = &source.path;
    let is_rust = path.starts_with("crates/") && source.is_rust();
    let is_web = path.starts_with("web/") && path.contains("/src/") && path.ends_with(".ts");
    let at_home = HOME.iter().any(|home| path.starts_with(home));
    if !(is_rust || is_web) || at_home || path.contains("/tests") || path.starts_with(MADE) {
        return Vec::new();
    }
    // Names are literals.
    let (words, code, names) = match is_rust {
        true => (&looks.rust, code_only(&source.text), &looks.named),
        false => (&looks.web, source.text.clone(), &Vec::new()),
    };
    let texts = if is_rust { uncommented(&source.text) } else { String::new() };
    // Tests stand last in a file.
    let tests = code.lines().position(|line| line.contains("#[cfg(test)]")).unwrap_or(usize::MAX);
    let has = |line: &str, words: &[String]| words.iter().any(|look| line.contains(look));
    let in_code = code.lines().enumerate().filter(|(_, line)| has(line, words));
    let in_texts = texts.lines().enumerate().filter(|(_, line)| has(line, names));
    let looks: BTreeSet<usize> = in_code.chain(in_texts).map(|(at, _)| at).collect();
    let looks: Vec<usize> = looks.range(..tests).map(|at| at + 1).collect();
    let exception = EXCEPTIONS.iter().find(|(path, _, _)| *path == source.path);
    let (allowed, why) = exception.map_or((0, ""), |(_, count, why)| (*count, why));
    if looks.len() == allowed {
        return Vec::new();
    }
    if looks.len() < allowed {
        let text = format!("fewer looks at the kind than excepted ({why}): lower the exception");
        return vec![source.found(0, text)];
    }
    let text = "looks which kind of work it is: ask the kind (`About` in crates/kinds) instead";
    looks.into_iter().map(|line| source.found(line, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_kinds_is_read() {
        let list = "/// All of them.\n    map: Map(MapWork, MapRequest);\n    let other: Kind = (1);\n    \
                    pub fn map(&self) -> Option<&MapWork> {\n    pub fn work(&self) -> Work {\n";
        let looks = looks(list);
        assert_eq!(looks.rust, ["Kind::Map(", "work.map()", "onnx::model(", "wasi::program("]);
        assert_eq!(looks.named[..4], ["== \"map\"", "!= \"map\"", "| \"map\"", "\"map\" =>"]);
        assert_eq!(looks.web, ["case \"map\"", "=== \"map\"", "!== \"map\""]);
    }

    #[test]
    fn whoever_looks_is_found_and_whoever_asks_is_not() {
        let looks = looks("    onnx: Onnx(OnnxWork, OnnxRequest);");
        let found = |path: &str, text: &str| {
            looked(&Source { path: path.into(), text: text.into() }, &looks).len()
        };
        assert_eq!(found("crates/host/src/new.rs", "if let Some(work) = onnx::model(&work) {"), 1);
        assert_eq!(found("crates/host/src/new.rs", "// Kind::Onnx(\nwork.lane()"), 0);
        assert_eq!(found("crates/cli/src/new.rs", "match kind {\n    \"onnx\" => 1,\n"), 1);
        assert_eq!(found("crates/cli/src/new.rs", "if job.kind == \"onnx\" {\n// == \"onnx\""), 1);
        assert_eq!(found("crates/cli/src/new.rs", "let kind = \"onnx\";"), 0);
        let test = "let a = 1;\n#[cfg(test)]\nmod tests { fn a() { kind == \"onnx\" } }";
        assert_eq!(found("crates/cli/src/new.rs", test), 0);
        assert_eq!(found("web/sdk/src/new.ts", "switch (kind) {\n  case \"onnx\":"), 1);
        assert_eq!(found("web/sdk/src/new.ts", "kind === \"own\""), 0);
        assert_eq!(found("web/sdk/tests/new.ts", "case \"onnx\":"), 0);
        assert_eq!(found("crates/engine/src/new.rs", "Kind::Onnx(work) => {}"), 0);
    }
}
