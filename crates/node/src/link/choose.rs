//! Which path a link uses: the direct one when it is there, known and not worse. A direct path that dies
//! again and again is tried ever more rarely, so that a flapping one costs no more than the relay alone.

use shoal_protocol::{Micros, Path, Time};

use super::path::PathState;

/// How long a direct path must be steady after its first fall. It doubles with each further fall.
const FIRST_WAIT: Micros = Micros::from_secs(2);
/// Falls that still make the wait longer: after six, two minutes.
const MOST_FALLS: u32 = 7;
/// A path that lived this long has earned that earlier falls are forgotten.
const FORGIVEN_AFTER: Micros = Micros::from_secs(60);
/// What a path's cost is judged by: its round trip and this many bytes, a tensor between two layers.
const USUAL_BYTES: u64 = 256 << 10;
/// Differences below this are noise of timers.
const NOISE: Micros = Micros::from_millis(5);

/// Both paths of a link.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    relay: PathState,
    direct: PathState,
    chosen: Option<Path>,
    /// The direct path is used whenever it works, however good the relay is.
    pub(super) direct_first: bool,
}

impl Paths {
    pub(super) fn of(&self, path: Path) -> &PathState {
        match path {
            Path::Relay => &self.relay,
            Path::Direct => &self.direct,
        }
    }

    pub(super) fn of_mut(&mut self, path: Path) -> &mut PathState {
        match path {
            Path::Relay => &mut self.relay,
            Path::Direct => &mut self.direct,
        }
    }

    pub(super) fn chosen(&self) -> Option<Path> {
        self.chosen
    }

    /// Whether nothing else could be used instead.
    pub(super) fn is_alone(&self, path: Path) -> bool {
        Path::ALL.into_iter().all(|other| other == path || !self.of(other).is_usable())
    }

    /// The path to use from now on. Whether it is another than before.
    pub(super) fn choose(&mut self, now: Time) -> bool {
        let best = self.best(now);
        let moved = best != self.chosen;
        let left = self.chosen == Some(Path::Direct) && best == Some(Path::Relay);
        if left && self.direct.is_usable() {
            // It lives and is worse: as much a fall as a death.
            self.fall(now, Path::Direct);
        }
        self.chosen = best;
        moved
    }

    fn best(&self, now: Time) -> Option<Path> {
        match (self.relay.is_usable(), self.direct.is_usable()) {
            (true, true) if self.trusts_direct(now) => Some(Path::Direct),
            (true, true | false) => Some(Path::Relay),
            (false, true) => Some(Path::Direct),
            // Silence of all: what is there is better than nothing, and the relay is likelier to come back.
            (false, false) if self.relay.up.is_some() => Some(Path::Relay),
            (false, false) => self.direct.up.map(|_| Path::Direct),
        }
    }

    fn trusts_direct(&self, now: Time) -> bool {
        if self.direct_first {
            return self.direct.distance().is_some();
        }
        let (Some(near), Some(far)) = (self.direct.distance(), self.relay.distance()) else {
            // An unmeasured direct path is not used yet; an unmeasured relay is no argument.
            return self.direct.distance().is_some() && now >= self.trusted_from();
        };
        // The relay's rate may be more than it showed, the direct path's must not be.
        let rates = self.direct.proven_rate(now).zip(self.relay.rate(now));
        let carry = |rate: u64| USUAL_BYTES * 1_000_000 / rate.max(1);
        let (direct, relay) = match rates {
            Some((direct, relay)) => (near.0 + carry(direct), far.0 + carry(relay)),
            None => (near.0, far.0),
        };
        // The relay's bytes cost the coordinator, so a little worse is still better; and a path in use is
        // left only when it is much worse, or two equal ones would alternate.
        match self.chosen {
            Some(Path::Direct) => direct <= 2 * relay + NOISE.0,
            Some(Path::Relay) | None => {
                now >= self.trusted_from() && direct <= relay + relay / 4 + NOISE.0
            }
        }
    }

    /// A path died, fell silent or turned out worse.
    pub(super) fn fall(&mut self, now: Time, path: Path) {
        let way = self.of_mut(path);
        let lived = way.up.map_or(Micros(0), |_| now - way.steady);
        way.falls = if lived >= FORGIVEN_AFTER { 1 } else { (way.falls + 1).min(MOST_FALLS) };
        way.steady = now;
    }

