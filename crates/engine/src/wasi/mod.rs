//! WASI programs in wasmtime, each run in a sandbox of its own: modules of preview 1, and components of preview 2.
//!
//! A program gets arguments (the first is `program`), environment, stdin, stdout and stderr, and a module also files in
//! memory ([`crate::files`]), perhaps a read-only folder `/data`, and perhaps `/out`, whose files come back; no network. Unless the clock is granted it is cut off from
//! chance, so that every node gives the same answer: all clocks start at zero and go on by a
//! microsecond with each look, sleep passes at once on that clock, and random bytes are the
//! SplitMix64 sequence seeded with the item's number. NaNs have one bit pattern.

mod calls;
mod component;
mod folder;
mod host;
mod on_files;
mod ticker;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use shoal_kinds::form::End;
use shoal_kinds::{ExecWork, Kind};
use shoal_protocol::{Failure, LimitKind, Limits};
use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, InstancePre, Linker, PoolingAllocationConfig,
    Store, Trap, UpdateDeadline,
};
use wasmtime_wasi::p1;

use crate::bounds::{MOST_INSTANCES, MOST_MEMORIES, MOST_TABLES};
use crate::files::Files;
use component::{Command, Components};
pub use folder::Folder;
use host::{Host, MemoryLimit, Stdout, Stop, Tail};
use ticker::Ticker;

/// Runs at a time in one process, for which room is reserved: twice the threads of a large server.
const MOST_RUNS: u32 = 256;
/// Entries of all tables of a program (its function pointers); large programs have some tens of
/// thousands.
const TABLE_ENTRIES: usize = 1 << 20;
/// Memory of a finished run that is zeroed by hand rather than given back: small programs touch no
/// more.
const KEPT_BYTES: usize = 512 << 10;
/// Stack of the program itself; half of what the threads of runtimes have.
const STACK_BYTES: usize = 1 << 20;

/// Where a file says whether it is a module or a component, and what says the latter.
const LAYER: usize = 6;
const COMPONENT: u8 = 1;

/// The program of work that runs here; none if it is of another kind.
pub fn program(work: &Kind) -> Option<&ExecWork> {
    if let Kind::Exec(exec) = work { Some(exec) } else { None }
}

/// The compiler and its clock. Make one per process; runs may go on in many threads at once.
pub struct Wasi {
    engine: Engine,
    linker: Linker<Host>,
    components: Components,
    ticker: Ticker,
}

impl Wasi {
    pub fn new() -> Result<Wasi, String> {
        // Where so much address space cannot be reserved, memory is taken run by run, which is
        // slower.
        let engine = Engine::new(config().allocation_strategy(pool()))
            .or_else(|_| Engine::new(&config()))
            .map_err(|error| format!("wasmtime does not start: {error:#}"))?;
        let mut linker = Linker::new(&engine);
        linker.allow_shadowing(true);
        p1::add_to_linker_sync(&mut linker, |host: &mut Host| &mut host.wasi)
            .and_then(|()| calls::add(&mut linker))
            .map_err(|error| format!("wasmtime's WASI does not start: {error:#}"))?;
        let components = Components::new(&engine)
            .map_err(|error| format!("wasmtime's WASI does not start: {error:#}"))?;
        let ticker = Ticker::start(engine.clone())?;
        Ok(Wasi { engine, linker, components, ticker })
    }

    /// Compiles a module or a component, which for large ones takes seconds; keep the result for all
    /// runs of a job.
    pub fn compile(&self, wasm: &[u8]) -> Result<Module, Failure> {
        let refused = |error: wasmtime::Error| Failure::Kernel {
            message: format!("the program does not compile: {error:#}"),
        };
        if wasm.get(LAYER) == Some(&COMPONENT) {
            let command = self.components.compile(&self.engine, wasm).map_err(refused)?;
            return Ok(Module(Form::Component(command)));
        }
        let module = wasmtime::Module::from_binary(&self.engine, wasm).map_err(refused)?;
        let module = self.linker.instantiate_pre(&module).map_err(refused)?;
        Ok(Module(Form::Module(module)))
    }

