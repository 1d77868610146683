//! What every simulated world is made of, whoever lives in it: virtual time, events in their order, wires that are late
//! and lose and double what they carry. The one world is made of it, and so are the small ones in which tests of `node`
//! look at links, meshes and members alone.

use std::collections::BTreeMap;

use shoal_protocol::{Hasher, Micros, Time};

use crate::random::Random;

/// What is to happen, by time; of what happens at the same time, what was planned first comes first.
pub struct Events<E> {
    planned: BTreeMap<(Time, u64), E>,
    count: u64,
}

impl<E> Default for Events<E> {
    fn default() -> Events<E> {
        Events { planned: BTreeMap::new(), count: 0 }
    }
}

impl<E> Events<E> {
    pub fn at(&mut self, at: Time, event: E) {
        self.count += 1;
        self.planned.insert((at, self.count), event);
    }

    /// When the next one happens.
    pub fn next(&self) -> Option<Time> {
        self.planned.first_key_value().map(|((at, _), _)| *at)
    }

    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.planned.pop_first().map(|((at, _), event)| (at, event))
    }

    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.planned.values()
    }
}

/// The time of a small world, and all that follows from its seed.
pub struct Clock<E> {
    pub now: Time,
    pub events: Events<E>,
    pub random: Random,
    /// A digest of all that happened.
    pub trace: Hasher,
}

impl<E> Clock<E> {
    pub fn new(seed: u64) -> Clock<E> {
        let (now, random) = (Time(1_000_000), Random::new(seed));
        Clock { now, events: Events::default(), random, trace: Hasher::new() }
    }

    pub fn after(&mut self, wait: Micros, event: E) {
        self.events.at(self.now + wait, event);
    }
}

/// A small world that its clock drives: either something happens in it, or somebody's time has come.
pub trait Clockwork {
    type Event;

    fn clock(&self) -> &Clock<Self::Event>;
    fn clock_mut(&mut self) -> &mut Clock<Self::Event>;
    /// When the first of those who live here wants to be woken.
    fn due(&self) -> Option<Time>;
    /// The time of one of them has come.
    fn wake(&mut self);
    fn happens(&mut self, event: Self::Event);

    /// When there is something next, of either sort.
    fn next(&self) -> Option<Time> {
        let due = self.due().map(|due| due.max(self.clock().now));
        self.clock().events.next().into_iter().chain(due).min()
    }

    /// The next thing happens, if it is not after that.
    fn step(&mut self, end: Time) -> bool {
        let Some(at) = self.next().filter(|at| *at <= end) else { return false };
        let clock = self.clock_mut();
        clock.now = at;
        clock.trace.update(&at.0.to_le_bytes());
        match clock.events.next() == Some(at) {
            true => clock.events.pop().into_iter().for_each(|(_, event)| self.happens(event)),
            false => self.wake(),
        }
        true
    }

    /// While this holds, but no longer than that. How long it was.
    fn run_while(&mut self, most_millis: u64, holds: impl Fn(&Self) -> bool) -> Micros {
        let begun = self.clock().now;
        let end = begun + Micros::from_millis(most_millis);
        while holds(self) && self.step(end) {}
        self.clock().now - begun
    }

    /// Lets this much time pass.
    fn run(&mut self, millis: u64) {
        let end = self.clock().now + Micros::from_millis(millis);
        self.run_while(millis, |_| true);
        self.clock_mut().now = end;
    }

    /// Until it is so; fails after that much time.
    fn until(&mut self, most_millis: u64, is_so: impl Fn(&Self) -> bool) -> Micros {
        let took = self.run_while(most_millis, |world| !is_so(world));
        assert!(is_so(self), "it never came to that in {most_millis} ms");
        took
    }

    fn chance(&mut self) -> u64 {
        self.clock_mut().random.draw()
    }
}

/// What a wire does to what it carries. Chances are so many in a million.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wire {
    /// One way.
    pub delay: Micros,
    /// Up to so much more, each time anew: so what was sent later may come earlier.
    pub jitter: Micros,
    pub lost: u64,
    pub doubled: u64,
}

impl Wire {
    /// How late something comes that is not lost.
    pub fn late(&self, random: &mut Random) -> Micros {
        Micros(self.delay.0 + random.range(0, self.jitter.0))
    }

    /// How late each copy comes: mostly one, none if it is lost, two if it is doubled.
    pub fn copies(&self, random: &mut Random) -> Vec<Micros> {
        let doubled = random.chance(self.doubled);
        let copies = if random.chance(self.lost) { 0 } else { 1 + u8::from(doubled) };
        (0..copies).map(|_| self.late(random)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that is woken every ten microseconds and writes down what happens when.
    struct Diary {
        clock: Clock<&'static str>,
        due: Time,
        lines: Vec<(u64, &'static str)>,
    }

    impl Clockwork for Diary {
        type Event = &'static str;

        fn clock(&self) -> &Clock<&'static str> {
            &self.clock
        }

        fn clock_mut(&mut self) -> &mut Clock<&'static str> {
            &mut self.clock
        }

        fn due(&self) -> Option<Time> {
            Some(self.due)
        }

        fn wake(&mut self) {
            self.due = self.due + Micros(10);
            self.happens("woken");
        }

        fn happens(&mut self, line: &'static str) {
            self.lines.push((self.clock.now.0 - 1_000_000, line));
        }
    }

    #[test]
    fn what_happens_at_the_same_time_happens_as_it_was_planned_and_before_anybody_is_woken() {
        let clock = Clock::new(1);
        let mut diary = Diary { due: clock.now + Micros(10), clock, lines: Vec::new() };
        for (wait, line) in [(10, "one"), (5, "early"), (10, "two"), (1_000, "late")] {
            diary.clock.after(Micros(wait), line);
        }
        diary.until(1, |diary| diary.lines.len() == 5);
        let expected = [(5, "early"), (10, "one"), (10, "two"), (10, "woken"), (20, "woken")];
        assert_eq!(diary.lines, expected);
        diary.run(1);
        assert_eq!(diary.lines.last(), Some(&(1_020, "woken")));
        assert_eq!(diary.clock.now, Time(1_001_020));
    }

    #[test]
    fn a_wire_loses_and_doubles_as_often_as_it_says_and_is_never_later() {
        let wire = Wire { delay: Micros(50), jitter: Micros(10), lost: 100_000, doubled: 200_000 };
        let random = &mut Random::new(7);
        let mut came = [0; 3];
        for _ in 0..10_000 {
            let copies = wire.copies(random);
            assert!(copies.iter().all(|late| (50..60).contains(&late.0)));
            came[copies.len()] += 1;
        }
        let [lost, once, twice] = came;
        assert!((900..1_100).contains(&lost) && (1_650..1_950).contains(&twice), "{came:?}");
        assert_eq!(lost + once + twice, 10_000);
        assert_eq!(Wire { delay: Micros(3), ..Wire::default() }.copies(random), [Micros(3)]);
    }
}
