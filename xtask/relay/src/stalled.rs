//! Fifty receivers of which one takes nothing: what that costs the coordinator's memory and the others.

use std::path::Path;
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use crate::Outcome;
use crate::middle::{Client, Middle};

const RECEIVERS: u64 = 50;
const FRAME_BYTES: usize = 64 << 10;
/// Frames to each receiver in one lap, acknowledged before the next: never more than a link has on the way.
const LAP: usize = 8;
const LAPS: usize = 100;
/// Laps after which memory is looked at first: all queues have been in use by then.
const WARM: usize = 20;

pub(crate) fn measure(folder: &Path) -> Outcome<Value> {
    let healthy = run(folder, false)?;
    let stalled = run(folder, true)?;
    let _ = std::fs::remove_dir_all(folder);
    Ok(json!({ "healthy": healthy, "stalled": stalled }))
}

fn run(folder: &Path, one_stalls: bool) -> Outcome<Value> {
    let mut middle = Middle::coordinator(folder)?;
    let mut receivers = middle.crew(RECEIVERS + 1, [0; 4])?;
    let mut source = receivers.pop().ok_or("nobody joined")?;
    let frames: Vec<_> = receivers.iter().map(|to| source.frame_to(to, FRAME_BYTES)).collect();
    // The last one reads nothing for as long as this lives.
    let silent = if one_stalls { receivers.pop() } else { None };
    let listeners = receivers.len();
    let threads: Vec<_> = receivers.into_iter().map(|one| receive(one, &source)).collect();
    let (before, _) = middle.memory()?;
    let (mut warm, mut start) = (0.0, Instant::now());
    for lap in 0..LAPS {
        if lap == WARM {
            (warm, start) = (middle.memory()?.0, Instant::now());
        }
        for _ in 0..LAP {
            // To the silent one as well: it gets more than any link would send, so the rest is dropped.
            for frame in &frames {
                source.wire.send(frame)?;
            }
        }
        for _ in 0..listeners {
            source.wire.skip()?;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let (after, most) = middle.memory()?;
    let passed = ((LAPS - WARM) * LAP * listeners * FRAME_BYTES) as f64;
    let dropped = middle.order("")?;
    drop(silent);
    drop(middle);
    for thread in threads {
        // Those that the coordinator's end has ended are done as well.
        let _ = thread.join();
    }
    Ok(json!({
        "before": before, "warm": warm, "after": after, "most": most,
        "perSecond": passed / 1e6 / seconds, "dropped": dropped,
    }))
}

/// Takes frames, and says so after each lap.
fn receive(mut client: Client, source: &Client) -> thread::JoinHandle<Outcome> {
    let ack = client.frame_to(source, 64);
    thread::spawn(move || {
        for _ in 0..LAPS {
            for _ in 0..LAP {
                client.wire.skip()?;
            }
            client.wire.send(&ack)?;
        }
        Ok(())
    })
}
