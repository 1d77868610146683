//! Datagrams of one call on their way to the socket, not all at once: a browser's receive buffer holds some fifty,
//! and what overflows it is sent again one by one.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use str0m::net::Transmit;

/// Datagrams at once to a peer that says nothing, and each time it said nothing for a while: a third of what a
/// browser's buffer holds.
const AT_FIRST: usize = 16;
/// As short as the clock of the task can wait.
const A_WHILE: Duration = Duration::from_millis(1);
/// Datagrams that each one of the peer's makes room for. SCTP acknowledges every second, and slow start
/// doubles that; RFC 9260 has the same number.
const FOR_EACH: usize = 4;
/// Room that may be saved up: what is saved is sent at once.
const MOST_SAVED: usize = 32;
/// Datagrams that wait: as many as SCTP has under way at most, and the few of ICE and DTLS. More are lost ones.
const MOST_WAITING: usize = 2048;

pub(super) struct Pace {
    waiting: VecDeque<Transmit>,
    room: usize,
    /// When there is room again although the peer says nothing.
    again: Instant,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace { waiting: VecDeque::new(), room: AT_FIRST, again: now + A_WHILE }
    }

    pub(super) fn add(&mut self, datagram: Transmit) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(datagram);
        }
    }

    /// A datagram of the peer came: it has taken some.
    pub(super) fn heard(&mut self) {
        self.room = (self.room + FOR_EACH).min(MOST_SAVED);
    }

    /// The next that may leave now.
    pub(super) fn next(&mut self, now: Instant) -> Option<Transmit> {
        if now >= self.again {
            self.room = self.room.max(AT_FIRST);
        }
        if self.room == 0 {
            return None;
        }
        let datagram = self.waiting.pop_front()?;
        self.room -= 1;
        self.again = now + A_WHILE;
        Some(datagram)
    }

    /// When to look again if nothing comes.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use str0m::net::Protocol;

    fn paced(count: usize) -> (Pace, Instant) {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        let at = "127.0.0.1:9".parse().expect("an address");
        for _ in 0..count {
            let contents = vec![0; 1200].into();
            pace.add(Transmit { proto: Protocol::Udp, source: at, destination: at, contents });
        }
        (pace, now)
    }

    fn leave(pace: &mut Pace, now: Instant) -> usize {
        std::iter::from_fn(|| pace.next(now)).count()
    }

    #[test]
    fn a_silent_peer_gets_a_little_at_a_time() {
        let (mut pace, now) = paced(100);
        assert_eq!(leave(&mut pace, now), AT_FIRST);
        assert_eq!(leave(&mut pace, now), 0);
        assert_eq!(pace.due(), Some(now + A_WHILE));
        assert_eq!(leave(&mut pace, now + A_WHILE), AT_FIRST);
    }

    #[test]
    fn who_answers_gets_as_much_as_it_takes() {
        let (mut pace, now) = paced(1_000);
        leave(&mut pace, now);
        for _ in 0..100 {
            pace.heard();
            assert_eq!(leave(&mut pace, now), FOR_EACH);
        }
    }

    #[test]
    fn many_answers_at_once_are_no_reason_for_a_flood() {
        let (mut pace, now) = paced(1_000);
        (0..500).for_each(|_| pace.heard());
        assert_eq!(leave(&mut pace, now), MOST_SAVED);
    }

    #[test]
    fn with_nothing_to_send_there_is_nothing_to_wait_for() {
        let (mut pace, now) = paced(3);
        assert_eq!(leave(&mut pace, now), 3);
        assert_eq!(pace.due(), None);
    }

    #[test]
    fn what_waits_is_bounded() {
        let (mut pace, mut now) = paced(10 * MOST_WAITING);
        let mut left = 0;
        while let Some(due) = pace.due() {
            now = now.max(due);
            left += leave(&mut pace, now);
        }
        assert_eq!(left, MOST_WAITING);
    }
}
