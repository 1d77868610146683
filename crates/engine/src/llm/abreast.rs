//! Texts on devices that compute abreast: each has a share of every matrix ([`Shard`]), and for each token all of them
//! compute all layers together. They give each other what they made several times in each layer, so that what one goes
//! on with is what a device with the whole model would have there, bit for bit. The one with the last part knows what was
//! asked: it tells the others which tokens are read next, gets all numbers for the next token, and chooses it.
//!
//! What passes, all little-endian:
//!
//! | way | bytes |
//! |---|---|
//! | `Asked`, `Aside` | what was asked, as [`Asked`] reads it |
//! | `Among`, tokens | a byte 0; whether a token is to be chosen behind the last one, a byte; position of the first u32; tokens u32 |
//! | `Among`, numbers | a byte 1; three bytes of nothing; position of the first row u32; step u32; the first of these numbers among all of a row, or the first word of whom they are u32; then f32 |
//!
//! Whoever makes nothing in a step, because its share is too small for a head or has none of the words, says nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use shoal_kinds::crew::{Out, Way};
use shoal_protocol::Failure;
use shoal_text::{Answer, Asked, Bounds, Said, Spelling, Token, pack};

use super::rounds::{Dropped, Given, Turn, lost, wrong};
use super::shard::{Shard, Step};
use super::stage::{MOST_ROWS, Row};

const TOKENS: u8 = 0;
const NUMBERS: u8 = 1;
const TOKENS_HEAD: usize = 6;
const NUMBERS_HEAD: usize = 16;
/// Texts of which something is here: more than any crew has at work, with those whose end is still to be heard of.
const MOST_TEXTS: usize = 1024;
/// Of what is to be read next, and not begun here.
const MOST_TOLD: usize = 3;
/// Nobody adds to a row what it did not get from all others. So others are at most half a layer ahead, or at the
/// beginning of what is read next.
const MOST_STEPS: usize = 6;

/// One device's share, and what it keeps of each text.
pub struct Abreast {
    shard: Shard,
    bounds: Bounds,
    spelling: Option<Arc<Spelling>>,
    texts: BTreeMap<u64, Text>,
    dropped: Dropped,
}

#[derive(Default)]
struct Text {
    /// At the device that chooses.
    answer: Option<Answer>,
    /// What is to be read behind what is under way.
    told: VecDeque<Tokens>,
    under_way: Option<UnderWay>,
    /// By position and step, and where they belong in a row.
    numbers: BTreeMap<Place, BTreeMap<u32, Vec<f32>>>,
}

/// Position of the first row, and a step's number.
type Place = (u32, u32);

struct Tokens {
    position: u32,
    tokens: Vec<Token>,
    wants: bool,
}

/// Rows between two steps.
struct UnderWay {
    read: Tokens,
    /// What all make of it is awaited.
    step: Step,
    x: Vec<f32>,
}

/// What is said in a turn, for each item that was given, and what it was about.
struct Saying<'a> {
    made: &'a mut [Result<Vec<Out>, Failure>],
    /// The item that stands for a text.
    items: &'a BTreeMap<u64, usize>,
    /// One row of a text went through all layers.
    usual: bool,
    /// Of a text in a step.
    most_rows: usize,
}

impl Abreast {
    /// `spelling` as for an [`Answer`]; only the device with the last part needs it.
    pub fn new(shard: Shard, bounds: Bounds, spelling: Option<Arc<Spelling>>) -> Abreast {
        let (texts, dropped) = (BTreeMap::new(), Dropped::default());
        Abreast { shard, bounds, spelling, texts, dropped }
    }

    /// A new epoch: nothing is left of any text.
    pub fn clear(&mut self) {
        for text in std::mem::take(&mut self.texts).into_keys() {
            self.shard.drop_sequence(text);
        }
    }

    /// Nobody wants that text any more.
    pub fn forget(&mut self, text: u64) {
        self.texts.remove(&text);
        self.shard.drop_sequence(text);
        self.dropped.insert(text);
    }

