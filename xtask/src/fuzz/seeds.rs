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
        "onnx" => models(),
        "gguf" => heads(),
        "tensors" => requests(),
        "wasm" => programs()?,
        "wgsl" => kernels()?,
        "words" => words(),
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

/// Models in ONNX's format: a shape that is computed, windows, and a branch.
fn models() -> Vec<Vec<u8>> {
    let reshaped = [
        input("x", &[2, 3, 4]),
        ints("zero", &[0]),
        ints("rest", &[-1]),
        node("Shape", &["x"], "s", &[]),
        node("Gather", &["s", "zero"], "b", &[]),
        node("Concat", &["b", "rest"], "w", &[attribute("axis", &number(3, 0), 2)]),
        node("Reshape", &["x", "w"], "y", &[]),
    ];
    let kernel = [number(8, 2), number(8, 2)].concat();
    let pooled = [
        input("x", &[1, 2, 6, 6]),
        node("Transpose", &["x"], "t", &[attribute("perm", &bytes(8, &[0, 1, 3, 2]), 7)]),
        node("MaxPool", &["t"], "p", &[attribute("kernel_shape", &kernel, 7)]),
        node("Mul", &["p", "p"], "m", &[]),
        node("Softmax", &["m"], "y", &[]),
    ];
    let inner = [node("Abs", &["x"], "a", &[]), output("a")].concat();
    let branch = |name: &str| attribute(name, &bytes(6, &inner), 5);
    let branched = [
        input("x", &[3]),
        ints("c", &[1]),
        node("If", &["c"], "y", &[branch("then_branch"), branch("else_branch")]),
    ];
    let model = |graph: Vec<u8>| {
        let graph = [graph, output("y")].concat();
        [number(1, 8), bytes(8, &number(2, 17)), bytes(7, &graph)].concat()
    };
    vec![model(reshaped.concat()), model(pooled.concat()), model(branched.concat())]
}

fn node(op: &str, inputs: &[&str], output: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|name| bytes(1, name.as_bytes())).collect();
    let made = [bytes(2, output.as_bytes()), bytes(4, op.as_bytes())].concat();
    bytes(1, &[inputs, made, attributes.concat()].concat())
}

fn attribute(name: &str, held: &[u8], kind: u8) -> Vec<u8> {
    // The number of its type takes two bytes of tag.
    let kind = [0xa0, 1, kind];
    bytes(5, &[bytes(1, name.as_bytes()), held.to_vec(), kind.to_vec()].concat())
}

fn input(name: &str, dims: &[u8]) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|dim| bytes(1, &number(1, *dim))).collect();
    let tensor = [number(1, 1), bytes(2, &dims)].concat();
    bytes(11, &[bytes(1, name.as_bytes()), bytes(2, &bytes(1, &tensor))].concat())
}

fn output(name: &str) -> Vec<u8> {
    bytes(12, &bytes(1, name.as_bytes()))
}

fn ints(name: &str, ints: &[i64]) -> Vec<u8> {
    let raw: Vec<u8> = ints.iter().flat_map(|int| int.to_le_bytes()).collect();
    let tensor = [number(1, ints.len() as u8), number(2, 7), bytes(8, name.as_bytes())].concat();
    bytes(5, &[tensor, bytes(9, &raw)].concat())
}

/// Fields of protobuf: a number below 128, and bytes, whose length takes two bytes so that any here fits.
fn number(field: u8, number: u8) -> Vec<u8> {
    vec![field << 3, number]
}

fn bytes(field: u8, bytes: &[u8]) -> Vec<u8> {
    let (low, high) = ((bytes.len() & 0x7f) as u8 | 0x80, (bytes.len() >> 7) as u8);
    [&[field << 3 | 2, low, high], bytes].concat()
}

