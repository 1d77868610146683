//! The WASI calls that are ours, beside those on files: those where wasmtime's own would let time, chance or unbounded
//! output in.

use wasmtime::{Caller, Extern, Linker};

use super::host::{Host, Stop};
use super::on_files;
use crate::files::Pieces;

pub(super) const MODULE: &str = "wasi_snapshot_preview1";

/// Error numbers of preview1.
pub(super) const SUCCESS: i32 = 0;
pub(super) const EFAULT: i32 = 21;
const EINVAL: i32 = 28;
const EIO: i32 = 29;

/// Bytes of a subscription and of an event in guest memory.
const SUBSCRIPTION: usize = 48;
const EVENT: usize = 32;
/// Subscriptions looked at in one call; programs use one or two.
const MOST_SUBSCRIPTIONS: u32 = 4096;
/// Pieces of one write; libraries use two.
const MOST_PIECES: u32 = 1024;

/// Puts our calls in the place of wasmtime's.
pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    on_files::add(linker)?;
    linker
        .func_wrap(MODULE, "clock_time_get", clock_time_get)?
        .func_wrap(MODULE, "random_get", random_get)?
        .func_wrap(MODULE, "poll_oneoff", poll_oneoff)?
        .func_wrap(MODULE, "proc_exit", proc_exit)?;
    Ok(())
}

/// What a program writes to stdout and stderr is ours; all else it writes goes to its files.
pub(super) fn write_out(
    caller: &mut Caller<'_, Host>,
    is_answer: bool,
    pieces: Pieces,
    written: u32,
) -> wasmtime::Result<i32> {
    if pieces.count > MOST_PIECES {
        return Ok(EINVAL);
    }
    let Some((memory, host)) = split(caller) else {
        return Ok(EFAULT);
    };
    let mut total = 0u32;
    for piece in 0..pieces.count {
        let at = pieces.at as usize + piece as usize * 8;
        let (Some(start), Some(len)) = (u32_at(memory, at), u32_at(memory, at + 4)) else {
            return Ok(EFAULT);
        };
        let Some(bytes) = memory.get(start as usize..start as usize + len as usize) else {
            return Ok(EFAULT);
        };
        match is_answer {
            true => host.answer(bytes)?,
            false => host.stderr.push(bytes),
        }
        total = total.wrapping_add(len);
    }
    Ok(put(memory, written, &total.to_le_bytes()))
}

/// Clocks: 0 is the wall, the others count from the start of the run.
fn clock_time_get(mut caller: Caller<'_, Host>, id: u32, _precision: u64, result: u32) -> i32 {
    if id > 3 {
        return EINVAL;
    }
    let Some((memory, host)) = split(&mut caller) else {
        return EFAULT;
    };
    let now = host.chance.look(id == 0);
    put(memory, result, &now.to_le_bytes())
}

fn random_get(mut caller: Caller<'_, Host>, start: u32, len: u32) -> i32 {
    let Some((memory, host)) = split(&mut caller) else {
        return EFAULT;
    };
    let Some(bytes) = memory.get_mut(start as usize..start as usize + len as usize) else {
        return EFAULT;
    };
    match host.chance.fill(bytes) {
        Ok(()) => SUCCESS,
        Err(()) => EIO,
    }
}

fn proc_exit(_caller: Caller<'_, Host>, code: i32) -> wasmtime::Result<()> {
    Err(Stop::Exit(code).into())
}

/// Streams are always ready; without any among the subscriptions it is a sleep until the first
/// clock rings.
fn poll_oneoff(
    mut caller: Caller<'_, Host>,
    subscriptions: u32,
    events: u32,
    count: u32,
    result: u32,
) -> wasmtime::Result<i32> {
    if count == 0 || count > MOST_SUBSCRIPTIONS {
        return Ok(EINVAL);
    }
    let Some((memory, host)) = split(&mut caller) else {
        return Ok(EFAULT);
    };
    let mut asked = Vec::new();
    for at in 0..count as usize {
        let start = subscriptions as usize + at * SUBSCRIPTION;
        let Some(bytes) = memory.get(start..start + SUBSCRIPTION) else {
            return Ok(EFAULT);
        };
        match Subscription::read(bytes, host) {
            Some(subscription) => asked.push(subscription),
            None => return Ok(EINVAL),
        }
    }
    let wait = asked.iter().map(|asked| asked.wait).min().unwrap_or(0);
    host.sleep(wait)?;
    let mut answers = 0u32;
    for asked in asked.iter().filter(|asked| asked.wait <= wait) {
        let at = events.wrapping_add(answers * EVENT as u32);
        if put(memory, at, &asked.event()) != SUCCESS {
            return Ok(EFAULT);
        }
        answers += 1;
    }
    Ok(put(memory, result, &answers.to_le_bytes()))
}

struct Subscription {
    userdata: [u8; 8],
    kind: u8,
    /// Nanoseconds until it rings; 0 for streams.
    wait: u64,
}

impl Subscription {
    fn read(bytes: &[u8], host: &mut Host) -> Option<Subscription> {
        let userdata = bytes[..8].try_into().ok()?;
        let kind = bytes[8];
        let wait = match kind {
            0 => {
                let clock = u32_at(bytes, 16)?;
                let timeout = u64::from_le_bytes(bytes[24..32].try_into().ok()?);
                let is_absolute = bytes[40] & 1 == 1;
                match is_absolute {
                    true => timeout.saturating_sub(host.chance.look(clock == 0)),
                    false => timeout,
                }
            }
            1 | 2 => 0,
            _ => return None,
        };
        Some(Subscription { userdata, kind, wait })
    }

    fn event(&self) -> [u8; EVENT] {
        let mut event = [0; EVENT];
        event[..8].copy_from_slice(&self.userdata);
        event[10] = self.kind;
        // A stream has something for whoever asks: bytes, or its end.
        event[16] = u8::from(self.kind != 0);
        event
    }
}

/// The program's memory beside the run's state.
pub(super) fn split<'a>(caller: &'a mut Caller<'_, Host>) -> Option<(&'a mut [u8], &'a mut Host)> {
    match caller.get_export("memory") {
        Some(Extern::Memory(memory)) => Some(memory.data_and_store_mut(caller)),
        _ => None,
    }
}

fn u32_at(memory: &[u8], at: usize) -> Option<u32> {
    let bytes = memory.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn put(memory: &mut [u8], at: u32, bytes: &[u8]) -> i32 {
    let at = at as usize;
    match memory.get_mut(at..at + bytes.len()) {
        Some(place) => {
            place.copy_from_slice(bytes);
            SUCCESS
        }
        None => EFAULT,
    }
}
