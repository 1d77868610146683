//! One call to one peer: str0m's state machine and what waits for its channel. No socket here; what is to be
//! sent is collected in [`Out`].

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use shoal_protocol::limit::MAX_LINK_FRAME;
use str0m::change::{SdpAnswer, SdpOffer, SdpPendingOffer};
use str0m::channel::ChannelId;
use str0m::net::{Receive, Transmit};
use str0m::{Candidate, Event, Input, Output, Rtc, RtcConfig, RtcError};

use super::pace::Pace;
use super::window::Window;
use super::{MAX_WAITING_BYTES, streams, words};

/// The channel's name, the same in browsers.
const LABEL: &str = "shoal";
/// Bytes inside SCTP that the peer has not acknowledged. With less than twice the largest message
/// it stalls for ever; 1 MiB is 20 MB/s at a round trip of 50 ms.
const IN_FLIGHT: usize = 1 << 20;
/// As browsers have it: passes every network that passes IPv6.
const DATAGRAM_BYTES: RangeInclusive<usize> = 1200..=1232;
/// A peer is asked whether it is there this often...
const ASK_EVERY: Duration = Duration::from_secs(1);
/// ... and is gone after silence of four questions.
const SILENCE: Duration = Duration::from_secs(4);
/// A call that is not answered in this time is given up: the relay has the link meanwhile.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// What a call wants done.
#[derive(Default)]
pub(super) struct Out {
    pub(super) datagrams: Vec<Transmit>,
    pub(super) frames: Vec<Vec<u8>>,
    pub(super) is_up: bool,
    pub(super) is_over: bool,
}

pub(super) struct Call {
    rtc: Rtc,
    offered: Option<SdpPendingOffer>,
    channel: Option<ChannelId>,
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    /// How much the channel is given.
    window: Window,
    /// What leaves.
    pub(super) pace: Pace,
    /// When str0m wants to be woken.
    wake: Instant,
    began: Instant,
    heard: Instant,
}

impl Call {
    /// Ours is the offer: also the words of it.
    pub(super) fn dial(
        now: Instant,
        at: &[Candidate],
        streams: Option<&streams::Offer>,
    ) -> Option<(Call, Vec<u8>)> {
        let mut call = Call::new(now, at);
        let mut change = call.rtc.sdp_api();
        change.add_channel(LABEL.into());
        let (offer, pending) = change.apply()?;
        call.offered = Some(pending);
        Some((call, words::offer(&offer, streams)))
    }

    /// Theirs is the offer: also the words of the answer.
    pub(super) fn answer(
        now: Instant,
        at: &[Candidate],
        offer: SdpOffer,
    ) -> Result<(Call, Vec<u8>), RtcError> {
        let mut call = Call::new(now, at);
        let answer = call.rtc.sdp_api().accept_offer(offer)?;
        Ok((call, words::answer(&answer)))
    }

    fn new(now: Instant, at: &[Candidate]) -> Call {
        let config = RtcConfig::new().clear_codecs().set_sctp_max_buffered_amount(IN_FLIGHT);
        let mut config = config.set_mtu(DATAGRAM_BYTES);
        config.set_max_stun_rto(ASK_EVERY);
        let mut rtc = config.build(now);
        for candidate in at {
            rtc.add_local_candidate(candidate.clone());
        }
        let (waiting, waiting_bytes) = (VecDeque::new(), 0);
        let (offered, channel) = (None, None);
        let (window, pace) = (Window::new(now), Pace::new(now));
        let (wake, began, heard) = (now, now, now);
        Call { rtc, offered, channel, waiting, waiting_bytes, window, pace, wake, began, heard }
    }

    pub(super) fn answered(&mut self, answer: SdpAnswer) -> Result<(), RtcError> {
        // An answer to nothing is an old one.
        let Some(offered) = self.offered.take() else { return Ok(()) };
        self.rtc.sdp_api().accept_answer(offered, answer)
    }

    pub(super) fn candidate(&mut self, candidate: Candidate) {
        self.rtc.add_remote_candidate(candidate);
    }

    /// This side was found to have another address.
    pub(super) fn is_also_at(&mut self, candidate: &Candidate) {
        self.rtc.add_local_candidate(candidate.clone());
    }

