//! Which direct way two nodes take: a stream where both are native and one reaches the other, else a data channel. Pure;
//! its shell is the native node's radio. Tabs have only channels, and say nothing of streams.
//!
//! Who dials offers both. Who listens tries streams first and answers the offer of a channel when none came in time.
//! Who dials names the stream that is used, as long as the offer is not answered: so both take the same way, whatever
//! crosses on the road between them. A way that is lost is over; the ladder dials again.

use alloc::vec;
use alloc::vec::Vec;

use shoal_protocol::{Micros, Time};

/// How long streams are tried before a channel is. Where one comes about it takes a few round trips; where a firewall
/// swallows it the relay carries the link meanwhile.
pub const TRY_STREAMS: Micros = Micros::from_millis(1_200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectWay {
    /// A TCP connection with a seal of its own.
    Stream,
    /// A WebRTC data channel.
    Channel,
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectInput {
    /// At who listens: an offer came, of streams too or of a channel alone.
    Offered {
        streams: bool,
    },
    /// At who dials: the peer tries streams too.
    Streams,
    /// At who dials: the peer answered the offer of a channel.
    Answered,
    /// At who dials: a stream to the peer stands.
    Proven,
    /// At who listens: the peer uses this stream.
    Named,
    /// The channel is open.
    Opened,
    /// The way is gone, or did not come about.
    Lost(DirectWay),
    Tick,
}

/// One thing to do, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectDo {
    /// Connect to the peer's addresses and take its connections; who listens also says its own addresses.
    TryStreams,
    /// Answer the offer of a channel.
    Answer,
    /// Take the peer's answer.
    Accept,
    /// Use the stream of this input; who dials says so on it.
    UseStream,
    /// Close the stream of this input.
    DropStream,
    /// Stop trying streams.
    EndStreams,
    /// Forget the channel.
    EndChannel,
    Up(DirectWay),
    Down,
}

/// One call's way.
#[derive(Debug)]
pub struct Direct {
    dials: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Who dials has offered; who listens has heard nothing yet.
    Calling,
    /// Streams are tried; who listens answers the offer then.
    Trying {
        until: Option<Time>,
    },
    /// A channel is being made. Who listens may still be told of a stream that crossed its answer.
    Making,
    On(DirectWay),
    Over,
}

impl Direct {
    pub fn dial() -> Direct {
        Direct { dials: true, state: State::Calling }
    }

    pub fn listen() -> Direct {
        Direct { dials: false, state: State::Calling }
    }

    pub fn handle(&mut self, now: Time, input: DirectInput) -> Vec<DirectDo> {
        match input {
            DirectInput::Offered { streams } => self.offered(now, streams),
            DirectInput::Streams if self.dials && self.state == State::Calling => {
                self.state = State::Trying { until: None };
                vec![DirectDo::TryStreams]
            }
            DirectInput::Answered if self.dials && self.is_before_channel() => {
                self.state = State::Making;
                vec![DirectDo::EndStreams, DirectDo::Accept]
            }
            DirectInput::Proven if self.dials && self.is_before_channel() => self.use_stream(),
            DirectInput::Named
                if !self.dials && (self.is_before_channel() || self.state == State::Making) =>
            {
                self.use_stream()
            }
            DirectInput::Proven | DirectInput::Named => vec![DirectDo::DropStream],
            DirectInput::Opened if self.state == State::Making => {
                self.state = State::On(DirectWay::Channel);
                vec![DirectDo::EndStreams, DirectDo::Up(DirectWay::Channel)]
            }
            DirectInput::Lost(way) => self.lost(way),
            DirectInput::Tick if self.next_timeout().is_some_and(|until| until <= now) => {
                self.state = State::Making;
                vec![DirectDo::Answer]
            }
            // Too late, or too early. An answer may have crossed the stream that was named, which the peer takes.
            DirectInput::Streams
            | DirectInput::Answered
            | DirectInput::Opened
            | DirectInput::Tick => Vec::new(),
        }
    }

    /// When to say `Tick`.
    pub fn next_timeout(&self) -> Option<Time> {
        match self.state {
            State::Trying { until } => until,
            State::Calling | State::Making | State::On(_) | State::Over => None,
        }
    }

    /// Whether what the peer says of its channel waits for the answer.
    pub fn holds_offer(&self) -> bool {
        matches!(self.state, State::Trying { until: Some(_) })
    }

    fn is_before_channel(&self) -> bool {
        matches!(self.state, State::Calling | State::Trying { .. })
    }

    fn offered(&mut self, now: Time, streams: bool) -> Vec<DirectDo> {
        if self.dials || self.state != State::Calling {
            return Vec::new();
        }
        if streams {
            self.state = State::Trying { until: Some(now + TRY_STREAMS) };
            return vec![DirectDo::TryStreams];
        }
        self.state = State::Making;
        vec![DirectDo::Answer]
    }

    fn use_stream(&mut self) -> Vec<DirectDo> {
        self.state = State::On(DirectWay::Stream);
        let way = DirectDo::Up(DirectWay::Stream);
        // What comes on it comes after the news of it.
        vec![DirectDo::EndStreams, DirectDo::EndChannel, way, DirectDo::UseStream]
    }

    fn lost(&mut self, way: DirectWay) -> Vec<DirectDo> {
        let ends = match self.state {
            State::On(used) => used == way,
            // The peer's offer or answer failed here: streams alone may still come, but then nobody would wait for
            // an end of it.
            State::Calling | State::Trying { .. } | State::Making => way == DirectWay::Channel,
            State::Over => false,
        };
        if !ends {
            return Vec::new();
        }
        self.state = State::Over;
        vec![DirectDo::EndStreams, DirectDo::EndChannel, DirectDo::Down]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DirectDo::UseStream;
    use DirectDo::{Accept, Answer, Down, DropStream, EndChannel, EndStreams, TryStreams, Up};
    use DirectInput::{Answered, Lost, Named, Offered, Opened, Proven, Streams, Tick};
    use DirectWay::{Channel, Stream};

    const START: Time = Time(0);
    const LATER: Time = Time(TRY_STREAMS.0);

    #[test]
    fn two_native_nodes_that_reach_each_other_take_a_stream() {
        let (mut dials, mut listens) = (Direct::dial(), Direct::listen());
        assert_eq!(listens.handle(START, Offered { streams: true }), [TryStreams]);
        assert!(listens.holds_offer());
        assert_eq!(dials.handle(START, Streams), [TryStreams]);
        let used = [EndStreams, EndChannel, Up(Stream), UseStream];
        assert_eq!(dials.handle(START, Proven), used);
        assert_eq!(dials.handle(START, Proven), [DropStream], "one is enough");
        assert_eq!(listens.handle(START, Named), used);
        assert_eq!(listens.handle(LATER, Tick), [], "nothing is left to answer");
        assert_eq!(listens.handle(LATER, Lost(Stream)), [EndStreams, EndChannel, Down]);
        assert_eq!(dials.handle(LATER, Lost(Stream)), [EndStreams, EndChannel, Down]);
        assert_eq!(dials.handle(LATER, Lost(Stream)), [], "once");
    }

    #[test]
    fn where_no_stream_comes_about_a_channel_does() {
        let (mut dials, mut listens) = (Direct::dial(), Direct::listen());
        listens.handle(START, Offered { streams: true });
        dials.handle(START, Streams);
        assert_eq!(listens.next_timeout(), Some(LATER));
        assert_eq!(listens.handle(START, Tick), []);
        assert_eq!(listens.handle(LATER, Tick), [Answer]);
        assert_eq!(dials.handle(LATER, Answered), [EndStreams, Accept]);
        assert_eq!(dials.handle(LATER, Proven), [DropStream], "too late: the answer was taken");
        assert_eq!(dials.handle(LATER, Opened), [EndStreams, Up(Channel)]);
        assert_eq!(listens.handle(LATER, Opened), [EndStreams, Up(Channel)]);
        assert_eq!(listens.handle(LATER, Lost(Channel)), [EndStreams, EndChannel, Down]);
    }

    #[test]
    fn a_tab_is_answered_at_once_and_never_hears_of_streams() {
        let mut listens = Direct::listen();
        assert_eq!(listens.handle(START, Offered { streams: false }), [Answer]);
        let mut dials = Direct::dial();
        assert_eq!(dials.handle(START, Answered), [EndStreams, Accept]);
        assert_eq!(dials.handle(START, Streams), [], "after its answer it has none");
    }

    #[test]
    fn an_answer_that_crosses_a_named_stream_changes_nothing() {
        let (mut dials, mut listens) = (Direct::dial(), Direct::listen());
        listens.handle(START, Offered { streams: true });
        dials.handle(START, Streams);
        assert_eq!(dials.handle(LATER, Proven).last(), Some(&UseStream));
        assert_eq!(listens.handle(LATER, Tick), [Answer]);
        assert_eq!(dials.handle(LATER, Answered), []);
        assert_eq!(listens.handle(LATER, Named).last(), Some(&UseStream));
    }

    /// Every order in which what the two say and what happens to them can arrive.
    #[test]
    fn both_take_the_same_way_whatever_crosses() {
        for seed in 0..20_000_u64 {
            let mut chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut draw = |below: u64| {
                chance ^= chance << 13;
                chance ^= chance >> 7;
                chance ^= chance << 17;
                chance % below
            };
            let (mut dials, mut listens) = (Direct::dial(), Direct::listen());
            let (mut ways, mut to_dials, mut to_listens) = ([None; 2], Vec::new(), Vec::new());
            let (mut streams, mut answered) = (draw(4), false);
            to_listens.push(Offered { streams: draw(4) > 0 });
            for _ in 0..64 {
                let at_dials = match draw(5) {
                    // Words keep their order.
                    0 if !to_dials.is_empty() => Some((true, to_dials.remove(0))),
                    1 if !to_listens.is_empty() => Some((false, to_listens.remove(0))),
                    2 if streams > 0 => {
                        streams -= 1;
                        Some((true, Proven))
                    }
                    3 => Some((false, Tick)),
                    4 if answered => Some((draw(2) == 0, Opened)),
                    _ => None,
                };
                let Some((is_dials, input)) = at_dials else { continue };
                let end = if is_dials { &mut dials } else { &mut listens };
                let now = if draw(4) == 0 { LATER } else { START };
                for todo in end.handle(now, input) {
                    match todo {
                        TryStreams if !is_dials => to_dials.push(Streams),
                        Answer => to_dials.push(Answered),
                        Accept => answered = true,
                        UseStream if is_dials => to_listens.push(Named),
                        Up(way) => ways[usize::from(is_dials)] = Some(way),
                        TryStreams | UseStream | DropStream | EndStreams | EndChannel | Down => {}
                    }
                }
            }
            if let [Some(one), Some(two)] = ways {
                assert_eq!(one, two, "seed {seed}");
            }
        }
    }
}
