//! Who looks which kind of work it is. Others ask the kind: a new kind of work is then one folder.

use super::source::code_only;
use super::{Finding, Source};

/// Where kinds are at home: their own folders, and engines, which have an arm for each.
const HOME: [&str; 2] = ["crates/kinds/", "crates/engine/"];

/// Places elsewhere that may name a kind, how often, and why.
const EXCEPTIONS: [(&str, usize, &str); 6] = [
    ("crates/coordinator/src/driver/crew.rs", 1, CREWS),
    ("crates/host/src/crews.rs", 1, CREWS),
    ("crates/host/src/gpu/band.rs", 1, CREWS),
    ("crates/browser/src/sim.rs", 1, CREWS),
    ("crates/browser/src/crew/mod.rs", 1, CREWS),
    ("crates/sim/src/crew/shell.rs", 1, CREWS),
];
const CREWS: &str = "crews compute simulations and nothing else yet";

/// Where the list of kinds is.
const LIST: &str = "crates/kinds/src/kind.rs";

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let looks = sources.iter().find(|source| source.path == LIST).map(|list| looks(&list.text));
    let looks = looks.unwrap_or_default();
    sources.iter().flat_map(|source| looked(source, &looks)).collect()
}

/// A look at the kind: an arm of the list, or the question for one arm.
fn looks(list: &str) -> Vec<String> {
    // `map: Map(MapWork, MapRequest);`
    let arms = list.lines().filter_map(|line| {
        let (_, rest) = line.trim().split_once(": ")?;
        let (arm, names) = rest.split_once('(')?;
        names.starts_with(&format!("{arm}Work, ")).then(|| format!("Kind::{arm}("))
    });
    arms.chain(["work.sim()".to_owned()]).collect()
}

fn looked(source: &Source, words: &[String]) -> Vec<Finding> {
    let is_ours = source.path.starts_with("crates/") && source.is_rust();
    let at_home = HOME.iter().any(|home| source.path.starts_with(home));
    if !is_ours || at_home || source.path.contains("/tests") {
        return Vec::new();
    }
    let code = code_only(&source.text);
    // Tests stand last in a file.
    let lines = code.lines().take_while(|line| !line.contains("#[cfg(test)]")).enumerate();
    let looks = lines.filter(|(_, line)| words.iter().any(|look| line.contains(look)));
    let looks: Vec<usize> = looks.map(|(at, _)| at + 1).collect();
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
        let list =
            "/// All of them.\n    map: Map(MapWork, MapRequest);\n    let other: Kind = (1);";
        assert_eq!(looks(list), ["Kind::Map(", "work.sim()"]);
    }
}
