//! The crowd of `bench nodes`: thousands of real sockets, each with a real node brain that computes nothing.
//!
//!     xtask-swarm HOST:PORT TOKEN NODES
//!
//! Prints a line of JSON at every look, twenty times a second: `millis` since the start, nodes `joined` now,
//! connections tried (`tries`) since the look before, and `units` answered in all. Ends with its input.
#![allow(clippy::print_stdout, reason = "a command-line tool talks on stdout")]

mod member;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use member::Member;

/// Nodes that begin in one second: people open a link one after another. The brains themselves spread
/// what comes later.
const BEGIN_PER_SECOND: u64 = 2_000;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What all members together did.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) joined: AtomicU64,
    pub(crate) tries: AtomicU64,
    pub(crate) units: AtomicU64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [place, token, nodes] = &args[..] else {
        return Err("usage: xtask-swarm HOST:PORT TOKEN NODES".into());
    };
    let nodes: u64 = nodes.parse()?;
    let (place, token) = (place.clone(), token.clone());
    let (end, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        // Whoever started the crowd holds the other end, and lets it go even if it is killed.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = end.send(());
    });
    // One thread: the machine's other cores are the coordinator's.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        tokio::select! {
            () = crowd(place, token, nodes) => {}
            _ = ended => {}
        }
    });
    Ok(())
}

async fn crowd(place: String, token: String, nodes: u64) {
    let start = Instant::now();
    let counts = Arc::new(Counts::default());
    let (place, token): (Arc<str>, Arc<str>) = (place.into(), token.into());
    for number in 0..nodes {
        let member = Member::new(number, &place, &token, start, &counts);
        let begin = Duration::from_micros(number * 1_000_000 / BEGIN_PER_SECOND);
        tokio::spawn(async move {
            tokio::time::sleep(begin).await;
            member.live().await;
        });
    }
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        look.tick().await;
        println!(
            "{{\"millis\":{},\"joined\":{},\"tries\":{},\"units\":{}}}",
            start.elapsed().as_millis(),
            counts.joined.load(Ordering::Relaxed),
            counts.tries.swap(0, Ordering::Relaxed),
            counts.units.load(Ordering::Relaxed),
        );
    }
}
