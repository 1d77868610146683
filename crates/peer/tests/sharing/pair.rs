//! Two connections and what carries their messages: in order on each channel, channels in any order.

use std::collections::{BTreeMap, VecDeque};

use shoal_peer::{Config, Connection, Output};

pub(crate) struct Pair {
    pub(crate) owner: Connection,
    pub(crate) guest: Connection,
    /// What each got to know.
    pub(crate) owner_heard: Vec<Output>,
    pub(crate) guest_heard: Vec<Output>,
    /// By channel: to the guest, and to the owner.
    to_guest: BTreeMap<u16, VecDeque<Vec<u8>>>,
    to_owner: BTreeMap<u16, VecDeque<Vec<u8>>>,
    seed: u64,
}

impl Pair {
    pub(crate) fn new(seed: u64) -> Pair {
        let mut pair = Pair {
            owner: Connection::new(Config::new(1, 2, [1; 32])),
            guest: Connection::new(Config::new(2, 1, [2; 32])),
            owner_heard: Vec::new(),
            guest_heard: Vec::new(),
            to_guest: BTreeMap::new(),
            to_owner: BTreeMap::new(),
            seed: seed * 2 + 1,
        };
        pair.run();
        pair
    }

    /// Until nobody has anything to say.
    pub(crate) fn run(&mut self) {
        while self.step() {}
    }

    /// Carries one message; `false` if there is none.
    pub(crate) fn step(&mut self) -> bool {
        collect(&mut self.owner, &mut self.to_guest, &mut self.owner_heard);
        collect(&mut self.guest, &mut self.to_owner, &mut self.guest_heard);
        let seed = self.draw();
        let turns = if seed.is_multiple_of(2) { [true, false] } else { [false, true] };
        turns.into_iter().any(|to_guest| match to_guest {
            true => carry(&mut self.to_guest, &mut self.guest, seed),
            false => carry(&mut self.to_owner, &mut self.owner, seed),
        })
    }

    /// How much is on the way to the guest.
    pub(crate) fn waiting(&self) -> usize {
        self.to_guest.values().flatten().map(Vec::len).sum()
    }

    fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.seed >> 33
    }
}

fn collect(
    from: &mut Connection,
    way: &mut BTreeMap<u16, VecDeque<Vec<u8>>>,
    heard: &mut Vec<Output>,
) {
    while let Some(output) = from.poll_output() {
        if let Output::Send { channel, message } = output {
            way.entry(channel).or_default().push_back(message);
        } else {
            heard.push(output);
        }
    }
}

fn carry(way: &mut BTreeMap<u16, VecDeque<Vec<u8>>>, to: &mut Connection, seed: u64) -> bool {
    way.retain(|_, waiting| !waiting.is_empty());
    let Some(pick) = way.keys().copied().nth(seed as usize % way.len().max(1)) else {
        return false;
    };
    let Some(message) = way.get_mut(&pick).and_then(VecDeque::pop_front) else { return false };
    to.hear(pick, &message);
    true
}
