//! Components of WASI preview 2 in wasmtime. They get what modules get, but for files: of those they find none,
//! since wasmtime's own folders show what differs from machine to machine. Streams are wasmtime's, while clocks, chance
//! and output are ours, so that time, chance and unbounded output do not come in by that way either.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use shoal_protocol::Failure;
use wasmtime::component::{Component, HasSelf, Linker, Resource, ResourceTable};
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::p2::bindings::cli::{exit, stderr, stdout};
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};
use wasmtime_wasi::p2::bindings::sync::CommandPre;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::p2::{
    self, DynOutputStream, DynPollable, OutputStream, Pollable, StreamError, StreamResult,
    subscribe,
};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView, async_trait};

use super::host::{Chance, MemoryLimit, NAP, Stdout, Stop, Tail, context};
use super::ticker::Ticker;
use super::{Answer, Ended, Left, Run, judge};

/// What one look at a clock tells apart.
const RESOLUTION_NANOS: u32 = 1_000;
const NANOS: u64 = 1_000_000_000;
/// Bytes written at a time; what is behind takes any number.
const PERMIT: usize = 64 << 10;
/// Random bytes asked for at a time.
const MOST_RANDOM: u64 = 64 << 20;
/// Streams, files, pollables and the like that a program has at a time.
const MOST_RESOURCES: usize = 1 << 16;

pub(super) struct Components(Linker<Guest>);

/// A compiled component.
#[derive(Clone)]
pub(super) struct Command(CommandPre<Guest>);

impl Components {
    pub(super) fn new(engine: &Engine) -> wasmtime::Result<Components> {
        let mut linker = Linker::new(engine);
        p2::add_to_linker_sync(&mut linker)?;
        linker.allow_shadowing(true);
        type Own = HasSelf<Guest>;
        fn own(guest: &mut Guest) -> &mut Guest {
            guest
        }
        stdout::add_to_linker::<_, Own>(&mut linker, own)?;
        stderr::add_to_linker::<_, Own>(&mut linker, own)?;
        exit::add_to_linker::<_, Own>(&mut linker, own)?;
        monotonic_clock::add_to_linker::<_, Own>(&mut linker, own)?;
        wall_clock::add_to_linker::<_, Own>(&mut linker, own)?;
        random::add_to_linker::<_, Own>(&mut linker, own)?;
        insecure::add_to_linker::<_, Own>(&mut linker, own)?;
        insecure_seed::add_to_linker::<_, Own>(&mut linker, own)?;
        Ok(Components(linker))
    }

    pub(super) fn compile(&self, engine: &Engine, wasm: &[u8]) -> wasmtime::Result<Command> {
        let component = Component::from_binary(engine, wasm)?;
        CommandPre::new(self.0.instantiate_pre(&component)?).map(Command)
    }
}

impl Command {
    pub(super) fn run(
        &self,
        engine: &Engine,
        ticker: &Ticker,
        mut run: Run,
    ) -> Result<Answer, Ended> {
        let (item, limits, ok) = (run.item, run.limits, std::mem::take(&mut run.ok));
        let mut store = Store::new(engine, Guest::new(run));
        store.limiter(|guest| &mut guest.memory);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|mut store| {
            store.data_mut().world().tick().map(|()| UpdateDeadline::Continue(1))
        });
        let outcome = {
            let _ticking = ticker.tick();
            self.start(&mut store)
        };
        let Guest { wasi, table, world, memory } = store.into_data();
        // Streams and pollables that the program left open know the world too.
        drop((wasi, table));
        let world = Arc::into_inner(world).map(Mutex::into_inner);
        let World { stdout, stderr, .. } = match world {
            Some(world) => world.unwrap_or_else(PoisonError::into_inner),
            None => {
                let message = "a stream outlived the program".to_owned();
                return Err(Failure::Internal { message }.into());
            }
        };
        let error = match outcome {
            Ok(Ok(())) => Stop::Exit(0).into(),
            Ok(Err(())) => Stop::Exit(1).into(),
            Err(error) => error,
        };
        judge(&error, &ok, item, limits, Left { stdout, stderr, memory, files: None })
    }

    fn start(&self, store: &mut Store<Guest>) -> wasmtime::Result<Result<(), ()>> {
        self.0.instantiate(&mut *store)?.wasi_cli_run().call_run(store)
    }
}

/// What one run has.
pub(super) struct Guest {
    wasi: WasiCtx,
    table: ResourceTable,
    world: Arc<Mutex<World>>,
    memory: MemoryLimit,
}

/// What streams and pollables reach as well.
struct World {
    stdout: Stdout,
    stderr: Tail,
    chance: Chance,
    deadline: Instant,
    cancel: Arc<AtomicBool>,
}

impl World {
    fn stop(&self) -> Option<Stop> {
        if self.cancel.load(Ordering::Relaxed) {
            return Some(Stop::Cancelled);
        }
        (Instant::now() >= self.deadline + self.stdout.held).then_some(Stop::Time)
    }

