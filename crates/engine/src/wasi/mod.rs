//! WASI preview1 programs in wasmtime, each run in a sandbox of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use shoal_protocol::{Failure, Limits};

/// The compiler and its clock. Make one per process; runs may go on in many threads at once.
pub struct Wasi {}

impl Wasi {
    pub fn new() -> Result<Wasi, String> {
        todo!()
    }

    /// Compiles a module; keep the result for all runs of a job.
    pub fn compile(&self, _wasm: &[u8]) -> Result<Module, Failure> {
        todo!()
    }

    /// Runs the program once, blocking the thread. The answer is what it wrote to stdout.
    pub fn run(&self, _module: &Module, _run: Run) -> Result<Vec<u8>, Failure> {
        todo!()
    }
}

/// A compiled program. Cheap to clone.
#[derive(Clone)]
pub struct Module {}

/// One run of a program.
pub struct Run {
    /// The item's number in the whole job: named in failures, and the seed of the program's random bytes.
    pub item: u64,
    /// Words after the program's name.
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// The item's name for `SHOAL_INPUT`, if it has one.
    pub input: Option<String>,
    pub stdin: Bytes,
    /// A folder of the host that the program finds, read-only, as `/data`. The shell fills it once for all runs of a
    /// job and removes it later.
    pub folder: Option<PathBuf>,
    pub limits: Limits,
    /// Whether the real time and real random bytes are granted.
    pub clock: bool,
    /// Set by another thread to end the run soon.
    pub cancel: Arc<AtomicBool>,
}
