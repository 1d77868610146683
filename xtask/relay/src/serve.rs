//! A coordinator as `shoal serve` has it, whose relay is told on stdin who may talk to whom: no job is needed.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use shoal_coordinator::{Coordinator, Options};
use shoal_kinds::plan::Intake;
use shoal_protocol::{CrewId, Epoch, NodeId};
use shoal_scheduler::Conn;

use crate::Outcome;

type Members = Vec<(NodeId, Conn)>;

/// Prints where it is, then an empty line for each order: `CREW EPOCH NODE:CONN...`. Ends with its input.
pub(crate) fn run(folder: &Path, quic: bool) -> Outcome {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let listen = "127.0.0.1:0".parse()?;
    let (stun, turn) = (Vec::new(), Vec::new());
    let intake = Arc::new(NoJobs);
    let options = Options { data_dir: folder.into(), listen, intake, quic, stun, turn };
    let coordinator = Coordinator::open(options)?;
    println!("{}", json!({ "url": coordinator.urls().local, "token": coordinator.token() }));
    let relay = coordinator.relay();
    let (end, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if let Some((crew, epoch, members)) = order(&line) {
                relay.route(crew, epoch, &members);
            }
            println!("{:?}", relay.counts().dropped());
        }
        let _ = end.send(());
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(coordinator.run(async {
        let _ = ended.await;
    }))?;
    Ok(())
}

fn order(line: &str) -> Option<(CrewId, Epoch, Members)> {
    let mut words = line.split_whitespace();
    let crew = CrewId(words.next()?.parse().ok()?);
    let epoch = Epoch(words.next()?.parse().ok()?);
    let members = words.map(|word| {
        let (node, conn) = word.split_once(':')?;
        Some((NodeId(node.parse().ok()?), Conn(conn.parse().ok()?)))
    });
    Some((crew, epoch, members.collect::<Option<_>>()?))
}

/// Nothing is checked, so nothing is taken.
struct NoJobs;

impl Intake for NoJobs {}