/// Requests to models: as JSON alone, with bytes behind it, a picture, and the same as devices hand them on.
fn requests() -> Vec<Vec<u8>> {
    let tensor = |rest: &str| format!(r#"{{"inputs":[{{"name":"a","shape":[2,3],{rest}}}]}}"#);
    let json = |text: &str| [&[0, 0, 0], text.as_bytes()].concat();
    let behind = tensor(r#""datatype":"FP32","parameters":{"binary_data_size":24}"#);
    let length = (behind.len() as u16).to_le_bytes();
    vec![
        json(&tensor(r#""datatype":"FP32","data":[[1,2,3],[4,5,6.5]]"#)),
        json(&tensor(r#""datatype":"BOOL","data":[true,false,0,1,1,0]"#)),
        json(
            r#"{"id":"7","inputs":[{"name":"x","shape":[1,1,1,3],"datatype":"UINT8","data":[1,2,3],
            "parameters":{"pixels":"letterbox"}}],"parameters":{"boxes":true,"score":0.5},
            "outputs":[{"name":"x","parameters":{"binary_data":true}}]}"#,
        ),
        [&[1, length[0], length[1]], behind.as_bytes(), &[0; 24]].concat(),
        // One tensor "a" of 2 x 3 floats: the head's length, the head, and from the next multiple of 16 on its bytes.
        packed(2),
        packed(3),
    ]
}

fn packed(how: u8) -> Vec<u8> {
    let head = [1, 1, b'a', 0, 2, 2, 3];
    let mut all = vec![how, 0, 0];
    all.extend((head.len() as u32).to_le_bytes());
    all.extend(head);
    all.resize(3 + 16 + 24, 0);
    all
}

/// Models in GGUF's format, one layer each.
fn heads() -> Vec<Vec<u8>> {
    let named = |name: &str| [&(name.len() as u64).to_le_bytes(), name.as_bytes()].concat();
    let layer = ["attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm"];
    let file = |arch: &str, others: &[&str]| {
        let counts = ["block_count", "attention.head_count"].map(|key| (key, 1u32));
        let sizes = ["embedding_length", "feed_forward_length"].map(|key| (key, 32u32));
        let keys = [counts, sizes].concat();
        let names = layer.iter().chain(&["ffn_gate", "ffn_up", "ffn_down"]).chain(others);
        let names: Vec<String> = names
            .map(|name| format!("blk.0.{name}{}", if name.contains('.') { "" } else { ".weight" }))
            .chain(["token_embd.weight".into(), "output_norm.weight".into()])
            .collect();
        let mut file = [&b"GGUF"[..], &3u32.to_le_bytes()].concat();
        file.extend((names.len() as u64).to_le_bytes());
        file.extend((keys.len() as u64 + 2).to_le_bytes());
        file.extend([named("general.architecture"), vec![8, 0, 0, 0], named(arch)].concat());
        let tokens = [&[9, 0, 0, 0, 8, 0, 0, 0][..], &2u64.to_le_bytes()].concat();
        file.extend([named("tokenizer.ggml.tokens"), tokens, named("a"), named("b")].concat());
        for (key, value) in keys {
            file.extend([named(&format!("{arch}.{key}")), vec![4, 0, 0, 0]].concat());
            file.extend(value.to_le_bytes());
        }
        for (at, name) in names.iter().enumerate() {
            let dims = if name.contains("norm") || name.contains("bias") { 1 } else { 2 };
            file.extend([named(name), vec![dims, 0, 0, 0]].concat());
            (0..dims).for_each(|_| file.extend(32u64.to_le_bytes()));
            file.extend(
                [0u32.to_le_bytes().to_vec(), (at as u64 * 4096).to_le_bytes().to_vec()].concat(),
            );
        }
        file.resize(file.len().next_multiple_of(32), 0);
        file
    };
    vec![
        file("llama", &[]),
        file("qwen2", &["attn_q.bias", "attn_k.bias", "attn_v.bias"]),
        file("qwen3", &["attn_q_norm", "attn_k_norm"]),
    ]
}

/// Heads of models, schemas, requests, and what passes between coordinator and node, each behind a byte that says which.
fn words() -> Vec<Vec<u8>> {
    let schemas = [
        r#"{"type":"object","properties":{"name":{"type":"string","maxLength":9},"legs":{"type":"integer","minimum":0,"maximum":12}},"required":["name"]}"#,
        r#"{"type":"array","minItems":1,"maxItems":3,"items":{"enum":["a","bö",3,null,{"c":[]}]}}"#,
        r##"{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["next"]}}}"##,
        r#"{"oneOf":[{"const":"x"},{"type":"object","properties":{"t":{"const":1}},"required":["t"]}]}"#,
        r#"{"type":"array","prefixItems":[{"type":"string","format":"date-time"},{"type":"string","format":"uuid"},{"type":"number"}],"items":false}"#,
        r#"{"type":["string","boolean"],"minLength":2,"maxLength":4}"#,
        r#"{"type":"object","additionalProperties":{"type":"integer"}}"#,
    ];
    let requests = [
        r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"seed":-1,"stop":["b"],"logit_bias":{"5":1.5},"n":2,
        "response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"string"}}},"logprobs":true,"top_logprobs":3}"#,
        r#"{"model":"m","prompt":[[1,2],[3]],"echo":true,"logprobs":2,"max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}"#,
        r#"{"model":"m","input":["a","b"],"encoding_format":"base64","dimensions":8}"#,
    ];
    let behind = |mode: u8, bytes: &[u8]| [&[mode], bytes].concat();
    let heads = heads().into_iter().map(|head| behind(0, &head));
    let schemas = schemas.iter().map(|text| behind(1, text.as_bytes()));
    let requests = requests.iter().map(|text| behind(2, text.as_bytes()));
    // A token that was said, and an end.
    let said = [2, 0, 0, 0, 0, 7, 5, 0, 0, 0, 1, 0, 1, 1, 0];
    let spoken = ["llama", "gpt2"].map(|model| behind(0, &spoken(model)));
    heads.chain(schemas).chain(requests).chain([behind(3, &said)]).chain(spoken).collect()
}

/// A head without tensors that says how its model's words are put together, and how conversations are written.
fn spoken(model: &str) -> Vec<u8> {
    let named = |name: &str| [&(name.len() as u64).to_le_bytes(), name.as_bytes()].concat();
    let key = |name: &str, kind: u32, value: Vec<u8>| {
        [named(name), kind.to_le_bytes().to_vec(), value].concat()
    };
    let list = |kind: u32, items: &[Vec<u8>]| {
        let count = (items.len() as u64).to_le_bytes();
        [&kind.to_le_bytes()[..], &count, &items.concat()].concat()
    };
    let tokens = ["<s>", "</s>", "H", "e", "l", "o", "He", "ll", "Hell", "\u{2581}", "Ġ", "1"];
    let sorts = tokens.iter().enumerate().map(|(at, _)| if at < 2 { 3i32 } else { 1 });
    let sorts: Vec<Vec<u8>> = sorts.map(|sort| sort.to_le_bytes().to_vec()).collect();
    let scores = (0..tokens.len()).map(|at| (at as f32).to_le_bytes().to_vec());
    let template = "{% for m in messages %}{{ m['role'] + bos_token }}{% endfor %}";
    let keys = [
        key("general.architecture", 8, named("llama")),
        key("tokenizer.ggml.model", 8, named(model)),
        key("tokenizer.ggml.pre", 8, named("qwen2")),
        key("tokenizer.ggml.tokens", 9, list(8, &tokens.map(named))),
        key("tokenizer.ggml.token_type", 9, list(5, &sorts)),
        key("tokenizer.ggml.scores", 9, list(6, &scores.collect::<Vec<_>>())),
        key("tokenizer.ggml.merges", 9, list(8, &["H e", "l l", "He ll"].map(named))),
        key("tokenizer.ggml.eos_token_id", 4, 1u32.to_le_bytes().to_vec()),
        key("tokenizer.chat_template", 8, named(template)),
    ];
    let counts = [0u64.to_le_bytes(), (keys.len() as u64).to_le_bytes()].concat();
    [&b"GGUF"[..], &3u32.to_le_bytes(), &counts, &keys.concat()].concat()
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
