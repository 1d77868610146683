//! A node's socket: its messages to the driver, the driver's to it. One task for each, whose two halves
//! never wait for each other.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use shoal_protocol::codec::{DecodeError, Wire};
use shoal_protocol::limit::{MAX_FRAME_BYTES, OLDEST_VERSION, PROTOCOL_VERSION};
use shoal_protocol::sign::join_statement;
use shoal_protocol::{FromNode, Hello, PublicKey, Refusal, ToNode};
use shoal_scheduler::Conn;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::driver::event::Event;
use crate::driver::outbox::{MAX_BEHIND, Outgoing};
use crate::http::App;
use crate::keys::has_signed;
use crate::network::Peer;
use crate::ping::{PING_EVERY, Pings};

/// A node that opens a socket says `Hello` at once.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// How long a last word may take to be sent.
const GOODBYE_WITHIN: Duration = Duration::from_secs(2);

/// Room for one read: cleared before each, so more than a usual message costs more than it saves.
const READ_BUFFER: usize = 16 << 10;

type Sink = SplitSink<WebSocket, Message>;

/// A node's connection (WebSocket)
#[utoipa::path(
    get, path = "/node/socket", tag = "node",
    responses(
        (status = 101, description = "A WebSocket of binary frames, one message each; the coordinator begins with a challenge, the node answers with Hello: the join token and its proof"),
        (status = 400, description = "No WebSocket request"),
    )
)]
pub(crate) async fn node_socket(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let network = app.networks.number(peer.asking(&headers, app.behind_proxy));
    let alive = app.alive.upgrade();
    upgrade
        .read_buffer_size(READ_BUFFER)
        .max_message_size(MAX_FRAME_BYTES)
        .max_frame_size(MAX_FRAME_BYTES)
        .on_upgrade(async move |socket| {
            serve(app, socket, network).await;
            drop(alive);
        })
}

/// Why a node's half of the talk ended.
enum End {
    /// It left, or the driver ended it.
    Gone,
    Refused(Refusal),
}

/// A node that may come in.
struct Guest {
    conn: Conn,
    hello: Hello,
    session: String,
    trusted: bool,
    network: u64,
}

async fn serve(app: App, socket: WebSocket, network: u64) {
    let (mut sink, mut stream) = socket.split();
    let mut closing = app.closing.clone();
    let greeted = tokio::select! {
        greeted = timeout(HELLO_WITHIN, greet(&app, &mut sink, &mut stream)) => greeted,
        _ = closing.wait_for(|closing| *closing) => Ok(Err(End::Refused(Refusal::Closing))),
    };
    let (hello, trusted) = match greeted {
        Ok(Ok(admitted)) => admitted,
        Ok(Err(End::Refused(refusal))) => return refuse(&mut sink, refusal).await,
        Ok(Err(End::Gone)) | Err(_) => return,
    };
    let conn = Conn(app.last_conn.fetch_add(1, Ordering::Relaxed) + 1);
    let session = match app.auth.open_session(conn) {
        Ok(session) => session,
        Err(error) => {
            tracing::error!("no random bytes for a session: {error}");
            return refuse(&mut sink, Refusal::Full).await;
        }
    };
    tracing::info!(conn = conn.0, name = hello.caps.name, trusted, "a node joins");
    let guest = Guest { conn, hello, session: session.clone(), trusted, network };
    if let End::Refused(refusal) = talk(&app, guest, &mut sink, stream).await {
        refuse(&mut sink, refusal).await;
    }
    app.auth.close_session(&session);
    // If the driver has stopped there is nobody left to tell.
    let _ = app.driver.tell(Event::Disconnected { conn }).await;
    tracing::info!(conn = conn.0, "a node left");
}

/// Asks who it is, and whether that can be believed. Done here, because checking a signature takes longer
/// than anything the driver does for a node.
async fn greet(
    app: &App,
    sink: &mut Sink,
    stream: &mut SplitStream<WebSocket>,
) -> Result<(Hello, bool), End> {
    let mut nonce = [0; 32];
    if let Err(error) = getrandom::fill(&mut nonce) {
        tracing::error!("no random bytes for a challenge: {error}");
        return Err(End::Refused(Refusal::Full));
    }
    let coordinator = app.signer.public();
    let challenge = frame(&ToNode::Challenge { nonce, coordinator });
    sink.send(challenge).await.map_err(|_| End::Gone)?;
    let hello = greeting(stream).await?;
    let (oldest, newest, yours) = (OLDEST_VERSION, PROTOCOL_VERSION, hello.version);
    if !(oldest..=newest).contains(&yours) {
        return Err(End::Refused(Refusal::Version { oldest, newest, yours }));
    }
    let trusted = app.auth.key.matches(&hello.token);
    if !trusted && !app.auth.token.matches(&hello.token) {
        return Err(End::Refused(Refusal::Token));
    }
    let (who, statement) = (PublicKey(hello.identity.0), join_statement(&coordinator, &nonce));
    if !has_signed(&who, &statement, &hello.proof) {
        return Err(End::Refused(Refusal::Identity));
    }
    Ok((hello, trusted))
}

