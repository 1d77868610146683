//! What devices answer: the truth, or one of several kinds of lies. An answer's bytes say which, so that the
//! oracle knows what the scheduler must find out.

use std::collections::BTreeMap;

use shoal_protocol::{Hash, JobId, Span};

use crate::device::Device;
use crate::random::Random;

/// What an answer says: nothing but the truth, or a lie about some items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// 0 is the truth; the same number is the same lie.
    lie: u64,
    /// The items lied about.
    from: u64,
    to: u64,
    /// Honest devices of different numeric classes differ in the last bits.
    class: u64,
}

impl Content {
    pub(crate) fn lying(lie: u64, about: Span, class: u64) -> Content {
        Content { lie, from: about.start, to: about.end(), class }
    }

    pub(crate) fn truth(class: u64) -> Content {
        Content { class, ..Content::default() }
    }

    pub(crate) fn is_wrong(&self, items: Span) -> bool {
        self.about(items).is_some()
    }

    /// What a comparison within a tolerance finds.
    pub(crate) fn same(&self, other: &Content, items: Span) -> bool {
        self.about(items) == other.about(items)
    }

    fn about(&self, items: Span) -> Option<(u64, u64, u64)> {
        let (from, to) = (self.from.max(items.start), self.to.min(items.end()));
        (self.lie != 0 && from < to).then_some((self.lie, from, to))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.lie, self.from, self.to, self.class].into_iter().flat_map(u64::to_le_bytes).collect()
    }

    pub(crate) fn read(hash: &Hash) -> Content {
        let word = |at: usize| {
            let bytes = &hash.0[at * 8..at * 8 + 8];
            u64::from_le_bytes(std::array::from_fn(|i| bytes[i]))
        };
        Content { lie: word(0), from: word(1), to: word(2), class: word(3) }
    }
}

/// How a device treats those who asked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Character {
    Honest,
    Liar {
        kind: Lie,
        /// Right answers it gives first, to be trusted.
        after: u64,
        /// After that it lies once in so many answers.
        every: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Something else every time.
    Random,
    /// One item of the unit is wrong.
    Subtle,
    /// An old answer again.
    Lazy,
    /// What all of a group say; they also cover for each other.
    Concert { group: u64 },
}

/// What a device was asked for, and in which numeric class it answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) job: JobId,
    pub(crate) span: Span,
    pub(crate) class: u64,
}

/// What groups of liars told each other: which items of which job they lied about.
#[derive(Default)]
pub(crate) struct Conspiracy {
    lies: BTreeMap<(u64, JobId), BTreeMap<u64, u64>>,
    told: u64,
}

impl Conspiracy {
    /// What a device answers.
    pub(crate) fn answer(&mut self, who: &Device, asked: Asked, random: &mut Random) -> Content {
        let Asked { job, span, class } = asked;
        let (character, answers) = (who.character, who.answers);
        let Character::Liar { kind, after, every } = character else {
            return Content::truth(class);
        };
        let lies = answers >= after && random.range(0, every) == 0;
        if let Lie::Concert { group } = kind {
            let covers = self.has_lied(group, job, span);
            if covers || lies {
                self.lies.entry((group, job)).or_default().insert(span.start, span.end());
                return Content::lying(1_000 + group, span, 0);
            }
        }
        if !lies {
            return Content::truth(class);
        }
        self.told += 1;
        match kind {
            Lie::Random => Content::lying(1_000_000 + self.told, span, 0),
            Lie::Lazy => Content::lying(500_000 + who.number, span, 0),
            Lie::Subtle | Lie::Concert { .. } => {
                let item = Span::new(span.start + random.range(0, span.len), 1);
                Content::lying(1_000_000 + self.told, item, class)
            }
        }
    }

    fn has_lied(&self, group: u64, job: JobId, span: Span) -> bool {
        let Some(lies) = self.lies.get(&(group, job)) else { return false };
        lies.range(..span.end()).next_back().is_some_and(|(_, end)| *end > span.start)
    }
}
