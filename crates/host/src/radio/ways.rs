//! Ways to call this machine beside its own addresses: as it looks from outside, and by way of TURN servers.

use std::net::SocketAddr;
use std::time::Instant;

use str0m::Candidate;

use super::air::{Air, Over};
use super::relays::{Came, Passed, RelayNews};
use super::{News, Peer, words};

impl Air {
    /// Calls are about to be made: whoever can tell of other ways is asked.
    pub(super) async fn ask_outside(&mut self) {
        self.relays.want();
        if let Some((bytes, servers)) = self.outside.ask(Instant::now()) {
            for server in servers {
                self.ports.send_from_all(&bytes, *server).await;
            }
        }
    }

    /// A server sees this machine there.
    pub(super) async fn found_outside(
        &mut self,
        seen: SocketAddr,
        base: SocketAddr,
    ) -> Result<(), Over> {
        let is_known = self.ports.addresses().any(|address| address == seen);
        if is_known || !self.outside.is_news(seen) {
            return Ok(());
        }
        let Ok(candidate) = Candidate::server_reflexive(seen, base, "udp") else { return Ok(()) };
        self.is_also_at(candidate).await
    }

    /// Addresses on TURN servers that came and went.
    pub(super) async fn tell_relays(&mut self) -> Result<(), Over> {
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
        let peers: Vec<Peer> = self.calls.keys().copied().collect();
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
    pub(super) async fn passed(&mut self, came: Came, bytes: &[u8]) -> Result<(), Over> {
        let Some(Passed { from, to, at }) = self.relays.take(came, bytes).await else {
            return Ok(());
        };
        self.receive(Instant::now(), (from, to), &bytes[at]).await
    }
}