    /// Computes all that is given, as far as it goes. `now` is in microseconds of any clock. `usual` says that a token
    /// behind what was read went through all layers here.
    pub fn turn(&mut self, given: &[Given<'_>], now: u64) -> Turn {
        let mut made: Vec<Result<Vec<Out>, Failure>> = Vec::with_capacity(given.len());
        let mut items = BTreeMap::new();
        for (at, given) in given.iter().enumerate() {
            let begun = self.begin(given, now);
            if begun.is_ok() {
                items.insert(given.text, at);
            }
            made.push(begun);
        }
        let mut saying = Saying { made: &mut made, items: &items, usual: false, most_rows: 0 };
        while self.go_on(&mut saying, now) {}
        let (usual, single) = (saying.usual, saying.most_rows == 1);
        Turn { made, usual: usual && single, single }
    }

    /// Takes what is given.
    fn begin(&mut self, given: &Given<'_>, now: u64) -> Result<Vec<Out>, Failure> {
        let Given { text, way, bytes } = *given;
        if self.dropped.contains(text) {
            return Err(lost("the text was dropped"));
        }
        if !self.texts.contains_key(&text) && self.texts.len() >= MOST_TEXTS {
            return Err(lost("too many texts"));
        }
        match way {
            Way::Asked if Asked::unpack(bytes).is_some_and(|asked| asked.ask.embed.is_some()) => {
                Err(wrong("devices that share a model give no numbers of texts"))
            }
            Way::Asked if !self.shard.is_last() => {
                self.texts.entry(text).or_default();
                Ok([Out::Aside(bytes.to_vec())].into())
            }
            Way::Asked | Way::Aside => {
                let asked = Asked::unpack(bytes).ok_or_else(|| wrong("no text to continue"))?;
                let answer = Answer::new(asked, self.bounds, self.spelling.as_ref(), now);
                let kept = self.texts.entry(text).or_default();
                kept.answer = Some(answer.map_err(wrong)?);
                Ok(self.tells(text))
            }
            Way::Among => {
                let heard = self.hear(text, bytes);
                if heard.is_err() {
                    // Nothing of it goes on here, so nothing of it stays.
                    self.texts.remove(&text);
                    self.shard.drop_sequence(text);
                }
                heard.map(|()| Vec::new())
            }
            Way::Again => Ok(self.tells(text)),
            Way::On | Way::Round => Err(lost("words of devices that stand in a chain")),
        }
    }

    /// Tells the others what is read next, and has it read here.
    fn tells(&mut self, text: u64) -> Vec<Out> {
        let kept = self.texts.get_mut(&text);
        let Some((kept, next)) = kept.and_then(|kept| {
            let next = kept.answer.as_ref()?.next()?;
            let (position, wants) = (next.position, next.wants);
            let tokens = Tokens { position, tokens: next.tokens.to_vec(), wants };
            Some((kept, tokens))
        }) else {
            return Vec::new();
        };
        let bytes = next.bytes();
        kept.told.push_back(next);
        [Out::Among(bytes)].into()
    }

    fn hear(&mut self, text: u64, bytes: &[u8]) -> Result<(), Failure> {
        let heard = Heard::read(bytes).ok_or_else(|| lost("words that make no sense"))?;
        let kept = self.texts.entry(text).or_default();
        match heard {
            Heard::Tokens(tokens) => {
                if kept.told.len() >= MOST_TOLD || tokens.tokens.len() > self.bounds.step {
                    return Err(lost("more to read than there can be"));
                }
                kept.told.push_back(tokens);
            }
            Heard::Numbers { place, first, numbers } => {
                let step = Step::of(place.1, self.shard.layers());
                let step = step.ok_or_else(|| lost("numbers of a step that is none"))?;
                let rows = if step == Step::Head { 1 } else { self.bounds.step };
                if !kept.numbers.contains_key(&place) && kept.numbers.len() >= MOST_STEPS {
                    return Err(lost("numbers of more steps than there can be"));
                }
                let here = kept.numbers.entry(place).or_default();
                let held: usize = here.values().map(Vec::len).sum();
                if held + numbers.len() > rows * self.shard.all(step) {
                    return Err(lost("more numbers than there can be"));
                }
                if here.insert(first, numbers).is_some() {
                    return Err(lost("numbers that are here already"));
                }
            }
        }
        Ok(())
    }

    /// Begins what is told and takes all texts that can go on a step further, those at the same step together. Says
    /// whether there were any.
    fn go_on(&mut self, saying: &mut Saying<'_>, now: u64) -> bool {
        let mut together: BTreeMap<u32, (Step, Vec<u64>)> = BTreeMap::new();
        let (mut moved, texts) = (false, saying.items);
        for text in texts.keys().copied() {
            moved |= self.read(text, saying);
            match self.is_made(text) {
                Ok(None) => {}
                Ok(Some(Step::Head)) => {
                    moved = true;
                    self.chooses(text, saying, now);
                }
                Ok(Some(step)) => {
                    // Behind all but the last step there is one.
                    if let Some(next) = step.next(self.shard.layers()) {
                        let others = together.entry(next.number());
                        others.or_insert_with(|| (next, Vec::new())).1.push(text);
                    }
                }
                Err(failure) => self.fails(text, saying, failure),
            }
        }
        moved |= !together.is_empty();
        for (step, texts) in together.into_values() {
            let mut batch: Vec<u64> = Vec::new();
            let mut rows = 0;
            for text in texts {
                let own = self.rows_of(text).len();
                if rows + own > MOST_ROWS && !batch.is_empty() {
                    self.make(step, &std::mem::take(&mut batch), saying);
                    rows = 0;
                }
                rows += own;
                batch.push(text);
            }
            self.make(step, &batch, saying);
        }
        moved
    }

    /// Begins with what is to be read next, if nothing else is under way. Says whether it did.
    fn read(&mut self, text: u64, saying: &mut Saying<'_>) -> bool {
        let length = self.shard.length(text);
        let kept = self.texts.get_mut(&text).filter(|kept| kept.under_way.is_none());
        let Some((kept, read)) = kept.and_then(|kept| {
            let read = kept.told.pop_front()?;
            Some((kept, read))
        }) else {
            return false;
        };
        let position = read.position;
        if position != length {
            // A hole is an error, not a guess: an answer from it would be fluent and wrong.
            let words = format!("position {position} behind {length} positions");
            self.fails(text, saying, lost(&words));
            return false;
        }
        match self.shard.words(&read.tokens) {
            Ok(own) => {
                kept.under_way = Some(UnderWay { read, step: Step::Words, x: Vec::new() });
                self.gives(text, Step::Words, own, saying);
                true
            }
            Err(error) => {
                self.fails(text, saying, lost(&error.to_string()));
                false
            }
        }
    }

    /// The step of a text that all have made; none if some of it is missing.
    fn is_made(&self, text: u64) -> Result<Option<Step>, Failure> {
        let kept = self.texts.get(&text);
        let Some((kept, under_way)) = kept.and_then(|kept| Some((kept, kept.under_way.as_ref()?)))
        else {
            return Ok(None);
        };
        let there = kept.numbers.get(&under_way.place());
        let there = there.map_or(0, |all| all.values().map(Vec::len).sum::<usize>());
        let all = under_way.made_rows() * self.shard.all(under_way.step);
        match there.cmp(&all) {
            std::cmp::Ordering::Less => Ok(None),
            std::cmp::Ordering::Equal => Ok(Some(under_way.step)),
            std::cmp::Ordering::Greater => Err(lost("more numbers than there can be")),
        }
    }

    fn rows_of(&self, text: u64) -> Vec<Row> {
        let under_way = self.texts.get(&text).and_then(|kept| kept.under_way.as_ref());
        let Some(UnderWay { read, .. }) = under_way else { return Vec::new() };
        let count = read.tokens.len();
        let row = |at: usize| Row {
            sequence: text,
            position: read.position + at as u32,
            wants_logits: read.wants && at + 1 == count,
        };
        (0..count).map(row).collect()
    }

    /// Texts at the same step take it together. One that is wrong must not fail the others.
    fn make(&mut self, step: Step, texts: &[u64], saying: &mut Saying<'_>) {
        let (mut batch, mut taken) = (Vec::new(), Vec::new());
        for text in texts {
            match self.taken(*text) {
                Ok(both) => {
                    batch.push(*text);
                    taken.push(both);
                }
                Err(failure) => self.fails(*text, saying, failure),
            }
        }
        let rows: Vec<Row> = batch.iter().flat_map(|text| self.rows_of(*text)).collect();
        if rows.is_empty() {
            return;
        }
        let mut x: Vec<f32> = taken.iter().flat_map(|(x, _)| x.iter().copied()).collect();
        let whole = taken.iter().flat_map(|(_, whole)| whole.iter().copied()).collect();
        match self.shard.make(step, &rows, &mut x, whole) {
            Ok(made) => self.made(step, &batch, (&x, &made), saying),
            Err(_) if batch.len() > 1 => {
                for (text, (mut x, whole)) in batch.into_iter().zip(taken) {
                    match self.shard.make(step, &self.rows_of(text), &mut x, whole) {
                        Ok(made) => self.made(step, &[text], (&x, &made), saying),
                        Err(error) => self.fails(text, saying, lost(&error.to_string())),
                    }
                }
            }
            Err(error) => {
                for text in batch {
                    self.fails(text, saying, lost(&error.to_string()));
                }
            }
        }
    }

    /// What goes from layer to layer, and what all have made of it.
    fn taken(&mut self, text: u64) -> Result<(Vec<f32>, Vec<f32>), Failure> {
        let kept = self.texts.get_mut(&text).ok_or_else(|| lost("an unknown text"))?;
        let under_way = kept.under_way.as_mut().ok_or_else(|| lost("nothing is under way"))?;
        let all = kept.numbers.remove(&under_way.place()).unwrap_or_default();
        let width = self.shard.all(under_way.step);
        let whole = match under_way.step {
            Step::Words => of_words(&under_way.read.tokens, &all, width),
            Step::Look(_) | Step::Mix(_) | Step::Gate(_) | Step::Down(_) | Step::Head => {
                of_rows(under_way.made_rows(), &all, width)
            }
        };
        let whole = whole.ok_or_else(|| lost("numbers that do not fit together"))?;
        Ok((std::mem::take(&mut under_way.x), whole))
    }

    /// Some texts took a step: each has so many rows of both.
    fn made(
        &mut self,
        step: Step,
        batch: &[u64],
        (mut x, mut made): (&[f32], &[f32]),
        saying: &mut Saying<'_>,
    ) {
        let wanted = |read: &Tokens| match step {
            Step::Head => usize::from(read.wants),
            Step::Words | Step::Look(_) | Step::Mix(_) | Step::Gate(_) | Step::Down(_) => {
                read.tokens.len()
            }
        };
        let width = self.shard.all(Step::Words);
        let all: usize = batch.iter().map(|text| self.under_way(*text, wanted)).sum();
        let each = made.len() / all.max(1);
        for text in batch {
            let rows = self.under_way(*text, |read| read.tokens.len());
            let (own_x, own);
            (own_x, x) = x.split_at(rows * width);
            (own, made) = made.split_at(self.under_way(*text, wanted) * each);
            let Some(kept) = self.texts.get_mut(text) else { continue };
            let Some(under_way) = &mut kept.under_way else { continue };
            (under_way.step, under_way.x) = (step, own_x.to_vec());
            let is_last = match step {
                // What comes behind would change nothing that anybody waits for.
                Step::Look(layer) => !under_way.read.wants && layer + 1 == self.shard.layers(),
                Step::Words | Step::Mix(_) | Step::Gate(_) | Step::Down(_) | Step::Head => false,
            };
            saying.usual |= step == Step::Head && rows == 1;
            saying.most_rows = saying.most_rows.max(rows);
            if is_last {
                self.ends_reading(*text, saying);
            } else {
                self.gives(*text, step, own.to_vec(), saying);
            }
        }
    }

    fn under_way(&self, text: u64, what: impl Fn(&Tokens) -> usize) -> usize {
        let under_way = self.texts.get(&text).and_then(|kept| kept.under_way.as_ref());
        under_way.map_or(0, |under_way| what(&under_way.read))
    }

    /// This device's numbers are here, and go to all who need them.
    fn gives(&mut self, text: u64, step: Step, own: Vec<f32>, saying: &mut Saying<'_>) {
        let chooses = self.shard.is_last();
        let Some(kept) = self.texts.get_mut(&text) else { return };
        let Some(under_way) = &kept.under_way else { return };
        let (place, first) = (under_way.place(), self.shard.first(step) as u32);
        let only_to_last = step == Step::Head;
        let has_all = only_to_last && chooses;
        if !has_all && !own.is_empty() {
            let bytes = numbers_bytes(place, first, &own);
            let out = if only_to_last { Out::Choose(bytes) } else { Out::Among(bytes) };
            saying.push(text, [out]);
        }
        if only_to_last && !chooses {
            kept.under_way = None;
        } else if !own.is_empty() {
            kept.numbers.entry(place).or_default().insert(first, own);
        }
    }

    /// All layers have what they keep of tokens behind which nobody wants a number.
    fn ends_reading(&mut self, text: u64, saying: &mut Saying<'_>) {
        let Some(kept) = self.texts.get_mut(&text) else { return };
        kept.under_way = None;
        let Some(answer) = &mut kept.answer else { return };
        match answer.computed(None, 0) {
            Ok(_) => {
                let outs = self.tells(text);
                saying.push(text, outs);
            }
            Err(error) => self.fails(text, saying, wrong(error)),
        }
    }

    /// All numbers for the next token are here.
    fn chooses(&mut self, text: u64, saying: &mut Saying<'_>, now: u64) {
        let taken = self.taken(text).map(|(_, logits)| logits);
        let alone = self.shard.is_first() && self.shard.is_last();
        let said = taken.and_then(|logits| {
            let kept = self.texts.get_mut(&text).ok_or_else(|| lost("an unknown text"))?;
            kept.under_way = None;
            let answer = kept.answer.as_mut().ok_or_else(|| lost("an unknown text"))?;
            let said = answer.computed(Some(&logits), now).map_err(wrong)?;
            Ok((said, answer.is_over()))
        });
        match said {
            Ok((said, over)) => {
                for said in &said {
                    match said {
                        Said::Token(_) => saying.push(text, [Out::Part(pack(said))]),
                        Said::Done(_) => saying.push(text, [Out::Last(pack(said))]),
                        Said::Embedding(_) => {
                            let failure = lost("numbers that nobody asked for");
                            return self.fails(text, saying, failure);
                        }
                    }
                }
                // One that has everything lets others' turns come between.
                match (over, alone) {
                    (true, _) => {}
                    (false, true) => saying.push(text, [Out::Again]),
                    (false, false) => {
                        let outs = self.tells(text);
                        saying.push(text, outs);
                    }
                }
            }
            Err(failure) => self.fails(text, saying, failure),
        }
    }

    /// Nothing of that text goes on here.
    fn fails(&mut self, text: u64, saying: &mut Saying<'_>, failure: Failure) {
        self.texts.remove(&text);
        self.shard.drop_sequence(text);
        if let Some(at) = saying.items.get(&text) {
            saying.made[*at] = Err(failure);
        }
    }
}

impl UnderWay {
    fn place(&self) -> Place {
        (self.read.position, self.step.number())
    }

