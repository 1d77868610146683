//! When two answers are the same. Hashes settle most; bytes are looked at by the shell, with the functions
//! here, where classes differ or only a part was computed again.

use shoal_kinds::JobSpec;
use shoal_protocol::{Dtype, JobId, Span, Tolerance};

use super::quorum::{Answer, Ballot};
use crate::fact::Place;

/// Names a comparison that the shell makes; given back with its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CompareId {
    pub(crate) job: JobId,
    pub(crate) unit: u64,
    pub(crate) count: u32,
}

/// Bytes that hold the result of these items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub span: Span,
    pub place: Place,
}

/// What a look at the bytes showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Bit for bit.
    Same,
    /// Within the tolerance.
    Near,
    Different,
    /// The bytes could not be read: the later answer is dropped and nobody blamed.
    Unreadable,
}

/// Compares the results of `items`, which both samples hold.
pub fn compare(spec: &JobSpec, items: Span, a: (Span, &[u8]), b: (Span, &[u8])) -> Outcome {
    let form = spec.work.form();
    let (a, b) = (form.part(items, a), form.part(items, b));
    let (Some(a), Some(b)) = (a, b) else { return Outcome::Different };
    if a == b {
        return Outcome::Same;
    }
    let near = |a: &[u8], b: &[u8]| agree(&spec.policy.tolerance, a, b);
    let floats = spec.work.is_rounded() && form.agree(a.answers, b.answers, near);
    if floats { Outcome::Near } else { Outcome::Different }
}

/// Whether every element of the two is within the tolerance.
pub fn agree(tolerance: &Tolerance, a: &[u8], b: &[u8]) -> bool {
    if a == b {
        return true;
    }
    if a.len() != b.len() {
        return false;
    }
    let near = |a: f32, b: f32, ulps: u32| is_near(tolerance, a, b, ulps);
    match tolerance.dtype {
        Dtype::Bytes => false,
        Dtype::Unorm8 => a.iter().zip(b).all(|(a, b)| near(f32::from(*a), f32::from(*b), u32::MAX)),
        Dtype::F16 => {
            let pairs = a.chunks_exact(2).zip(b.chunks_exact(2));
            let bits = |h: &[u8]| u16::from_le_bytes([h[0], h[1]]);
            let mut pairs = pairs.map(|(a, b)| (bits(a), bits(b)));
            a.len().is_multiple_of(2)
                && pairs.all(|(a, b)| {
                    let ulps = order(i32::from(a), 1 << 15).abs_diff(order(i32::from(b), 1 << 15));
                    near(from_half(a), from_half(b), ulps)
                })
        }
        Dtype::F32 => {
            let pairs = a.chunks_exact(4).zip(b.chunks_exact(4));
            let bits = |f: &[u8]| u32::from_le_bytes([f[0], f[1], f[2], f[3]]);
            let mut pairs = pairs.map(|(a, b)| (bits(a), bits(b)));
            a.len().is_multiple_of(4)
                && pairs.all(|(a, b)| {
                    let ulps = order(a as i32, i32::MIN).abs_diff(order(b as i32, i32::MIN));
                    near(f32::from_bits(a), f32::from_bits(b), ulps)
                })
        }
    }
}

fn is_near(tolerance: &Tolerance, a: f32, b: f32, ulps: u32) -> bool {
    if a.is_nan() || b.is_nan() {
        return a.is_nan() && b.is_nan();
    }
    if a == b {
        return true;
    }
    if a.is_infinite() || b.is_infinite() {
        return false;
    }
    let apart = (a - b).abs();
    apart <= tolerance.abs
        || apart <= tolerance.rel * a.abs().max(b.abs())
        || ulps <= tolerance.ulps
}

/// Bits of a float as a number whose neighbours are the float's neighbours.
fn order(bits: i32, sign: i32) -> i32 {
    if bits & sign == 0 { bits } else { (bits & !sign).wrapping_neg() }
}

