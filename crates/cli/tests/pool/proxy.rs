//! Stands between a node and its coordinator and changes what they say: how a stranger's device lies, and
//! what somebody on the way could do. Everything but the node's socket passes as it is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{Sink, SinkExt, Stream, StreamExt};
use shoal_kinds::Kind;
use shoal_protocol::codec::Wire;
use shoal_protocol::frame::is_frame;
use shoal_protocol::{Finished, FromNode, ToNode, UnitOutput};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{accept_async, client_async};

/// Changes a message on its way, or lets it be.
type Change<T> = Arc<dyn Fn(&mut T) -> bool + Send + Sync>;

pub(crate) struct Proxy {
    /// The join link through it.
    pub(crate) link: String,
    changed: Arc<AtomicU64>,
    cut: Arc<Notify>,
    _runtime: Runtime,
}

#[derive(Clone)]
struct Changes {
    from_node: Change<FromNode>,
    to_node: Change<ToNode>,
    changed: Arc<AtomicU64>,
    breaks: Breaks,
}

/// Connections that break behind so many bytes of what the coordinator says.
#[derive(Clone, Default)]
struct Breaks {
    after: u64,
    /// How many still will.
    left: Arc<AtomicU64>,
}

impl Proxy {
    /// A device that answers wrongly: one bit of every answer that rides in a message is another, in the byte
    /// at this distance from the end.
    pub(crate) fn lies(join: &str, from_end: usize) -> Proxy {
        let lie = move |message: &mut FromNode| lie(message, from_end);
        Proxy::start(join, Arc::new(lie), Arc::new(|_| false))
    }

    /// A device that answers a language model's requests with other words: every token is the one beside it.
    pub(crate) fn says_other_words(join: &str) -> Proxy {
        Proxy::start(join, Arc::new(other_words), Arc::new(|_| false))
    }

    /// Somebody who changes a kernel's text on its way to the node.
    pub(crate) fn changes_code(join: &str, from: &str, to: &str) -> Proxy {
        let (from, to) = (from.to_owned(), to.to_owned());
        let change = move |message: &mut ToNode| {
            let ToNode::Job { work, .. } = message else { return false };
            let mut kind = Kind::read(work).expect("a known kind");
            let kernel = if let Kind::Map(work) = &mut kind {
                &mut work.kernel
            } else if let Kind::Render(work) = &mut kind {
                &mut work.kernel
            } else {
                return false;
            };
            kernel.source = kernel.source.replacen(&from, &to, 1);
            let changed = kind.work();
            std::mem::replace(&mut **work, changed.clone()) != changed
        };
        Proxy::start(join, Arc::new(|_| false), Arc::new(change))
    }

    /// Somebody who takes the signature off.
    pub(crate) fn strips_signature(join: &str) -> Proxy {
        let change = |message: &mut ToNode| {
            let ToNode::Job { signed, .. } = message else { return false };
            signed.take().is_some()
        };
        Proxy::start(join, Arc::new(|_| false), Arc::new(change))
    }

    /// Somebody who sends the node's frames by QUIC through another port.
    pub(crate) fn turns_quic(join: &str, port: u16) -> Proxy {
        let change = move |message: &mut ToNode| {
            let ToNode::Quic(offer) = message else { return false };
            std::mem::replace(&mut offer.port, port) != port
        };
        Proxy::start(join, Arc::new(|_| false), Arc::new(change))
    }

    /// Nobody but the way itself, which can be cut.
    #[cfg(unix)]
    pub(crate) fn passes(join: &str) -> Proxy {
        Proxy::start(join, Arc::new(|_| false), Arc::new(|_| false))
    }

    /// The way itself, on which the first `count` connections that carry more than so many bytes break there.
    pub(crate) fn breaks(join: &str, count: u64, after: u64) -> Proxy {
        let breaks = Breaks { after, left: Arc::new(count.into()) };
        Proxy::start_with(join, Arc::new(|_| false), Arc::new(|_| false), breaks)
    }

    /// All connections through it end, as when a router starts anew; new ones are taken.
    #[cfg(unix)]
    pub(crate) fn cut(&self) {
        self.cut.notify_waiters();
    }

    fn start(join: &str, from_node: Change<FromNode>, to_node: Change<ToNode>) -> Proxy {
        Proxy::start_with(join, from_node, to_node, Breaks::default())
    }