    /// Rows of what all make in this step.
    fn made_rows(&self) -> usize {
        match self.step {
            Step::Head => usize::from(self.read.wants),
            Step::Words | Step::Look(_) | Step::Mix(_) | Step::Gate(_) | Step::Down(_) => {
                self.read.tokens.len()
            }
        }
    }
}

impl Saying<'_> {
    fn push(&mut self, text: u64, outs: impl IntoIterator<Item = Out>) {
        let made = self.items.get(&text).map(|at| &mut self.made[*at]);
        if let Some(Ok(all)) = made {
            all.extend(outs);
        }
    }
}

enum Heard {
    Tokens(Tokens),
    Numbers { place: Place, first: u32, numbers: Vec<f32> },
}

impl Heard {
    fn read(bytes: &[u8]) -> Option<Heard> {
        let word = |at: usize| {
            let (word, _) = bytes.get(at..)?.split_first_chunk::<4>()?;
            Some(u32::from_le_bytes(*word))
        };
        match *bytes.first()? {
            TOKENS => {
                let (tokens, []) = bytes.get(TOKENS_HEAD..)?.as_chunks::<4>() else { return None };
                let tokens: Vec<Token> = tokens.iter().map(|it| u32::from_le_bytes(*it)).collect();
                let (position, wants) = (word(2)?, *bytes.get(1)? == 1);
                (!tokens.is_empty()).then_some(Heard::Tokens(Tokens { position, tokens, wants }))
            }
            NUMBERS => {
                let (all, []) = bytes.get(NUMBERS_HEAD..)?.as_chunks::<4>() else { return None };
                let numbers: Vec<f32> = all.iter().map(|it| f32::from_le_bytes(*it)).collect();
                let (place, first) = ((word(4)?, word(8)?), word(12)?);
                (!numbers.is_empty()).then_some(Heard::Numbers { place, first, numbers })
            }
            _ => None,
        }
    }
}

