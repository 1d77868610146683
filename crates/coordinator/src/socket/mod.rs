//! A node's socket: its messages to the driver, the driver's to it, and frames of other nodes, which pass from socket
//! to socket. One task for each, whose two halves never wait for each other.
//!
//! - [`upgrade`]: how a request becomes a socket
//! - [`ws`]: the bytes of a WebSocket, [`parcel`]: a message on its way, [`stock`]: its memory
//! - [`greet`]: who is there
//! - [`budget`]: how much a node may say unasked
//! - [`ears`]: what comes in, [`mouth`]: what goes out, [`end`]: what is said last
//! - [`outlet`]: where other sockets leave frames for this one, [`queue`]: where they wait

mod budget;
mod ears;
mod end;
mod greet;
mod mouth;
mod outlet;
mod parcel;
mod queue;
mod stock;
mod upgrade;
mod ws;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use shoal_protocol::frame::is_frame;
use shoal_protocol::{Hello, Refusal, ToNode};
use shoal_scheduler::Conn;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use self::budget::Budget;
use self::ears::{Ears, Heard};
use self::end::{End, ended, part};
use self::greet::{decode, greet};
use self::mouth::Mouth;
pub(crate) use self::outlet::{Outlet, Posted};
pub(crate) use self::parcel::{Load, Parcel};
pub(crate) use self::queue::QuicWay;
use self::ws::Kind;
use crate::driver::conns::{MAX_BEHIND, Outgoing};
use crate::driver::event::Event;
use crate::error::{ApiError, RequestError};
use crate::http::App;
use crate::network::FarEnd;
use crate::ping::{PING_EVERY, Pings};
use crate::quic::Offered;
use crate::relay::{Letters, Way};

/// A node that opens a socket says `Hello` at once.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// A node's connection (WebSocket)
#[utoipa::path(
    get, path = "/node/socket", tag = "node",
    responses(
        (status = 101, description = "A WebSocket of binary frames, one message each; the coordinator begins with a challenge, the node answers with Hello: the join token and its proof"),
        (status = 400, description = "No WebSocket request", body = shoal_api::ErrorJson),
    )
)]
pub(crate) async fn node_socket(
    State(app): State<App>,
    Extension(peer): Extension<FarEnd>,
    mut request: Request<Body>,
) -> Response {
    let network = app.networks.number(peer.asking(request.headers(), app.behind_proxy));
    let (response, upgrade) = match upgrade::accept(&mut request) {
        Ok(accepted) => accepted,
        Err(error) => {
            return ApiError::from(RequestError::NoSocket(error.to_string())).into_response();
        }
    };
    let alive = app.alive.upgrade();
    tokio::spawn(async move {
        match upgrade.await {
            Ok(upgraded) => {
                let conn = Conn(app.last_conn.fetch_add(1, Ordering::Relaxed) + 1);
                let (ears, mouth) = upgrade::open(upgraded, conn);
                serve(app, ears, mouth, network).await;
            }
            Err(error) => tracing::debug!("a socket did not open: {error}"),
        }
        drop(alive);
    });
    response
}

/// A node that may come in.
struct Guest {
    hello: Hello,
    session: String,
    trusted: bool,
    network: u64,
}

async fn serve(app: App, mut ears: Ears, mut mouth: Mouth, network: u64) {
    let conn = mouth.outlet.conn;
    let mut closing = app.closing.clone();
    let greeted = tokio::select! {
        greeted = timeout(HELLO_WITHIN, greet(&app, &mut ears, &mut mouth)) => greeted,
        _ = closing.wait_for(|closing| *closing) => Ok(Err(End::Refused(Refusal::Closing))),
    };
    let (hello, trusted) = match greeted {
        Ok(Ok(admitted)) => admitted,
        Ok(Err(end)) => return part(&mut ears, &mut mouth, end).await,
        Err(_elapsed) => return,
    };
    let session = match app.auth.open_session(conn, trusted) {
        Ok(session) => session,
        Err(error) => {
            tracing::error!("no random bytes for a session: {error}");
            return part(&mut ears, &mut mouth, End::Refused(Refusal::Full)).await;
        }
    };
    tracing::info!(conn = conn.0, name = hello.caps.name, trusted, "a node joins");
    let guest = Guest { hello, session: session.clone(), trusted, network };
    app.relay.opened(&mouth.outlet);
    let end = talk(&app, guest, &mut ears, &mut mouth).await;
    app.relay.closed(conn);
    app.auth.close_session(&session);
    // If the driver has stopped there is nobody left to tell.
    let _ = app.driver.tell(Event::Disconnected { conn }).await;
    tracing::info!(conn = conn.0, "a node left");
    part(&mut ears, &mut mouth, end).await;
}

