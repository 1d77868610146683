//! Components of WASI preview 2: what they import, what they export, and how much memory they start with.

use wasmparser::{BinaryReaderError, Parser, Payload, Validator, WasmFeatures};

use super::IntakeError;
use super::module::{FEATURES, PAGE, bad, invalid, too_large};
use super::pieces::{Count, Pieces};
use crate::bounds::{MOST_INSTANCES, MOST_MEMORIES, MOST_TABLES};

/// What a command exports, but for the last number of its version.
const RUN: &str = "wasi:cli/run@0.2.";
/// Packages that nodes offer; of their versions all that begin with 0.2.
const PACKAGES: [&str; 5] = ["cli", "clocks", "filesystem", "io", "random"];
const VERSION: &str = "0.2.";
/// Imports named in one error.
const MOST_NAMED: usize = 8;

pub(super) fn is_component(wasm: &[u8]) -> bool {
    Parser::is_component(wasm)
}

pub(super) fn check(wasm: &[u8], memory_limit: u64) -> Result<(), IntakeError> {
    let features = FEATURES | WasmFeatures::COMPONENT_MODEL;
    Validator::new_with_features(features).validate_all(wasm).map_err(invalid)?;
    let outline = Outline::read(wasm).map_err(invalid)?;
    if !outline.foreign.is_empty() {
        return Err(bad(format!("the program imports {}", foreign(&outline.foreign))));
    }
    if !outline.runs {
        return Err(bad(
            "the component exports no `wasi:cli/run` of a version 0.2: it is a library, not a WASI command",
        ));
    }
    if outline.memory > memory_limit {
        return Err(too_large(outline.memory, memory_limit));
    }
    check_count(outline.pieces.count())
}

/// What a run is made of comes out of what all runs share.
fn check_count(count: Count) -> Result<(), IntakeError> {
    let Count { instances, memories, tables } = count;
    for (has, most, what) in [
        (instances, MOST_INSTANCES, "instances of modules"),
        (memories, MOST_MEMORIES, "memories"),
        (tables, MOST_TABLES, "tables"),
    ] {
        if has > u64::from(most) {
            return Err(bad(format!("the component has {has} {what}; nodes run at most {most}")));
        }
    }
    Ok(())
}

/// What a component shows to the outside.
#[derive(Default)]
struct Outline {
    /// Imports that no node offers.
    foreign: Vec<String>,
    runs: bool,
    /// Bytes that all modules in it start with.
    memory: u64,
    /// What a run of it is made of.
    pieces: Pieces,
}

impl Outline {
    fn read(wasm: &[u8]) -> Result<Outline, BinaryReaderError> {
        let mut outline = Outline::default();
        // Components and modules may lie in each other; only the outermost one's imports are asked of a node.
        let mut depth = 0_u32;
        for payload in Parser::new(0).parse_all(wasm) {
            let payload = payload?;
            outline.pieces.see(&payload)?;
            match payload {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(imports) if depth == 0 => {
                    for import in imports {
                        outline.import(&import?.name.full_name());
                    }
                }
                Payload::ComponentExportSection(exports) if depth == 0 => {
                    for export in exports {
                        outline.runs |= export?.name.full_name().starts_with(RUN);
                    }
                }
                Payload::MemorySection(memories) => {
                    for memory in memories {
                        let bytes = memory?.initial.saturating_mul(PAGE);
                        outline.memory = outline.memory.saturating_add(bytes);
                    }
                }
                _ => (),
            }
        }
        Ok(outline)
    }

    fn import(&mut self, name: &str) {
        if !is_offered(name) {
            self.foreign.push(name.to_owned());
        }
    }
}

/// Such as `wasi:io/streams@0.2.6`.
fn is_offered(name: &str) -> bool {
    let parts = name.strip_prefix("wasi:").and_then(|rest| rest.split_once('/'));
    let version = parts.and_then(|(_, interface)| interface.split_once('@'));
    parts.is_some_and(|(package, _)| PACKAGES.contains(&package))
        && version.is_some_and(|(_, version)| version.starts_with(VERSION))
}

/// What they are, and why there is nothing of that kind.
fn foreign(names: &[String]) -> String {
    let named = names[..names.len().min(MOST_NAMED)].join(", ");
    let more = match names.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let is_network =
        |name: &String| ["wasi:sockets/", "wasi:http/"].iter().any(|it| name.starts_with(it));
    let why = if names.iter().any(is_network) {
        "programs get no network".to_owned()
    } else {
        format!("nodes offer wasi:{} of versions 0.2", PACKAGES.join(", wasi:"))
    };
    format!("{named}{more}, which no node offers: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<(), String> {
        let wasm = wat::parse_str(text).expect("a component");
        assert!(is_component(&wasm));
        check(&wasm, 1 << 20).map_err(|error| error.message)
    }

    fn refused(text: &str) -> String {
        checked(text).expect_err("it is refused")
    }

    /// A command that does nothing, with something before it.
    fn command(before: &str) -> String {
        format!(
            "(component {before}
               (core module $m (memory 1) (func (export \"run\") (result i32) i32.const 0))
               (core instance $i (instantiate $m))
               (func $run (result (result)) (canon lift (core func $i \"run\")))
               (instance (export \"wasi:cli/run@0.2.0\") (export \"run\" (func $run))))"
        )
    }

    #[test]
    fn commands_with_what_nodes_offer_are_taken() {
        assert_eq!(checked(&command("")), Ok(()));
        for name in
            ["wasi:io/poll@0.2.0", "wasi:random/random@0.2.12", "wasi:cli/environment@0.2.3"]
        {
            assert_eq!(checked(&command(&format!("(import {name:?} (instance))"))), Ok(()));
        }
    }

    #[test]
    fn what_no_node_offers_is_named() {
        let import = |name: &str| refused(&command(&format!("(import {name:?} (instance))")));
        for name in ["wasi:sockets/tcp@0.2.0", "wasi:http/outgoing-handler@0.2.0"] {
            let message = import(name);
            assert!(message.contains(name) && message.contains("no network"), "{message}");
        }
        for name in ["wasi:cli/stdout@0.3.0", "wasi:nn/tensor@0.2.0", "me:own/thing@0.2.0", "plain"]
        {
            let message = import(name);
            assert!(message.contains(name) && message.contains("wasi:cli"), "{message}");
        }
    }

    #[test]
    fn libraries_and_large_memories_are_refused() {
        assert!(refused("(component)").contains("library"));
        let message = refused(&command("(core module (memory 16))"));
        assert!(message.contains("2 MiB") && message.contains("allows 1 MiB"), "{message}");
        // Of an inner component, nothing is asked of nodes.
        let inner = "(component (import \"wasi:sockets/tcp@0.2.0\" (instance)))";
        assert_eq!(checked(&command(inner)), Ok(()));
    }

    #[test]
    fn vectors_are_taken_but_not_instructions_that_differ_from_node_to_node() {
        let with = |what: &str| {
            command(&format!(
                "(core module (func (param v128 v128 v128) (result v128)
                   ({what} (local.get 0) (local.get 1) {})))",
                if what.contains("madd") { "(local.get 2)" } else { "" }
            ))
        };
        assert_eq!(checked(&with("f32x4.mul")), Ok(()));
        let message = refused(&with("f32x4.relaxed_madd"));
        assert!(message.contains("relaxed SIMD"), "{message}");
    }
}
