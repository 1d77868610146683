//! What one run has: its files, its streams, its clock, its limits.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use shoal_kinds::exec::files_room;
use shoal_protocol::limit::{ANSWER_PART_BYTES, MAX_STDERR_BYTES};
use wasmtime::ResourceLimiter;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p1::WasiP1Ctx;

use super::folder::{Folder, Opened};
use super::{Give, Run, TABLE_ENTRIES};
use crate::bounds::{MOST_INSTANCES, MOST_MEMORIES, MOST_TABLES};
use crate::files::Files;

/// What every program is called in its own eyes.
const PROGRAM_NAME: &str = "program";
/// What one look at a clock costs in virtual time.
const LOOK_NANOS: u64 = 1_000;
/// Where the count of tries stands in the seed: jobs have fewer items.
const TRIES_FROM_BIT: u32 = 40;
/// A real sleep is cut into pieces this long, to notice the end of a run's time.
pub(super) const NAP: Duration = Duration::from_millis(5);
/// What a program writes within this time is one part of its answer: a quick run's answer stays whole, and a
/// reader's eye sees no difference.
const TOGETHER: Duration = Duration::from_millis(20);

pub(super) struct Host {
    pub(super) wasi: WasiP1Ctx,
    pub(super) files: Files,
    /// What is left of it.
    pub(super) stdin: Bytes,
    /// The job's folder.
    pub(super) folder: Option<Opened>,
    pub(super) stdout: Stdout,
    pub(super) stderr: Tail,
    pub(super) memory: MemoryLimit,
    pub(super) chance: Chance,
    deadline: Instant,
    cancel: Arc<AtomicBool>,
}

/// Why a run ended before its last instruction.
#[derive(Debug)]
pub(super) enum Stop {
    Exit(i32),
    Time,
    Output,
    Cancelled,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Stop {}

/// Arguments and environment.
pub(super) fn context(run: &Run) -> WasiCtxBuilder {
    let mut wasi = WasiCtxBuilder::new();
    wasi.arg(PROGRAM_NAME).args(&run.args).envs(&run.env);
    if let Some(input) = &run.input {
        wasi.env("SHOAL_INPUT", input);
    }
    wasi
}

impl Host {
    pub(super) fn new(run: Run) -> Host {
        let room = files_room(run.limits.memory);
        let files = Files::new(room, run.folder.as_deref().map(Folder::shared));
        Host {
            wasi: context(&run).build_p1(),
            files: if run.leaves { files.with_out() } else { files },
            stdin: run.stdin,
            folder: run.folder.map(Opened::new),
            stdout: Stdout::new(run.limits.output, run.give),
            stderr: Tail::default(),
            memory: MemoryLimit::new(run.limits.memory),
            chance: Chance::new(run.clock, run.item, run.again),
            deadline: Instant::now() + Duration::from_micros(run.limits.time.0),
            cancel: run.cancel,
        }
    }

    pub(super) fn check_time(&self) -> wasmtime::Result<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Stop::Cancelled.into());
        }
        if Instant::now() >= self.deadline + self.stdout.held {
            return Err(Stop::Time.into());
        }
        Ok(())
    }

    /// Some milliseconds passed while the program computed.
    pub(super) fn tick(&mut self) -> wasmtime::Result<()> {
        self.stdout.give_if_due();
        self.check_time()
    }

    /// Takes what the program writes to stdout.
    pub(super) fn answer(&mut self, bytes: &[u8]) -> wasmtime::Result<()> {
        self.stdout.write(bytes).map_err(wasmtime::Error::from)
    }

    pub(super) fn sleep(&mut self, nanos: u64) -> wasmtime::Result<()> {
        let start = match &mut self.chance {
            Chance::Seeded { now, .. } => {
                *now = now.saturating_add(nanos);
                return Ok(());
            }
            Chance::Real { .. } => Instant::now(),
        };
        let long = Duration::from_nanos(nanos);
        while let Some(left) = long.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            self.tick()?;
            std::thread::sleep(left.min(NAP));
        }
        Ok(())
    }
}

/// What the program answers.
pub(super) struct Stdout {
    /// Not given yet.
    bytes: Vec<u8>,
    given: u64,
    most: u64,
    give: Option<Give>,
    /// When the program began, or something was given last.
    since: Instant,
    /// Time the program waited for a slow reader, which is not its own.
    pub(super) held: Duration,
}

