//! Items not yet cut into units, as disjoint spans.

use alloc::collections::BTreeMap;
use shoal_protocol::Span;

/// A set of items kept as maximal runs: start to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpanSet {
    runs: BTreeMap<u64, u64>,
    len: u64,
}

impl SpanSet {
    pub(crate) fn of(span: Span) -> SpanSet {
        let mut set = SpanSet::default();
        set.insert(span);
        set
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn spans(&self) -> impl Iterator<Item = Span> {
        self.runs.iter().map(|(start, end)| Span::new(*start, end - start))
    }

    /// Adds a span, none of whose items may be in the set.
    pub(crate) fn insert(&mut self, span: Span) {
        if span.len == 0 {
            return;
        }
        self.len += span.len;
        let (mut start, mut end) = (span.start, span.end());
        if let Some((&before, &touch)) = self.runs.range(..start).next_back()
            && touch == start
        {
            self.runs.remove(&before);
            start = before;
        }
        if let Some(after) = self.runs.remove(&end) {
            end = after;
        }
        self.runs.insert(start, end);
    }

    /// Cuts at most `most` items off the front.
    pub(crate) fn take_front(&mut self, most: u64) -> Option<Span> {
        let (start, end) = self.runs.pop_first()?;
        let cut = end.min(start.saturating_add(most));
        if cut < end {
            self.runs.insert(cut, end);
        }
        self.len -= cut - start;
        Some(Span::new(start, cut - start))
    }

    /// Cuts out exactly this span, if all of it is in the set.
    pub(crate) fn take(&mut self, span: Span) -> bool {
        let Some((&start, &end)) = self.runs.range(..=span.start).next_back() else {
            return false;
        };
        if span.len == 0 || span.end() > end {
            return false;
        }
        self.runs.remove(&start);
        if start < span.start {
            self.runs.insert(start, span.start);
        }
        if span.end() < end {
            self.runs.insert(span.end(), end);
        }
        self.len -= span.len;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn neighbours_grow_together() {
        let mut set = SpanSet::of(Span::new(0, 10));
        let front = set.take_front(4);
        assert_eq!(front, Some(Span::new(0, 4)));
        assert!(set.take(Span::new(6, 2)));
        assert!(!set.take(Span::new(5, 2)), "item 6 is gone");
        set.insert(Span::new(0, 4));
        set.insert(Span::new(6, 2));
        assert_eq!(set.spans().collect::<Vec<_>>(), [Span::new(0, 10)]);
        assert_eq!(set.len, 10);
    }

    #[test]
    fn a_span_past_the_end_is_not_taken() {
        let mut set = SpanSet::of(Span::new(0, 10));
        assert!(!set.take(Span::new(8, 5)));
        assert!(!set.take(Span::new(8, u64::MAX)));
        assert_eq!(set.len, 10);
    }
}
