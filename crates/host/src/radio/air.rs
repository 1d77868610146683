//! The radio's task: all calls, the sockets they share, the clock that wakes them, and the ways to call this machine:
//! its own addresses, as it looks from outside, and by way of TURN servers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use shoal_node::direct::{Direct, DirectInput, DirectWay};
use shoal_protocol::Time;
use str0m::net::{Protocol, Receive, Transmit};
use str0m::{Candidate, Input};
use tokio::sync::mpsc;

use super::call::{Call, Out, candidates};
use super::outside::Outside;
use super::ports::{Came, MAX_DATAGRAM, Ports};
use super::relays::{self, Passed, RelayNews, Relays};
use super::streams::{self, Streams};
use super::words::{self, Words};
use super::{CrewPeer, Heard, MAX_CALLS, News, Order, Ordered};

/// Without calls there is nothing to wake up for.
const IDLE: Duration = Duration::from_secs(3600);

pub(super) struct Air {
    ports: Ports,
    pub(super) at: Vec<Candidate>,
    pub(super) calls: BTreeMap<CrewPeer, Call>,
    /// Which way each call takes.
    pub(super) ways: BTreeMap<CrewPeer, Direct>,
    /// What the peer said of a channel before it is wanted.
    pub(super) held: BTreeMap<CrewPeer, Vec<Words>>,
    /// None where they are not tried.
    pub(super) streams: Option<Streams>,
    /// Who may call.
    listening: BTreeSet<CrewPeer>,
    /// Which call to each peer this is, until it is hung up.
    pub(super) numbers: BTreeMap<CrewPeer, u64>,
    outside: Outside,
    relays: Relays,
    pub(super) tell: mpsc::Sender<Heard>,
    start: Instant,
}

/// The node is gone.
pub(super) struct Over;

impl Air {
    pub(super) fn new(
        ports: Ports,
        relays: Relays,
        streams: Option<Streams>,
        tell: mpsc::Sender<Heard>,
    ) -> Air {
        let at = candidates(ports.addresses());
        Air {
            ports,
            at,
            calls: BTreeMap::new(),
            ways: BTreeMap::new(),
            held: BTreeMap::new(),
            streams,
            listening: BTreeSet::new(),
            numbers: BTreeMap::new(),
            outside: Outside::new(),
            relays,
            tell,
            start: Instant::now(),
        }
    }

    pub(super) fn now(&self) -> Time {
        Time(self.start.elapsed().as_micros() as u64)
    }

    pub(super) async fn work(
        mut self,
        mut orders: mpsc::Receiver<Ordered>,
        waiting: Arc<AtomicUsize>,
    ) {
        let (mut bytes, mut passed) = ([0; MAX_DATAGRAM], [0; MAX_DATAGRAM]);
        loop {
            let ways = self.ways.values().filter_map(Direct::next_timeout);
            let ways = ways.map(|at| self.start + Duration::from_micros(at.0));
            let wake = self.calls.values().map(Call::wake).chain(self.relays.wake()).chain(ways);
            let wake = wake.min();
            let wake = wake.unwrap_or_else(|| Instant::now() + IDLE);
            let went = tokio::select! {
                order = orders.recv() => match order {
                    Some(ordered) => {
                        if matches!(ordered.order, Order::Send(..) | Order::Hear(..)) {
                            waiting.fetch_sub(1, Ordering::Relaxed);
                        }
                        self.order(ordered).await
                    }
                    None => Err(Over),
                },
                came = self.ports.receive(&mut bytes) => self.came(&came, &bytes).await,
                came = self.relays.next(&mut passed) => self.passed(came, &passed).await,
                () = self.outside.named() => {
                    self.ask_outside().await;
                    Ok(())
                }
                event = streams::next(&mut self.streams) => self.streamed(event).await,
                () = tokio::time::sleep_until(wake.into()) => self.tick().await,
            };
            let told = self.tell_relays().await;
            if went.is_err() || told.is_err() {
                return self.leave().await;
            }
        }
    }

