//! One stranger beside honest nodes, over real sockets: it ends no job and freezes none.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shoal_protocol::{Attempt, Failure, FromNode};
use tokio::task::JoinHandle;

use crate::node::{Node, Working, hello, numbers};
use crate::world::{Api, World};

const ITEMS: u64 = 60 * 64;

/// What it does with what it is lent.
#[derive(Clone, Copy, Debug)]
enum Trick {
    /// Says that all of it runs, and hangs up.
    Flap,
    /// Hangs up without a word.
    Leave,
    /// Says that all of it trapped.
    Trap,
    /// Says for ever that all of it runs.
    Hold,
}

/// A stranger that comes again and again, until it is dropped.
struct Hostile(JoinHandle<()>);

impl Drop for Hostile {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Hostile {
    fn new(world: &World, way: Trick, new_keys: bool) -> Hostile {
        let (api, token) = (world.api.clone(), world.token.clone());
        Hostile(tokio::spawn(async move {
            for count in 0_u64.. {
                let key = if new_keys { count } else { 0 };
                act(&api, &token, &format!("stranger {key}"), way).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }))
    }
}

/// One connection of it, with one slot.
async fn act(api: &Api, token: &str, name: &str, way: Trick) {
    let mut greeting = hello(name, token);
    greeting.caps.cpu_slots = 1;
    if let Some(gpu) = &mut greeting.caps.gpu {
        gpu.slots = 1;
    }
    let Some(mut node) = Node::try_join(api, greeting).await else { return };
    for _ in 0..20 {
        let _ = tokio::time::timeout(Duration::from_millis(50), node.hear()).await;
        let held: Vec<Attempt> = node.loans.iter().map(|lease| lease.attempt).collect();
        let running = FromNode::Alive { running: held.clone(), queued: Vec::new() };
        match way {
            Trick::Flap | Trick::Leave if held.is_empty() => {}
            Trick::Flap => return node.say(running).await,
            Trick::Leave => return,
            Trick::Hold => node.say(running).await,
            Trick::Trap => {
                for attempt in held {
                    let (message, stderr) = (String::from("no"), String::new());
                    node.fail(attempt, Failure::Trap { item: 0, message, stderr }).await;
                }
                node.loans.clear();
            }
        }
    }
}

fn map(verify: &str) -> Value {
    json!({"kind": "map", "wgsl": "x", "items": ITEMS, "unit": 64, "verify": verify})
}

/// Slow enough that the stranger finds something to take.
async fn honest(world: &World) -> Vec<Working> {
    let mut nodes = Vec::new();
    for name in ["one", "two", "three"] {
        let mut node = Node::join(world, name).await;
        (node.together, node.rest) = (1, Duration::from_millis(20));
        nodes.push(node.work(numbers));
    }
    nodes
}

/// Runs the job beside three honest strangers, and perhaps one of the operator's own; gives the time it took.
async fn done_beside(way: Option<(Trick, bool)>, verify: &str, own: bool) -> Duration {
    let world = World::start();
    let _honest = honest(&world).await;
    let _own = if own {
        let mut own = Node::join_with(&world.api, hello("own", &world.api.key)).await;
        (own.together, own.rest) = (1, Duration::from_millis(20));
        Some(own.work(numbers))
    } else {
        None
    };
    let _hostile = way.map(|(way, new_keys)| Hostile::new(&world, way, new_keys));
    let start = Instant::now();
    let id = world.api.submit(map(verify)).await;
    // Several times, because one wait is shorter than a busy machine may need.
    let mut job = Value::Null;
    for _ in 0..4 {
        job = world.api.json(&format!("/api/v1/jobs/{id}?wait=20")).await;
        if job["state"] != "running" {
            break;
        }
    }
    let took = start.elapsed();
    assert_eq!(job["state"], "done", "{way:?}, {verify}, own {own}: {job}");
    let bytes = world.api.bytes(&format!("/api/v1/jobs/{id}/result")).await;
    assert!(
        bytes
            == numbers(
                &shoal_kinds::Kind::Noop(shoal_kinds::NoopWork),
                shoal_protocol::Span::new(0, ITEMS)
            )
    );
    world.stop().await;
    took
}

async fn done_beside_all(ways: &[Trick]) {
    for (verify, own) in
        [("adaptive", false), ("adaptive", true), ("quorum:2", false), ("none", true)]
    {
        let alone = done_beside(None, verify, own).await;
        for way in ways {
            for new_keys in [false, true] {
                let took = done_beside(Some((*way, new_keys)), verify, own).await;
                let keys = if new_keys { "new keys" } else { "one key" };
                eprintln!("{way:?} with {keys}, {verify}, own {own}: {took:?}, alone {alone:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_that_hangs_up_with_units_running_or_fails_them_ends_no_job() {
    done_beside_all(&[Trick::Flap, Trick::Trap]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_that_comes_and_goes_or_holds_units_freezes_no_job() {
    done_beside_all(&[Trick::Leave, Trick::Hold]).await;
}
