//! A node that talks without end, beside honest ones at work: it slows itself and nobody else, and what it claims
//! leaves no trace.

use std::time::{Duration, Instant};

use futures_util::SinkExt;
use shoal_protocol::codec::Wire;
use shoal_protocol::limit::MAX_SHARED_BLOBS;
use shoal_protocol::{BlobRef, FromNode, Hash, LinkKey, Signature, SwarmSay};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

use crate::node::{Node, nothing};
use crate::world::{World, noop};

/// Words the flooder says as fast as its socket takes them.
const WORDS: u64 = 20_000;
/// What the driver may hear meanwhile of it and of everybody else. Honest words and the test's own questions are some
/// hundreds; at 33 changes a second the flooder would need ten minutes for all it says.
const HEARD: f64 = 2_000.0;

fn invented(who: u64) -> FromNode {
    let blob = |n: usize| {
        let hash = *blake3::hash(&[n as u8, who as u8]).as_bytes();
        BlobRef { hash: Hash(hash), size: 64 << 30 }
    };
    FromNode::Swarm(SwarmSay::Holds { blobs: (0..MAX_SHARED_BLOBS).map(blob).collect() })
}

fn links() -> FromNode {
    FromNode::Links { key: LinkKey([1; 32]), proof: Signature::new(&[0; 64]) }
}

/// Claims what does not exist, then changes its mind without end, with this pause between two words.
async fn flood(mut node: Node, rest: Duration) {
    node.say(links()).await;
    node.say(invented(0)).await;
    for word in 0.. {
        if rest.is_zero() && word >= WORDS {
            break;
        }
        let message =
            if word % 100 == 99 { invented(word) } else { FromNode::Pause(word % 2 == 0) };
        // It does not listen, and does not care.
        if node.socket.feed(Message::Binary(message.encode().into())).await.is_err() {
            return;
        }
        if !rest.is_zero() || word % 100 == 0 {
            let _ = node.socket.flush().await;
            tokio::time::sleep(rest).await;
        }
    }
    let _ = node.socket.flush().await;
    std::future::pending::<()>().await;
}

struct Flooder(JoinHandle<()>);

impl Flooder {
    async fn start(world: &World, rest: Duration) -> Flooder {
        let node = Node::join(world, "flooder").await;
        Flooder(tokio::spawn(flood(node, rest)))
    }
}

impl Drop for Flooder {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How long a small job takes, on average.
async fn small_jobs(world: &World, jobs: u32) -> Duration {
    let began = Instant::now();
    for _ in 0..jobs {
        let id = world.api.submit(noop(100)).await;
        assert_eq!(world.api.ended(id).await["state"], "done");
    }
    began.elapsed() / jobs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_talks_without_end_slows_only_itself() {
    let world = World::start();
    let _one = Node::join(&world, "one").await.work(nothing);
    let _two = Node::join(&world, "two").await.work(nothing);
    let alone = small_jobs(&world, 20).await;
    let before = world.api.metric("shoal_driver_events_total").await;
    let flooder = Flooder::start(&world, Duration::ZERO).await;
    let beside = small_jobs(&world, 20).await;
    let heard = world.api.metric("shoal_driver_events_total").await - before;
    eprintln!(
        "a small job: {alone:?} alone, {beside:?} beside it; {heard} events of {WORDS} words"
    );
    assert!(heard < HEARD, "the driver heard {heard}");
    assert_eq!(world.api.metric("shoal_blobs_shared").await, 0.0);
    drop(flooder);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blob_that_is_stored_is_shared_whatever_size_others_claim() {
    let world = World::start();
    let bytes = vec![7; 9 << 20];
    let hash = Hash(*blake3::hash(&bytes).as_bytes());
    world.api.blob(bytes).await;
    let (mut liar, mut node) = (Node::join(&world, "liar").await, Node::join(&world, "one").await);
    let holds = |size| FromNode::Swarm(SwarmSay::Holds { blobs: vec![BlobRef { hash, size }] });
    liar.say(holds(64 << 30)).await;
    node.say(holds(9 << 20)).await;
    let known = async || (world.api.metric("shoal_blobs_shared").await == 1.0).then_some(());
    crate::world::eventually(known).await;
    drop(node);
    let gone = async || (world.api.metric("shoal_blobs_shared").await == 0.0).then_some(());
    crate::world::eventually(gone).await;
    world.stop().await;
}

/// Processor time of the driver's thread so far.
fn driver_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let driver = tasks.filter(|task| {
        let name = std::fs::read_to_string(task.join("comm")).unwrap_or_default();
        name.trim() == "shoal-driver"
    });
    let nanos = driver.map(|task| {
        let text = std::fs::read_to_string(task.join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
    });
    Duration::from_nanos(nanos.sum())
}

fn resident_mb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() >> 10
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn what_a_flood_costs() {
    let world = World::start();
    let _one = Node::join(&world, "one").await.work(nothing);
    let share = async || {
        let (began, used) = (Instant::now(), driver_time());
        tokio::time::sleep(Duration::from_secs(5)).await;
        100.0 * (driver_time() - used).as_secs_f64() / began.elapsed().as_secs_f64()
    };
    let (calm, job) = (share().await, small_jobs(&world, 20).await);
    eprintln!("calm: the driver uses {calm:.1} % of a core, a small job takes {job:?}");
    let before = resident_mb();
    let mut nodes = Vec::new();
    for n in 0..63 {
        let mut node = Node::join(&world, &format!("claims {n}")).await;
        node.say(links()).await;
        node.say(invented(n)).await;
        nodes.push(node);
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    eprintln!("63 keys with 64 claims each: from {before} to {} MB", resident_mb());
    drop(nodes);
    let _flooder = Flooder::start(&world, Duration::from_millis(4)).await;
    eprintln!("250 toggles a second: {:.1} % of a core", share().await);
    eprintln!("a small job takes {:?}", small_jobs(&world, 5).await);
    world.stop().await;
}
