//! What is done about the way of a call: `shoal_node::direct` decides, the radio's task does it.

use std::collections::VecDeque;
use std::time::Instant;

use shoal_node::direct::{DirectDo, DirectInput, DirectWay};
use str0m::Candidate;

use super::air::{Air, Over};
use super::call::Call;
use super::streams::{Event, Line};
use super::words::{self, Words};
use super::{CrewPeer, MAX_CALLS, News};

/// What a peer says of a channel while streams are tried: an offer and its candidates are some dozens.
const MAX_HELD: usize = 64;

impl Air {
    /// One change to the way of a call, and all that follows from it. `line` is the stream it is about.
    pub(super) async fn change(
        &mut self,
        peer: CrewPeer,
        input: DirectInput,
        mut line: Option<Line>,
    ) -> Result<(), Over> {
        let (mut inputs, mut todo) = (VecDeque::from([input]), VecDeque::new());
        while let Some(input) = inputs.pop_front() {
            let now = self.now();
            let Some(way) = self.ways.get_mut(&peer) else { return Ok(()) };
            todo.extend(way.handle(now, input));
            while let Some(one) = todo.pop_front() {
                if !self.perform(peer, one, &mut line).await? {
                    let is_stream = one == DirectDo::UseStream;
                    let lost = if is_stream { DirectWay::Stream } else { DirectWay::Channel };
                    inputs.push_back(DirectInput::Lost(lost));
                }
            }
        }
        Ok(())
    }

    /// Whether it could be done.
    async fn perform(
        &mut self,
        peer: CrewPeer,
        todo: DirectDo,
        line: &mut Option<Line>,
    ) -> Result<bool, Over> {
        match todo {
            DirectDo::TryStreams => self.try_streams(peer).await?,
            DirectDo::Answer => return self.answer(peer).await,
            DirectDo::Accept => return Ok(self.accept(peer)),
            DirectDo::UseStream => return Ok(self.use_stream(peer, line.take())),
            DirectDo::DropStream => drop(line.take()),
            DirectDo::EndStreams => self.streams.iter_mut().for_each(|all| all.stop(peer)),
            DirectDo::EndChannel => {
                self.held.remove(&peer);
                self.end(peer).await;
            }
            DirectDo::Up(way) => {
                let ((crew, node), way) = (peer, format!("{way:?}").to_lowercase());
                tracing::debug!("crew {}: node {} directly by {way}", crew.0, node.0);
                self.tell(peer, News::Up).await?;
            }
            DirectDo::Down => {
                self.streams.iter_mut().for_each(|all| all.end(peer));
                self.tell(peer, News::Down).await?;
            }
        }
        Ok(true)
    }

    /// News of a connection or of a stream; of an earlier call nothing counts.
    pub(super) async fn streamed(&mut self, event: Event) -> Result<(), Over> {
        match event {
            Event::Met { peer, call, line } if self.numbers.get(&peer) == Some(&call) => {
                let input = if line.dials { DirectInput::Proven } else { DirectInput::Named };
                self.change(peer, input, Some(line)).await
            }
            Event::Ended { peer, call } => {
                match self.streams.as_ref().is_some_and(|all| all.is_used(peer, call)) {
                    true => self.change(peer, DirectInput::Lost(DirectWay::Stream), None).await,
                    false => Ok(()),
                }
            }
            Event::Met { .. } => Ok(()),
        }
    }

    /// What was before with this peer is over.
    pub(super) async fn forget(&mut self, peer: CrewPeer) {
        self.ways.remove(&peer);
        self.held.remove(&peer);
        self.streams.iter_mut().for_each(|all| all.end(peer));
        self.end(peer).await;
    }

    pub(super) fn hold(&mut self, peer: CrewPeer, candidate: Candidate) {
        if let Some(held) = self.held.get_mut(&peer)
            && held.len() < MAX_HELD
        {
            held.push(Words::Candidate(candidate));
        }
    }

    /// Gives the frame back if the call has no stream.
    pub(super) fn by_stream(&self, peer: CrewPeer, call: u64, frame: Vec<u8>) -> Option<Vec<u8>> {
        match &self.streams {
            Some(streams) => streams.pass(peer, call, frame),
            None => Some(frame),
        }
    }

    async fn try_streams(&mut self, peer: CrewPeer) -> Result<(), Over> {
        let call = self.numbers.get(&peer).copied().unwrap_or_default();
        let Some(streams) = &mut self.streams else { return Ok(()) };
        let offer = match self.held.get_mut(&peer).and_then(|held| held.first_mut()) {
            Some(Words::Offer(_, theirs)) => {
                let ours = streams.begin(peer, false);
                theirs.take().into_iter().for_each(|theirs| streams.offered(peer, theirs));
                ours
            }
            // Who dials has said its own already.
            Some(_) | None => None,
        };
        streams.try_all(peer, call);
        match offer {
            Some(offer) => self.tell(peer, News::Words(words::streams(&offer))).await,
            None => Ok(()),
        }
    }

    /// Answers the offer of a channel that came before.
    async fn answer(&mut self, peer: CrewPeer) -> Result<bool, Over> {
        let mut held = self.held.get_mut(&peer).map(std::mem::take).into_iter().flatten();
        let Some(Words::Offer(offer, _)) = held.next() else { return Ok(false) };
        match Call::answer(Instant::now(), &self.at, offer) {
            Ok((mut call, words)) if self.calls.len() < MAX_CALLS => {
                for words in held {
                    if let Words::Candidate(candidate) = words {
                        call.candidate(candidate);
                    }
                }
                self.calls.insert(peer, call);
                self.tell(peer, News::Words(words)).await?;
                Ok(true)
            }
            Ok(_) | Err(_) => Ok(false),
        }
    }

    /// Takes the answer that came just now.
    fn accept(&mut self, peer: CrewPeer) -> bool {
        let answer = self.held.remove(&peer).and_then(|held| held.into_iter().next());
        let (Some(Words::Answer(answer)), Some(call)) = (answer, self.calls.get_mut(&peer)) else {
            return false;
        };
        call.answered(answer).is_ok()
    }

    fn use_stream(&mut self, peer: CrewPeer, line: Option<Line>) -> bool {
        let Some(call) = self.numbers.get(&peer).copied() else { return false };
        let (Some(streams), Some(line)) = (&mut self.streams, line) else { return false };
        streams.take((peer, call), line, &self.tell).is_ok()
    }
}