    async fn order(&mut self, Ordered { call, order }: Ordered) -> Result<(), Over> {
        match order {
            Order::Dial(peer) => {
                self.numbers.insert(peer, call);
                self.dial(peer).await
            }
            Order::Listen(peer) => {
                self.ask_outside().await;
                self.forget(peer).await;
                self.numbers.insert(peer, call);
                self.ways.insert(peer, Direct::listen());
                if self.listening.len() < MAX_CALLS {
                    self.listening.insert(peer);
                }
                Ok(())
            }
            Order::Hear(peer, words) => match words::read(&words) {
                Some(words) => self.hear(peer, words).await,
                None => Ok(()),
            },
            Order::Hang(peer) => {
                self.listening.remove(&peer);
                self.forget(peer).await;
                self.numbers.remove(&peer);
                if self.numbers.is_empty() {
                    self.relays.rest().await;
                    self.streams.iter_mut().for_each(Streams::close);
                }
                Ok(())
            }
            Order::Send(peer, frame) => {
                // It was ordered before the stream was known.
                let Some(frame) = self.by_stream(peer, call, frame) else { return Ok(()) };
                let Some(call) = self.calls.get_mut(&peer) else { return Ok(()) };
                call.send(frame);
                self.advance(peer).await
            }
            Order::Servers(urls) => {
                self.relays.know(&urls);
                let stun = urls.into_iter().filter(|url| url.starts_with("stun:"));
                self.outside.look_up(stun.collect());
                Ok(())
            }
        }
    }

    async fn dial(&mut self, peer: CrewPeer) -> Result<(), Over> {
        self.ask_outside().await;
        self.forget(peer).await;
        self.ways.insert(peer, Direct::dial());
        let streams = self.streams.as_mut().and_then(|streams| streams.begin(peer, true));
        match Call::dial(Instant::now(), &self.at, streams.as_ref()) {
            Some((call, words)) if self.calls.len() < MAX_CALLS => {
                self.calls.insert(peer, call);
                self.tell(peer, News::Words(words)).await?;
                self.advance(peer).await
            }
            Some(_) | None => self.change(peer, DirectInput::Lost(DirectWay::Channel), None).await,
        }
    }

    async fn hear(&mut self, peer: CrewPeer, words: Words) -> Result<(), Over> {
        match words {
            Words::Offer(offer, streams) => {
                if !self.listening.contains(&peer) || self.held.contains_key(&peer) {
                    return Ok(());
                }
                let streams = streams.filter(|_| self.streams.is_some());
                let input = DirectInput::Offered { streams: streams.is_some() };
                self.held.insert(peer, vec![Words::Offer(offer, streams)]);
                self.change(peer, input, None).await?;
            }
            Words::Streams(offer) => {
                let Some(streams) = &mut self.streams else { return Ok(()) };
                streams.offered(peer, offer);
                self.change(peer, DirectInput::Streams, None).await?;
            }
            Words::Answer(answer) => {
                self.held.insert(peer, vec![Words::Answer(answer)]);
                self.change(peer, DirectInput::Answered, None).await?;
            }
            Words::Candidate(candidate) => {
                if self.ways.get(&peer).is_some_and(Direct::holds_offer) {
                    self.hold(peer, candidate);
                } else if let Some(call) = self.calls.get_mut(&peer) {
                    call.candidate(candidate);
                }
            }
        }
        self.advance(peer).await
    }

    async fn came(&mut self, came: &Came, bytes: &[u8; MAX_DATAGRAM]) -> Result<(), Over> {
        let now = Instant::now();
        if let Some(seen) = self.outside.answer(&bytes[..came.length]) {
            return self.found_outside(seen, came.to).await;
        }
        self.receive(now, (came.from, came.to), &bytes[..came.length]).await
    }

    pub(super) async fn receive(
        &mut self,
        now: Instant,
        (source, destination): (SocketAddr, SocketAddr),
        bytes: &[u8],
    ) -> Result<(), Over> {
        let datagram = Receive::new(Protocol::Udp, source, destination, bytes);
        let Ok(datagram) = datagram else { return Ok(()) };
        let input = Input::Receive(now, datagram);
        let whose = self.calls.iter().find(|(_, call)| call.is_for(&input)).map(|(peer, _)| *peer);
        let (Some(peer), Input::Receive(_, datagram)) = (whose, input) else { return Ok(()) };
        let mut out = Out::default();
        if let Some(call) = self.calls.get_mut(&peer) {
            call.receive(now, datagram, &mut out);
        }
        self.done(peer, out).await
    }

    async fn tick(&mut self) -> Result<(), Over> {
        self.relays.tick().await;
        let time = self.now();
        let is_due = |way: &Direct| way.next_timeout().is_some_and(|at| at <= time);
        let due: Vec<CrewPeer> =
            self.ways.iter().filter(|(_, way)| is_due(way)).map(|(peer, _)| *peer).collect();
        for peer in due {
            self.change(peer, DirectInput::Tick, None).await?;
            self.advance(peer).await?;
        }
        let now = Instant::now();
        let due = self.calls.iter().filter(|(_, call)| call.wake() <= now);
        let due: Vec<CrewPeer> = due.map(|(peer, _)| *peer).collect();
        for peer in due {
            self.advance(peer).await?;
        }
        Ok(())
    }

