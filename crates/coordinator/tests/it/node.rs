//! A node played by a test: speaks the protocol, computes what it is told to.

use std::collections::HashMap;
use std::time::Duration;

use ed25519_dalek::{Signer, SigningKey};
use futures_util::{SinkExt, StreamExt};
use reqwest::{Method, Response};
use shoal_kinds::Kind;
use shoal_protocol::codec::Wire;
use shoal_protocol::limit::{HEARTBEAT, MAX_INLINE_BYTES, PROTOCOL_VERSION};
use shoal_protocol::sign::join_statement;
use shoal_protocol::{
    Attempt, Caps, Failure, Finished, FromNode, GpuCaps, Held, Hello, Identity, JobId, Lease,
    Micros, NodeId, NodeKind, Refusal, Signature, Signed, Span, ToNode, UnitOutput,
};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::world::{Api, World};

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Answers in one message: few enough that a slow node is seen to get on.
const MAX_TOGETHER: usize = 64;

/// What a job's spec says to a node.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) work: Kind,
    pub(crate) signed: Option<Signed>,
}

pub(crate) struct Node {
    pub(crate) socket: Socket,
    pub(crate) session: String,
    pub(crate) id: NodeId,
    pub(crate) jobs: HashMap<JobId, Told>,
    /// Loans not worked on yet.
    pub(crate) loans: Vec<Lease>,
    /// How long it rests between two messages of answers.
    pub(crate) rest: Duration,
    /// Answers in one message.
    pub(crate) together: usize,
    api: Api,
}

pub(crate) fn hello(name: &str, token: &str) -> Hello {
    Hello {
        version: PROTOCOL_VERSION,
        token: token.into(),
        identity: Identity(key(name).verifying_key().to_bytes()),
        proof: Signature::new(&[0; 64]),
        caps: Caps {
            kind: NodeKind::Native,
            name: name.into(),
            cpu_slots: 2,
            gpu: Some(GpuCaps {
                name: "Test GPU".into(),
                backend: "none".into(),
                software: true,
                memory: None,
                buffer_bytes: 128 << 20,
                workgroup_invocations: 256,
                workgroup_bytes: 16 << 10,
                storage_buffers: 8,
                slots: 2,
            }),
            memory: 4 << 30,
            threads: 2,
            engines: Vec::new(),
            speed: 100,
            class: 1,
        },
        held: Vec::new(),
    }
}

/// The key of the node with this name.
pub(crate) fn key(name: &str) -> SigningKey {
    SigningKey::from_bytes(blake3::hash(name.as_bytes()).as_bytes())
}

/// A socket, and what must be signed on it.
pub(crate) async fn connect(api: &Api) -> (Socket, Vec<u8>) {
    try_connect(api).await.expect("expected a challenge")
}

async fn try_connect(api: &Api) -> Option<(Socket, Vec<u8>)> {
    let url = format!("ws://{}/node/socket", api.addr());
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.ok()?;
    let Some(ToNode::Challenge { nonce, coordinator }) = receive(&mut socket).await else {
        return None;
    };
    Some((socket, join_statement(&coordinator, &nonce)))
}

/// Proves who it is: whoever has its name has its key.
pub(crate) fn proven(hello: Hello, statement: &[u8]) -> Hello {
    let proof = Signature::new(&key(&hello.caps.name).sign(statement).to_bytes());
    Hello { proof, ..hello }
}

pub(crate) async fn send(socket: &mut Socket, message: &FromNode) {
    // A socket that is closed is noticed by whoever listens.
    let _ = socket.send(Message::Binary(message.encode().into())).await;
}

