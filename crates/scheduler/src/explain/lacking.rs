//! What a job asks of a node and what the pool offers instead, in words.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use shoal_protocol::{Caps, Engine, Footprint, Lane, Needs};

use super::many;

/// Engines of the pool that are named in a sentence.
const ENGINES_NAMED: usize = 8;

pub(crate) fn asked(needs: &Needs) -> String {
    let lane = match needs.lane {
        Lane::Inline => None,
        Lane::Cpu => Some("a node that runs programs".to_string()),
        Lane::Gpu => Some(format!(
            "a GPU with buffers of {} MiB, {} invocations and {} bytes in a workgroup, {} storage buffers",
            needs.buffer_bytes.div_ceil(1 << 20),
            needs.workgroup_invocations,
            needs.workgroup_bytes,
            needs.storage_buffers
        )),
    };
    let takes = &needs.takes;
    let engine = needs.engine.as_ref().map(|name| match name.as_str() {
        Engine::WASI_COMPONENTS => format!(
            "the engine {name} for components of WASI preview 2 (machines that run `shoal join` have it, browser tabs \
             have not)"
        ),
        name => format!("the engine {name}"),
    });
    let memory = mebibytes(takes.memory).map(|mib| format!("{mib} MiB of memory"));
    let buffers = mebibytes(takes.gpu_memory).map(|mib| format!("{mib} MiB of GPU memory"));
    let threads = Some(takes.threads).filter(|threads| *threads > 1);
    let threads = threads.map(|threads| format!("{threads} threads"));
    let all: Vec<_> = [lane, engine, memory, buffers, threads].into_iter().flatten().collect();
    if all.is_empty() { "nothing".to_string() } else { all.join(", ") }
}

pub(crate) fn offered<'a>(needs: &Needs, pool: impl Iterator<Item = &'a Caps> + Clone) -> String {
    let nodes = pool.clone().count();
    let fit = pool.filter(|caps| caps.slots(needs.lane) > 0);
    if fit.clone().next().is_none() {
        return match needs.lane {
            Lane::Inline => many(nodes as u64, "node"),
            Lane::Cpu => format!("{}, but none runs programs", many(nodes as u64, "node")),
            Lane::Gpu => format!("{}, but none with a GPU", many(nodes as u64, "node")),
        };
    }
    let gpus = fit.clone().filter_map(|caps| caps.gpu.as_ref());
    let lane = match needs.lane {
        Lane::Inline => None,
        Lane::Cpu => Some(format!("{} for programs", many(fit.clone().count() as u64, "node"))),
        Lane::Gpu => Some(format!(
            "at most {} MiB, {} invocations, {} bytes, {} storage buffers",
            gpus.clone().map(|gpu| gpu.buffer_bytes).max().unwrap_or(0) >> 20,
            gpus.clone().map(|gpu| gpu.workgroup_invocations).max().unwrap_or(0),
            gpus.clone().map(|gpu| gpu.workgroup_bytes).max().unwrap_or(0),
            gpus.clone().map(|gpu| gpu.storage_buffers).max().unwrap_or(0)
        )),
    };
    let takes = &needs.takes;
    let engines = needs.engine.as_ref().map(|name| engines(name, fit.clone()));
    let memory = fit.clone().map(|caps| caps.memory).max().unwrap_or(0) >> 20;
    let memory = (takes.memory > 0).then(|| format!("at most {memory} MiB of memory"));
    let room = fit.clone().filter_map(|caps| caps.gpu_room(&Footprint::NOTHING));
    let buffers = room.max().map(|most| most >> 20).filter(|_| takes.gpu_memory > 0);
    let buffers = buffers.map(|mib| format!("at most {mib} MiB of GPU memory"));
    let threads = fit.map(|caps| caps.threads).max().unwrap_or(0);
    let threads = (takes.threads > 1).then(|| format!("at most {threads} threads"));
    let all = [lane, engines, memory, buffers, threads];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Who has it; if nobody has, which others there are.
fn engines<'a>(wanted: &str, pool: impl Iterator<Item = &'a Caps> + Clone) -> String {
    let able = pool.clone().filter(|caps| caps.has_engine(wanted));
    let able: Vec<_> = able.map(|caps| caps.name.as_str()).take(ENGINES_NAMED).collect();
    if !able.is_empty() {
        return format!("the engine {wanted} on {}", able.join(", "));
    }
    let mut names: Vec<_> =
        pool.flat_map(|caps| &caps.engines).map(|engine| engine.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(ENGINES_NAMED);
    match names.as_slice() {
        [] => "no engines".to_string(),
        [one] => format!("the engine {one}"),
        many => format!("the engines {}", many.join(", ")),
    }
}

/// Rounded up; nothing if there is none.
fn mebibytes(bytes: u64) -> Option<u64> {
    (bytes > 0).then(|| bytes.div_ceil(1 << 20))
}