    /// When the direct path may be used, if it stays steady.
    fn trusted_from(&self) -> Time {
        let Some(doublings) = self.direct.falls.checked_sub(1) else { return self.direct.steady };
        self.direct.steady + Micros(FIRST_WAIT.0 << doublings)
    }

    /// When time alone may change the choice.
    pub(super) fn next_change(&self, now: Time) -> Option<Time> {
        let waits = self.relay.is_usable() && self.direct.is_usable();
        Some(self.trusted_from()).filter(|from| waits && *from > now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::Probe;
    use super::*;

    fn measured(paths: &mut Paths, path: Path, now: Time, millis: u64) {
        let way = paths.of_mut(path);
        way.ask(Probe { sequence: 1, left: now, delivered: 0, waiting: false });
        assert!(way.echoed(now + Micros::from_millis(millis), 1).is_some());
    }

    fn up(relay: u64, direct: u64) -> Paths {
        let mut paths = Paths::default();
        for (path, millis) in [(Path::Relay, relay), (Path::Direct, direct)] {
            paths.of_mut(path).rise(Time(0));
            measured(&mut paths, path, Time(0), millis);
        }
        paths
    }

    fn seconds(seconds: u64) -> Time {
        Time(0) + Micros::from_secs(seconds)
    }

    #[test]
    fn direct_is_used_at_once_when_it_is_measured_and_not_worse() {
        let mut paths = Paths::default();
        paths.of_mut(Path::Relay).rise(Time(0));
        assert!(paths.choose(Time(0)) && paths.chosen() == Some(Path::Relay));
        paths.of_mut(Path::Direct).rise(Time(1));
        assert!(!paths.choose(Time(1)), "nothing is known of it yet");
        measured(&mut paths, Path::Direct, Time(1), 20);
        assert!(paths.choose(Time(2)) && paths.chosen() == Some(Path::Direct));
    }

    #[test]
    fn a_much_longer_direct_path_is_not_used() {
        let mut paths = up(20, 100);
        paths.choose(seconds(1));
        assert_eq!(paths.chosen(), Some(Path::Relay));
    }

    #[test]
    fn where_the_relay_must_not_carry_it_any_direct_path_is_used() {
        let mut paths = Paths { direct_first: true, ..up(20, 100) };
        paths.choose(seconds(1));
        assert_eq!(paths.chosen(), Some(Path::Direct));
        paths.fall(seconds(2), Path::Direct);
        assert!(!paths.choose(seconds(2)));
    }

    #[test]
    fn a_direct_path_that_turns_slow_is_left_and_not_taken_back_at_once() {
        let mut paths = up(20, 10);
        paths.choose(seconds(1));
        for (path, rate) in [(Path::Direct, 100_000), (Path::Relay, 50_000_000)] {
            let way = paths.of_mut(path);
            way.rate_is(seconds(1), rate, Micros::from_secs(1), true);
            way.round();
        }
        assert!(!paths.choose(seconds(1)), "a path that only begins is not judged");
        for _ in 0..2 {
            Path::ALL.into_iter().for_each(|path| paths.of_mut(path).round());
        }
        assert!(paths.choose(seconds(2)) && paths.chosen() == Some(Path::Relay));
        assert!(!paths.choose(seconds(10)), "its rate is remembered");
        assert!(paths.choose(seconds(40)), "then it is tried again");
    }

    #[test]
    fn each_fall_doubles_the_wait_and_a_long_life_forgives() {
        let mut paths = up(20, 10);
        let mut now = Time(0);
        for (fall, wait) in [2, 4, 8, 16].into_iter().enumerate() {
            now = now + Micros::from_secs(1);
            paths.fall(now, Path::Direct);
            assert_eq!(paths.trusted_from() - now, Micros::from_secs(wait), "fall {fall}");
        }
        paths.of_mut(Path::Direct).steady = now;
        now = now + FORGIVEN_AFTER;
        paths.fall(now, Path::Direct);
        assert_eq!(paths.trusted_from() - now, FIRST_WAIT);
    }

    #[test]
    fn silence_is_left_at_once() {
        let mut paths = up(20, 10);
        paths.choose(seconds(1));
        paths.of_mut(Path::Direct).missed();
        assert!(!paths.choose(seconds(1)), "one may be lost");
        paths.of_mut(Path::Direct).missed();
        assert!(paths.choose(seconds(1)) && paths.chosen() == Some(Path::Relay));
    }
}