    /// Lets a call do what follows from a change.
    pub(super) async fn advance(&mut self, peer: CrewPeer) -> Result<(), Over> {
        let mut out = Out::default();
        if let Some(call) = self.calls.get_mut(&peer) {
            call.tick(Instant::now(), &mut out);
        }
        self.done(peer, out).await
    }

    async fn done(&mut self, peer: CrewPeer, out: Out) -> Result<(), Over> {
        self.transmit(peer, out.datagrams).await;
        if out.is_up {
            self.change(peer, DirectInput::Opened, None).await?;
        }
        for frame in out.frames {
            self.tell(peer, News::Frame(frame)).await?;
        }
        if out.is_over && self.calls.contains_key(&peer) {
            self.end(peer).await;
            self.change(peer, DirectInput::Lost(DirectWay::Channel), None).await?;
        }
        Ok(())
    }

    /// Calls are about to be made: whoever can tell of other ways is asked.
    async fn ask_outside(&mut self) {
        self.relays.want();
        if let Some((bytes, servers)) = self.outside.ask(Instant::now()) {
            for server in servers {
                self.ports.send_from_all(&bytes, *server).await;
            }
        }
    }

    /// A server sees this machine there.
    async fn found_outside(&mut self, seen: SocketAddr, base: SocketAddr) -> Result<(), Over> {
        let is_known = self.ports.addresses().any(|address| address == seen);
        if is_known || !self.outside.is_news(seen) {
            return Ok(());
        }
        let Ok(candidate) = Candidate::server_reflexive(seen, base, "udp") else { return Ok(()) };
        self.is_also_at(candidate).await
    }

    /// Addresses on TURN servers that came and went.
    async fn tell_relays(&mut self) -> Result<(), Over> {
        while let Some(news) = self.relays.news() {
            match news {
                RelayNews::Ready { relayed, local } => {
                    let Ok(candidate) = Candidate::relayed(relayed, local, "udp") else { continue };
                    self.is_also_at(candidate).await?;
                }
                RelayNews::Gone(relayed) => self.at.retain(|one| one.addr() != relayed),
            }
        }
        Ok(())
    }

    /// Another way to call this machine: peers are told, those that are being called too.
    async fn is_also_at(&mut self, candidate: Candidate) -> Result<(), Over> {
        let words = words::candidate(&candidate);
        let peers: Vec<CrewPeer> = self.calls.keys().copied().collect();
        for peer in peers {
            if let Some(call) = self.calls.get_mut(&peer) {
                call.is_also_at(&candidate);
            }
            self.tell(peer, News::Words(words.clone())).await?;
            self.advance(peer).await?;
        }
        self.at.push(candidate);
        Ok(())
    }

    /// What came by way of a TURN server.
    async fn passed(&mut self, came: relays::Came, bytes: &[u8]) -> Result<(), Over> {
        let Some(Passed { from, to, at }) = self.relays.take(came, bytes).await else {
            return Ok(());
        };
        self.receive(Instant::now(), (from, to), &bytes[at]).await
    }

    /// What the peer can take now leaves; the rest waits for its turn.
    async fn transmit(&mut self, peer: CrewPeer, datagrams: Vec<Transmit>) {
        let Some(call) = self.calls.get_mut(&peer) else { return };
        datagrams.into_iter().for_each(|datagram| call.pace.add(datagram));
        let now = Instant::now();
        while let Some(datagram) = call.pace.next(now) {
            let (source, to) = (datagram.source, datagram.destination);
            if !self.relays.send(source, to, &datagram.contents).await {
                self.ports.send(&datagram).await;
            }
        }
    }

    pub(super) async fn end(&mut self, peer: CrewPeer) {
        if let Some(call) = self.calls.remove(&peer) {
            let mut out = Out::default();
            call.end(&mut out);
            for datagram in &out.datagrams {
                let (source, to) = (datagram.source, datagram.destination);
                if !self.relays.send(source, to, &datagram.contents).await {
                    self.ports.send(datagram).await;
                }
            }
        }
    }

    async fn leave(mut self) {
        while let Some((peer, _)) = self.calls.first_key_value() {
            self.end(*peer).await;
        }
        self.relays.rest().await;
    }

    pub(super) async fn tell(&self, peer: CrewPeer, news: News) -> Result<(), Over> {
        let Some(call) = self.numbers.get(&peer).copied() else { return Ok(()) };
        self.tell.send(Heard { peer, call, news }).await.map_err(|_| Over)
    }
}
