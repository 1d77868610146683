//! A member of a crew played by a test: shows its speed, says that it lives, and otherwise does as the test
//! says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ed25519_dalek::Signer;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use shoal_protocol::sign::link_statement;
use shoal_protocol::{
    BlobRef, CheckpointPart, CrewId, CrewSay, CrewTask, CrewTold, Enlist, Epoch, Finished,
    FromNode, LinkKey, Micros, NodeId, PublicKey, Signature, SimTask, Span, ToNode, UnitOutput,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::node::{Node, Socket, hello, key, receive, send};
use crate::world::{Api, World, eventually};

/// Well within the silence after which a member is sent out.
const BEAT: Duration = Duration::from_millis(200);

/// Where it is now, for its heartbeats.
type Place = Arc<Mutex<Option<(CrewId, Epoch, u64)>>>;

pub(crate) struct Player {
    pub(crate) session: String,
    says: mpsc::UnboundedSender<FromNode>,
    heard: mpsc::UnboundedReceiver<ToNode>,
    place: Place,
    api: Api,
    task: JoinHandle<()>,
}

impl Drop for Player {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn coordinator_key(api: &Api) -> PublicKey {
    api.json("/api/v1/pool").await["key"].as_str().unwrap().parse().unwrap()
}

impl Player {
    pub(crate) async fn join(world: &World, name: &str) -> Player {
        // The operator's own: what it says of its speed is believed, so that bands are cut as tests expect.
        let node = Node::join_with(&world.api, hello(name, &world.api.key)).await;
        let coordinator = coordinator_key(&world.api).await;
        let link = LinkKey(*blake3::hash(format!("link of {name}").as_bytes()).as_bytes());
        let proof = key(name).sign(&link_statement(&coordinator, &link));
        let proof = Signature::new(&proof.to_bytes());
        let (says, to_say) = mpsc::unbounded_channel();
        let (hears, heard) = mpsc::unbounded_channel();
        let place = Place::default();
        says.send(FromNode::Links { key: link, proof }).unwrap();
        let task = tokio::spawn(play(node.socket, to_say, hears, Arc::clone(&place)));
        Player { session: node.session, says, heard, place, api: world.api.clone(), task }
    }

    /// The next thing it is told that the test wants.
    async fn next<T>(&mut self, what: &str, mut want: impl FnMut(ToNode) -> Option<T>) -> T {
        let looking = async {
            loop {
                let message = self.heard.recv().await.expect("the coordinator hung up");
                if let Some(found) = want(message) {
                    return found;
                }
            }
        };
        let within = tokio::time::timeout(Duration::from_secs(20), looking).await;
        within.unwrap_or_else(|_| panic!("{what} did not come"))
    }

    pub(crate) async fn enlisted(&mut self) -> Enlist {
        let is_enlist = |message| {
            let ToNode::Enlist(enlist) = message else { return None };
            Some(*enlist)
        };
        self.next("a call into a crew", is_enlist).await
    }

    pub(crate) async fn told(&mut self) -> CrewTold {
        let is_told = |message| {
            let ToNode::ToCrew { say, .. } = message else { return None };
            Some(say)
        };
        self.next("a word to a member", is_told).await
    }

    pub(crate) async fn dismissed(&mut self) -> CrewId {
        let is_dismissed = |message| {
            let ToNode::Dismiss { crew } = message else { return None };
            Some(crew)
        };
        self.next("a dismissal", is_dismissed).await
    }

    pub(crate) fn say(&self, enlist: &Enlist, say: CrewSay) {
        let (crew, epoch) = (enlist.crew, enlist.epoch);
        self.says.send(FromNode::Crew { crew, epoch, say }).unwrap();
    }

    /// Calls for a talk of two until it is granted: the other may have joined and not yet shown its key.
    pub(crate) async fn met(&mut self, with: NodeId) -> Enlist {
        loop {
            let (crew, epoch, say) = (CrewId(0), Epoch(0), CrewSay::Meet { with });
            self.says.send(FromNode::Crew { crew, epoch, say }).unwrap();
            let answer = |message| {
                if let ToNode::Enlist(enlist) = message {
                    return Some(Some(*enlist));
                }
                let is_not_met =
                    matches!(message, ToNode::ToCrew { say: CrewTold::NotMet { .. }, .. });
                is_not_met.then_some(None)
            };
            if let Some(enlist) = self.next("an answer to a call for a talk", answer).await {
                return enlist;
            }
        }
    }

    /// Has done so many steps.
    pub(crate) fn step(&self, enlist: &Enlist, step: u64) {
        *self.place.lock().unwrap() = Some((enlist.crew, enlist.epoch, step));
        self.say(enlist, progress(step));
    }

    pub(crate) async fn put(&self, path: &str, bytes: Vec<u8>) -> Response {
        let request = self.api.open(Method::PUT, path).bearer_auth(&self.session);
        request.body(bytes).send().await.unwrap()
    }

    /// Stores bytes as its rows of a checkpoint, and says nothing of them.
    pub(crate) async fn store(&self, enlist: &Enlist, bytes: Vec<u8>) -> BlobRef {
        let path = format!("/node/kept/{}/{}", enlist.crew, enlist.epoch.0);
        let response = self.put(&path, bytes).await;
        let (status, body) = (response.status(), response.json::<Value>().await.unwrap());
        assert_eq!(status, 200, "{body}");
        let hash = body["hash"].as_str().unwrap().parse().unwrap();
        BlobRef { hash, size: body["size"].as_u64().unwrap() }
    }

    /// Stores its rows of a checkpoint and says so.
    pub(crate) async fn keep(&self, enlist: &Enlist, step: u64, bytes: Vec<u8>) -> BlobRef {
        let blob = self.store(enlist, bytes).await;
        self.step(enlist, step);
        self.say(
            enlist,
            CrewSay::Checkpoint { step, part: CheckpointPart { rows: rows(enlist), blob } },
        );
        blob
    }

    /// Hands in its rows of the final state.
    pub(crate) fn finish(&self, enlist: &Enlist, bytes: Vec<u8>) {
        let attempt = task(enlist).attempt;
        let output = UnitOutput::Inline(bytes);
        let done = FromNode::Done(vec![Finished { attempt, took: Micros(100), output }]);
        self.says.send(done).unwrap();
    }

    /// What a blob holds, as a member gets it; `None` if there is no such blob.
    pub(crate) async fn blob(&self, blob: BlobRef) -> Option<Vec<u8>> {
        let request = self.api.open(Method::GET, &format!("/node/blobs/{}", blob.hash));
        let response = request.bearer_auth(&self.session).send().await.unwrap();
        match response.status().as_u16() {
            200 => Some(response.bytes().await.unwrap().into()),
            404 => None,
            status => panic!("{status}"),
        }
    }
}

async fn play(
    mut socket: Socket,
    mut to_say: mpsc::UnboundedReceiver<FromNode>,
    hears: mpsc::UnboundedSender<ToNode>,
    place: Place,
) {
    let mut beat = tokio::time::interval(BEAT);
    loop {
        tokio::select! {
            message = receive(&mut socket) => {
                let Some(message) = message else { return };
                if let ToNode::Audition { crew, .. } = message {
                    let say = CrewSay::Auditioned { cells: 1_000_000, took: Micros(10_000) };
                    send(&mut socket, &FromNode::Crew { crew, epoch: Epoch(0), say }).await;
                }
                if let ToNode::Enlist(enlist) = &message {
                    let from = match &enlist.task {
                        CrewTask::Sim(task) => task.from,
                        CrewTask::Talk | CrewTask::Swarm | CrewTask::Stage(_) => 0,
                    };
                    *place.lock().unwrap() = Some((enlist.crew, enlist.epoch, from));
                }
                if let ToNode::Dismiss { .. } = &message {
                    *place.lock().unwrap() = None;
                }
                let _ = hears.send(message);
            }
            said = to_say.recv() => {
                let Some(said) = said else { return };
                send(&mut socket, &said).await;
            }
            _ = beat.tick() => {
                let at = *place.lock().unwrap();
                let Some((crew, epoch, step)) = at else { continue };
                send(&mut socket, &FromNode::Crew { crew, epoch, say: progress(step) }).await;
            }
        }
    }
}

fn progress(step: u64) -> CrewSay {
    let (computed, waited) = (Micros(step * 1_000), Micros(step * 100));
    CrewSay::Progress { step, computed, waited, guessed: 0, corrected: 0, links: Vec::new() }
}

pub(crate) fn task(enlist: &Enlist) -> &SimTask {
    match &enlist.task {
        CrewTask::Sim(task) => task,
        CrewTask::Talk | CrewTask::Swarm | CrewTask::Stage(_) => {
            panic!("expected a simulation")
        }
    }
}

pub(crate) fn rows(enlist: &Enlist) -> Span {
    task(enlist).bands[usize::from(enlist.rank)]
}

/// A grid of 8 x 12 cells, an f32 each, for so many members.
pub(crate) fn sim(members: u32) -> Value {
    json!({
        "kind": "sim", "source": "a kernel", "width": 8, "height": 12, "steps": 6, "halo": 2,
        "members": members, "keepEvery": 2,
    })
}

/// Bytes of the rows of [`sim`] after some steps: cell `i` is `i + step / 10`.
pub(crate) fn cells(rows: Span, step: u64) -> Vec<u8> {
    let cells = rows.start * 8..rows.end() * 8;
    cells.flat_map(|cell| (cell as f32 + step as f32 / 10.0).to_le_bytes()).collect()
}

/// Both keep their rows of a checkpoint; gives their blobs once it is whole.
pub(crate) async fn keep_all(api: &Api, crew: &[(&Player, &Enlist)], step: u64) -> Vec<BlobRef> {
    let mut blobs = Vec::new();
    for (player, enlist) in crew {
        blobs.push(player.keep(enlist, step, cells(rows(enlist), step)).await);
    }
    let path = format!("/api/v1/jobs/{}", task(crew[0].1).job);
    eventually(async || {
        let kept = api.json(&path).await["sim"]["crew"]["keptStep"].as_u64();
        (kept == Some(step)).then_some(())
    })
    .await;
    blobs
}
