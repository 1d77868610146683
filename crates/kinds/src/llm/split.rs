//! A language model as a row of layers. Devices that stand in a chain each hold some that stand side by side. A text goes
//! through all of them for every token: the last one chooses it and tells the first.

use alloc::vec::Vec;
use core::ops::Range;
use shoal_protocol::Span;

use super::{By, LlmWork};
use crate::crew::{Chain, ChainPart, CrewPlan, CrewProblem, Flow, Pace, Recovery};

/// Parts of one model at most: more than devices that ever stand in one chain, few enough that placement tries all.
pub const MOST_PARTS: u32 = 24;
/// Texts that a member holds beside the conversations: those that are over stay until it hears so, and meanwhile others may
/// have begun.
pub const SPARE_TEXTS: u16 = 2;
/// What an engine holds beside weights and conversations, for each part.
const BESIDE: u64 = 2 << 20;
/// Bytes of a number between two layers.
const NUMBER: u64 = 4;

impl LlmWork {
    /// What devices that share it have to do for each token.
    pub(super) fn together(&self) -> CrewPlan {
        let flow = Flow::Rounds { calls: self.conversations };
        let (problem, trial) = match self.by {
            By::Layers => {
                let parts = (0..self.parts()).map(|part| self.part(Span::new(part.into(), 1)));
                let parts: Vec<ChainPart> = parts.collect();
                let trial = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.work));
                (CrewProblem::Chain(Chain { parts, pace: Pace::Flowing, flow }), trial)
            }
            By::Tensors => {
                let group = self.group(flow);
                (CrewProblem::Group(group), group.work.saturating_mul(group.shares))
            }
        };
        CrewPlan {
            problem,
            members: 0,
            steps: 0,
            keep_every: Some(0),
            guesses: false,
            trial,
            // A text follows from what was asked and said: it is read again behind that.
            recovery: Recovery::Replay,
            totals: None,
        }
    }

    fn parts(&self) -> u32 {
        self.about.layers.clamp(1, MOST_PARTS)
    }

    /// Texts that a member of a chain holds at a time.
    pub fn texts(&self) -> u16 {
        self.conversations.saturating_add(SPARE_TEXTS)
    }

    /// The layers of some parts.
    pub fn layers(&self, parts: Span) -> Option<Range<u32>> {
        let (all, layers) = (u64::from(self.parts()), u64::from(self.about.layers));
        let end = parts.start.checked_add(parts.len).filter(|end| *end <= all && parts.len > 0)?;
        let first = |part: u64| (part * layers / all) as u32;
        Some(first(parts.start)..first(end))
    }

    fn part(&self, part: Span) -> ChainPart {
        let about = &self.about;
        let layers = self.layers(part).unwrap_or(0..0);
        let (is_first, is_last) = (layers.start == 0, layers.end == about.layers);
        let own = layers.clone().filter_map(|layer| about.layer_weights.get(layer as usize));
        let own = own.fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let head = if is_last { about.last_weights } else { 0 };
        let first = if is_first { about.first_weights } else { 0 };
        // Of the words' numbers a token reads one row.
        let work = own.saturating_add(head).max(1);
        let each = about.cache / u64::from(about.layers.max(1)) * layers.len() as u64;
        let texts = each.saturating_mul(self.context.into());
        let texts = texts.saturating_mul(self.texts().into());
        let weights = own.saturating_add(head).saturating_add(first);
        let bytes = self.packed(weights).saturating_add(texts).saturating_add(BESIDE);
        ChainPart { work, bytes, out_bytes: self.wire.bytes(u64::from(about.width) * NUMBER) }
    }
}

/// A request behind which stands what was said to it already; whole words of it, and how many bytes those are.
pub(super) fn resumed(request: &[u8], answer: &[u8]) -> (Vec<u8>, u64) {
    let whole = words(answer).last().unwrap_or(0);
    ([request, &answer[..whole]].concat(), whole as u64)
}

/// Where each whole word of an answer ends.
pub(super) fn words(answer: &[u8]) -> impl Iterator<Item = usize> {
    let mut end = 0;
    core::iter::from_fn(move || {
        let (length, rest) = answer[end..].split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        if rest.len() < length {
            return None;
        }
        end += 4 + length;
        Some(end)
    })
}

/// How the words begin that are numbers of a text: nobody goes on behind those.
const NUMBERS: u8 = 2;

/// Where the words of an answer end that another device can be asked for.
pub(super) fn words_again(answer: &[u8]) -> Vec<usize> {
    let all = if answer.get(4) == Some(&NUMBERS) { 1 } else { usize::MAX };
    words(answer).take(all).collect()
}

/// How the word begins that ends an answer, and how much of it says why: what stands behind that are times.
const END: u8 = 1;
const END_BYTES: usize = 2;

/// Whether two devices said the same word, with its chances if those were asked for. None while the second one's is not
/// complete.
pub(super) fn same_word(word: &[u8], again: &[u8]) -> Option<bool> {
    let end = words(again).next()?;
    let body = |word: &[u8]| {
        let body = word.get(4..).unwrap_or_default();
        let counts =
            if body.first() == Some(&END) { END_BYTES.min(body.len()) } else { body.len() };
        body[..counts].to_vec()
    };
    Some(body(word) == body(&again[..end]))
}