    /// Runs the program once, blocking the thread; not to be called inside an async task.
    pub fn run(&self, module: &Module, run: Run) -> Result<Answer, Ended> {
        match &module.0 {
            Form::Module(module) => self.run_module(module, run),
            Form::Component(command) => command.run(&self.engine, &self.ticker, run),
        }
    }

    fn run_module(&self, module: &InstancePre<Host>, mut run: Run) -> Result<Answer, Ended> {
        let (item, limits, ok) = (run.item, run.limits, std::mem::take(&mut run.ok));
        let mut store = Store::new(&self.engine, Host::new(run));
        store.limiter(|host| &mut host.memory);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|mut store| {
            store.data_mut().tick().map(|()| UpdateDeadline::Continue(1))
        });
        let outcome = {
            let _ticking = self.ticker.tick();
            start(module, &mut store)
        };
        let Host { files, stdout, stderr, memory, .. } = store.into_data();
        let error = match outcome {
            Ok(()) => Stop::Exit(0).into(),
            Err(error) => error,
        };
        judge(&error, &ok, item, limits, Left { stdout, stderr, memory, files: Some(files) })
    }
}

/// What a run gave that did what it should: to the last byte the same on every node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What it wrote to stdout, or what is left of it if somebody gets it while it is written.
    pub stdout: Vec<u8>,
    /// The last bytes of what it wrote to stderr.
    pub stderr: Vec<u8>,
    /// What it left in `/out`, packed by [`shoal_kinds::exec::left`].
    pub files: Vec<u8>,
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// In this engine's words.
    pub failure: Failure,
    /// What every engine tells of it, if it failed by itself: not for want of time, nor of a deeper stack.
    pub told: Option<Told>,
}

/// What a failed run leaves, to the last byte the same on every node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub end: End,
    pub stdout: Vec<u8>,
    /// Its last bytes.
    pub stderr: Vec<u8>,
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Ended {
        Ended { failure, told: None }
    }
}

/// A compiled program. Cheap to clone.
#[derive(Clone)]
pub struct Module(Form);

#[derive(Clone)]
enum Form {
    Module(InstancePre<Host>),
    Component(Command),
}

/// What a run leaves.
struct Left {
    stdout: Stdout,
    stderr: Tail,
    memory: MemoryLimit,
    /// None of a component.
    files: Option<Files>,
}

impl Left {
    /// What it left in `/out`; none if that is too much beside its answer.
    fn packed(&self, limits: &Limits) -> Option<Vec<u8>> {
        let room = limits.output.saturating_sub(self.stdout.written());
        self.files.as_ref().map_or(Some(Vec::new()), |files| files.left(room))
    }
}

/// One run of a program.
pub struct Run {
    /// The item's number in the whole job: named in failures, and the seed of the program's random
    /// bytes.
    pub item: u64,
    /// How often the item ran before and failed: each time it gets other random bytes.
    pub again: u32,
    /// Exit codes of a run that did what it should.
    pub ok: Vec<i32>,
    /// Words after the program's name.
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// The item's name for `SHOAL_INPUT`, if it has one.
    pub input: Option<String>,
    pub stdin: Bytes,
    /// What the program finds, read-only, as `/data`: one for all runs of a job. Components find none.
    pub folder: Option<Arc<Folder>>,
    /// Whether it finds `/out`, whose files are part of the answer. Components never do.
    pub leaves: bool,
    pub limits: Limits,
    /// Whether the real time and real random bytes are granted.
    pub clock: bool,
    /// Set by another thread to end the run within some milliseconds.
    pub cancel: Arc<AtomicBool>,
    /// Gets what the program writes to stdout while it runs. What it has not got at the end is the run's answer.
    pub give: Option<Give>,
}

/// Takes a part of an answer.
pub type Give = Box<dyn FnMut(Vec<u8>) + Send>;