fn from_half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let (exponent, fraction) = (u32::from(bits >> 10 & 0x1f), u32::from(bits & 0x3ff));
    match (exponent, fraction) {
        (0, _) => {
            let tiny = fraction as f32 / 16_777_216.0;
            if sign == 0 { tiny } else { -tiny }
        }
        (0x1f, _) => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

impl Ballot {
    /// Settles what hashes can settle; says which answer must be compared with which group by bytes.
    pub(crate) fn next_comparison(&mut self, exact: bool) -> Option<(usize, usize)> {
        loop {
            let at = self.first_open()?;
            let answer = &self.answers[at];
            if answer.tested == self.groups.len() {
                self.begin_group(at);
                continue;
            }
            let group = answer.tested;
            let first = &self.answers[self.groups[group]];
            let same = by_hash(first, answer, exact);
            match same {
                None => return Some((at, group)),
                Some(true) => self.compared(at, Outcome::Same),
                Some(false) => self.compared(at, Outcome::Different),
            }
        }
    }

    /// Nobody has said the same before. Whom it is near, is near it too.
    fn begin_group(&mut self, at: usize) {
        let bit = 1 << self.groups.len();
        self.groups.push(at);
        let near = self.answers[at].near;
        self.answers[at].fits = bit;
        for answer in self.answers.iter_mut().filter(|answer| answer.fits & near != 0) {
            answer.near |= bit;
        }
    }

    pub(crate) fn first_open(&self) -> Option<usize> {
        self.answers.iter().position(|answer| self.is_open(answer))
    }

    /// The answer was compared with the next group.
    pub(crate) fn compared(&mut self, at: usize, outcome: Outcome) {
        let Some(first) = self.answers.get(at).and_then(|answer| self.groups.get(answer.tested))
        else {
            return;
        };
        let first = self.answers.get(*first);
        let (first_class, first_near) = first.map_or((0, 0), |first| (first.class, first.near));
        let Some(answer) = self.answers.get_mut(at) else { return };
        let same_class = answer.class != 0 && answer.class == first_class;
        let bit = 1 << answer.tested;
        match outcome {
            // Whoever says the same is near the same.
            Outcome::Same => {
                (answer.fits, answer.near) = (answer.fits | bit, answer.near | first_near)
            }
            // Within a class only the same bits are the same answer; but a class is what a node says of
            // itself, so nobody is convicted for so little.
            Outcome::Near if same_class => answer.near |= bit,
            Outcome::Near => answer.fits |= bit,
            Outcome::Different | Outcome::Unreadable => {}
        }
        answer.tested += 1;
    }

    /// Takes out an answer that belongs to no group.
    pub(crate) fn drop_answer(&mut self, at: usize) -> Answer {
        for first in &mut self.groups {
            *first -= usize::from(*first > at);
        }
        self.answers.remove(at)
    }
}

/// `None` if only the bytes can tell.
fn by_hash(a: &Answer, b: &Answer, exact: bool) -> Option<bool> {
    match (a.place, b.place) {
        (None, None) => Some(true),
        (None, Some(_)) | (Some(_), None) => Some(false),
        (Some(_), Some(_)) if a.span != b.span => None,
        (Some(x), Some(y)) if (x.hash, x.size) == (y.hash, y.size) => Some(true),
        (Some(x), Some(y)) => (exact || x.size != y.size).then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn bytes(floats: &[f32]) -> Vec<u8> {
        floats.iter().flat_map(|f| f.to_le_bytes()).collect()
    }

    #[test]
    fn floats_agree_within_one_of_three_bounds_and_nan_is_nan() {
        let usual = Tolerance::usual(Dtype::F32);
        let agree = |a: &[f32], b: &[f32]| agree(&usual, &bytes(a), &bytes(b));
        assert!(agree(&[1.0, f32::NAN], &[1.000_05, f32::NAN]));
        assert!(agree(&[0.0, -0.0], &[-0.0, 5e-6]));
        assert!(agree(&[1e30], &[1.000_01e30]));
        assert!(!agree(&[1.0], &[1.001]));
        assert!(!agree(&[1.0], &[f32::NAN]));
        assert!(!agree(&[f32::INFINITY], &[f32::MAX]));
        assert!(!agree(&[1.0], &[1.0, 2.0]));
    }

    #[test]
    fn halves_are_read_right() {
        assert_eq!(from_half(0x3c00), 1.0);
        assert_eq!(from_half(0xc000), -2.0);
        assert_eq!(from_half(0x0001), 1.0 / 16_777_216.0);
        let usual = Tolerance::usual(Dtype::F16);
        assert!(agree(&usual, &0x3c00u16.to_le_bytes(), &0x3c01u16.to_le_bytes()));
        assert!(!agree(&usual, &0x3c00u16.to_le_bytes(), &0x4000u16.to_le_bytes()));
    }
}
