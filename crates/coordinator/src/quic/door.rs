//! Who may come in by QUIC: whoever has the session of a node whose socket is open. Strangers are few at a time, hold
//! little, and are gone soon.

use std::sync::Arc;
use std::time::Duration;

use shoal_protocol::quic::{MAX_SESSION, PATH};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use wtransport::endpoint::IncomingSessionFuture;
use wtransport::quinn::{self, Incoming, VarInt};
use wtransport::{Connection, RecvStream, SendStream};

use super::{RECEIVE_WINDOW, stream};
use crate::http::App;
use crate::socket::Outlet;

/// Connections that have not shown a session yet. A handshake takes a core a millisecond.
const MAX_STRANGERS: usize = 64;
/// When so many are there, who comes must show that their address is theirs, so that nobody fills the door in others'
/// names.
const CAREFUL_FROM: usize = MAX_STRANGERS / 4;
/// A node opens its stream and says who it is at once.
const GREETED_WITHIN: Duration = Duration::from_secs(5);

/// Cheap to clone; all clones are one.
#[derive(Clone)]
pub(super) struct Door {
    app: App,
    strangers: Arc<Semaphore>,
}

/// A node's stream, and where its frames belong.
struct Guest {
    connection: Connection,
    send: SendStream,
    receive: RecvStream,
    outlet: Arc<Outlet>,
}

impl Door {
    pub(super) fn new(app: App) -> Door {
        Door { app, strangers: Arc::new(Semaphore::new(MAX_STRANGERS)) }
    }

    /// Lets nodes in until the coordinator closes.
    pub(super) async fn serve(self, endpoint: quinn::Endpoint, alive: mpsc::Sender<()>) {
        let mut closing = self.app.closing.clone();
        loop {
            let incoming = tokio::select! {
                incoming = endpoint.accept() => incoming,
                _ = closing.wait_for(|closing| *closing) => None,
            };
            let Some(incoming) = incoming else { break };
            let Ok(room) = Arc::clone(&self.strangers).try_acquire_owned() else {
                self.app.relay.counters().quic_refused();
                incoming.refuse();
                continue;
            };
            let is_careful = self.strangers.available_permits() < MAX_STRANGERS - CAREFUL_FROM;
            if is_careful && incoming.may_retry() && !incoming.remote_address_validated() {
                // Whoever is there asks again.
                let _ = incoming.retry();
                continue;
            }
            let (door, alive) = (self.clone(), alive.clone());
            tokio::spawn(async move {
                door.meet(incoming, room).await;
                drop(alive);
            });
        }
        endpoint.close(VarInt::from_u32(0), b"closing");
    }

    async fn meet(&self, incoming: Incoming, room: OwnedSemaphorePermit) {
        let mut closing = self.app.closing.clone();
        let greeted = tokio::select! {
            greeted = timeout(GREETED_WITHIN, self.greet(incoming)) => greeted,
            _ = closing.wait_for(|closing| *closing) => return,
        };
        drop(room);
        match greeted {
            Ok(Ok(guest)) => self.host(guest).await,
            Ok(Err(why)) => {
                self.app.relay.counters().quic_refused();
                tracing::debug!("no way by QUIC: {why}");
            }
            Err(_elapsed) => {
                self.app.relay.counters().quic_refused();
                tracing::debug!("no way by QUIC: nobody said who it is");
            }
        }
    }

    async fn greet(&self, incoming: Incoming) -> Result<Guest, String> {
        let request = IncomingSessionFuture::with_quic_incoming(incoming);
        let request = request.await.map_err(|error| error.to_string())?;
        if request.path() != PATH {
            let path = request.path().to_owned();
            request.not_found().await;
            return Err(format!("nothing is at {path:?}"));
        }
        let connection = request.accept().await.map_err(|error| error.to_string())?;
        let stream = connection.accept_bi().await.map_err(|error| error.to_string())?;
        let (send, mut receive) = stream;
        let outlet = self.session(&mut receive).await?;
        connection.quic_connection().set_receive_window(VarInt::from_u32(RECEIVE_WINDOW));
        Ok(Guest { connection, send, receive, outlet })
    }

    /// Whose stream it is.
    async fn session(&self, receive: &mut RecvStream) -> Result<Arc<Outlet>, String> {
        let mut word = [0; MAX_SESSION];
        let mut length = [0];
        receive.read_exact(&mut length).await.map_err(|error| error.to_string())?;
        let length = usize::from(length[0]);
        let word = word.get_mut(..length).ok_or(format!("a session of {length} bytes"))?;
        receive.read_exact(word).await.map_err(|error| error.to_string())?;
        let conn = self.app.auth.session_of(word).ok_or("no such session")?;
        self.app.relay.outlet(conn).ok_or("that node's socket is closed".into())
    }

    /// Passes frames until the way is lost, replaced, or the node's socket closes.
    async fn host(&self, guest: Guest) {
        let Guest { connection, send, receive, outlet } = guest;
        let Some((way, over)) = outlet.open_quic() else { return };
        self.app.relay.counters().quic_opened();
        tracing::debug!(conn = outlet.conn.0, "frames go by QUIC");
        let mut closing = self.app.closing.clone();
        let why = tokio::select! {
            why = stream::listen(&self.app, &outlet, receive) => why,
            why = stream::speak(&outlet, &way, send) => why,
            _ = over => "another way took its place, or the socket closed".into(),
            _ = closing.wait_for(|closing| *closing) => "closing".into(),
        };
        outlet.close_quic(&way);
        tracing::debug!(conn = outlet.conn.0, "frames go by socket: {why}");
        connection.close(wtransport::VarInt::from_u32(0), b"");
    }
}
