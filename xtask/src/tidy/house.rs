//! The map of the house in ARCHITECTURE.md is what `ls` shows: every crate has a row, every room at its top is named in
//! it, every folder of the web too, so is every folder around the crates, and the files of the walk through the house
//! are there.

use std::collections::BTreeSet;

use super::{Finding, Source};

const MAP: &str = "ARCHITECTURE.md";
const TABLE: &str = "## Code map";
const WALK: &str = "## A map job, room by room";
/// Rooms that need no words: what is made of the others, and models for their tests.
const PLAIN: [&str; 3] = ["lib", "main", "testing"];
/// Houses on the map that are no crates of Shoal. On the web a room is a folder: files are many and small.
const OTHERS: [&str; 3] = ["xtask", "web/sdk", "web/app"];
/// Folders whose folders the map names instead.
const STREETS: [&str; 3] = ["crates", "web", "xtask"];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let Some(map) = sources.iter().find(|source| source.path == MAP) else { return Vec::new() };
    let rows: Vec<_> =
        section(&map.text, TABLE).filter(|(_, line)| line.starts_with("| `")).collect();
    let mut findings = missing_crates(map, sources, &rows);
    for (line, row) in &rows {
        let name = quoted(row).next().unwrap_or_default();
        let rooms = rooms(sources, name);
        if rooms.is_empty() {
            findings.push(map.found(*line, format!("there is no house `{name}`")));
        }
        let is_named = |room: &str| quoted(row).any(|word| word.trim_end_matches('/') == room);
        let unnamed = rooms.into_iter().filter(|room| !PLAIN.contains(room) && !is_named(room));
        findings.extend(
            unnamed.map(|room| {
                map.found(*line, format!("the row of `{name}` does not name `{room}`"))
            }),
        );
    }
    findings.extend(missing_folders(map, sources));
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

/// Those around the crates, which have rows of their own.
fn missing_folders(map: &Source, sources: &[Source]) -> Vec<Finding> {
    let folders: BTreeSet<_> = sources
        .iter()
        .filter_map(|source| folder(&source.path))
        .filter(|it| *it != "xtask/src")
        .collect();
    let is_named = |folder: &&str| {
        let mut words = section(&map.text, TABLE).flat_map(|(_, line)| quoted(line));
        words.any(|word| word.trim_end_matches('/') == *folder)
    };
    let unnamed = folders.into_iter().filter(|folder| !is_named(folder));
    unnamed.map(|folder| map.found(0, format!("the code map does not name {folder}"))).collect()
}

/// The folder that a file is in, as far as the map must name it.
fn folder(path: &str) -> Option<&str> {
    let (top, rest) = path.split_once('/').filter(|(top, _)| !top.starts_with('.'))?;
    if !STREETS.contains(&top) {
        return Some(top);
    }
    let (inner, _) = rest.split_once('/').filter(|_| top != "crates")?;
    Some(&path[..top.len() + 1 + inner.len()])
}

/// What is at the top of a house.
fn rooms<'a>(sources: &'a [Source], name: &str) -> BTreeSet<&'a str> {
    let top = match OTHERS.contains(&name) {
        true => format!("{name}/src/"),
        false => format!("crates/{name}/src/"),
    };
    let is_web = name.starts_with("web/");
    let inside = sources.iter().filter_map(|source| source.path.strip_prefix(&top));
    let rooms = inside.filter_map(|path| match path.split_once('/') {
        Some((folder, _)) => Some(folder),
        None if is_web => None,
        None => Some(path.strip_suffix(".rs").unwrap_or(path)),
    });
    rooms.collect()
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
        let text = "## Code map\n| `node` | `hear` |\n| `web/sdk` | `join/` |\n| `cellar` | |\n## A map job, room by room\n`hear.rs`, `gone.rs`\n## End\n";
        let sources = [
            source(MAP, text),
            source("crates/node/Cargo.toml", ""),
            source("crates/attic/Cargo.toml", ""),
            source("crates/node/src/lib.rs", ""),
            source("crates/node/src/hear.rs", ""),
            source("crates/node/src/link/mod.rs", ""),
            source("web/sdk/src/join/index.ts", ""),
            source("web/sdk/src/chat/index.ts", ""),
            source("web/sdk/src/index.ts", ""),
            source("web/tests/join.test.mjs", ""),
            source("web/README.md", ""),
            source("garden/README.md", ""),
            source(".ci/run", ""),
        ];
        let found: Vec<_> = check(&sources).into_iter().map(|finding| finding.text).collect();
        let expected = [
            "the code map has no row for crates/attic",
            "the row of `node` does not name `link`",
            "the row of `web/sdk` does not name `chat`",
            "there is no house `cellar`",
            "the code map does not name garden",
            "the code map does not name web/tests",
            "there is no gone.rs",
        ];
        assert_eq!(found, expected);
    }
}