async fn talk(app: &App, guest: Guest, ears: &mut Ears, mouth: &mut Mouth) -> End {
    let (outgoing, queue) = mpsc::channel(MAX_BEHIND);
    let (kill, killed) = oneshot::channel();
    let Guest { hello, session, trusted, network } = guest;
    let hello = Box::new(hello);
    let outlet = Arc::clone(&mouth.outlet);
    let (conn, held) = (outlet.conn, hello.held.len());
    let joined = Event::Connected { conn, hello, session, trusted, network, outgoing, kill };
    if app.driver.tell(joined).await.is_err() {
        return End::Refused(Refusal::Closing);
    }
    let (pings, budget) = (Pings::default(), Budget::new(Instant::now(), held));
    tokio::select! {
        end = listen(app, &outlet, ears, (&pings, &budget)) => end,
        end = speak(mouth, queue, (&pings, &budget), app.quic.clone()) => end,
        Ok(()) = killed => End::Gone,
        () = outlet.condemned() => End::Refused(Refusal::Garbled),
    }
}

/// From the node to the driver, and to other nodes.
async fn listen(
    app: &App,
    outlet: &Outlet,
    ears: &mut Ears,
    (pings, budget): (&Pings, &Budget),
) -> End {
    let conn = outlet.conn;
    let mut letters = Letters::default();
    loop {
        let heard = {
            let mut next = pin!(ears.next());
            match poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await {
                Poll::Ready(heard) => heard,
                Poll::Pending => {
                    letters.send();
                    next.await
                }
            }
        };
        let event = match heard {
            Ok(Heard::Message(parcel)) if is_frame(parcel.payload()) => {
                if let Err(why) = app.relay.forward(outlet, Way::Socket, parcel, &mut letters)
                    && why.is_dishonest()
                    && outlet.accuse()
                {
                    return End::Refused(Refusal::Garbled);
                }
                continue;
            }
            Ok(Heard::Message(parcel)) => match decode(parcel) {
                Ok(Some(message)) => {
                    // Not read any further until then: what a node sends too much of stays in its own socket.
                    let wait = budget.pay(Instant::now(), &message);
                    if !wait.is_zero() {
                        letters.send();
                        sleep(wait).await;
                    }
                    Event::Said { conn, message }
                }
                Ok(None) => continue,
                Err(end) => return end,
            },
            Ok(Heard::Pong(word)) => match pings.came_back(&word) {
                Some(took) => Event::RoundTrip { conn, took },
                None => continue,
            },
            Ok(Heard::Ping(word)) => {
                outlet.answer_ping(Parcel::new(Kind::Pong, &word));
                continue;
            }
            Ok(Heard::Close(words)) => return End::Left(words),
            Err(deaf) => return ended(deaf),
        };
        // Frames that came before it do not wait for the driver.
        letters.send();
        // A full driver makes its nodes wait; their own sockets then fill and slow them down.
        if app.driver.tell(event).await.is_err() {
            return End::Refused(Refusal::Closing);
        }
    }
}

/// To the node: all that the driver has ready, then frames of other nodes. In between, pings, and where frames may go
/// by QUIC.
async fn speak(
    mouth: &mut Mouth,
    mut queue: mpsc::Receiver<Outgoing>,
    (pings, budget): (&Pings, &Budget),
    mut quic: Offered,
) -> End {
    let outlet = Arc::clone(&mouth.outlet);
    let mut ready = Vec::new();
    let mut beat = interval(PING_EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let sent = tokio::select! {
            biased;
            taken = queue.recv_many(&mut ready, MAX_BEHIND) => {
                if taken == 0 {
                    // The driver dropped the connection without a word: it has stopped.
                    return End::Refused(Refusal::Closing);
                }
                let last = ready.iter().any(|outgoing| outgoing.last);
                let taken = ready.drain(..).map(|outgoing| (outgoing.weight, outgoing.messages));
                let (weights, messages): (Vec<_>, Vec<_>) = taken.unzip();
                let words = messages.into_iter().flatten().map(|message| {
                    budget.ask(Instant::now(), &message);
                    word(&outlet, &message)
                });
                let sent = mouth.send(words).await;
                drop(weights);
                if last {
                    return End::Left(Vec::new());
                }
                sent
            }
            _ = beat.tick() => match pings.next() {
                Some(word) => mouth.ping(&word).await,
                None => continue,
            },
            offer = quic.changed(), if outlet.node().is_some() => mouth.say(&ToNode::Quic(offer)).await,
            () = outlet.has_work() => mouth.pass_on().await,
        };
        if sent.is_err() {
            return End::Gone;
        }
    }
}

/// A message ready to be sent. On the way the outlet learns whose it is.
fn word(outlet: &Outlet, message: &ToNode) -> Parcel {
    if let ToNode::Welcome { node, .. } = message {
        outlet.welcomed(*node);
    }
    let parcel = Parcel::word(message);
    outlet.allow_unsent(parcel.left());
    parcel
}
