//! How many bytes of frames SCTP is given before the peer has them: twice what the path is seen to hold. With
//! more, it lays more and more on the path until a receive buffer overflows, and it looks through all that is
//! under way for each datagram, which then takes most of a processor's time.

use std::collections::VecDeque;
use std::time::Instant;

use super::path::Path;

/// Three of the largest frames: one is on its way, one is acknowledged, one hides what event loops add.
const LEAST: u64 = 192 << 10;
pub(super) struct Window {
    frames: VecDeque<Frame>,
    written: u64,
    arrived: u64,
    path: Path,
}

struct Frame {
    /// What was written with it, all in all.
    end: u64,
    left: Instant,
    /// What had arrived when it left.
    arrived: u64,
}

impl Window {
    pub(super) fn new(now: Instant) -> Window {
        Window { frames: VecDeque::new(), written: 0, arrived: 0, path: Path::new(now) }
    }

    /// Whether the channel, which has that many bytes under way, is given another frame.
    pub(super) fn is_open(&self, under_way: usize) -> bool {
        (under_way as u64) < self.most()
    }

    /// The channel took a frame.
    pub(super) fn wrote(&mut self, now: Instant, bytes: usize) {
        self.written += bytes as u64;
        self.frames.push_back(Frame { end: self.written, left: now, arrived: self.arrived });
    }

    /// So many bytes of all that the channel took are under way still.
    pub(super) fn under_way(&mut self, now: Instant, bytes: usize) {
        self.arrived = self.written.saturating_sub(bytes as u64);
        let mut last = None;
        while self.frames.front().is_some_and(|frame| frame.end <= self.arrived) {
            last = self.frames.pop_front();
        }
        if let Some(last) = last {
            self.path.see(now, now - last.left, self.arrived - last.arrived);
        }
    }

    /// Bytes of frames that the peer has, all in all.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    fn most(&self) -> u64 {
        (2 * self.path.holds()).max(LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const FRAME: usize = 64 << 10;

    /// Frames that the channel has after some seconds on a path of that length and width.
    fn frames(trip: Duration, bytes_per_second: u64) -> usize {
        let mut now = Instant::now();
        let mut window = Window::new(now);
        let mut under_way: VecDeque<Instant> = VecDeque::new();
        let takes = Duration::from_secs_f64(FRAME as f64 / bytes_per_second as f64);
        for _ in 0..1_000 {
            while window.is_open(under_way.len() * FRAME) {
                let free = under_way.back().map_or(now, |last| (*last - trip).max(now));
                under_way.push_back(free + takes + trip);
                window.wrote(now, FRAME);
            }
            now = under_way.pop_front().expect("something is always under way");
            window.under_way(now, under_way.len() * FRAME);
        }
        under_way.len() + 1
    }

    #[test]
    fn a_peer_next_door_gets_little_at_a_time() {
        assert_eq!(frames(Duration::from_micros(300), 50_000_000), 3);
    }

    #[test]
    fn a_long_path_is_filled() {
        // 2.5 MB are on the way there and back.
        let frames = frames(Duration::from_millis(50), 50_000_000);
        assert!(frames * FRAME > 2_500_000, "{frames}");
    }

    #[test]
    fn what_was_seen_long_ago_is_forgotten() {
        let now = Instant::now();
        let mut window = Window::new(now);
        window.path.see(now, Duration::from_secs(1), 10_000_000);
        assert_eq!(window.most(), 20_000_000);
        window.path.see(now + Path::MEMORY, Duration::from_millis(1), 1_000);
        window.path.see(now + 2 * Path::MEMORY, Duration::from_millis(1), 1_000);
        assert_eq!(window.most(), LEAST);
    }
}