/// The next message, or `None` when the socket is closed.
pub(crate) async fn receive(socket: &mut Socket) -> Option<ToNode> {
    loop {
        match socket.next().await? {
            Ok(Message::Binary(bytes)) => return Some(ToNode::decode(&bytes).unwrap()),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

/// What a greeting is refused with.
pub(crate) async fn refusal(api: &Api, first: Message) -> Option<Refusal> {
    let (mut socket, _) = connect(api).await;
    socket.send(first).await.unwrap();
    let answer = receive(&mut socket).await?;
    let ToNode::Refused(refusal) = answer else { panic!("expected a refusal, got {answer:?}") };
    Some(refusal)
}

impl Node {
    pub(crate) async fn join(world: &World, name: &str) -> Node {
        Node::join_with(&world.api, hello(name, &world.token)).await
    }

    pub(crate) async fn rejoin(world: &World, name: &str, held: Vec<Held>) -> Node {
        Node::join_with(&world.api, Hello { held, ..hello(name, &world.token) }).await
    }

    pub(crate) async fn join_with(api: &Api, hello: Hello) -> Node {
        Node::try_join(api, hello).await.expect("expected a welcome")
    }

    /// `None` if the coordinator is gone or goes.
    pub(crate) async fn try_join(api: &Api, hello: Hello) -> Option<Node> {
        let (mut socket, statement) = try_connect(api).await?;
        send(&mut socket, &FromNode::Hello(Box::new(proven(hello, &statement)))).await;
        let Some(ToNode::Welcome { node: id, session }) = receive(&mut socket).await else {
            return None;
        };
        let (jobs, loans) = (HashMap::new(), Vec::new());
        Some(Node {
            socket,
            session,
            id,
            jobs,
            loans,
            rest: Duration::ZERO,
            together: MAX_TOGETHER,
            api: api.clone(),
        })
    }

    /// Takes messages in until something is lent.
    pub(crate) async fn lent(&mut self) -> Lease {
        while self.loans.is_empty() {
            assert!(self.hear().await, "the coordinator hung up");
        }
        self.loans.remove(0)
    }

    /// Takes one message in; `false` when the socket is closed.
    pub(crate) async fn hear(&mut self) -> bool {
        match receive(&mut self.socket).await {
            Some(ToNode::Job { job, work, signed, .. }) => {
                self.jobs
                    .insert(job, Told { work: Kind::read(&work).expect("a known kind"), signed });
            }
            Some(ToNode::Lend(leases)) => self.loans.extend(leases),
            Some(ToNode::Revoke(attempts)) => {
                self.loans.retain(|lease| !attempts.contains(&lease.attempt));
            }
            Some(
                ToNode::Forget(_)
                | ToNode::Welcome { .. }
                | ToNode::Challenge { .. }
                | ToNode::Audition { .. }
                | ToNode::Enlist(_)
                | ToNode::Dismiss { .. }
                | ToNode::ToCrew { .. }
                | ToNode::Warm { .. }
                | ToNode::Ask { .. }
                | ToNode::AskMore { .. }
                | ToNode::Quic(_)
                | ToNode::Swarm(_)
                | ToNode::Link,
            ) => {}
            Some(ToNode::Refused(_)) | None => return false,
        }
        true
    }

    pub(crate) async fn say(&mut self, message: FromNode) {
        send(&mut self.socket, &message).await;
    }

    async fn beat(&mut self) {
        self.say(FromNode::Alive { running: Vec::new(), queued: Vec::new() }).await;
    }

    pub(crate) async fn done(&mut self, attempt: Attempt, output: UnitOutput) {
        let finished = Finished { attempt, took: Micros(100), output };
        self.say(FromNode::Done(vec![finished])).await;
    }

    pub(crate) async fn inline(&mut self, attempt: Attempt, bytes: impl Into<Vec<u8>>) {
        self.done(attempt, UnitOutput::Inline(bytes.into())).await;
    }

    pub(crate) async fn fail(&mut self, attempt: Attempt, failure: Failure) {
        self.say(FromNode::Failed { attempt, failure }).await;
    }

    pub(crate) async fn put(&self, lease: Lease, bytes: impl Into<Vec<u8>>) -> Response {
        let path = format!("/node/results/{}/{}", lease.job, lease.attempt);
        let request = self.api.open(Method::PUT, &path).bearer_auth(&self.session);
        request.body(bytes.into()).send().await.unwrap()
    }

    /// Stores a result by HTTP and announces it.
    pub(crate) async fn store(&mut self, lease: Lease, bytes: Vec<u8>) {
        let (size, hash) = (bytes.len() as u64, *blake3::hash(&bytes).as_bytes());
        let response = self.put(lease, bytes).await;
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        let hash = shoal_protocol::Hash(hash);
        self.done(lease.attempt, UnitOutput::Stored { hash, size }).await;
    }

    /// Works until the coordinator hangs up.
    pub(crate) fn work(self, compute: impl Fn(&Kind, Span) -> Vec<u8> + Send + 'static) -> Working {
        Working(tokio::spawn(self.work_on(compute)))
    }

    async fn work_on(mut self, compute: impl Fn(&Kind, Span) -> Vec<u8> + Send) {
        let mut beat = tokio::time::interval(Duration::from_micros(HEARTBEAT.0));
        loop {
            tokio::select! {
                heard = self.hear() => if !heard { return },
                _ = beat.tick() => self.beat().await,
            }
            let mut finished = Vec::new();
            for lease in std::mem::take(&mut self.loans) {
                let bytes = compute(&self.jobs[&lease.job].work, lease.span);
                if bytes.len() > MAX_INLINE_BYTES {
                    self.store(lease, bytes).await;
                } else {
                    let output = UnitOutput::Inline(bytes);
                    finished.push(Finished { attempt: lease.attempt, took: Micros(100), output });
                }
                if finished.len() == self.together {
                    self.say(FromNode::Done(std::mem::take(&mut finished))).await;
                    tokio::time::sleep(self.rest).await;
                }
            }
            if !finished.is_empty() {
                self.say(FromNode::Done(finished)).await;
            }
        }
    }
}

/// A node at work; leaves when dropped.
pub(crate) struct Working(JoinHandle<()>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Item `i` of a map of f32 gives `i` as f32.
pub(crate) fn numbers(_work: &Kind, span: Span) -> Vec<u8> {
    (span.start..span.end()).flat_map(|i| (i as f32).to_le_bytes()).collect()
}

/// Run `i` of an exec answers "answer i\n".
pub(crate) fn answers(_work: &Kind, span: Span) -> Vec<u8> {
    let texts: Vec<String> = (span.start..span.end()).map(|i| format!("answer {i}\n")).collect();
    let lengths = texts.iter().flat_map(|text| (text.len() as u32).to_le_bytes());
    lengths.chain(texts.iter().flat_map(|text| text.bytes())).collect()
}

/// Like [`numbers`], but the last byte of each unit is wrong.
pub(crate) fn lies(work: &Kind, span: Span) -> Vec<u8> {
    let mut bytes = numbers(work, span);
    if let Some(last) = bytes.last_mut() {
        *last ^= 0x40;
    }
    bytes
}

pub(crate) fn nothing(_work: &Kind, _span: Span) -> Vec<u8> {
    Vec::new()
}
