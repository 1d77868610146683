//! Addresses on TURN servers, for peers that reach this machine in no other way. Asked for when calls are about
//! to be made, given back when none are left. Whatever goes wrong here costs nothing but that address: links
//! then stay on the coordinator's relay.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;
use shoal_protocol::{Micros, Time};
use shoal_turn::{Access, By, News, Place, Turn};
use tokio::sync::mpsc;

use super::line::Line;
use super::ports::MAX_DATAGRAM;

/// Servers used at a time: a second one helps where the first is down, more cost every call some packets.
const MAX_SERVERS: usize = 2;
/// A server that failed is tried again with a call after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

pub(super) struct Relays {
    began: Instant,
    urls: Vec<String>,
    servers: Vec<Server>,
    /// Beside the system's authorities, these vouch for servers that are reached by TLS.
    roots: Vec<CertificateDer<'static>>,
    /// Names are looked up elsewhere; lines to what they mean come here.
    tell: mpsc::Sender<(String, io::Result<Line>)>,
    found: mpsc::Receiver<(String, io::Result<Line>)>,
    news: VecDeque<RelayNews>,
}

/// One that the coordinator named.
struct Server {
    url: String,
    place: Place,
    access: Access,
    is: Is,
    /// The address there that the radio knows of.
    told: Option<SocketAddr>,
    /// What was last said of it, so that it is said once.
    said: String,
}

enum Is {
    Idle,
    Named,
    Open(Line, Box<Turn>),
    Failed(Instant),
}

/// What became of an address.
pub(super) enum RelayNews {
    Ready { relayed: SocketAddr, local: SocketAddr },
    Gone(SocketAddr),
}

/// What happened that the task must deal with.
pub(super) enum Came {
    Named(String, io::Result<Line>),
    Datagram {
        at: usize,
        length: usize,
    },
    /// The line to this server is cut.
    Cut {
        at: usize,
        why: io::Error,
    },
}

/// What a peer said on one of them: to which of this machine's addresses there.
pub(super) struct Passed {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) at: std::ops::Range<usize>,
}

impl Relays {
    pub(super) fn new(roots: Vec<CertificateDer<'static>>) -> Relays {
        let (tell, found) = mpsc::channel(MAX_SERVERS);
        let (urls, servers, news) = Default::default();
        Relays { began: Instant::now(), urls, servers, roots, tell, found, news }
    }

    /// The servers that there are, by the coordinator's word: `turn:host:port name password`. Passwords may be
    /// new each time; an address that is there stays.
    pub(super) fn know(&mut self, urls: &[String]) {
        if urls == self.urls {
            return;
        }
        self.urls = urls.to_vec();
        let known = chosen(urls.iter().filter_map(|words| read(words)).collect());
        let is_known = |server: &Server| known.iter().any(|given| given.url == server.url);
        let gone = self.servers.iter().filter(|server| !is_known(server));
        self.news.extend(gone.filter_map(Server::relayed).map(RelayNews::Gone));
        self.servers.retain(is_known);
        for given in known {
            match self.servers.iter_mut().find(|server| server.url == given.url) {
                Some(server) => server.access = given.access,
                None => self.servers.push(given),
            }
        }
    }

    /// A call is about to be made.
    pub(super) fn want(&mut self) {
        for server in &mut self.servers {
            let is_due = match &server.is {
                Is::Idle => true,
                Is::Failed(at) => at.elapsed() >= AGAIN_AFTER,
                Is::Named | Is::Open(..) => false,
            };
            if is_due {
                server.is = Is::Named;
                let (tell, url) = (self.tell.clone(), server.url.clone());
                let line = Line::open(server.place.clone(), self.roots.clone());
                // The radio may have ended meanwhile.
                tokio::spawn(async move { tell.send((url, line.await)).await.ok() });
            }
        }
    }

    /// No call is left: addresses are given back.
    pub(super) async fn rest(&mut self) {
        let now = self.now();
        for server in &mut self.servers {
            if let Is::Open(_, turn) = &mut server.is {
                self.news.extend(turn.relayed().map(RelayNews::Gone));
                turn.release(now);
            }
        }
        self.flush().await;
        for server in &mut self.servers {
            if matches!(server.is, Is::Open(..)) {
                server.is = Is::Idle;
            }
        }
    }

    /// Ready when a name was looked up or a datagram came. Nothing is lost if nobody waits to the end.
    pub(super) async fn next(&mut self, into: &mut [u8; MAX_DATAGRAM]) -> Came {
        poll_fn(|context| {
            if let Poll::Ready(Some((url, opened))) = self.found.poll_recv(context) {
                return Poll::Ready(Came::Named(url, opened));
            }
            for (at, server) in self.servers.iter_mut().enumerate() {
                let Is::Open(line, _) = &mut server.is else { continue };
                let came = match (line.poll_write(context), line.poll_next(context, into)) {
                    (Err(why), _) | (Ok(()), Poll::Ready(Err(why))) => Came::Cut { at, why },
                    (Ok(()), Poll::Ready(Ok(length))) => Came::Datagram { at, length },
                    (Ok(()), Poll::Pending) => continue,
                };
                return Poll::Ready(came);
            }
            Poll::Pending
        })
        .await
    }