impl Tokens {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![TOKENS, self.wants.into()];
        bytes.extend(self.position.to_le_bytes());
        bytes.extend(self.tokens.iter().flat_map(|token| token.to_le_bytes()));
        bytes
    }
}

fn numbers_bytes((position, step): Place, first: u32, numbers: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(NUMBERS_HEAD + numbers.len() * 4);
    bytes.extend([NUMBERS, 0, 0, 0]);
    for word in [position, step, first] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

/// Embeddings in the order of the tokens: each device gave those of its words, from its first one on, in that order.
fn of_words(tokens: &[Token], all: &BTreeMap<u32, Vec<f32>>, width: usize) -> Option<Vec<f32>> {
    let mut rows: BTreeMap<u32, _> =
        all.iter().map(|(first, numbers)| (*first, numbers.chunks_exact(width))).collect();
    let mut whole = Vec::with_capacity(tokens.len() * width);
    for token in tokens {
        let (_, rows) = rows.range_mut(..=*token).next_back()?;
        whole.extend(rows.next()?);
    }
    Some(whole)
}

/// Rows of which each device gave some numbers that stand side by side.
fn of_rows(rows: usize, all: &BTreeMap<u32, Vec<f32>>, width: usize) -> Option<Vec<f32>> {
    let mut whole = vec![0.0; rows * width];
    let mut at = 0;
    for (first, numbers) in all {
        let own = numbers.len() / rows.max(1);
        if *first as usize != at || own * rows != numbers.len() || at + own > width {
            return None;
        }
        for (row, numbers) in whole.chunks_exact_mut(width).zip(numbers.chunks_exact(own)) {
            row[at..at + own].copy_from_slice(numbers);
        }
        at += own;
    }
    (at == width).then_some(whole)
}
