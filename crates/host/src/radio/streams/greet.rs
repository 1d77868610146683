//! How two nodes prove on a new connection that it is theirs: who opens it names the call, both draw something for
//! the keys, and both show that they have them. Whoever cannot is let go without a word.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use shoal_protocol::limit::SEAL_BYTES;
use shoal_seal::stream::{Halves, Opener, RECORD_HEAD, Salts, Sealer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::super::CrewPeer;
use super::pipe::Line;
use super::{Event, USE};

/// What a connection begins with: of which kind and version it is. No other protocol answers to it.
const MAGIC: &[u8; 8] = b"shoal-s1";
const HELLO_BYTES: usize = MAGIC.len() + 16 + 32;
const ANSWER_BYTES: usize = MAGIC.len() + 32;
/// A connection is open after this long, or there is none.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// All of it is said after this long. The peer's half may come later than its connection, which took the shorter way.
const GREET_WITHIN: Duration = Duration::from_secs(3);

/// A call that streams may be for.
#[derive(Clone)]
pub(super) struct Expected {
    pub(super) peer: CrewPeer,
    pub(super) call: u64,
    pub(super) halves: Halves,
    /// This end dials: it names the stream that is used.
    pub(super) dials: bool,
}

pub(super) type Calls = BTreeMap<[u8; 16], Expected>;

/// A connection to one of the peer's addresses, until there is no need for it any more.
pub(super) async fn call(
    to: SocketAddr,
    id: [u8; 16],
    mut calls: watch::Receiver<Calls>,
    events: mpsc::Sender<Event>,
) {
    let Some(expected) = calls.borrow().get(&id).cloned() else { return };
    let called = async {
        let socket = timeout(CONNECT_WITHIN, TcpStream::connect(to)).await??;
        let begun = timeout(GREET_WITHIN, hello(socket, id, &expected)).await??;
        finish(begun, expected, &events).await
    };
    tokio::select! {
        ended = called => log(to, ended),
        _ = calls.wait_for(|calls| !calls.contains_key(&id)) => {}
    }
}

/// A connection that somebody opened.
pub(super) async fn answer(
    socket: TcpStream,
    from: SocketAddr,
    mut calls: watch::Receiver<Calls>,
    events: mpsc::Sender<Event>,
    permit: tokio::sync::OwnedSemaphorePermit,
) {
    let greeted = timeout(GREET_WITHIN, greeted(socket, &mut calls)).await;
    // From here on it is no stranger.
    drop(permit);
    let (begun, id, expected) = match greeted {
        Ok(Ok(greeted)) => greeted,
        Ok(Err(error)) => return log(from, Err(error)),
        Err(late) => return log(from, Err(late.into())),
    };
    tokio::select! {
        ended = finish(begun, expected, &events) => log(from, ended),
        _ = calls.wait_for(|calls| !calls.contains_key(&id)) => {}
    }
}

struct Begun {
    socket: TcpStream,
    sealer: Sealer,
    opener: Opener,
}

async fn hello(mut socket: TcpStream, id: [u8; 16], expected: &Expected) -> io::Result<Begun> {
    socket.set_nodelay(true)?;
    let caller = salt()?;
    socket.write_all(&[MAGIC.as_slice(), &id, &caller].concat()).await?;
    let mut answer = [0; ANSWER_BYTES];
    socket.read_exact(&mut answer).await?;
    let called = answer.strip_prefix(MAGIC).and_then(|salt| salt.try_into().ok());
    let called = called.ok_or_else(|| io::Error::other("it is no node"))?;
    let (sealer, opener) = expected.halves.seal(&Salts { caller, called }, true);
    let mut begun = Begun { socket, sealer, opener };
    begun.hear(&[]).await?;
    begun.say(&[]).await?;
    Ok(begun)
}

async fn greeted(
    mut socket: TcpStream,
    calls: &mut watch::Receiver<Calls>,
) -> io::Result<(Begun, [u8; 16], Expected)> {
    socket.set_nodelay(true)?;
    let mut hello = [0; HELLO_BYTES];
    socket.read_exact(&mut hello).await?;
    let said = hello.strip_prefix(MAGIC).and_then(|said| said.split_first_chunk::<16>());
    let (id, caller) = said.ok_or_else(|| io::Error::other("it is no node"))?;
    let caller = caller.try_into().map_err(io::Error::other)?;
    let known = calls.wait_for(|calls| calls.contains_key(id)).await;
    let known = known.map_err(io::Error::other)?.get(id).cloned();
    let expected = known.ok_or_else(|| io::Error::other("of no call"))?;
    let called = salt()?;
    socket.write_all(&[MAGIC.as_slice(), &called].concat()).await?;
    let (sealer, opener) = expected.halves.seal(&Salts { caller, called }, false);
    let mut begun = Begun { socket, sealer, opener };
    begun.say(&[]).await?;
    begun.hear(&[]).await?;
    Ok((begun, *id, expected))
}

/// The connection is the peer's. Who dials may use it now; the other waits to hear that it is used.
async fn finish(
    mut begun: Begun,
    expected: Expected,
    events: &mpsc::Sender<Event>,
) -> io::Result<()> {
    let Expected { peer, call, dials, .. } = expected;
    if !dials {
        begun.hear(&[USE]).await?;
    }
    let Begun { socket, sealer, opener } = begun;
    let socket = socket.into_std()?;
    socket.set_nonblocking(false)?;
    let met = Event::Met { peer, call, line: Line { dials, socket, sealer, opener } };
    events.send(met).await.map_err(io::Error::other)
}

impl Begun {
    async fn say(&mut self, words: &[u8]) -> io::Result<()> {
        let mut record = Vec::new();
        if !self.sealer.seal(words, &mut record) {
            return Err(io::Error::other("no seal"));
        }
        self.socket.write_all(&record).await
    }

    /// The peer says exactly this, under the seal.
    async fn hear(&mut self, words: &[u8]) -> io::Result<()> {
        let mut head = [0; RECORD_HEAD];
        self.socket.read_exact(&mut head).await?;
        if Opener::length(head) != Some(words.len() + SEAL_BYTES) {
            return Err(io::Error::other("it says something else"));
        }
        let mut sealed = vec![0; words.len() + SEAL_BYTES];
        self.socket.read_exact(&mut sealed).await?;
        match self.opener.open(&sealed) {
            Some(said) if said == words => Ok(()),
            Some(_) | None => Err(io::Error::other("it does not have the keys")),
        }
    }
}

fn salt() -> io::Result<[u8; 32]> {
    let mut salt = [0; 32];
    getrandom::fill(&mut salt).map_err(io::Error::other)?;
    Ok(salt)
}

fn log(with: SocketAddr, ended: io::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!("no stream with {with}: {error}");
    }
}