impl Stdout {
    pub(super) fn new(most: u64, give: Option<Give>) -> Stdout {
        let (bytes, since, held) = (Vec::new(), Instant::now(), Duration::ZERO);
        Stdout { bytes, given: 0, most, give, since, held }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        if self.written() + bytes.len() as u64 > self.most {
            return Err(Stop::Output);
        }
        self.bytes.extend_from_slice(bytes);
        self.give_if_due();
        Ok(())
    }

    pub(super) fn give_if_due(&mut self) {
        let Some(give) = &mut self.give else { return };
        let full = self.bytes.len() >= ANSWER_PART_BYTES;
        if full || !self.bytes.is_empty() && self.since.elapsed() >= TOGETHER {
            self.given += self.bytes.len() as u64;
            let began = Instant::now();
            give(std::mem::take(&mut self.bytes));
            self.since = Instant::now();
            self.held += self.since - began;
        }
    }

    /// Bytes of all that the program wrote.
    pub(super) fn written(&self) -> u64 {
        self.given + self.bytes.len() as u64
    }

    /// What nobody got.
    pub(super) fn rest(self) -> Vec<u8> {
        self.bytes
    }
}

/// Time and randomness.
pub(super) enum Chance {
    Real { start: Instant },
    Seeded { now: u64, random: u64 },
}

impl Chance {
    pub(super) fn new(is_real: bool, item: u64, again: u32) -> Chance {
        if is_real { Chance::real() } else { Chance::seeded(item, again) }
    }

    fn real() -> Chance {
        Chance::Real { start: Instant::now() }
    }

    fn seeded(item: u64, again: u32) -> Chance {
        Chance::Seeded { now: 0, random: item ^ u64::from(again) << TRIES_FROM_BIT }
    }

    /// Nanoseconds on the wall clock, or since the start of the run.
    pub(super) fn look(&mut self, wall: bool) -> u64 {
        let real = match self {
            Chance::Seeded { now, .. } => {
                let seen = *now;
                *now = now.saturating_add(LOOK_NANOS);
                return seen;
            }
            Chance::Real { .. } if wall => {
                SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
            }
            Chance::Real { start } => start.elapsed(),
        };
        u64::try_from(real.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The time that a change of a file has: behind every look so far, and never 0.
    pub(super) fn stamp(&mut self) -> u64 {
        match self {
            Chance::Seeded { now, .. } => {
                *now = now.saturating_add(LOOK_NANOS);
                *now
            }
            Chance::Real { .. } => self.look(true),
        }
    }

    /// Lets virtual time pass until that moment. False if time is real.
    pub(super) fn skip_to(&mut self, until: u64) -> bool {
        match self {
            Chance::Seeded { now, .. } => {
                *now = (*now).max(until);
                true
            }
            Chance::Real { .. } => false,
        }
    }

    /// Fills a buffer; an error if the system has no randomness to give.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<(), ()> {
        let Chance::Seeded { random, .. } = self else {
            return getrandom::fill(bytes).map_err(|_| ());
        };
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&split_mix(random).to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// SplitMix64: small enough to be written alike in every engine.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The end of a stream.
#[derive(Default)]
pub(super) struct Tail(VecDeque<u8>);

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(MAX_STDERR_BYTES)..];
        let over = (self.0.len() + bytes.len()).saturating_sub(MAX_STDERR_BYTES);
        self.0.drain(..over);
        self.0.extend(bytes);
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.iter().copied().collect()
    }

    /// As text, without half a character at its start.
    pub(super) fn text(&self) -> String {
        let bytes: Vec<u8> =
            self.0.iter().copied().skip_while(|byte| byte & 0xc0 == 0x80).collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        shoal_protocol::id::clip(text, MAX_STDERR_BYTES)
    }
}

/// Lets memory grow up to the limit, and keeps within bounds what the limit does not count.
pub(super) struct MemoryLimit {
    most: u64,
    /// What the program has, in all its memories.
    held: u64,
    /// Entries of all its tables.
    entries: usize,
    /// The machine had none left.
    lacking: bool,
}

impl MemoryLimit {
    pub(super) fn new(most: u64) -> MemoryLimit {
        MemoryLimit { most, held: 0, entries: 0, lacking: false }
    }

