//! What a member said to the next one, kept so that it can be said again. It begins at a mark, where the next one's
//! state begins anew, or it is of no use to one that has none.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// What an entry costs beside its bytes.
const ENTRY_COST: u64 = 64;

/// One thing that crosses the boundary between two members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Counts them, from 0; the same at every boundary.
    pub n: u64,
    /// A mark: what came before it changes nothing from here on.
    pub fresh: bool,
    pub bytes: Arc<Vec<u8>>,
}

impl Item {
    fn cost(&self) -> u64 {
        self.bytes.len() as u64 + ENTRY_COST
    }
}

#[derive(Debug)]
pub struct Log {
    items: VecDeque<Item>,
    bytes: u64,
    most: u64,
    /// Of the next item; none before the first.
    next: Option<u64>,
    /// What came before this mark is needed by nobody.
    safe: u64,
}

impl Log {
    /// Keeps so many bytes, and what was not said yet.
    pub fn new(most: u64) -> Log {
        Log { items: VecDeque::new(), bytes: 0, most, next: None, safe: 0 }
    }

    /// What came before this mark is needed by nobody.
    pub fn safe(&self) -> u64 {
        self.safe
    }

    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// All before `said` were said to the one behind, or are not wanted there.
    pub fn push(&mut self, item: Item, said: u64) {
        if self.next.is_some_and(|next| next != item.n) {
            self.release(item.n);
        }
        self.next = Some(item.n + 1);
        if item.n < self.safe {
            return;
        }
        self.bytes += item.cost();
        self.items.push_back(item);
        self.trim(said);
    }

    /// What was said before that mark need not be said again.
    pub fn release(&mut self, mark: u64) {
        self.safe = self.safe.max(mark);
        while self.items.front().is_some_and(|item| item.n < mark) {
            self.pop();
        }
    }

    /// The first mark that is kept: there one without a state can begin.
    pub fn first(&self) -> Option<u64> {
        self.items.iter().find(|item| item.fresh).map(|item| item.n)
    }

    /// Something was said that matters, and nobody can begin with what is kept of it.
    pub fn is_torn(&self) -> bool {
        self.first().is_none() && self.next.is_some_and(|next| next > self.safe)
    }

    pub fn item(&self, n: u64) -> Option<&Item> {
        let at = n.checked_sub(self.items.front()?.n)?;
        self.items.get(usize::try_from(at).ok()?)
    }

    pub fn check(&self) {
        assert_eq!(self.bytes, self.items.iter().map(Item::cost).sum::<u64>(), "bytes of a log");
        let last = self.items.back().map(|item| item.n + 1);
        assert!(last.is_none_or(|last| Some(last) == self.next), "a log with a hole");
        let pairs = self.items.iter().zip(self.items.iter().skip(1));
        assert!(pairs.into_iter().all(|(one, two)| one.n + 1 == two.n), "a log with a hole");
    }

    /// Where it is too long the oldest go, and with them all up to the next mark, with which nobody could begin.
    fn trim(&mut self, said: u64) {
        let mut cut = false;
        while let Some(item) = self.items.front()
            && item.n < said
            && (self.bytes > self.most || cut && !item.fresh)
        {
            self.pop();
            cut = true;
        }
    }

    fn pop(&mut self) {
        self.bytes -= self.items.pop_front().as_ref().map_or(0, Item::cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(n: u64, fresh: bool) -> Item {
        Item { n, fresh, bytes: Arc::new(alloc::vec![0; 36]) }
    }

    #[test]
    fn what_is_too_much_goes_from_mark_to_mark() {
        let mut log = Log::new(500);
        for n in 0..7 {
            log.push(item(n, n % 3 == 0), n);
            log.check();
        }
        assert_eq!((log.first(), log.next(), log.is_torn()), (Some(3), Some(7), false));
        assert!(log.item(2).is_none() && log.item(3).is_some() && log.item(7).is_none());
    }

    #[test]
    fn a_stretch_longer_than_the_log_is_torn_until_the_next_mark() {
        let mut log = Log::new(250);
        for n in 0..5 {
            log.push(item(n, n == 0), n);
            log.check();
        }
        assert_eq!((log.first(), log.next(), log.is_torn()), (None, Some(5), true));
        log.push(item(5, true), 5);
        assert_eq!((log.first(), log.is_torn()), (Some(5), false));
    }

    #[test]
    fn what_was_not_said_stays_however_much_it_is() {
        let mut log = Log::new(100);
        (0..6).for_each(|n| log.push(item(n, n == 0), 2));
        log.check();
        assert!(log.item(1).is_none() && (2..6).all(|n| log.item(n).is_some()));
    }

    #[test]
    fn what_is_released_goes_and_does_not_come_back() {
        let mut log = Log::new(10_000);
        (0..6).for_each(|n| log.push(item(n, n % 2 == 0), n));
        log.release(4);
        log.check();
        assert_eq!((log.first(), log.is_torn()), (Some(4), false));
        log.release(8);
        log.push(item(6, true), 9);
        log.push(item(7, false), 9);
        assert_eq!((log.first(), log.next(), log.is_torn()), (None, Some(8), false));
    }
}