    /// A frame for the peer; dropped if too many wait.
    pub(super) fn send(&mut self, frame: Vec<u8>) {
        let fits = self.waiting_bytes + frame.len() <= MAX_WAITING_BYTES;
        if fits && frame.len() <= MAX_LINK_FRAME {
            self.waiting_bytes += frame.len();
            self.waiting.push_back(frame);
        }
    }

    pub(super) fn is_for(&self, input: &Input<'_>) -> bool {
        self.rtc.accepts(input)
    }

    pub(super) fn receive(&mut self, now: Instant, datagram: Receive<'_>, out: &mut Out) {
        self.heard = now;
        let taken = self.rtc.handle_input(Input::Receive(now, datagram));
        self.follow(now, taken, out);
    }

    pub(super) fn tick(&mut self, now: Instant, out: &mut Out) {
        let taken = self.rtc.handle_input(Input::Timeout(now));
        let patience = if self.channel.is_some() {
            now < self.heard + SILENCE
        } else {
            now < self.began + ANSWER_WITHIN
        };
        out.is_over |= !patience;
        self.follow(now, taken, out);
    }

    /// Says goodbye, so that the peer need not wait for silence.
    pub(super) fn end(mut self, out: &mut Out) {
        if self.rtc.close().is_ok() {
            let _ = self.drain(out);
        }
    }

    pub(super) fn wake(&self) -> Instant {
        let patience =
            if self.channel.is_some() { self.heard + SILENCE } else { self.began + ANSWER_WITHIN };
        let wake = self.wake.min(patience);
        self.pace.due().map_or(wake, |due| due.min(wake))
    }

    /// All that follows from one change, then from as many waiting frames as the channel takes.
    fn follow(&mut self, now: Instant, taken: Result<(), RtcError>, out: &mut Out) {
        let mut went = taken.and_then(|()| self.drain(out));
        while went.is_ok() {
            match self.write(now) {
                Ok(true) => {
                    let taken = self.rtc.handle_input(Input::Timeout(now));
                    went = taken.and_then(|()| self.drain(out));
                }
                Ok(false) => break,
                Err(error) => went = Err(error),
            }
        }
        out.is_over |= went.is_err() || !self.rtc.is_alive();
        if let Some(mut channel) = self.channel.and_then(|id| self.rtc.channel(id)) {
            self.window.under_way(now, channel.buffered_amount());
            self.pace.arrived(now, self.window.arrived());
        }
    }

    /// Whether the channel took a frame.
    fn write(&mut self, now: Instant) -> Result<bool, RtcError> {
        let (Some(id), Some(frame)) = (self.channel, self.waiting.front()) else {
            return Ok(false);
        };
        let Some(mut channel) = self.rtc.channel(id) else { return Ok(false) };
        let under_way = channel.buffered_amount();
        if !self.window.is_open(under_way) || !channel.write(true, frame)? {
            return Ok(false);
        }
        self.window.wrote(now, frame.len());
        self.waiting_bytes -= frame.len();
        self.waiting.pop_front();
        Ok(true)
    }

    fn drain(&mut self, out: &mut Out) -> Result<(), RtcError> {
        loop {
            match self.rtc.poll_output()? {
                Output::Timeout(at) => {
                    self.wake = at;
                    return Ok(());
                }
                Output::Transmit(datagram) => out.datagrams.push(datagram),
                Output::Event(event) => self.event(event, out),
            }
        }
    }

    fn event(&mut self, event: Event, out: &mut Out) {
        if let Event::ChannelOpen(id, label) = &event
            && label == LABEL
            && self.channel.is_none()
        {
            self.channel = Some(*id);
            out.is_up = true;
        } else if let Event::ChannelClose(id) = &event {
            out.is_over |= self.channel == Some(*id);
        } else if let Event::ChannelData(data) = event {
            if self.channel == Some(data.id) && data.binary {
                out.frames.push(data.data);
            }
        } else if let Event::Closed = event {
            out.is_over = true;
        }
    }
}

/// How this machine can be called.
pub(super) fn candidates(addresses: impl Iterator<Item = SocketAddr>) -> Vec<Candidate> {
    addresses.filter_map(|address| Candidate::host(address, "udp").ok()).collect()
}
