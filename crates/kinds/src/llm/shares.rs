//! A language model as shares of every matrix. Devices with a share each compute all layers of a token together, and give
//! each other what they made several times in each layer. The last one chooses the token.

use shoal_protocol::Span;

use super::LlmWork;
use super::work::BESIDE;
use crate::crew::{Flow, Group};

/// Shares of one model at most: the smallest is two hundredths, and they go up evenly for many numbers of devices.
const MOST_SHARES: u64 = 48;
/// Rows of a matrix that stay together: whoever has a share has some of every row's numbers.
const TOGETHER: u32 = 16;
/// In a layer, devices give each other what they made so often; and twice beside the layers, for the words.
const EXCHANGES: u64 = 4;
const FOR_WORDS: u64 = 2;
/// Heads stay whole, so a device may have nearly half a head more than its share at both ends of it: of what is kept of
/// texts, and of those matrices that are at most a third of the weights.
const OF_WEIGHTS: u64 = 3;
/// Bytes of a number.
const NUMBER: u64 = 4;

impl LlmWork {
    pub fn shares(&self) -> u64 {
        MOST_SHARES.min(self.about.width.div_ceil(TOGETHER).into()).max(1)
    }

    /// Whether a device may have these.
    pub fn has_shares(&self, shares: Span) -> bool {
        shares.len > 0
            && shares.start.checked_add(shares.len).is_some_and(|end| end <= self.shares())
    }

    pub(super) fn group(&self, flow: Flow) -> Group {
        let (about, shares) = (&self.about, self.shares());
        let layers =
            about.layer_weights.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let texts = about.cache.saturating_mul(self.context.into());
        let texts = texts.saturating_mul(self.texts().into());
        // The embedding may be the head as well: then a device has its rows once.
        let weights = self.packed(about.weights);
        let heads = u64::from(about.heads.max(1));
        let more = (texts / heads).saturating_add(weights / heads / OF_WEIGHTS);
        let made = u64::from(about.made) * NUMBER;
        Group {
            shares,
            work: (layers.saturating_add(about.last_weights) / shares).max(1),
            share_bytes: weights.saturating_add(texts).div_ceil(shares),
            common_bytes: more.saturating_add(BESIDE),
            exchanges: EXCHANGES * u64::from(about.layers) + FOR_WORDS,
            exchange_bytes: made / EXCHANGES,
            flow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{By, On, Summary};
    use super::*;
    use crate::crew::CrewProblem;
    use crate::kind::About;
    use crate::wire::Wire;
    use alloc::vec;
    use shoal_protocol::{BlobRef, Hash};

    fn work(width: u32) -> LlmWork {
        let about = Summary {
            layers: 30,
            layer_weights: vec![8 << 20; 30],
            weights: 288 << 20,
            last_weights: 48 << 20,
            cache: 1024,
            width,
            made: 8 * width,
            heads: 4,
            ..Summary::default()
        };
        let model = BlobRef { hash: Hash([0; 32]), size: 288 << 20 };
        let (wire, split, by, on) = (Wire::F32, true, By::Tensors, On::Processor);
        LlmWork { model, about, context: 1024, conversations: 2, split, wire, by, on }
    }

    #[test]
    fn all_shares_together_are_all_of_it() {
        let plan = work(576).crew().expect("a group");
        let CrewProblem::Group(group) = plan.problem else { panic!("a group") };
        // Three quarters of a row of 576 numbers for each exchange, at each of which all give what they made.
        assert_eq!((group.shares, group.exchanges), (36, 122));
        assert_eq!(group.exchange_bytes, 2 * 576 * 4);
        let all = Span::new(0, group.shares);
        // Weights and an eighth more, four texts of a mebibyte; a head more of both, and what else there is.
        let held = plan.problem.held_bytes(all) >> 20;
        assert_eq!(held, 324 + 4 + 28 + 64);
        assert!(plan.problem.work(all).abs_diff(288 << 20) < group.shares);
        assert_eq!(group.flow, Flow::Rounds { calls: 2 });
    }

    #[test]
    fn every_share_has_some_numbers_of_each_row() {
        for (width, shares) in [(1, 1), (64, 4), (576, 36), (4096, 48)] {
            let work = work(width);
            assert_eq!(work.shares(), shares);
            assert!(work.has_shares(Span::new(0, shares)));
            assert!(!work.has_shares(Span::new(1, shares)) && !work.has_shares(Span::new(0, 0)));
            assert!(!work.has_shares(Span::new(u64::MAX, 2)));
        }
    }
}