#[cfg(test)]
mod tests {
    use super::super::{On, Summary};
    use super::*;
    use crate::kind::About;
    use crate::wire::Wire;
    use shoal_protocol::{BlobRef, Hash};

    fn work(layers: u32) -> LlmWork {
        let about = Summary {
            layers,
            layer_weights: Vec::from_iter((0..layers).map(|_| 8 << 20)),
            first_weights: 16 << 20,
            last_weights: 32 << 20,
            cache: 1024 * u64::from(layers),
            width: 576,
            ..Summary::default()
        };
        let model = BlobRef { hash: Hash([0; 32]), size: 81 << 20 };
        let (wire, split, by, on) = (Wire::F32, true, By::Layers, On::Processor);
        LlmWork { model, about, context: 1024, conversations: 4, split, wire, by, on }
    }

    #[test]
    fn all_layers_are_in_the_parts_once_and_in_order() {
        for layers in [1, 2, 23, 24, 25, 30, 80] {
            let work = work(layers);
            let plan = work.crew().expect("a chain");
            let parts = plan.problem.shares();
            let each = (0..parts).map(|part| work.layers(Span::new(part, 1)).expect("layers"));
            let end = each.fold(0, |at, layers| {
                assert!(layers.start == at && layers.end > at);
                layers.end
            });
            assert_eq!(end, layers);
            assert_eq!(work.layers(Span::new(0, parts)), Some(0..layers));
            assert_eq!(work.layers(Span::new(1, parts)), None);
            assert_eq!(work.layers(Span::new(0, 0)), None);
        }
    }

    #[test]
    fn the_ends_hold_more_and_the_last_one_does_more() {
        let plan = work(24).crew().expect("a chain");
        let CrewProblem::Chain(chain) = plan.problem else { panic!("a chain") };
        let of = |at: usize| (chain.parts[at].work >> 20, chain.parts[at].bytes >> 20);
        // Its weights and an eighth more, six texts of a mebibyte, and what else an engine holds.
        assert_eq!(of(1), (8, 9 + 6 + 2));
        assert_eq!(of(0), (8, 27 + 6 + 2));
        assert_eq!(of(23), (40, 45 + 6 + 2));
        assert_eq!(chain.parts[0].out_bytes, 2304);
        for (wire, bytes) in [(Wire::F16, 1152), (Wire::Int8, 648)] {
            let plan = LlmWork { wire, ..work(24) }.crew().expect("a chain");
            let CrewProblem::Chain(chain) = plan.problem else { panic!("a chain") };
            assert_eq!(chain.parts[0].out_bytes, bytes, "{wire}");
        }
        assert_eq!(chain.flow, Flow::Rounds { calls: 4 });
    }

    #[test]
    fn a_request_is_resumed_behind_whole_words() {
        let words = [3, 0, 0, 0, 7, 7, 7, 1, 0, 0, 0, 9];
        assert_eq!(resumed(b"ask", &words), ([&b"ask"[..], &words].concat(), 12));
        assert_eq!(resumed(b"ask", &words[..11]), ([&b"ask"[..], &words[..7]].concat(), 7));
        assert_eq!(resumed(b"ask", &[255; 6]), (b"ask".to_vec(), 0));
        assert_eq!(resumed(b"ask", &[]), (b"ask".to_vec(), 0));
    }

    #[test]
    fn a_word_said_again_is_compared_when_all_of_it_is_there_and_times_do_not_count() {
        let word = [3, 0, 0, 0, 0, 7, 8];
        assert_eq!(same_word(&word, &word[..6]), None);
        assert_eq!(same_word(&word, &word), Some(true));
        // What comes behind it is another word.
        assert_eq!(same_word(&word, &[&word[..], &[9, 0]].concat()), Some(true));
        assert_eq!(same_word(&word, &[3, 0, 0, 0, 0, 7, 9]), Some(false));
        assert_eq!(same_word(&[], &word), Some(false));
        // An end, and how long all took.
        let end = |why, time| [3, 0, 0, 0, END, why, time];
        assert_eq!(same_word(&end(0, 5), &end(0, 6)), Some(true));
        assert_eq!(same_word(&end(0, 5), &end(1, 5)), Some(false));
        assert_eq!(same_word(&end(0, 5), &word), Some(false));
        assert_eq!(same_word(&word, &end(0, 5)), Some(false));
    }

    #[test]
    fn words_can_be_said_again_unless_numbers_were_rounded_on_their_way_or_a_gpu_said_them() {
        let answer = [1, 0, 0, 0, 7, 2, 0, 0, 0, END, 0];
        let rounded = LlmWork { wire: Wire::F16, ..work(4) };
        assert_eq!(work(4).steps_again(&answer, true), Some(Vec::from([5, 11])));
        assert_eq!(rounded.steps_again(&answer, true), None);
        assert_eq!(rounded.steps_again(&answer, false), Some(Vec::from([5, 11])), "by one alone");
        let on_gpu = LlmWork { split: false, on: On::Gpu, ..work(4) };
        assert_eq!(on_gpu.steps_again(&answer, false), None, "another one has other bits");
        let numbers = [1, 0, 0, 0, NUMBERS, 2, 0, 0, 0, END, 0];
        assert_eq!(work(4).steps_again(&numbers, false), Some(Vec::from([5])));
    }
}