    fn start_with(
        join: &str,
        from_node: Change<FromNode>,
        to_node: Change<ToNode>,
        breaks: Breaks,
    ) -> Proxy {
        let (base, token) = join.split_once("/join#").expect("a join link");
        let upstream: SocketAddr =
            base.trim_start_matches("http://").parse().expect("an address on this machine");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let here = listener.local_addr().expect("an address");
        let changed = Arc::new(AtomicU64::new(0));
        let changes = Changes { from_node, to_node, changed: changed.clone(), breaks };
        let cut = Arc::new(Notify::new());
        let ends = cut.clone();
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (changes, ends) = (changes.clone(), ends.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = serve(client, upstream, changes) => {}
                        () = ends.notified() => {}
                    }
                });
            }
        });
        Proxy { link: format!("http://{here}/join#{token}"), changed, cut, _runtime: runtime }
    }

    /// The address through it.
    pub(crate) fn url(&self) -> &str {
        self.link.split_once("/join#").expect("a join link").0
    }

    /// Messages that arrived other than they were sent, and connections that broke.
    pub(crate) fn changed(&self) -> u64 {
        self.changed.load(Ordering::Relaxed)
    }
}

fn lie(message: &mut FromNode, from_end: usize) -> bool {
    let FromNode::Done(finished) = message else { return false };
    let mut lied = false;
    for Finished { output, .. } in finished {
        let UnitOutput::Inline(bytes) = output else { continue };
        if let Some(byte) = bytes.iter_mut().rev().nth(from_end) {
            *byte ^= 1;
            lied = true;
        }
    }
    lied
}

/// Words come whole, each behind its length; one that is a token begins with a zero.
fn other_words(message: &mut FromNode) -> bool {
    let FromNode::Answer { part, .. } = message else { return false };
    let mut bytes = part.to_vec();
    let mut at = 0;
    while let Some((length, rest)) = bytes[at..].split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        if length > 1 && rest.len() >= length && rest[0] == 0 {
            bytes[at + 5] ^= 1;
        }
        at += 4 + length;
        if at > bytes.len() {
            break;
        }
    }
    let changed = bytes != *part;
    *part = bytes.into();
    changed
}

async fn serve(client: TcpStream, upstream: SocketAddr, changes: Changes) {
    const SOCKET: &[u8] = b"GET /node/socket";
    let mut head = [0; SOCKET.len()];
    // Nothing is taken away: whoever reads next sees it all.
    while client.peek(&mut head).await.is_ok_and(|length| (1..SOCKET.len()).contains(&length)) {
        tokio::task::yield_now().await;
    }
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    // A crew's small frames must not wait for each other.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    if head != SOCKET {
        return plainly(client, server, &changes).await;
    }
    let Ok(client) = accept_async(client).await else { return };
    let url = format!("ws://{upstream}/node/socket");
    let Ok((server, _)) = client_async(url, server).await else { return };
    let (to_client, from_client) = client.split();
    let (to_server, from_server) = server.split();
    tokio::select! {
        () = pass(from_client, to_server, &changes.from_node, &changes.changed) => {}
        () = pass(from_server, to_client, &changes.to_node, &changes.changed) => {}
    }
}

/// Anything but a node's socket.
async fn plainly(mut client: TcpStream, mut server: TcpStream, changes: &Changes) {
    let Breaks { after, left } = &changes.breaks;
    if left.load(Ordering::Relaxed) == 0 {
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        return;
    }
    let (mut from_client, mut to_client) = client.split();
    let (from_server, mut to_server) = server.split();
    let mut from_server = from_server.take(*after);
    tokio::select! {
        _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
    }
    if from_server.limit() == 0 {
        left.fetch_sub(1, Ordering::Relaxed);
        changes.changed.fetch_add(1, Ordering::Relaxed);
    }
}

async fn pass<T: Wire>(
    mut from: impl Stream<Item = Result<Message, Error>> + Unpin,
    mut to: impl Sink<Message, Error = Error> + Unpin,
    change: &Change<T>,
    changed: &AtomicU64,
) {
    while let Some(Ok(message)) = from.next().await {
        let message = match message {
            Message::Binary(bytes) if is_frame(&bytes) => Message::Binary(bytes),
            Message::Binary(bytes) => {
                let mut said = T::decode(&bytes).expect("both speak the same protocol");
                if change(&mut said) {
                    changed.fetch_add(1, Ordering::Relaxed);
                    Message::Binary(said.encode().into())
                } else {
                    Message::Binary(bytes)
                }
            }
            other @ (Message::Text(_)
            | Message::Ping(_)
            | Message::Pong(_)
            | Message::Close(_)
            | Message::Frame(_)) => other,
        };
        if to.send(message).await.is_err() {
            return;
        }
    }
}
