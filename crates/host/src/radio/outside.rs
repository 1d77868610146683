//! How this machine looks from outside: asked of STUN servers when calls are about to be made.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use shoal_turn::{By, Id as Question, Place};
use tokio::sync::mpsc;

/// A home router forgets an address that is not used for this long.
const ASK_AGAIN: Duration = Duration::from_secs(20);
/// Servers asked: more say the same.
const MAX_SERVERS: usize = 4;
/// Addresses this machine may have from outside, whatever strange servers say.
const MAX_FOUND: usize = 4;

pub(super) struct Outside {
    urls: Vec<String>,
    servers: Vec<SocketAddr>,
    /// Only who sees the question can answer it; without random numbers nobody is asked.
    question: Option<Question>,
    asked: Option<Instant>,
    found: Vec<SocketAddr>,
    /// Names are looked up elsewhere; what they mean comes here.
    tell: mpsc::Sender<Vec<SocketAddr>>,
    names: mpsc::Receiver<Vec<SocketAddr>>,
}

impl Outside {
    pub(super) fn new() -> Outside {
        let mut question = Question::default();
        let question = getrandom::fill(&mut question).is_ok().then_some(question);
        let (tell, names) = mpsc::channel(1);
        let (urls, servers, found) = Default::default();
        Outside { urls, servers, question, asked: None, found, tell, names }
    }

    /// The servers to ask, by the coordinator's word. [`Outside::named`] is ready when they are found.
    pub(super) fn look_up(&mut self, urls: Vec<String>) {
        if urls == self.urls {
            return;
        }
        let places = urls.iter().filter_map(|url| shoal_turn::place(url, "stun"));
        let places: Vec<Place> = places.filter(|place| place.by == By::Udp).collect();
        self.urls = urls;
        let tell = self.tell.clone();
        tokio::spawn(async move {
            let mut servers = Vec::new();
            for Place { host, port, .. } in places.into_iter().take(MAX_SERVERS) {
                let found = tokio::net::lookup_host((host, port)).await;
                servers.extend(found.into_iter().flatten().take(2));
            }
            // The radio may have ended meanwhile.
            let _ = tell.send(servers).await;
        });
    }

    pub(super) async fn named(&mut self) {
        if let Some(servers) = self.names.recv().await {
            (self.servers, self.asked) = (servers, None);
        }
    }

    /// What to send, and to whom, if it is time.
    pub(super) fn ask(&mut self, now: Instant) -> Option<(Vec<u8>, &[SocketAddr])> {
        let is_fresh = self.asked.is_some_and(|asked| now < asked + ASK_AGAIN);
        if self.servers.is_empty() || is_fresh {
            return None;
        }
        let bytes = shoal_turn::ask(self.question.as_ref()?);
        self.asked = Some(now);
        Some((bytes, &self.servers))
    }

    /// The address in a datagram that answers.
    pub(super) fn answer(&self, datagram: &[u8]) -> Option<SocketAddr> {
        shoal_turn::answer(datagram, self.question.as_ref()?)
    }

    /// Whether nobody said so before; from now on it was said.
    pub(super) fn is_news(&mut self, seen: SocketAddr) -> bool {
        let is_news = !self.found.contains(&seen) && self.found.len() < MAX_FOUND;
        if is_news {
            self.found.push(seen);
        }
        is_news
    }
}
