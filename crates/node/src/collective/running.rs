//! One operation at work on one rank: what came is folded or put in its place, and passed on.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use shoal_protocol::Time;

use super::number::{Folded, Numbers};
use super::plan::{Plan, Slice};
use super::tag::{Stage, TAG_BYTES, Tag};
use super::topology::{Rank, View};
use super::{Fault, OpId};

/// To whom, and the message with its tag.
pub(super) type Sends = Vec<(Rank, Arc<Vec<u8>>)>;

pub(super) struct Running {
    id: OpId,
    view: View,
    plan: Plan,
    data: Arc<Vec<u8>>,
    result: Vec<u8>,
    /// Segments whose numbers are not all here: slice, segment.
    folds: BTreeMap<(u8, u16), Folding>,
    awaited: BTreeSet<(Rank, Tag)>,
    pub(super) patience: BTreeMap<Rank, Awaited>,
}

/// A rank that has yet to send something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited {
    messages: u32,
    /// When it last sent something, or when waiting began.
    pub(super) since: Time,
    /// Somebody was told that it is slow.
    pub(super) told: bool,
}

/// Numbers come in any order and are folded in that of the sources.
#[derive(Default)]
struct Folding {
    done: usize,
    folded: Option<Folded>,
    early: BTreeMap<usize, Vec<u8>>,
}

impl Running {
    pub(super) fn new(now: Time, id: OpId, view: View, plan: Plan, data: Arc<Vec<u8>>) -> Running {
        let result = vec![0; plan.gets];
        let mut running = Running {
            id,
            view,
            data,
            result,
            folds: BTreeMap::new(),
            awaited: BTreeSet::new(),
            patience: BTreeMap::new(),
            plan,
        };
        running.expect(now);
        running
    }

    /// Everything that others must send.
    fn expect(&mut self, now: Time) {
        for (at, slice) in (0u8..).zip(&self.plan.slices) {
            let sources = match self.plan.fold {
                Some(_) => self.view.sources(self.plan.how, slice.owner),
                None => Vec::new(),
            };
            let folds = sources.into_iter().map(|rank| (rank, Stage::Fold));
            let result = self.origin(slice).map(|rank| (rank, Stage::Result));
            let others = folds.chain(result).filter(|(rank, _)| *rank != self.view.me);
            for (rank, stage) in others {
                for segment in 0..slice.segments() {
                    let tag = Tag { op: self.id.0, stage, slice: at, segment };
                    self.awaited.insert((rank, tag));
                    let new = Awaited { messages: 0, since: now, told: false };
                    self.patience.entry(rank).or_insert(new).messages += 1;
                }
            }
        }
    }

    fn origin(&self, slice: &Slice) -> Option<Rank> {
        match slice.only_to {
            Some(to) => (to == self.view.me && slice.owner != to).then_some(slice.owner),
            None => self.view.origin(self.plan.how, slice.owner),
        }
    }

    fn targets(&self, slice: &Slice) -> Vec<Rank> {
        match slice.only_to {
            Some(to) if slice.owner == self.view.me && to != self.view.me => vec![to],
            Some(_) => Vec::new(),
            None => self.view.targets(self.plan.how, slice.owner),
        }
    }

    /// Says what needs nobody else's word.
    pub(super) fn begin(&mut self, sends: &mut Sends) {
        // Segment by segment over all slices, so that all ranks have something to do at once. On a ring
        // each begins with the slice it starts.
        let slices = self.plan.slices.len() as u8;
        let most = self.plan.slices.iter().map(Slice::segments).max().unwrap_or(0);
        for segment in 0..most {
            for step in 0..slices {
                let at = ((u16::from(self.view.me.0) + u16::from(step)) % u16::from(slices)) as u8;
                let Some(slice) = self.slice(at).filter(|slice| segment < slice.segments()) else {
                    continue;
                };
                if let Some(numbers) = self.plan.fold {
                    self.fold(at, segment, numbers, sends);
                } else if slice.owner == self.view.me {
                    self.finish(at, segment, self.own_copy(&slice, segment), sends);
                }
            }
        }
    }

    pub(super) fn is_awaited(&self, from: Rank, tag: Tag) -> bool {
        self.awaited.contains(&(from, tag))
    }

    pub(super) fn received(
        &mut self,
        now: Time,
        from: Rank,
        tag: Tag,
        bytes: Vec<u8>,
        sends: &mut Sends,
    ) -> Result<(), Fault> {
        let slice = self.slice(tag.slice).filter(|_| self.is_awaited(from, tag));
        let slice = slice.ok_or(Fault::Unexpected)?;
        let own = slice.segment(tag.segment).len();
        match (tag.stage, self.plan.fold) {
            (Stage::Fold, Some(numbers)) => {
                let leaf = self.view.is_leaf(self.plan.how, slice.owner, from);
                let (block, count) = numbers.element.block();
                let expected = if leaf { own } else { own / block * count * 4 };
                if bytes.len() != expected {
                    return Err(Fault::WrongLength);
                }
                self.heard(now, from, tag);
                let sources = self.view.sources(self.plan.how, slice.owner);
                let place = sources.iter().position(|source| *source == from);
                let place = place.ok_or(Fault::Unexpected)?;
                let folding = self.folds.entry((tag.slice, tag.segment)).or_default();
                folding.early.insert(place, bytes);
                self.fold(tag.slice, tag.segment, numbers, sends);
            }
            (Stage::Result, _) => {
                if bytes.len() != own {
                    return Err(Fault::WrongLength);
                }
                self.heard(now, from, tag);
                self.finish(tag.slice, tag.segment, bytes, sends);
            }
            (Stage::Fold, None) | (Stage::Point, _) => return Err(Fault::Unexpected),
        }
        Ok(())
    }

