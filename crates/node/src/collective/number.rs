//! Numbers on the wire, and sums of them. Sums are made in f32 (or i32) and in a fixed order, so that the same
//! ranks get the same bits in every run.

use alloc::vec;
use alloc::vec::Vec;

use super::narrow::{Q8_BYTES, Q8_NUMBERS, from_bf16, from_f16, from_q8, to_bf16, to_f16, to_q8};
use super::tag::TAG_BYTES;

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    F32,
    F16,
    Bf16,
    I32,
    /// Blocks of 32 that share a scale; the last block is filled up with zeros.
    Q8,
}

/// What becomes of two numbers. Whole numbers wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fold {
    Sum,
    Least,
    Most,
}

/// What is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    pub element: Element,
    pub count: usize,
    pub fold: Fold,
}

impl Element {
    /// Bytes of what cannot be cut, and numbers in it.
    pub(super) fn block(self) -> (usize, usize) {
        match self {
            Element::F32 | Element::I32 => (4, 1),
            Element::F16 | Element::Bf16 => (2, 1),
            Element::Q8 => (Q8_BYTES, Q8_NUMBERS),
        }
    }

    /// Bytes of this many numbers.
    pub fn bytes(self, count: usize) -> usize {
        let (bytes, numbers) = self.block();
        count.div_ceil(numbers) * bytes
    }

    /// Writes numbers, with room for a tag behind them. Of [`Element::I32`] only whole ones can be written right.
    pub fn encode(self, numbers: &[f32]) -> Vec<u8> {
        match self {
            Element::F32 => write(numbers, |number| number.to_le_bytes()),
            Element::F16 => write(numbers, |number| to_f16(*number).to_le_bytes()),
            Element::Bf16 => write(numbers, |number| to_bf16(*number).to_le_bytes()),
            Element::I32 => write(numbers, |number| (*number as i32).to_le_bytes()),
            Element::Q8 => {
                let (blocks, rest) = numbers.as_chunks();
                let mut bytes = write(blocks, to_q8);
                if !rest.is_empty() {
                    bytes.extend(to_q8(&filled(rest)));
                }
                bytes
            }
        }
    }

    /// Reads numbers; bytes that are no whole block at the end are skipped.
    pub fn decode(self, bytes: &[u8]) -> Vec<f32> {
        let mut numbers = vec![0.0; bytes.len() / self.block().0 * self.block().1];
        self.each(bytes, &mut numbers, |into, number| *into = number);
        numbers
    }

    fn each(self, bytes: &[u8], into: &mut [f32], with: impl Fn(&mut f32, f32)) {
        match self {
            Element::F32 => {
                let (words, _) = bytes.as_chunks::<4>();
                let pairs = into.iter_mut().zip(words);
                pairs.for_each(|(into, word)| with(into, f32::from_le_bytes(*word)));
            }
            Element::I32 => {
                let (words, _) = bytes.as_chunks::<4>();
                let pairs = into.iter_mut().zip(words);
                pairs.for_each(|(into, word)| with(into, i32::from_le_bytes(*word) as f32));
            }
            Element::F16 => {
                let (words, _) = bytes.as_chunks::<2>();
                let pairs = into.iter_mut().zip(words);
                pairs.for_each(|(into, word)| with(into, from_f16(u16::from_le_bytes(*word))));
            }
            Element::Bf16 => {
                let (words, _) = bytes.as_chunks::<2>();
                let pairs = into.iter_mut().zip(words);
                pairs.for_each(|(into, word)| with(into, from_bf16(u16::from_le_bytes(*word))));
            }
            Element::Q8 => {
                let (blocks, _) = bytes.as_chunks::<Q8_BYTES>();
                for (some, block) in into.chunks_mut(Q8_NUMBERS).zip(blocks) {
                    let numbers = from_q8(block);
                    some.iter_mut().zip(numbers).for_each(|(into, number)| with(into, number));
                }
            }
        }
    }
}

fn write<T, const N: usize>(from: &[T], bytes_of: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(from.len() * N + N + TAG_BYTES);
    bytes.resize(from.len() * N, 0);
    let (words, _) = bytes.as_chunks_mut::<N>();
    words.iter_mut().zip(from).for_each(|(word, from)| *word = bytes_of(from));
    bytes
}

fn filled(some: &[f32]) -> [f32; Q8_NUMBERS] {
    core::array::from_fn(|at| some.get(at).copied().unwrap_or(0.0))
}

