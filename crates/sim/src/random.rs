//! Chance from a seed: SplitMix64.

#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// From `low` up to, not including, `high`.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.draw() % (high - low).max(1)
    }

    /// True this many times in a million.
    pub fn chance(&mut self, per_million: u64) -> bool {
        self.draw() % 1_000_000 < per_million
    }
}
