//! What tests feed to the pool: kernels, a program, arrays.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::world::Pool;

/// The path of a kernel among the examples.
pub(crate) fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels").join(name);
    path.display().to_string()
}

/// A WASI program that does what its first argument says, built once.
pub(crate) fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| built("program.wasm", "wasm32-wasip1"))
}

/// The same as a component of WASI preview 2.
pub(crate) fn component() -> &'static str {
    static COMPONENT: OnceLock<String> = OnceLock::new();
    COMPONENT.get_or_init(|| built("component.wasm", "wasm32-wasip2"))
}

fn built(name: &str, target: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pool/program.rs");
    let wasm = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let status = Command::new(compiler)
        .args(["--edition", "2024", "--crate-name", "program", "--target", target, "-O", "-o"])
        .arg(&wasm)
        .arg(&source)
        .status()
        .expect("a Rust compiler");
    assert!(status.success(), "the test program builds");
    wasm.display().to_string()
}

/// Where models and pictures of others lie; none if nobody fetched them and they are not required.
pub(crate) fn outside() -> Option<PathBuf> {
    let folder = std::env::var_os("SHOAL_OUTSIDE").map(PathBuf::from).filter(|it| it.is_dir());
    let is_required = std::env::var("SHOAL_REQUIRE_ALL").is_ok_and(|it| it == "1");
    assert!(folder.is_some() || !is_required, "SHOAL_OUTSIDE names no folder");
    folder
}

/// So many numbers, one a line.
pub(crate) fn lines(count: u64) -> String {
    (0..count).map(|i| format!("{i}\n")).collect()
}

/// What one undisturbed node makes of the lines by `work`.
pub(crate) fn worked_alone(lines: &str) -> Vec<u8> {
    let pool = Pool::start();
    let _node = pool.node("alone", &["--no-gpu", "--cpus", "1"]);
    let args = ["exec", program(), "--lines", "--", "work"];
    pool.run_with(&args, lines.as_bytes()).ok().stdout
}

/// An .npy file of 32-bit floats.
pub(crate) fn npy(shape: &str, values: &[f32]) -> Vec<u8> {
    npy_of("<f4", "False", shape, &floats(values))
}

pub(crate) fn npy_of(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

/// Shape text and values of an .npy file of 32-bit floats as shoal writes it.
pub(crate) fn read_npy(bytes: &[u8]) -> (String, Vec<f32>) {
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let head = std::str::from_utf8(&bytes[10..10 + length]).expect("a header");
    assert!(head.contains("'descr': '<f4'") && head.contains("'fortran_order': False"), "{head}");
    let shape = head.split("'shape': ").nth(1).expect("a shape");
    let shape = &shape[..=shape.find(')').expect("a tuple")];
    (shape.into(), read_floats(&bytes[10 + length..]))
}

pub(crate) fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) fn read_floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|v| f32::from_le_bytes([v[0], v[1], v[2], v[3]])).collect()
}