/// What is folded so far. On the way between ranks it is written in full width.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Folded {
    Real(Vec<f32>),
    Whole(Vec<i32>),
}

impl Folded {
    /// Begins with one rank's own numbers.
    pub(super) fn of(element: Element, bytes: &[u8]) -> Folded {
        match element {
            Element::I32 => {
                let (words, _) = bytes.as_chunks::<4>();
                Folded::Whole(words.iter().map(|word| i32::from_le_bytes(*word)).collect())
            }
            Element::F32 | Element::F16 | Element::Bf16 | Element::Q8 => {
                Folded::Real(element.decode(bytes))
            }
        }
    }

    /// Begins with what other ranks folded.
    pub(super) fn of_folded(element: Element, bytes: &[u8]) -> Folded {
        Folded::of(full_width(element), bytes)
    }

    /// Folds in one rank's own numbers.
    pub(super) fn add(&mut self, element: Element, fold: Fold, bytes: &[u8]) {
        match self {
            Folded::Real(numbers) => match fold {
                Fold::Sum => element.each(bytes, numbers, |into, number| *into += number),
                Fold::Least => element.each(bytes, numbers, |into, number| {
                    *into = if number < *into { number } else { *into };
                }),
                Fold::Most => element.each(bytes, numbers, |into, number| {
                    *into = if number > *into { number } else { *into };
                }),
            },
            Folded::Whole(numbers) => {
                let (words, _) = bytes.as_chunks::<4>();
                for (into, word) in numbers.iter_mut().zip(words) {
                    let number = i32::from_le_bytes(*word);
                    *into = match fold {
                        Fold::Sum => into.wrapping_add(number),
                        Fold::Least => number.min(*into),
                        Fold::Most => number.max(*into),
                    };
                }
            }
        }
    }

    /// Folds in what other ranks folded.
    pub(super) fn add_folded(&mut self, element: Element, fold: Fold, bytes: &[u8]) {
        self.add(full_width(element), fold, bytes);
    }

    /// In full width, for the next rank.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Folded::Real(numbers) => Element::F32.encode(numbers),
            Folded::Whole(numbers) => write(numbers, |number| number.to_le_bytes()),
        }
    }

    /// As it is written on the wire in the end.
    pub(super) fn result(&self, element: Element) -> Vec<u8> {
        match self {
            Folded::Real(numbers) => element.encode(numbers),
            Folded::Whole(_) => self.bytes(),
        }
    }
}

fn full_width(element: Element) -> Element {
    match element {
        Element::I32 => Element::I32,
        Element::F32 | Element::F16 | Element::Bf16 | Element::Q8 => Element::F32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_bytes() {
        let numbers: Vec<f32> = (0..70).map(|n| n as f32).collect();
        for element in [Element::F32, Element::F16, Element::Bf16, Element::I32, Element::Q8] {
            for count in [0, 1, 31, 32, 33, 70] {
                let bytes = element.encode(&numbers[..count]);
                assert_eq!(bytes.len(), element.bytes(count));
                assert!(element.decode(&bytes).len() >= count);
            }
            let back = element.decode(&element.encode(&numbers[..32]));
            let close = |(one, two): (&f32, &f32)| (one - two).abs() < 0.15;
            assert!(back.iter().zip(&numbers).all(close), "{element:?} {back:?}");
        }
    }

    #[test]
    fn folds_are_what_they_say() {
        let [one, two] = [[1.0, -2.0, 3.0], [2.0, -3.0, 1.0]].map(|n| Element::F16.encode(&n));
        let folded = |fold| {
            let mut folded = Folded::of(Element::F16, &one);
            folded.add(Element::F16, fold, &two);
            Element::F16.decode(&folded.result(Element::F16))
        };
        assert_eq!(folded(Fold::Sum), [3.0, -5.0, 4.0]);
        assert_eq!(folded(Fold::Least), [1.0, -3.0, 1.0]);
        assert_eq!(folded(Fold::Most), [2.0, -2.0, 3.0]);
    }

    #[test]
    fn whole_numbers_wrap() {
        let most = i32::MAX.to_le_bytes();
        let mut folded = Folded::of(Element::I32, &most);
        folded.add_folded(Element::I32, Fold::Sum, &1i32.to_le_bytes());
        assert_eq!(folded, Folded::Whole(vec![i32::MIN]));
    }
}
