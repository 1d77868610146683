//! GPUs that end loops early. Mesa's llvmpipe lets the invocations it runs side by side turn their
//! loops 65,535 times in all; from then on every loop ends after one turn, without a word, and the
//! result is wrong. A wrong answer is worse than none, so such a device is found out when it is
//! opened, and the kernels it runs are watched: each invocation, when it is through, turns a loop of
//! its own twice. Where that does not work any more, loops were cut short, and the unit fails.
//!
//! This costs nothing in the kernel's own loops, and sees what a count of each invocation's turns
//! would not: that two of them side by side spent the turns in different loops.
//!
//! A loop that changes nothing, endless or not, compilers leave out before any of this.

mod flag;
mod rewrite;

use std::sync::Arc;

use shoal_kinds::{Binding, Kernel, MapWork, Slot, Space};
use shoal_protocol::{Failure, Span};

use super::fault::{internal, text};
use super::gpu::Core;
use super::map;
use super::pipeline::Pipeline;
pub(super) use flag::Flag;
pub(super) use rewrite::{Watched, watch};

/// Turns every device must be able to make: more than 16 bits count.
const TURNS: u32 = 70_000;
/// The sum needs each turn, so that no compiler finds the end without them. What was stored is zero,
/// which no compiler knows.
const COUNT: &str = "
@group(0) @binding(0) var<storage, read_write> output: array<u32>;

@compute @workgroup_size(1)
fn main() {
    let wanted = 70000u + output[0];
    var turns = 0u;
    var sum = 0u;
    while (turns < wanted) {
        sum = sum * 1664525u + turns;
        turns++;
    }
    output[0] = turns;
    output[1] = sum;
}";

/// What is known of a device that ends loops early. Cheap to clone.
#[derive(Clone)]
pub(super) struct Guard(Arc<str>);

impl Guard {
    fn new(core: &Core, turns: u32) -> Guard {
        let kind = if core.caps.software { "software GPU" } else { "GPU" };
        let (name, turns) = (&core.caps.name, thousands(turns));
        let words = format!(
            "this {kind} ({name}) ends loops after {turns} turns in all, and the kernel needs more: \
             run it on a node with a real GPU or in a browser"
        );
        Guard(text(words).into())
    }

    /// Of a unit whose loops were cut short.
    pub(super) fn failure(&self) -> Failure {
        Failure::Unable { message: self.0.as_ref().into() }
    }
}

/// The device with a guard if it needs one. A device that ends loops early and hides even that cannot
/// be used.
pub(super) async fn find(mut core: Core) -> Result<Core, String> {
    let name = core.caps.name.clone();
    let answer = count(&core)
        .await
        .map_err(|failure| format!("the GPU {name} fails a first test: {failure}"))?;
    if answer == [TURNS, sum_of(TURNS)] {
        return Ok(core);
    }
    let guard = Guard::new(&core, answer[0]);
    core.guard = Some(guard.clone());
    // The flag's own buffer.
    core.caps.storage_buffers = core.caps.storage_buffers.saturating_sub(1);
    match count(&core).await {
        Err(failure) if failure == guard.failure() => Ok(core),
        outcome => Err(format!(
            "the GPU {name} ends loops early (expected {TURNS} turns, found {answer:?}), and that \
             cannot be noticed: {outcome:?}"
        )),
    }
}

/// How far the device counts, and what it summed up.
async fn count(core: &Core) -> Result<[u32; 2], Failure> {
    let kernel = Kernel {
        source: COUNT.to_owned(),
        entry: "main".to_owned(),
        workgroup: [1, 1, 1],
        bindings: vec![Binding { index: 0, space: Space::StorageReadWrite, slot: Slot::Output }],
        params: None,
        windows: None,
    };
    let pipeline = Pipeline::new(core, &kernel).await?;
    let work = MapWork { kernel, inputs: Vec::new(), output_bytes: 8, fold: None };
    let answer = map::run(core, &pipeline, &work, 1, Span::new(0, 1), Vec::new()).await?;
    match *answer {
        [a, b, c, d, e, f, g, h] => {
            Ok([u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])])
        }
        _ => Err(internal(format!("{} bytes instead of 8", answer.len()))),
    }
}

fn sum_of(turns: u32) -> u32 {
    (0..turns).fold(0, |sum: u32, turn| sum.wrapping_mul(1_664_525).wrapping_add(turn))
}

fn thousands(number: u32) -> String {
    match number / 1000 {
        0 => number.to_string(),
        thousands => format!("{thousands},{:03}", number % 1000),
    }
}

#[cfg(test)]
mod tests;