async fn talk(app: &App, guest: Guest, sink: &mut Sink, stream: SplitStream<WebSocket>) -> End {
    let (outgoing, queue) = mpsc::channel(MAX_BEHIND);
    let (kill, killed) = oneshot::channel();
    let Guest { conn, hello, session, trusted, network } = guest;
    let joined = Event::Connected { conn, hello, session, trusted, network, outgoing, kill };
    if app.driver.tell(joined).await.is_err() {
        return End::Refused(Refusal::Closing);
    }
    let pings = Pings::default();
    tokio::select! {
        end = listen(app, conn, stream, &pings) => end,
        end = speak(sink, queue, &pings) => end,
        Ok(()) = killed => End::Gone,
    }
}

/// From the node to the driver.
async fn listen(app: &App, conn: Conn, mut stream: SplitStream<WebSocket>, pings: &Pings) -> End {
    loop {
        let event = match next(&mut stream).await {
            Ok(Heard::Message(message)) => Event::Said { conn, message },
            Ok(Heard::Echo(word)) => match pings.came_back(&word) {
                Some(took) => Event::RoundTrip { conn, took },
                None => continue,
            },
            Err(end) => return end,
        };
        // A full driver makes its nodes wait; their own sockets then fill and slow them down.
        if app.driver.tell(event).await.is_err() {
            return End::Refused(Refusal::Closing);
        }
    }
}

/// From the driver to the node: all that is ready, then one flush. In between, pings.
async fn speak(sink: &mut Sink, mut queue: mpsc::Receiver<Outgoing>, pings: &Pings) -> End {
    let mut ready = Vec::new();
    let mut beat = interval(PING_EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let taken = tokio::select! {
            taken = queue.recv_many(&mut ready, MAX_BEHIND) => taken,
            _ = beat.tick() => {
                let Some(word) = pings.next() else { continue };
                if sink.send(Message::Ping(word.to_vec().into())).await.is_err() {
                    return End::Gone;
                }
                continue;
            }
        };
        if taken == 0 {
            // The driver dropped the connection without a word: it has stopped.
            return End::Refused(Refusal::Closing);
        }
        let mut last = false;
        for outgoing in ready.drain(..) {
            last |= outgoing.last;
            for message in &outgoing.messages {
                if sink.feed(frame(message)).await.is_err() {
                    return End::Gone;
                }
            }
        }
        if sink.flush().await.is_err() {
            return End::Gone;
        }
        if last {
            let _ = timeout(GOODBYE_WITHIN, sink.close()).await;
            return End::Gone;
        }
    }
}

async fn greeting(stream: &mut SplitStream<WebSocket>) -> Result<Hello, End> {
    loop {
        return match next(stream).await? {
            Heard::Echo(_) => continue,
            Heard::Message(FromNode::Hello(hello)) => Ok(hello),
            Heard::Message(_) => Err(End::Refused(Refusal::Garbled)),
        };
    }
}

/// What came from a node.
#[expect(clippy::large_enum_variant, reason = "lives for a moment, and nearly all are messages")]
enum Heard {
    Message(FromNode),
    /// A ping's payload.
    Echo(Bytes),
}

/// The next message that this build knows.
async fn next(stream: &mut SplitStream<WebSocket>) -> Result<Heard, End> {
    loop {
        let bytes = match stream.next().await {
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Ping(_))) => continue,
            Some(Ok(Message::Pong(word))) => return Ok(Heard::Echo(word)),
            Some(Ok(Message::Text(_))) => return Err(End::Refused(Refusal::Garbled)),
            Some(Ok(Message::Close(_))) | None => return Err(End::Gone),
            Some(Err(error)) => return Err(broken(error)),
        };
        match FromNode::decode(&bytes) {
            Ok(message) => return Ok(Heard::Message(message)),
            Err(DecodeError::UnknownKind(kind)) => tracing::debug!(kind, "an unknown message"),
            Err(DecodeError::TooLarge(_) | DecodeError::Garbled) => {
                let refusal = strange_version(&bytes).unwrap_or(Refusal::Garbled);
                return Err(End::Refused(refusal));
            }
        }
    }
}

/// A `Hello` of another protocol may be unreadable but for its version, which stands first.
fn strange_version(bytes: &[u8]) -> Option<Refusal> {
    let (kind, version) =
        postcard::from_bytes::<(u8, u16)>(bytes.get(..bytes.len().min(4))?).ok()?;
    let ours = (OLDEST_VERSION..=PROTOCOL_VERSION).contains(&version);
    let (oldest, newest, yours) = (OLDEST_VERSION, PROTOCOL_VERSION, version);
    (kind == 0 && !ours).then_some(Refusal::Version { oldest, newest, yours })
}

/// An oversized frame is the node's fault and worth a word; anything else is a lost connection.
fn broken(error: axum::Error) -> End {
    let text = error.to_string();
    tracing::debug!("a socket broke: {text}");
    if text.contains("too long") || text.contains("too large") {
        return End::Refused(Refusal::Garbled);
    }
    End::Gone
}

async fn refuse(sink: &mut Sink, refusal: Refusal) {
    tracing::info!("a node is refused: {refusal}");
    let goodbye = async {
        sink.send(frame(&ToNode::Refused(refusal))).await?;
        sink.close().await
    };
    // One that does not listen any more has nothing to hear.
    let _ = timeout(GOODBYE_WITHIN, goodbye).await;
}

fn frame(message: &ToNode) -> Message {
    Message::Binary(message.encode().into())
}
