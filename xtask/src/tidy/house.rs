//! The map of the house in ARCHITECTURE.md is what `ls` shows: every crate has a row, every file at the top of the
//! crates that decide is named in it, and the files of the walk through the house are there.

use super::{Finding, Source};

const MAP: &str = "ARCHITECTURE.md";
const TABLE: &str = "## Code map";
const WALK: &str = "## A map job, room by room";
/// Crates whose rows name every room.
const WHOLE: [&str; 9] =
    ["scheduler", "node", "kinds", "api", "coordinator", "browser", "host", "cli", "sim"];
/// Rooms that need no words.
const PLAIN: [&str; 2] = ["lib", "main"];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let Some(map) = sources.iter().find(|source| source.path == MAP) else { return Vec::new() };
    let rows: Vec<_> =
        section(&map.text, TABLE).filter(|(_, line)| line.starts_with("| `")).collect();
    let mut findings = missing_crates(map, sources, &rows);
    for name in WHOLE {
        findings.extend(missing_rooms(map, sources, &rows, name));
    }
    findings.extend(missing_files(map, sources));
    findings
}

/// Lines of a section with their numbers.
fn section<'a>(text: &'a str, heading: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let lines = lines.skip_while(move |(_, line)| *line != heading).skip(1);
    lines.take_while(|(_, line)| !line.starts_with("## "))
}

/// What stands in backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn missing_crates(map: &Source, sources: &[Source], rows: &[(usize, &str)]) -> Vec<Finding> {
    let manifests = sources
        .iter()
        .filter_map(|source| source.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"));
    let unlisted = manifests.filter(|name| {
        !name.contains('/') && !rows.iter().any(|(_, row)| quoted(row).next() == Some(*name))
    });
    unlisted
        .map(|name| map.found(0, format!("the code map has no row for crates/{name}")))
        .collect()
}

fn missing_rooms(
    map: &Source,
    sources: &[Source],
    rows: &[(usize, &str)],
    name: &str,
) -> Vec<Finding> {
    let Some((line, row)) = rows.iter().find(|(_, row)| quoted(row).next() == Some(name)) else {
        return Vec::new();
    };
    let top = format!("crates/{name}/src/");
    let inside = sources.iter().filter_map(|source| source.path.strip_prefix(&top));
    let mut rooms: Vec<&str> = inside
        .map(|path| path.split('/').next().unwrap_or(path))
        .map(|room| room.strip_suffix(".rs").unwrap_or(room))
        .filter(|room| !PLAIN.contains(room))
        .collect();
    rooms.sort_unstable();
    rooms.dedup();
    let is_named = |room: &str| quoted(row).any(|word| word.trim_end_matches('/') == room);
    let unnamed = rooms.into_iter().filter(|room| !is_named(room));
    unnamed
        .map(|room| map.found(*line, format!("the row of `{name}` does not name `{room}`")))
        .collect()
}

fn missing_files(map: &Source, sources: &[Source]) -> Vec<Finding> {
    let files = section(&map.text, WALK).flat_map(|(line, text)| {
        quoted(text).filter(|word| word.ends_with(".rs")).map(move |word| (line, word))
    });
    let is_there = |file: &str| {
        sources.iter().any(|source| {
            source.path.ends_with(&format!("/src/{file}"))
                || source.path.ends_with(&format!("/{file}"))
        })
    };
    let gone = files.filter(|(_, file)| !is_there(file));
    gone.map(|(line, file)| map.found(line, format!("there is no {file}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    #[test]
    fn what_is_not_on_the_map_is_found() {
        let text = "## Code map\n| `node` | `hear` |\n## A map job, room by room\n`hear.rs`, `gone.rs`\n## End\n";
        let sources = [
            source(MAP, text),
            source("crates/node/Cargo.toml", ""),
            source("crates/attic/Cargo.toml", ""),
            source("crates/node/src/lib.rs", ""),
            source("crates/node/src/hear.rs", ""),
            source("crates/node/src/link/mod.rs", ""),
        ];
        let found: Vec<_> = check(&sources).into_iter().map(|finding| finding.text).collect();
        let expected = [
            "the code map has no row for crates/attic",
            "the row of `node` does not name `link`",
            "there is no gone.rs",
        ];
        assert_eq!(found, expected);
    }
}
