//! A node's socket: its messages to the driver, the driver's to it. One task for each, whose two halves
//! never wait for each other.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use shoal_protocol::codec::{DecodeError, Wire};
use shoal_protocol::limit::{MAX_FRAME_BYTES, OLDEST_VERSION, PROTOCOL_VERSION};
use shoal_protocol::{FromNode, Hello, Refusal, ToNode};
use shoal_scheduler::Conn;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::driver::event::Event;
use crate::driver::outbox::{MAX_BEHIND, Outgoing};
use crate::http::App;

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
        (status = 101, description = "A WebSocket of binary frames, one message each; the first is Hello with the join token"),
        (status = 400, description = "No WebSocket request"),
    )
)]
pub(crate) async fn node_socket(State(app): State<App>, upgrade: WebSocketUpgrade) -> Response {
    let alive = app.alive.upgrade();
    upgrade
        .read_buffer_size(READ_BUFFER)
        .max_message_size(MAX_FRAME_BYTES)
        .max_frame_size(MAX_FRAME_BYTES)
        .on_upgrade(async move |socket| {
            serve(app, socket).await;
            drop(alive);
        })
}

/// Why a node's half of the talk ended.
enum End {
    /// It left, or the driver ended it.
    Gone,
    Refused(Refusal),
}

async fn serve(app: App, socket: WebSocket) {
    let (mut sink, mut stream) = socket.split();
    let mut closing = app.closing.clone();
    let greeted = tokio::select! {
        greeted = timeout(HELLO_WITHIN, greeting(&mut stream)) => greeted,
        _ = closing.wait_for(|closing| *closing) => Ok(Err(End::Refused(Refusal::Closing))),
    };
    let hello = match greeted {
        Ok(Ok(hello)) if app.auth.token.matches(&hello.token) => hello,
        Ok(Ok(_)) => return refuse(&mut sink, Refusal::Token).await,
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
    tracing::info!(conn = conn.0, name = hello.caps.name, "a node joins");
    if let End::Refused(refusal) = talk(&app, conn, hello, session.clone(), &mut sink, stream).await
    {
        refuse(&mut sink, refusal).await;
    }
    app.auth.close_session(&session);
    // If the driver has stopped there is nobody left to tell.
    let _ = app.driver.tell(Event::Disconnected { conn }).await;
    tracing::info!(conn = conn.0, "a node left");
}

async fn talk(
    app: &App,
    conn: Conn,
    hello: Hello,
    session: String,
    sink: &mut Sink,
    stream: SplitStream<WebSocket>,
) -> End {
    let (outgoing, queue) = mpsc::channel(MAX_BEHIND);
    let (kill, killed) = oneshot::channel();
    let joined = Event::Connected { conn, hello, session, outgoing, kill };
    if app.driver.tell(joined).await.is_err() {
        return End::Refused(Refusal::Closing);
    }
    tokio::select! {
        end = listen(app, conn, stream) => end,
        end = speak(sink, queue) => end,
        Ok(()) = killed => End::Gone,
    }
}

/// From the node to the driver.
async fn listen(app: &App, conn: Conn, mut stream: SplitStream<WebSocket>) -> End {
    loop {
        let message = match next(&mut stream).await {
            Ok(message) => message,
            Err(end) => return end,
        };
        // A full driver makes its nodes wait; their own sockets then fill and slow them down.
        if app.driver.tell(Event::Said { conn, message }).await.is_err() {
            return End::Refused(Refusal::Closing);
        }
    }
}

/// From the driver to the node: all that is ready, then one flush.
async fn speak(sink: &mut Sink, mut queue: mpsc::Receiver<Outgoing>) -> End {
    let mut ready = Vec::new();
    while queue.recv_many(&mut ready, MAX_BEHIND).await > 0 {
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
    // The driver dropped the connection without a word: it has stopped.
    End::Refused(Refusal::Closing)
}

async fn greeting(stream: &mut SplitStream<WebSocket>) -> Result<Hello, End> {
    match next(stream).await? {
        FromNode::Hello(hello) => Ok(hello),
        FromNode::Done(_)
        | FromNode::Failed { .. }
        | FromNode::Alive { .. }
        | FromNode::Caps(_)
        | FromNode::Returned(_)
        | FromNode::Pause(_) => Err(End::Refused(Refusal::Garbled)),
    }
}

/// The next message that this build knows.
async fn next(stream: &mut SplitStream<WebSocket>) -> Result<FromNode, End> {
    loop {
        let bytes = match stream.next().await {
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Text(_))) => return Err(End::Refused(Refusal::Garbled)),
            Some(Ok(Message::Close(_))) | None => return Err(End::Gone),
            Some(Err(error)) => return Err(broken(error)),
        };
        match FromNode::decode(&bytes) {
            Ok(message) => return Ok(message),
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