    pub(super) fn was_lacking(&self) -> bool {
        self.lacking
    }

    /// Whether a run that failed did so for want of memory. A browser does not tell when it refuses a program memory, and
    /// all engines must say the same: so it is read off what the run leaves. Its memory is so full that the next step of
    /// an allocator was probably refused, or its last words are those of the common allocators.
    pub(super) fn is_starved(&self, stderr: &[u8]) -> bool {
        if self.held.saturating_mul(5) > self.most.saturating_mul(4) {
            return true;
        }
        let words = String::from_utf8_lossy(stderr).to_ascii_lowercase();
        let refused = words.split("memory allocation of ").skip(1).any(|rest| {
            let end = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            end.len() < rest.len() && end.starts_with(" bytes failed")
        });
        refused || words.contains("out of memory")
    }
}

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let held = (self.held + desired as u64).saturating_sub(current as u64);
        let is_granted = held <= self.most && maximum.is_none_or(|most| desired <= most);
        if is_granted {
            self.held = held;
        }
        Ok(is_granted)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.lacking = true;
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let entries = self.entries.saturating_add(desired).saturating_sub(current);
        let is_granted = entries <= TABLE_ENTRIES && maximum.is_none_or(|most| desired <= most);
        if is_granted {
            self.entries = entries;
        }
        Ok(is_granted)
    }

    // The pool has these bounds too, but not every machine has a pool.
    fn instances(&self) -> usize {
        MOST_INSTANCES as usize
    }

    fn memories(&self) -> usize {
        MOST_MEMORIES as usize
    }

    fn tables(&self) -> usize {
        MOST_TABLES as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_slow_reader_is_not_the_programs_time() {
        let slow = Duration::from_millis(30);
        let give: Give = Box::new(move |_| std::thread::sleep(slow));
        let mut stdout = Stdout::new(u64::MAX, Some(give));
        for _ in 0..2 {
            assert!(stdout.write(&vec![1; ANSWER_PART_BYTES]).is_ok());
        }
        assert!(stdout.held >= 2 * slow);
    }

    #[test]
    fn a_run_failed_for_want_of_memory_if_it_leaves_it_full_or_says_so() {
        let held = |held| MemoryLimit { held, ..MemoryLimit::new(100) };
        assert!(held(81).is_starved(b"") && !held(80).is_starved(b""));
        let says = |words: &str| held(1).is_starved(words.as_bytes());
        assert!(says("x\nMemory allocation of 17 bytes failed\n") && says("fatal: Out of memory"));
        assert!(
            !says("memory allocation of  bytes failed") && !says("memory allocation of 1 byte")
        );
    }

    #[test]
    fn entries_of_all_tables_are_counted_together() {
        let mut limit = MemoryLimit::new(1);
        let mut grows =
            |current, desired, most| limit.table_growing(current, desired, most).expect("no trap");
        assert!(grows(0, TABLE_ENTRIES - 1, None), "one table");
        assert!(!grows(0, 2, None) && grows(0, 1, None), "another one");
        assert!(!grows(1, 2, None), "all are taken");
        let mut limit = MemoryLimit::new(1);
        assert!(!limit.table_growing(0, 9, Some(8)).expect("no trap"), "more than it declares");
        assert_eq!(limit.entries, 0);
    }

    #[test]
    fn a_tail_keeps_the_end_and_whole_characters() {
        let mut tail = Tail::default();
        tail.push("é".repeat(MAX_STDERR_BYTES).as_bytes());
        tail.push(b"x");
        let text = tail.text();
        assert!(text.len() <= MAX_STDERR_BYTES && text.ends_with("éx") && text.starts_with('é'));
    }

    #[test]
    fn random_bytes_follow_the_published_sequence() {
        // The first output of SplitMix64 for seed 0.
        let mut bytes = [0; 8];
        assert_eq!(Chance::seeded(0, 0).fill(&mut bytes), Ok(()));
        assert_eq!(u64::from_le_bytes(bytes), 0xe220_a839_7b1d_cdaf);
        // A run that is tried again gets others.
        assert_eq!(Chance::seeded(0, 1).fill(&mut bytes), Ok(()));
        assert_ne!(u64::from_le_bytes(bytes), 0xe220_a839_7b1d_cdaf);
    }
}
