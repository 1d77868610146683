//! One node: the brain, its key and its socket.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ed25519_dalek::{Signer, SigningKey};
use futures_util::{SinkExt, StreamExt};
use shoal_node::{Config, Input, Node, Output, Phase, Rules};
use shoal_protocol::codec::Wire;
use shoal_protocol::{
    Caps, Identity, Lease, Micros, NodeKind, Signature, Time, ToNode, UnitOutput,
};
use tokio::net::TcpStream;
use tokio::time::{sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::Counts;

type Socket = WebSocketStream<TcpStream>;

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Ten thousand of them must fit beside the coordinator.
const BUFFER_BYTES: usize = 2 << 10;
/// Without a word from the brain, look again after this.
const IDLE: Duration = Duration::from_secs(60);

pub(crate) struct Member {
    node: Node,
    key: SigningKey,
    place: Arc<str>,
    start: Instant,
    counts: Arc<Counts>,
    socket: Option<Socket>,
    /// What the brain asked and is answered next.
    replies: VecDeque<Input>,
    joined: bool,
    unsent: bool,
}

impl Member {
    pub(crate) fn new(
        number: u64,
        place: &Arc<str>,
        token: &str,
        start: Instant,
        counts: &Arc<Counts>,
    ) -> Member {
        let mut seed = [7; 32];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        let key = SigningKey::from_bytes(&seed);
        let node = Node::new(Config {
            token: token.into(),
            identity: Identity(key.verifying_key().to_bytes()),
            caps: Caps {
                kind: NodeKind::Simulated,
                name: format!("member {number}"),
                cpu_slots: 0,
                gpu: None,
                memory: 0,
                threads: 0,
                engines: Vec::new(),
                speed: 100,
                class: 0,
            },
            rules: Rules::default(),
            talks: false,
            shares: false,
            // Neighbours must not draw alike.
            seed: (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        });
        Member {
            node,
            key,
            place: place.clone(),
            start,
            counts: counts.clone(),
            socket: None,
            replies: VecDeque::from([Input::Start]),
            joined: false,
            unsent: false,
        }
    }

    /// Until the coordinator refuses it for good.
    pub(crate) async fn live(mut self) {
        loop {
            while let Some(input) = self.replies.pop_front() {
                self.node.handle(self.now(), input);
                if !self.obey().await {
                    return;
                }
            }
            self.count();
            if !self.flush().await {
                continue;
            }
            let wake = self.node.next_timeout().map(|at| Duration::from_micros(at.0));
            let wake = wake.map_or(Instant::now() + IDLE, |after| self.start + after);
            let input = tokio::select! {
                input = heard(&mut self.socket) => input,
                () = sleep_until(wake.into()) => Input::Tick,
            };
            if matches!(input, Input::Closed) {
                self.socket = None;
            }
            self.replies.push_back(input);
        }
    }

    /// Does all that the brain asks for; `false` if nothing more will happen.
    async fn obey(&mut self) -> bool {
        while let Some(output) = self.node.poll_output() {
            match output {
                Output::Connect => {
                    self.counts.tries.fetch_add(1, Ordering::Relaxed);
                    self.socket = open(&self.place).await;
                    let opened = self.socket.is_some();
                    self.replies.push_back(if opened { Input::Opened } else { Input::Closed });
                }
                Output::Disconnect => self.socket = None,
                Output::Send(message) => {
                    let Some(socket) = &mut self.socket else { continue };
                    self.unsent = true;
                    if socket.feed(Message::Binary(message.encode().into())).await.is_err() {
                        self.lost();
                    }
                }
                Output::Sign(statement) => {
                    let proof = Signature::new(&self.key.sign(&statement).to_bytes());
                    self.replies.push_back(Input::Signed { statement, proof });
                }
                Output::Warm(job) => {
                    self.replies.push_back(Input::Warmed { job, result: Ok(()) });
                }
                Output::Check(job) => {
                    self.replies.push_back(Input::Checked { job, result: Ok(()) });
                }
                Output::Run { lease: Lease { attempt, .. }, .. } => {
                    self.counts.units.fetch_add(1, Ordering::Relaxed);
                    let result = Ok(UnitOutput::Inline(Vec::new()));
                    self.replies.push_back(Input::Ran { attempt, took: Micros(1), result });
                }
                Output::Abort(_)
                | Output::Forget(_)
                | Output::Audition { .. }
                | Output::AskCrew { .. }
                | Output::Enlist(_)
                | Output::Dismiss(_)
                | Output::Link
                | Output::ToCrew { .. }
                | Output::OpenQuic(_)
                | Output::CloseQuic
                | Output::Swarm(_) => {}
                Output::Stopped(refusal) => {
                    eprintln!("a member stopped: {refusal:?}");
                    return false;
                }
            }
        }
        true
    }

    /// `false` if the connection turned out to be lost.
    async fn flush(&mut self) -> bool {
        if std::mem::take(&mut self.unsent)
            && let Some(socket) = &mut self.socket
            && socket.flush().await.is_err()
        {
            self.lost();
            return false;
        }
        true
    }

    fn lost(&mut self) {
        self.socket = None;
        self.unsent = false;
        self.replies.push_back(Input::Closed);
    }

    fn count(&mut self) {
        let joined = matches!(self.node.status().phase, Phase::Joined(_));
        if joined != self.joined {
            let change = if joined { 1 } else { u64::MAX };
            self.counts.joined.fetch_add(change, Ordering::Relaxed);
            self.joined = joined;
        }
    }

    fn now(&self) -> Time {
        Time(self.start.elapsed().as_micros() as u64)
    }
}

async fn open(place: &str) -> Option<Socket> {
    let opened = async {
        let tcp = TcpStream::connect(place).await.ok()?;
        tcp.set_nodelay(true).ok()?;
        let config = WebSocketConfig::default().read_buffer_size(BUFFER_BYTES);
        let url = format!("ws://{place}/node/socket");
        let (socket, _) = client_async_with_config(url, tcp, Some(config)).await.ok()?;
        Some(socket)
    };
    timeout(CONNECT_WITHIN, opened).await.ok().flatten()
}

/// The next word of the coordinator. Never ready without a socket.
async fn heard(socket: &mut Option<Socket>) -> Input {
    let Some(socket) = socket else { return std::future::pending().await };
    match socket.next().await {
        Some(Ok(Message::Binary(bytes))) => match ToNode::decode(&bytes) {
            Ok(message) => Input::Received(message),
            Err(_) => Input::Closed,
        },
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Text(_) | Message::Frame(_))) => {
            Input::Tick
        }
        Some(Ok(Message::Close(_)) | Err(_)) | None => Input::Closed,
    }
}