    /// What a peer says in what came, if it does.
    pub(super) async fn take(&mut self, came: Came, bytes: &[u8]) -> Option<Passed> {
        let now = self.now();
        let said = match came {
            Came::Named(url, opened) => {
                self.named(now, &url, opened);
                None
            }
            Came::Datagram { at, length } => match &mut self.servers.get_mut(at)?.is {
                Is::Open(_, turn) => {
                    let to = turn.relayed();
                    let said = turn.hear(now, &bytes[..length]);
                    said.and_then(|(from, at)| Some(Passed { from, to: to?, at }))
                }
                Is::Idle | Is::Named | Is::Failed(_) => None,
            },
            Came::Cut { at, why } => {
                let server = self.servers.get_mut(at)?;
                self.news.extend(server.told.take().map(RelayNews::Gone));
                server.fail(&why.to_string());
                None
            }
        };
        self.flush().await;
        said
    }

    fn named(&mut self, now: Time, url: &str, opened: io::Result<Line>) {
        let Some(server) = self.servers.iter_mut().find(|server| server.url == url) else { return };
        let mut seed = [0; 32];
        match (opened, getrandom::fill(&mut seed)) {
            (Ok(line), Ok(())) => {
                let turn = Turn::new(now, server.access.clone(), server.place.by, seed);
                server.is = Is::Open(line, Box::new(turn));
            }
            (Err(error), _) => server.fail(&error.to_string()),
            (Ok(_), Err(error)) => server.fail(&error.to_string()),
        }
    }

    /// To a peer from an address on a server. Whether it is one.
    pub(super) async fn send(&mut self, source: SocketAddr, to: SocketAddr, bytes: &[u8]) -> bool {
        let now = self.now();
        let turns = self.servers.iter_mut().filter_map(|server| match &mut server.is {
            Is::Open(_, turn) => Some(turn),
            Is::Idle | Is::Named | Is::Failed(_) => None,
        });
        let mut ours = turns.filter(|turn| turn.relayed() == Some(source));
        let Some(turn) = ours.next() else { return false };
        turn.send(now, to, bytes);
        self.flush().await;
        true
    }

    pub(super) async fn tick(&mut self) {
        let now = self.now();
        for server in &mut self.servers {
            if let Is::Open(_, turn) = &mut server.is {
                turn.tick(now);
            }
        }
        self.flush().await;
    }

    pub(super) fn wake(&self) -> Option<Instant> {
        let due = self.servers.iter().filter_map(|server| match &server.is {
            Is::Open(_, turn) => turn.next_timeout(),
            Is::Idle | Is::Named | Is::Failed(_) => None,
        });
        due.min().map(|due| self.began + Duration::from_micros(due.0))
    }

    pub(super) fn news(&mut self) -> Option<RelayNews> {
        self.news.pop_front()
    }

    /// Sends what is to be sent and hears what there is of news.
    async fn flush(&mut self) {
        for server in &mut self.servers {
            let Is::Open(line, turn) = &mut server.is else { continue };
            while let Some(bytes) = turn.poll() {
                line.send(&bytes).await;
            }
            // If that fails, reading does too.
            poll_fn(|context| Poll::Ready(line.poll_write(context).ok())).await;
            let mut fault = None;
            while let Some(news) = turn.news() {
                match (news, line.local()) {
                    (News::Ready(relayed), Ok(local)) => {
                        tracing::info!("TURN server {}: reached at {relayed}", server.url);
                        server.told = Some(relayed);
                        self.news.push_back(RelayNews::Ready { relayed, local });
                    }
                    (News::Ready(_), Err(_)) => {}
                    (News::Over(why), _) => fault = Some(why),
                }
            }
            if let Some(fault) = fault {
                self.news.extend(server.told.take().map(RelayNews::Gone));
                server.fail(&fault.to_string());
            }
        }
    }

    fn now(&self) -> Time {
        Time(0) + Micros(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

impl Server {
    fn relayed(&self) -> Option<SocketAddr> {
        match &self.is {
            Is::Open(_, turn) => turn.relayed(),
            Is::Idle | Is::Named | Is::Failed(_) => None,
        }
    }

    fn fail(&mut self, why: &str) {
        self.is = Is::Failed(Instant::now());
        if self.said != why {
            tracing::warn!("TURN server {}: {why}; links go on without it", self.url);
            self.said = why.into();
        }
    }
}

fn read(words: &str) -> Option<Server> {
    let mut words = words.split_whitespace();
    let (url, name, password) = (words.next()?, words.next()?, words.next()?);
    let place = shoal_turn::place(url, "turn")?;
    let access = Access { name: name.into(), password: password.into() };
    Some(Server { url: url.into(), place, access, is: Is::Idle, told: None, said: String::new() })
}

/// Those that are used: one by datagrams, which are faster, and one by a stream, for networks that let no UDP out.
fn chosen(known: Vec<Server>) -> Vec<Server> {
    let (fast, sure): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|server| server.place.by == By::Udp);
    let mut ordered: Vec<(usize, Server)> = fast.into_iter().enumerate().collect();
    ordered.extend(sure.into_iter().enumerate());
    ordered.sort_by_key(|(place, _)| *place);
    ordered.into_iter().map(|(_, server)| server).take(MAX_SERVERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_server_is_of_another_kind_if_there_is_one() {
        let used = |urls: &[&str]| -> Vec<String> {
            let given = urls.iter().filter_map(|url| read(&format!("{url} crab claw")));
            chosen(given.collect()).into_iter().map(|server| server.url).collect()
        };
        assert_eq!(used(&["turn:a", "turn:b", "turns:a", "turn:c"]), ["turn:a", "turns:a"]);
        assert_eq!(used(&["turn:a?transport=tcp", "turns:b", "turn:c"])[0], "turn:c");
        assert_eq!(used(&["turn:a", "turn:b", "turn:c"]), ["turn:a", "turn:b"]);
        assert_eq!(used(&["turns:a", "turn:b?transport=tcp"]).len(), 2);
        assert!(used(&["turns:a?transport=udp", "stun:b", "a"]).is_empty());
    }
}
