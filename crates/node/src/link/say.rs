//! What is to be said is put into frames: chunks on the chosen path, echoes and pings on each.

use alloc::vec::Vec;
use shoal_protocol::frame::HEADER_BYTES;
use shoal_protocol::limit::SEAL_BYTES;
use shoal_protocol::{Header, Micros, Path, Time};

use super::chunk::{MOST_WORDS, Words};
use super::path::Probe;
use super::{Link, LinkOutput};

/// A direct path that lives this long mostly goes on living; until then the relay is kept warm.
const STEADY_AFTER: Micros = Micros::from_secs(5);

impl Link {
    /// What is said goes directly whenever it can: for bulk that the relay should not carry.
    pub fn prefer_direct(&mut self) {
        self.paths.direct_first = true;
    }

    /// Bytes of messages the peer has yet to take.
    pub fn queued_bytes(&self) -> u64 {
        self.outgoing.queued_bytes()
    }

    /// Says all that may be said now.
    pub(super) fn flush(&mut self, now: Time) {
        if self.paths.choose(now)
            && let Some(path) = self.paths.chosen()
        {
            self.outputs.push_back(LinkOutput::Using(path));
        }
        if let Some(path) = self.paths.chosen() {
            while let Some(place) = self.next_chunk(path) {
                self.say_chunk(now, path, place);
            }
        }
        for path in Path::ALL {
            let way = self.paths.of(path);
            let ping = way.ping_due(self.stands_by(path)).is_some_and(|due| due <= now);
            if way.up.is_some() && (way.echo.is_some() || ping) {
                self.say(now, path, ping, None);
            }
        }
        if self.incoming.owed().is_some_and(|due| due <= now)
            && let Some(path) = self.paths.chosen()
        {
            self.say(now, path, false, None);
        }
    }

    fn next_chunk(&mut self, path: Path) -> Option<usize> {
        let again = self.outgoing.flight.unsent();
        let way = self.paths.of(path);
        again.or_else(|| self.outgoing.cut(way.allowance(), way.chunk()))
    }

    fn say_chunk(&mut self, now: Time, path: Path, place: usize) {
        let waiting = self.outgoing.is_waiting();
        let way = self.paths.of_mut(path);
        let order = way.sent;
        way.sent += 1;
        way.tried();
        let probe = way.probe.is_none();
        self.outgoing.flight.sent(place, now, path, order, waiting);
        self.say(now, path, probe, Some(place));
    }

    /// One frame, with all that the peer should know.
    fn say(&mut self, now: Time, path: Path, probe: bool, place: Option<usize>) {
        let sequence = self.sequence;
        self.sequence += 1;
        self.noise.said += 1;
        let way = self.paths.of_mut(path);
        if probe {
            let (delivered, waiting) =
                (self.outgoing.flight.delivered(), self.outgoing.is_waiting());
            way.ask(Probe { sequence, left: now, delivered, waiting });
        }
        let echo = way.echo.take();
        let (channel, chunk) = place.and_then(|place| self.outgoing.chunk(place)).unzip();
        let words = Words {
            next: self.incoming.next(),
            have: self.incoming.have(),
            granted: self.incoming.grant(),
            probe,
            echo,
            refused: self.incoming.refused(),
            chunk,
        };
        self.incoming.settle();
        let size = chunk.map_or(0, |chunk| chunk.bytes.len());
        let mut bytes = Vec::with_capacity(HEADER_BYTES + MOST_WORDS + size + SEAL_BYTES);
        bytes.resize(HEADER_BYTES, 0);
        words.encode(&mut bytes);
        let sealed = if path == Path::Relay { SEAL_BYTES } else { 0 };
        let header = Header {
            kind: path.kind(),
            channel: channel.unwrap_or(0),
            length: (bytes.len() - HEADER_BYTES + sealed) as u32,
            source: self.config.me,
            destination: self.config.peer,
            crew: self.config.crew,
            epoch: self.config.epoch,
            sequence,
        };
        bytes[..HEADER_BYTES].copy_from_slice(&header.encode());
        self.outputs.push_back(LinkOutput::Frame { path, header, bytes });
    }

    /// The relay, while a direct path does all the work and has done so for a while.
    fn stands_by(&self, path: Path) -> bool {
        let steady = self.paths.of(Path::Direct).up.is_some_and(|up| self.now >= up + STEADY_AFTER);
        path == Path::Relay && steady && self.paths.chosen() == Some(Path::Direct)
    }

    /// When something must be said although nothing happened.
    pub(super) fn say_due(&self) -> Option<Time> {
        let paths = Path::ALL.into_iter().map(|path| (self.paths.of(path), self.stands_by(path)));
        let pings = paths
            .filter(|(way, _)| way.up.is_some())
            .filter_map(|(way, by)| way.echo_due().or_else(|| way.ping_due(by)));
        let anyone = self.paths.chosen().is_some();
        let owed = self.incoming.owed().filter(|_| anyone);
        let again = self.outgoing.flight.due(&self.paths).filter(|_| anyone);
        pings.chain(owed).chain(again).chain(self.paths.next_change(self.now)).min()
    }
}