    /// Some milliseconds passed while the program computed.
    fn tick(&mut self) -> wasmtime::Result<()> {
        self.stdout.give_if_due();
        self.stop().map_or(Ok(()), |stop| Err(stop.into()))
    }
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guest {
    fn new(run: Run) -> Guest {
        let mut wasi = context(&run);
        wasi.allow_blocking_current_thread(true).stdin(MemoryInputPipe::new(run.stdin.clone()));
        let wasi = wasi.build();
        let mut table = ResourceTable::new();
        table.set_max_capacity(MOST_RESOURCES);
        let world = World {
            stdout: Stdout::new(run.limits.output, run.give),
            stderr: Tail::default(),
            chance: Chance::new(run.clock, run.item, run.again),
            deadline: Instant::now() + Duration::from_micros(run.limits.time.0),
            cancel: run.cancel,
        };
        let memory = MemoryLimit::new(run.limits.memory);
        Guest { wasi, table, world: Arc::new(Mutex::new(world)), memory }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    fn stream(&mut self, is_answer: bool) -> wasmtime::Result<Resource<DynOutputStream>> {
        let stream: DynOutputStream = Box::new(Out { world: self.world.clone(), is_answer });
        Ok(self.table.push(stream)?)
    }

    fn chance(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        if len > MOST_RANDOM {
            wasmtime::bail!("{len} random bytes at once; at most {MOST_RANDOM} are given");
        }
        let mut bytes = vec![0; len as usize];
        let filled = self.world().chance.fill(&mut bytes);
        filled.map_err(|()| wasmtime::format_err!("the system has no random bytes"))?;
        Ok(bytes)
    }

    fn chance_u64(&mut self) -> wasmtime::Result<u64> {
        let bytes = self.chance(8)?;
        Ok(bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
    }

    fn sleep(&mut self, until: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let sleep = self.table.push(Sleep { world: self.world.clone(), until })?;
        subscribe(&mut self.table, sleep)
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl stdout::Host for Guest {
    fn get_stdout(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.stream(true)
    }
}

impl stderr::Host for Guest {
    fn get_stderr(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.stream(false)
    }
}

impl exit::Host for Guest {
    fn exit(&mut self, status: Result<(), ()>) -> wasmtime::Result<()> {
        Err(Stop::Exit(i32::from(status.is_err())).into())
    }

    fn exit_with_code(&mut self, status_code: u8) -> wasmtime::Result<()> {
        Err(Stop::Exit(i32::from(status_code)).into())
    }
}

impl wall_clock::Host for Guest {
    fn now(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        let nanos = self.world().chance.look(true);
        Ok(wall_clock::Datetime { seconds: nanos / NANOS, nanoseconds: (nanos % NANOS) as u32 })
    }

    fn resolution(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        Ok(wall_clock::Datetime { seconds: 0, nanoseconds: RESOLUTION_NANOS })
    }
}

impl monotonic_clock::Host for Guest {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.world().chance.look(false))
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(u64::from(RESOLUTION_NANOS))
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.sleep(when)
    }

    fn subscribe_duration(&mut self, nanos: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let until = self.world().chance.look(false).saturating_add(nanos);
        self.sleep(until)
    }
}

impl random::Host for Guest {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.chance(len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.chance_u64()
    }
}

impl insecure::Host for Guest {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.chance(len)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.chance_u64()
    }
}

impl insecure_seed::Host for Guest {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok((self.chance_u64()?, self.chance_u64()?))
    }
}

/// Stdout or stderr.
struct Out {
    world: Arc<Mutex<World>>,
    is_answer: bool,
}

#[async_trait]
impl Pollable for Out {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for Out {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut world = lock(&self.world);
        if self.is_answer {
            return world.stdout.write(&bytes).map_err(|stop| StreamError::Trap(stop.into()));
        }
        world.stderr.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

/// A moment on the clock that counts from the start of the run.
struct Sleep {
    world: Arc<Mutex<World>>,
    until: u64,
}

impl Sleep {
    /// Whether it is over, or the run is. Another look later finds the next moment.
    fn is_over(&self) -> bool {
        let mut world = lock(&self.world);
        world.chance.look(false) >= self.until || world.tick().is_err()
    }
}

#[async_trait]
impl Pollable for Sleep {
    /// Whatever else is waited for may be there already: it goes before. If it is not, virtual time passes at once, and
    /// real time in pieces, to notice the end of the run.
    async fn ready(&mut self) {
        let mut is_first = true;
        poll_fn(|task| {
            if self.is_over() {
                return Poll::Ready(());
            }
            if !is_first {
                match lock(&self.world).chance.skip_to(self.until) {
                    true => return Poll::Ready(()),
                    false => std::thread::sleep(NAP),
                }
            }
            is_first = false;
            task.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}
