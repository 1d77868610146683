//! Datagrams of one call on their way to the socket, no faster than the peer takes them. SCTP lays more and more on
//! a path until something is lost; a browser's receive buffer holds some fifty datagrams, and each time it
//! overflows costs dozens of round trips. So no more is under way than twice what the path is seen to hold.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use str0m::net::Transmit;

use super::path::Path;

/// Under way whatever the path: fewer than a browser's receive buffer holds, more than hide its event loop.
const LEAST_UNDER_WAY: usize = 50 * 1200;
/// Smaller ones acknowledge and keep alive. They are not held back, nor what stands before them: the peer may wait for
/// what they say before it takes more, and DTLS wants the order kept.
const LEAST_DATA: usize = 300;
/// What SCTP and DTLS add to the bytes of a frame.
const OVERHEAD: usize = 64;
/// Without news for so much longer than the path is, what is under way counts as lost.
const LOST_AFTER: Duration = Duration::from_millis(100);
/// Datagrams that wait: as many as SCTP has under way at most. More are lost ones.
const MOST_WAITING: usize = 2048;
pub(super) struct Pace {
    waiting: VecDeque<Transmit>,
    /// How many of those are small.
    small: usize,
    under_way: VecDeque<UnderWay>,
    bytes: usize,
    /// Bytes of frames that the peer has, all in all.
    arrived: u64,
    path: Path,
}

struct UnderWay {
    bytes: usize,
    left: Instant,
    /// What had arrived when it left.
    arrived: u64,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace {
            waiting: VecDeque::new(),
            small: 0,
            under_way: VecDeque::new(),
            bytes: 0,
            arrived: 0,
            path: Path::new(now),
        }
    }

    pub(super) fn add(&mut self, datagram: Transmit) {
        if self.waiting.len() < MOST_WAITING {
            self.small += usize::from(datagram.contents.len() < LEAST_DATA);
            self.waiting.push_back(datagram);
        }
    }

    /// So many bytes of frames has the peer by now, all in all.
    pub(super) fn arrived(&mut self, now: Instant, arrived: u64) {
        let mut news = arrived.saturating_sub(self.arrived) as usize;
        self.arrived = self.arrived.max(arrived);
        let mut last = None;
        while let Some(first) = self.under_way.front_mut().filter(|_| news > 0) {
            let taken = first.bytes.min(news);
            (first.bytes, self.bytes, news) =
                (first.bytes - taken, self.bytes - taken, news - taken);
            if first.bytes == 0 {
                last = self.under_way.pop_front();
            }
        }
        if let Some(last) = last {
            self.path.see(now, now - last.left, self.arrived - last.arrived);
        }
    }

    /// The next that may leave now.
    pub(super) fn next(&mut self, now: Instant) -> Option<Transmit> {
        if self.lost_at().is_some_and(|at| at <= now) {
            self.under_way.clear();
            self.bytes = 0;
        }
        let size = self.waiting.front()?.contents.len();
        if size >= LEAST_DATA {
            if self.bytes >= self.most() && self.small == 0 {
                return None;
            }
            let bytes = size - OVERHEAD;
            self.under_way.push_back(UnderWay { bytes, left: now, arrived: self.arrived });
            self.bytes += bytes;
        } else {
            self.small -= 1;
        }
        self.waiting.pop_front()
    }

    /// When to look again if nothing comes.
    pub(super) fn due(&self) -> Option<Instant> {
        self.lost_at().filter(|_| !self.waiting.is_empty())
    }

    /// When all that is under way counts as lost.
    fn lost_at(&self) -> Option<Instant> {
        let last = self.under_way.back()?;
        Some(last.left + LOST_AFTER + 4 * self.path.trip().unwrap_or_default())
    }

    /// Bytes that may be under way.
    fn most(&self) -> usize {
        (2 * self.path.holds() as usize).max(LEAST_UNDER_WAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use str0m::net::Protocol;

    const SIZE: usize = 1200;
    const FRAME_BYTES: u64 = (SIZE - OVERHEAD) as u64;

    fn add(pace: &mut Pace, count: usize, size: usize) {
        let at = "127.0.0.1:9".parse().expect("an address");
        for _ in 0..count {
            let contents = vec![0; size].into();
            pace.add(Transmit { proto: Protocol::Udp, source: at, destination: at, contents });
        }
    }

    fn paced(count: usize) -> (Pace, Instant) {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        add(&mut pace, count, SIZE);
        (pace, now)
    }

    fn leave(pace: &mut Pace, now: Instant) -> usize {
        std::iter::from_fn(|| pace.next(now)).count()
    }

    /// Datagrams that leave in each round trip, if all arrive.
    fn rounds(trip: Duration, count: usize) -> Vec<usize> {
        let (mut pace, mut now) = paced(0);
        let (mut arrived, mut left) = (0, Vec::new());
        for _ in 0..count {
            let room = MOST_WAITING - pace.waiting.len();
            add(&mut pace, room, SIZE);
            left.push(leave(&mut pace, now));
            now += trip;
            arrived += left.last().map_or(0, |left| *left as u64) * FRAME_BYTES;
            pace.arrived(now, arrived);
        }
        left
    }

    #[test]
    fn a_browser_next_door_never_gets_more_than_its_buffer_holds() {
        let (mut pace, now) = paced(1_000);
        let first = leave(&mut pace, now);
        assert!((50..56).contains(&first), "{first}");
        // It takes ten in a hundred microseconds: the path itself holds next to nothing.
        for step in 1..50u32 {
            let now = now + step * Duration::from_micros(100);
            pace.arrived(now, u64::from(step) * 10 * FRAME_BYTES);
            assert_eq!(leave(&mut pace, now), 10, "as many as arrived");
        }
    }

    #[test]
    fn a_long_path_is_filled_within_some_round_trips() {
        let left = rounds(Duration::from_millis(50), 6);
        assert!(left.windows(2).all(|two| two[1] >= two[0] * 3 / 2), "{left:?}");
        assert!(left[5] >= 1_000, "{left:?}");
    }

    #[test]
    fn what_is_never_acknowledged_does_not_stop_the_rest() {
        let (mut pace, now) = paced(1_000);
        assert!(leave(&mut pace, now) > 0);
        assert_eq!(leave(&mut pace, now + LOST_AFTER / 2), 0);
        let due = pace.due().expect("something waits");
        assert!(leave(&mut pace, due) > 0);
    }

    #[test]
    fn acknowledgements_are_not_held_back() {
        let (mut pace, now) = paced(0);
        add(&mut pace, 1_000, 100);
        assert_eq!(leave(&mut pace, now), 1_000);
        assert_eq!(pace.due(), None, "nothing waits");
        // Nor by data before them that must wait: the peer may be waiting for exactly these words.
        add(&mut pace, 100, SIZE);
        assert!(leave(&mut pace, now) < 100);
        add(&mut pace, 1, 100);
        add(&mut pace, 10, SIZE);
        leave(&mut pace, now);
        assert_eq!((pace.small, pace.waiting.len()), (0, 10));
    }

    #[test]
    fn what_waits_is_bounded() {
        let (mut pace, _) = paced(10 * MOST_WAITING);
        assert_eq!(pace.waiting.len(), MOST_WAITING);
        pace.arrived(Instant::now(), u64::MAX);
        assert!(pace.bytes == 0 && pace.under_way.is_empty());
    }
}