fn config() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .max_wasm_stack(STACK_BYTES);
    config
}

fn pool() -> InstanceAllocationStrategy {
    let mut pool = PoolingAllocationConfig::new();
    // As many of each as all runs together may have: no program takes what another one needs.
    pool.total_component_instances(MOST_RUNS)
        .max_component_instance_size(4 << 20)
        .max_core_instances_per_component(MOST_INSTANCES)
        .max_memories_per_component(MOST_MEMORIES)
        .max_tables_per_component(MOST_TABLES)
        .total_core_instances(MOST_RUNS * MOST_INSTANCES)
        .total_memories(MOST_RUNS * MOST_MEMORIES)
        .total_tables(MOST_RUNS * MOST_TABLES)
        .max_tables_per_module(4)
        .max_core_instance_size(4 << 20)
        .table_elements(TABLE_ENTRIES)
        .linear_memory_keep_resident(KEPT_BYTES)
        .table_keep_resident(KEPT_BYTES);
    InstanceAllocationStrategy::Pooling(pool)
}

fn start(module: &InstancePre<Host>, store: &mut Store<Host>) -> wasmtime::Result<()> {
    let instance = module.instantiate(&mut *store)?;
    instance.get_typed_func::<(), ()>(&mut *store, "_start")?.call(store, ())
}

/// What the end of a run means.
fn judge(
    error: &wasmtime::Error,
    ok: &[i32],
    item: u64,
    limits: Limits,
    left: Left,
) -> Result<Answer, Ended> {
    let (stderr, starved) = (left.stderr.text(), left.memory.is_starved(&left.stderr.bytes()));
    let end = match error.downcast_ref::<Stop>() {
        Some(Stop::Exit(code)) if ok.contains(code) => match left.packed(&limits) {
            Some(files) => {
                let stderr = left.stderr.bytes();
                return Ok(Answer { stdout: left.stdout.rest(), stderr, files });
            }
            None => Some(End::Limit(LimitKind::Output)),
        },
        Some(Stop::Cancelled) => {
            return Err(Failure::Internal { message: "the run was cancelled".to_owned() }.into());
        }
        _ if left.memory.was_lacking() => {
            let message = "this machine had no memory for the program".to_owned();
            return Err(Failure::OutOfMemory { message }.into());
        }
        Some(Stop::Time) => Some(End::Limit(LimitKind::Time)),
        Some(Stop::Output) => Some(End::Limit(LimitKind::Output)),
        Some(Stop::Exit(_)) if starved => Some(End::Limit(LimitKind::Memory)),
        Some(Stop::Exit(code)) => Some(End::Exit(*code)),
        // How deep calls may go differs between engines.
        None => match error.downcast_ref::<Trap>() {
            Some(Trap::StackOverflow) | None => None,
            Some(_) if starved => Some(End::Limit(LimitKind::Memory)),
            Some(_) => Some(End::Trap),
        },
    };
    let failure = match end {
        Some(End::Exit(code)) => Failure::Exit { item, code, stderr },
        Some(End::Limit(which)) => {
            let allowed = match which {
                LimitKind::Time => limits.time.0,
                LimitKind::Memory => limits.memory,
                LimitKind::Output => limits.output,
            };
            Failure::Limit { item: Some(item), which, allowed, stderr }
        }
        Some(End::Trap) | None => {
            let message = match error.downcast_ref::<Trap>() {
                Some(trap) => trap.to_string(),
                None => error.root_cause().to_string(),
            };
            Failure::Trap { item, message, stderr }
        }
    };
    let told = end.filter(|end| *end != End::Limit(LimitKind::Time)).map(|end| {
        // A flood up to its limit is of no use to anybody.
        let is_flood = end == End::Limit(LimitKind::Output);
        let stdout = if is_flood { Vec::new() } else { left.stdout.rest() };
        Told { end, stderr: left.stderr.bytes(), stdout }
    });
    Err(Ended { failure, told })
}