    fn heard(&mut self, now: Time, from: Rank, tag: Tag) {
        self.awaited.remove(&(from, tag));
        let Some(awaited) = self.patience.get_mut(&from) else { return };
        (awaited.messages, awaited.since, awaited.told) = (awaited.messages - 1, now, false);
        if awaited.messages == 0 {
            self.patience.remove(&from);
        }
    }

    /// Folds as far as numbers are here; if that is all of them, passes the fold on.
    fn fold(&mut self, at: u8, segment: u16, numbers: Numbers, sends: &mut Sends) {
        let Some(slice) = self.slice(at) else { return };
        let how = self.plan.how;
        let sources = self.view.sources(how, slice.owner);
        let sink = self.view.sink(how, slice.owner);
        let tag = Tag { op: self.id.0, stage: Stage::Fold, slice: at, segment };
        if let (1, Some(sink)) = (sources.len(), sink) {
            // Nobody's numbers but one's own: they go as they are.
            sends.push((sink, tag.message_of(self.own(&slice, segment))));
            return;
        }
        let mut folding = self.folds.remove(&(at, segment)).unwrap_or_default();
        while let Some(source) = sources.get(folding.done) {
            let own = *source == self.view.me;
            let early = folding.early.remove(&folding.done);
            let bytes = match &early {
                Some(bytes) => bytes,
                None if own => self.own(&slice, segment),
                None => break,
            };
            let raw = own || self.view.is_leaf(how, slice.owner, *source);
            folding.take(numbers, raw, bytes);
            folding.done += 1;
        }
        if folding.done < sources.len() {
            self.folds.insert((at, segment), folding);
            return;
        }
        let Some(folded) = folding.folded else { return };
        match sink {
            Some(sink) => sends.push((sink, tag.message(folded.bytes()))),
            None => self.finish(at, segment, folded.result(numbers.element), sends),
        }
    }

    /// A segment is as it will be: keep it and pass it on.
    fn finish(&mut self, at: u8, segment: u16, bytes: Vec<u8>, sends: &mut Sends) {
        let Some(slice) = self.slice(at) else { return };
        let range = slice.segment(segment);
        if let Some(got_at) = slice.got_at
            && let Some(place) = self.result.get_mut(got_at + range.start..got_at + range.end)
        {
            place.copy_from_slice(&bytes);
        }
        let tag = Tag { op: self.id.0, stage: Stage::Result, slice: at, segment };
        let targets = self.targets(&slice);
        if targets.is_empty() {
            return;
        }
        let message = tag.message(bytes);
        sends.extend(targets.into_iter().map(|rank| (rank, message.clone())));
    }

    fn slice(&self, at: u8) -> Option<Slice> {
        self.plan.slices.get(usize::from(at)).cloned()
    }

    fn own(&self, slice: &Slice, segment: u16) -> &[u8] {
        let range = slice.segment(segment);
        let range = slice.given_at + range.start..slice.given_at + range.end;
        self.data.get(range).unwrap_or_default()
    }

    /// With room for a tag.
    fn own_copy(&self, slice: &Slice, segment: u16) -> Vec<u8> {
        let own = self.own(slice, segment);
        let mut copy = Vec::with_capacity(own.len() + TAG_BYTES);
        copy.extend_from_slice(own);
        copy
    }

    /// The result, if nothing is awaited any more.
    pub(super) fn done(&mut self) -> Option<Vec<u8>> {
        self.awaited.is_empty().then(|| core::mem::take(&mut self.result))
    }

    /// Panics where an invariant does not hold.
    pub(super) fn check(&self) {
        let messages: u32 = self.patience.values().map(|awaited| awaited.messages).sum();
        assert_eq!(messages as usize, self.awaited.len(), "awaited messages are counted wrong");
        assert!(!self.awaited.is_empty(), "an operation that waits for nobody is done");
        let folds = self.folds.values().all(|folding| !folding.early.contains_key(&folding.done));
        assert!(folds, "numbers are here and not folded");
        let mine = self.awaited.iter().any(|(rank, _)| *rank == self.view.me);
        assert!(!mine, "waiting for oneself");
    }
}

impl Folding {
    fn take(&mut self, numbers: Numbers, raw: bool, bytes: &[u8]) {
        let (element, fold) = (numbers.element, numbers.fold);
        match &mut self.folded {
            Some(folded) if raw => folded.add(element, fold, bytes),
            Some(folded) => folded.add_folded(element, fold, bytes),
            None if raw => self.folded = Some(Folded::of(element, bytes)),
            None => self.folded = Some(Folded::of_folded(element, bytes)),
        }
    }
}
