//! Where a fuzzer starts: the conformance cases and examples in the form a target reads. Made, not
//! written, so that they grow with the cases.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::shell::{self, Outcome, make_dir, read, root};
use crate::stamp::files_below;

/// What `fuzz_targets/http/store.rs` keeps under these names; the last is its hash.
const ARRAY: &str = "0000000000000000000000000000000000000000000000000000000000000001";
const LINES: &str = "0000000000000000000000000000000000000000000000000000000000000002";
const PROGRAM: &str = "0010d17caea2f6e52170eaa949611c058048a2a329423b1e256cd4dffb9e0231";

/// Adds a target's seeds to a folder.
pub(super) fn write(name: &str, corpus: &Path) -> Outcome {
    make_dir(corpus)?;
    let seeds = match name {
        "http" => bodies()?,
        "npy" => arrays(),
        "wasm" => programs()?,
        "wgsl" => kernels()?,
        // Found within a second: the codec wastes no bits.
        _ => Vec::new(),
    };
    for seed in seeds {
        // Named by content, as the fuzzer does, so that a changed case leaves the old one in place.
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        shell::write(&corpus.join(format!("seed-{:016x}", hasher.finish())), seed)?;
    }
    Ok(())
}

fn kernels() -> Outcome<Vec<Vec<u8>>> {
    let files = ["examples/kernels", "conformance/kernels"].map(|folder| ending(folder, ".wgsl"));
    files.into_iter().flatten().map(|file| read(&file).map(String::into_bytes)).collect()
}

fn programs() -> Outcome<Vec<Vec<u8>>> {
    let mut seeds = Vec::new();
    for file in ending("conformance/programs", ".wat") {
        // Some cases are broken on purpose.
        if let Ok(bytes) = wat::parse_str(read(&file)?) {
            seeds.push(bytes);
        }
    }
    Ok(seeds)
}

/// Job requests: the kernels with their parameters, and one of each other kind.
fn bodies() -> Outcome<Vec<Vec<u8>>> {
    let mut bodies = vec![
        json!({ "kind": "noop", "items": 5, "unit": 2, "name": "n", "owner": "o", "weight": 7 }),
        json!({ "kind": "exec", "module": PROGRAM, "lines": { "blob": LINES, "perRun": 2 },
            "args": ["a"], "env": { "B": "c" }, "verify": "quorum:2", "strategy": "weight" }),
        json!({ "kind": "exec", "module": PROGRAM, "files": [{ "name": "f", "blob": LINES }],
            "folder": [{ "name": "d/e", "blob": ARRAY }], "clock": true, "verify": "none",
            "limits": { "seconds": 0.5, "memoryMiB": 64, "outputMiB": 1 } }),
    ];
    for file in ending("conformance/kernels", "case.json") {
        let case: Value = serde_json::from_str(&read(&file)?)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        bodies.extend(body(&case, &file));
    }
    Ok(bodies.iter().map(|body| body.to_string().into_bytes()).collect())
}

/// The request of a kernel's case, over the one array there is.
fn body(case: &Value, file: &Path) -> Option<Value> {
    let wgsl = read(&file.with_file_name(case["wgsl"].as_str()?)).ok()?;
    let mut body = Map::new();
    for field in ["kind", "entry", "params", "items", "width", "height", "samples", "tile"] {
        if let Some(value) = case.get(field) {
            body.insert(field.into(), value.clone());
        }
    }
    if let Some(inputs) = case["inputs"].as_array() {
        let inputs = inputs.iter().map(|_| json!({ "blob": ARRAY })).collect::<Vec<_>>();
        body.insert("inputs".into(), inputs.into());
        body.remove("items");
    }
    body.insert("wgsl".into(), wgsl.into());
    Some(body.into())
}

/// Headers as NumPy writes them.
fn arrays() -> Vec<Vec<u8>> {
    let file = |version: &[u8], shape: &str, descr: &str, order: &str, data: usize| {
        let mut text =
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({shape}), }}");
        text.push_str(&" ".repeat(117 - text.len()));
        text.push('\n');
        let len = (text.len() as u32).to_le_bytes();
        let len = if version[0] == 1 { &len[..2] } else { &len[..] };
        [b"\x93NUMPY", version, len, text.as_bytes(), &vec![0; data]].concat()
    };
    vec![
        file(&[1, 0], "3,", "<f4", "False", 12),
        file(&[1, 0], "2, 2", "|u4", "True", 16),
        file(&[2, 0], "", "<f2", "False", 2),
        file(&[3, 0], "0, 7L", ">i4", "False", 0),
    ]
}

/// Files below a folder whose name ends so.
fn ending(folder: &str, end: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    // A folder that is not there has no files.
    let _ = files_below(&root().join(folder), &mut files);
    files.retain(|file| file.to_string_lossy().ends_with(end));
    files.sort();
    files
}
