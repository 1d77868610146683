//! Some layers of a model in a chain of devices, through which texts go round and round: the first device reads tokens,
//! each passes on what its layers make of them, the last one chooses a token and tells the first. So a text costs a hop
//! for each boundary, and one back. What the devices in between get are numbers; only the first and the last see tokens.
//!
//! What passes, all little-endian:
//!
//! | way | bytes |
//! |---|---|
//! | `Asked`, `Aside` | what was asked, as [`Asked`] reads it |
//! | `On` | 0 u8; position of the first row u32; behind how many of the last rows a token is to be chosen u8; which form the rows have u8, as in [`Wire::ALL`]; then each row in that form |
//! | `On` | 1 u8, text u64; then as above: what comes before the first row is the same as in that text, which is over |
//! | `On` | 2 u8: a device before has nothing of that text |
//! | `Round` | position u32; the token that was chosen u32; guesses of those that follow it, u32 each. None at position 0: all is read from the beginning |
//!
//! The last device guesses what it says next, if that is worth what it costs: all compute guesses together with the
//! token before them, so that a round brings several tokens. A token is chosen behind each as it would be without
//! guesses. The next round begins behind those that were right, and there each device forgets the others. Nothing else
//! is ever forgotten so: a round that begins before what was guessed is an error, and so is a hole.
//!
//! What is left of texts that are over stays while nobody needs the room, so that one that begins in the same way need not
//! be read from its beginning. The first device finds such a text and the others are told its number. One that has it no
//! more, or less of it, says so: the word goes on to the last one and from there to the first, which begins again.
//! What was sent before that is of no use to anybody, and is taken by none.
//!
//! Each row is formed by itself, so that it becomes the same bytes whatever is sent with it: a text that is read again
//! after a loss goes on as before. Rows that the wanted form has no room for travel as they are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use shoal_kinds::Wire;
use shoal_kinds::crew::{Out, Way};
use shoal_protocol::Failure;
use shoal_text::{Answer, Asked, Bounds, Next, Said, Spelling, Token, pack};

use super::kept::{Kept, LEAST, Rest};
use super::prices::Prices;
use super::stage::{Input, MOST_ROWS, Output, Row, Stage};

/// Tokens of a text that are read in one go: others' turns come between, and the next device begins meanwhile.
pub const READ_STEP: usize = 64;
/// Texts that were dropped, and whose words may still be on their way.
const MOST_DROPPED: usize = 1024;
/// Behind so many rounds with guesses comes one without: what a device takes for a single row says how fast it is, and
/// what a round takes without guesses says what guesses cost.
const MOST_GUESSING: u32 = 15;
const HEAD: usize = 6;
/// What an `On` begins with.
const ROWS: u8 = 0;
const BEHIND: u8 = 1;
const MISSING: u8 = 2;
/// A round that says that all is read from the beginning.
const BEGINNING: [u8; 4] = [0; 4];

/// One device's layers, and what it keeps of each text.
pub struct Rounds {
    stage: Stage,
    bounds: Bounds,
    spelling: Option<Arc<Spelling>>,
    wire: Wire,
    texts: BTreeMap<u64, Text>,
    dropped: Dropped,
    kept: Kept,
    /// At the last device: what guesses cost, with the way there and back.
    prices: Prices,
}

/// The last texts that nobody wants any more.
#[derive(Default)]
pub(super) struct Dropped {
    texts: BTreeSet<u64>,
    /// In the order they were dropped.
    order: VecDeque<u64>,
}

impl Dropped {
    pub(super) fn contains(&self, text: u64) -> bool {
        self.texts.contains(&text)
    }

    pub(super) fn insert(&mut self, text: u64) {
        if self.texts.insert(text) {
            self.order.push_back(text);
        }
        if self.order.len() > MOST_DROPPED
            && let Some(oldest) = self.order.pop_front()
        {
            self.texts.remove(&oldest);
        }
    }
}

#[derive(Default)]
struct Text {
    /// At the first device: all that is to be read, and what was said to it.
    read: Vec<Token>,
    /// The stage's name for its positions, if that is not its number.
    sequence: Option<u64>,
    /// At the first one: it begins as that text did, which the next one is to be told.
    behind: Option<u64>,
    /// Another device may not have that text.
    may_begin_again: bool,
    /// At the first one: it comes again by itself, to read more.
    comes_again: bool,
    /// The positions before those that were sent are missing here.
    misses: bool,
    /// At the last one: so many positions were there when it began.
    found: u32,
    /// At the last one, once it knows what was asked.
    answer: Option<Answer>,
    /// At the last one, before that: for each step how many rows it had, and what came out if it was wanted.
    early: Vec<(usize, Option<Vec<f32>>)>,
    /// Of the positions that are here, so many at the end are guesses.
    guesses: u32,
    /// At the last one: when the round that is under way began.
    since: Option<u64>,
    /// Rounds with guesses since the last one without.
    guessing: u32,
}

impl Text {
    fn is_speaking(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| !answer.is_over())
    }
}

/// What comes to this device, of one text.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    pub text: u64,
    pub way: Way,
    pub bytes: &'a [u8],
}

/// What is made of it.
pub struct Turn {
    /// For each that was given, in order.
    pub made: Vec<Result<Vec<Out>, Failure>>,
    /// One row of each text went through all that is here: how long this takes says how fast the device is.
    pub usual: bool,
    /// One row of each was computed, perhaps not through all.
    pub single: bool,
}

/// Rows to compute.
struct Step {
    /// Which of those given it is.
    at: usize,
    text: u64,
    position: u32,
    tokens: Vec<Token>,
    hidden: Vec<f32>,
    rows: usize,
    /// Behind so many of the last ones a token is to be chosen.
    wants: usize,
}

impl Rounds {
    /// `spelling` as for an [`Answer`]; only the last device needs it.
    pub fn new(
        stage: Stage,
        bounds: Bounds,
        spelling: Option<Arc<Spelling>>,
        wire: Wire,
    ) -> Rounds {
        let (texts, dropped, prices) = (BTreeMap::new(), Dropped::default(), Prices::new());
        let kept = Kept::default();
        Rounds { stage, bounds, spelling, wire, texts, dropped, kept, prices }
    }

    /// A new epoch: nothing is left of any text.
    pub fn clear(&mut self) {
        for (text, kept) in std::mem::take(&mut self.texts) {
            self.stage.drop_sequence(kept.sequence.unwrap_or(text));
        }
        while let Some(rest) = self.kept.oldest(None) {
            self.stage.drop_sequence(rest.sequence);
        }
        // Others may be on the way now.
        self.prices = Prices::new();
    }

    /// Nobody wants that text any more.
    pub fn forget(&mut self, text: u64) {
        self.dropped.insert(text);
        let Some(mut kept) = self.texts.remove(&text) else { return };
        let sequence = kept.sequence.unwrap_or(text);
        let length = self.stage.length(sequence).saturating_sub(kept.guesses);
        kept.read.truncate(length as usize);
        let is_short = (length as usize) < LEAST;
        if is_short || self.stage.truncate(sequence, length).is_err() {
            return self.stage.drop_sequence(sequence);
        }
        let tokens = kept.read;
        for less in self.kept.keep(Rest { text, sequence, length, tokens }) {
            self.stage.drop_sequence(less.sequence);
        }
    }

    /// Computes all that is given together. The clock gives microseconds.
    pub fn turn(&mut self, given: &[Given<'_>], clock: &dyn Fn() -> u64) -> Turn {
        let mut made: Vec<Result<Vec<Out>, Failure>> = Vec::with_capacity(given.len());
        let mut steps = Vec::new();
        for (at, given) in given.iter().enumerate() {
            let begun = self.begin(at, given, clock);
            made.push(begun.map(|(outs, step)| {
                steps.extend(step);
                outs
            }));
        }
        let usual = !steps.is_empty() && steps.iter().all(|step| step.rows == 1);
        while !steps.is_empty() {
            let mut rows = 0;
            let fits = steps.iter().take_while(|step| {
                rows += step.rows;
                rows <= MOST_ROWS
            });
            let count = fits.count().max(1);
            let batch: Vec<Step> = steps.drain(..count).collect();
            self.compute(&batch, clock, &mut made);
        }
        Turn { made, usual, single: usual }
    }

    /// What there is to compute, and what is said before it is.
    fn begin(
        &mut self,
        at: usize,
        given: &Given<'_>,
        clock: &dyn Fn() -> u64,
    ) -> Result<(Vec<Out>, Option<Step>), Failure> {
        let Given { text, way, bytes } = *given;
        if self.dropped.contains(text) {
            return Err(lost("the text was dropped"));
        }
        match way {
            Way::Asked => self.asked(at, text, bytes, clock()),
            Way::Again => {
                if let Some(kept) = self.texts.get_mut(&text) {
                    kept.comes_again = false;
                }
                Ok((Vec::new(), Some(self.reads(at, text)?)))
            }
            Way::Round if bytes == BEGINNING => Ok((Vec::new(), self.begins_again(at, text)?)),
            Way::Round => {
                let (position, tokens) = round(bytes).ok_or_else(|| lost("no token"))?;
                self.follows(text, position)?;
                if let Some(kept) = self.texts.get_mut(&text) {
                    kept.may_begin_again = false;
                    kept.read.truncate(position as usize);
                    kept.read.extend(&tokens);
                }
                let (rows, hidden) = (tokens.len(), Vec::new());
                let step = Step { at, text, position, tokens, hidden, rows, wants: rows };
                Ok((Vec::new(), Some(step)))
            }
            Way::On => self.hears(at, text, bytes),
            Way::Among => Err(lost("numbers of a device with a share of the same layers")),
            Way::Aside => Ok((self.learns(text, bytes, clock())?, None)),
        }
    }

    /// At the first device.
    fn asked(
        &mut self,
        at: usize,
        text: u64,
        bytes: &[u8],
        now: u64,
    ) -> Result<(Vec<Out>, Option<Step>), Failure> {
        let asked = Asked::unpack(bytes).ok_or_else(|| wrong("no text to continue"))?;
        if asked.ask.embed.is_some() {
            return Err(wrong("devices that share a model give no numbers of texts"));
        }
        let read = self.bounds.read(&asked).map_err(wrong)?;
        let before = self.kept.best(&read);
        let (mut outs, mut kept) = (Vec::new(), Text { read, ..Text::default() });
        match self.stage.is_last() {
            true => kept.answer = Some(self.answer(asked, now)?),
            false => outs.push(Out::Aside(bytes.to_vec())),
        }
        self.texts.insert(text, kept);
        if let Some((before, found)) = before
            && self.goes_on_behind(text, before, found)
        {
            self.begins_behind(text, before, found);
        }
        self.makes_room(None);
        Ok((outs, Some(self.reads(at, text)?)))
    }

    /// At the last one: what was asked.
    fn learns(&mut self, text: u64, bytes: &[u8], now: u64) -> Result<Vec<Out>, Failure> {
        let asked = Asked::unpack(bytes).ok_or_else(|| wrong("no text to continue"))?;
        let mut answer = self.answer(asked, now)?;
        let kept = self.texts.entry(text).or_default();
        answer.begin_behind(kept.found as usize);
        kept.answer = Some(answer);
        let mut outs = Vec::new();
        for (rows, logits) in std::mem::take(&mut kept.early) {
            outs.extend(self.say(text, rows, logits.as_deref(), now)?);
        }
        Ok(outs)
    }

    fn answer(&self, asked: Asked, now: u64) -> Result<Answer, Failure> {
        Answer::new(asked, self.bounds, self.spelling.as_ref(), now).map_err(wrong)
    }

    /// The stage's name for the positions of a text.
    fn sequence(&self, text: u64) -> u64 {
        self.texts.get(&text).and_then(|kept| kept.sequence).unwrap_or(text)
    }

    fn length(&self, text: u64) -> u32 {
        self.stage.length(self.sequence(text))
    }

    /// What is left of others gives way to who needs the room, but for one of them.
    fn makes_room(&mut self, but: Option<u64>) {
        while self.texts.len() + self.kept.len() > self.stage.most_sequences()
            && let Some(rest) = self.kept.oldest(but)
        {
            self.stage.drop_sequence(rest.sequence);
        }
    }

    /// A text that begins as another one did goes on behind what both have in common. Says whether that is here.
    fn goes_on_behind(&mut self, text: u64, before: u64, found: u32) -> bool {
        self.makes_room(Some(before));
        if self.length(text) > 0 || found == 0 {
            return false;
        }
        let Some(rest) = self.kept.take(before, found) else { return false };
        let all = self.texts.len() + self.kept.len() + 1;
        let has_room = all <= self.stage.most_sequences() && rest.length > found;
        if has_room && self.stage.copy_prefix(rest.sequence, text, found).is_ok() {
            self.kept.put_back(rest);
            return true;
        }
        // It goes on in its place.
        let is_cut = self.stage.truncate(rest.sequence, found).is_ok();
        match self.texts.get_mut(&text) {
            Some(kept) if is_cut => kept.sequence = Some(rest.sequence),
            Some(_) | None => self.stage.drop_sequence(rest.sequence),
        }
        is_cut
    }

    /// Its first positions are here. The next device is to be told.
    fn begins_behind(&mut self, text: u64, before: u64, found: u32) {
        let Some(kept) = self.texts.get_mut(&text) else { return };
        (kept.behind, kept.found, kept.may_begin_again) = (Some(before), found, true);
        if let Some(answer) = &mut kept.answer {
            answer.begin_behind(found as usize);
        }
    }

    /// Another device does not have what this text was to go on behind.
    fn begins_again(&mut self, at: usize, text: u64) -> Result<Option<Step>, Failure> {
        let sequence = self.sequence(text);
        let kept = self.texts.get_mut(&text).filter(|kept| kept.may_begin_again);
        let kept = kept.ok_or_else(|| lost("no token"))?;
        (kept.behind, kept.may_begin_again, kept.sequence) = (None, false, None);
        let comes_again = kept.comes_again;
        self.stage.drop_sequence(sequence);
        if comes_again { Ok(None) } else { self.reads(at, text).map(Some) }
    }

    /// What the device before says.
    fn hears(
        &mut self,
        at: usize,
        text: u64,
        bytes: &[u8],
    ) -> Result<(Vec<Out>, Option<Step>), Failure> {
        let (what, mut rest) = bytes.split_first().ok_or_else(|| lost("no numbers"))?;
        self.texts.entry(text).or_default();
        match *what {
            MISSING => return Ok((self.misses(text), None)),
            BEHIND => {
                let (before, rows) = rest.split_first_chunk().ok_or_else(|| lost("no numbers"))?;
                let (before, found) = (u64::from_le_bytes(*before), position(rows)?);
                if !self.goes_on_behind(text, before, found) {
                    return Ok((self.misses(text), None));
                }
                self.begins_behind(text, before, found);
                rest = rows;
            }
            ROWS => {
                let begins = position(rest)? == 0;
                let sequence = self.sequence(text);
                let kept = self.texts.entry(text).or_default();
                if kept.misses && !begins {
                    // Sent before it was known.
                    return Ok((Vec::new(), None));
                }
                kept.misses = false;
                if kept.may_begin_again && begins {
                    // One behind this one does not have what it was to begin with.
                    (kept.sequence, kept.guesses, kept.may_begin_again) = (None, 0, false);
                    self.stage.drop_sequence(sequence);
                }
            }
            _ => return Err(lost("words in an unknown form")),
        }
        self.makes_room(None);
        self.passed(at, text, rest).map(|step| (Vec::new(), Some(step)))
    }

    /// What the text begins with is not here, or not at a device before: nothing of it is of use.
    fn misses(&mut self, text: u64) -> Vec<Out> {
        self.stage.drop_sequence(self.sequence(text));
        if let Some(kept) = self.texts.get_mut(&text) {
            (kept.sequence, kept.behind, kept.misses) = (None, None, true);
            (kept.guesses, kept.found) = (0, 0);
            kept.early.clear();
            if let Some(answer) = &mut kept.answer {
                answer.begin_again();
            }
        }
        vec![match self.stage.is_last() {
            true => Out::Round(BEGINNING.to_vec()),
            false => Out::On(vec![MISSING]),
        }]
    }

    /// The next tokens of a text that is being read.
    fn reads(&self, at: usize, text: u64) -> Result<Step, Failure> {
        let position = self.length(text);
        let kept = self.texts.get(&text).ok_or_else(|| lost("an unknown text"))?;
        let rest = kept.read.get(position as usize..).filter(|rest| !rest.is_empty());
        let rest = rest.ok_or_else(|| lost("nothing is left to read"))?;
        let tokens = rest[..rest.len().min(READ_STEP)].to_vec();
        let (rows, wants) = (tokens.len(), usize::from(tokens.len() == rest.len()));
        Ok(Step { at, text, position, tokens, hidden: Vec::new(), rows, wants })
    }

    /// What the device before made.
    fn passed(&mut self, at: usize, text: u64, bytes: &[u8]) -> Result<Step, Failure> {
        let (head, numbers) =
            bytes.split_first_chunk::<HEAD>().ok_or_else(|| lost("no numbers"))?;
        let position = position(head)?;
        let (wants, form) = (usize::from(head[4]), Wire::ALL.get(usize::from(head[5])));
        let form = form.ok_or_else(|| lost("rows in an unknown form"))?;
        let row = form.bytes(self.stage.width() as u64 * 4) as usize;
        let rows = numbers.len() / row.max(1);
        if rows == 0 || rows > READ_STEP || !numbers.len().is_multiple_of(row) {
            return Err(lost("rows of another width"));
        }
        if wants > rows {
            return Err(lost("more is wanted than there is"));
        }
        let mut hidden = Vec::with_capacity(rows * self.stage.width());
        for row in numbers.chunks_exact(row) {
            let numbers = form.widen(row).ok_or_else(|| lost("rows of another form"))?;
            let (numbers, _) = numbers.as_chunks::<4>();
            hidden.extend(numbers.iter().map(|number| f32::from_le_bytes(*number)));
        }
        self.follows(text, position)?;
        Ok(Step { at, text, position, tokens: Vec::new(), hidden, rows, wants })
    }

    /// What comes next begins behind the guesses that were right: the others are forgotten. A hole is an error, not a
    /// guess: an answer from it would be fluent and wrong.
    fn follows(&mut self, text: u64, position: u32) -> Result<(), Failure> {
        let here = self.length(text);
        let guesses = self.texts.get(&text).map_or(0, |kept| kept.guesses);
        if position > here || position < here.saturating_sub(guesses) {
            return Err(lost(&format!("position {position} behind {here} positions")));
        }
        self.forgets(text, position)
    }

    /// Nothing here is a guess any more: those that were right are in front of this position.
    fn forgets(&mut self, text: u64, position: u32) -> Result<(), Failure> {
        if let Some(kept) = self.texts.get_mut(&text) {
            kept.guesses = 0;
        }
        let sequence = self.sequence(text);
        if position < self.stage.length(sequence) {
            self.stage.truncate(sequence, position).map_err(|error| lost(&error.to_string()))?;
        }
        Ok(())
    }

    fn compute(
        &mut self,
        steps: &[Step],
        clock: &dyn Fn() -> u64,
        made: &mut [Result<Vec<Out>, Failure>],
    ) {
        let output = match self.run(steps) {
            Ok(output) => output,
            // One that is wrong must not fail the others.
            Err(_) if steps.len() > 1 => {
                return steps.iter().for_each(|step| {
                    self.compute(std::slice::from_ref(step), clock, made);
                });
            }
            Err(failure) => {
                steps.iter().for_each(|step| made[step.at] = Err(failure.clone()));
                return;
            }
        };
        let (mut place, mut logits, now) = (0, 0, clock());
        for step in steps {
            let kept = self.texts.entry(step.text).or_default();
            kept.guesses = step.wants.saturating_sub(1) as u32;
            let outs = match &output {
                Output::Hidden(numbers) => {
                    let own = step.rows * self.stage.width();
                    let numbers = &numbers[place..place + own];
                    place += own;
                    Ok(self.passes(step, numbers))
                }
                Output::Logits(numbers) => {
                    let own = step.wants * self.stage.words();
                    let numbers = (own > 0).then(|| &numbers[logits..logits + own]);
                    logits += own;
                    self.chooses(step, numbers, now)
                }
            };
            match (&mut made[step.at], outs) {
                (Ok(all), Ok(outs)) => all.extend(outs),
                (all, Err(failure)) => *all = Err(failure),
                (Err(_), Ok(_)) => {}
            }
        }
    }

    fn run(&mut self, steps: &[Step]) -> Result<Output, Failure> {
        let rows: Vec<Row> = steps
            .iter()
            .flat_map(|step| {
                let sequence = self.sequence(step.text);
                (0..step.rows).map(move |at| Row {
                    sequence,
                    position: step.position + at as u32,
                    wants_logits: at + step.wants >= step.rows,
                })
            })
            .collect();
        let output = if self.stage.is_first() {
            let tokens: Vec<u32> = steps.iter().flat_map(|step| step.tokens.clone()).collect();
            self.stage.run(&rows, Input::Tokens(&tokens))
        } else {
            let hidden: Vec<f32> = steps.iter().flat_map(|step| step.hidden.clone()).collect();
            self.stage.run(&rows, Input::Hidden(&hidden))
        };
        output.map_err(|error| lost(&error.to_string()))
    }

    /// For the next device, and for this one if there is more to read.
    fn passes(&mut self, step: &Step, numbers: &[f32]) -> Vec<Out> {
        let (form, rows) = formed(numbers, self.stage.width(), self.wire);
        let mut bytes = Vec::with_capacity(1 + 8 + HEAD + rows.len());
        let comes_again = self.stage.is_first() && step.wants == 0;
        let kept = self.texts.entry(step.text).or_default();
        kept.comes_again = comes_again;
        match kept.behind.take() {
            Some(before) => {
                bytes.push(BEHIND);
                bytes.extend(before.to_le_bytes());
            }
            None => bytes.push(ROWS),
        }
        bytes.extend(step.position.to_le_bytes());
        bytes.extend([step.wants as u8, form]);
        bytes.extend(rows);
        let mut outs = vec![Out::On(bytes)];
        outs.extend(comes_again.then_some(Out::Again));
        outs
    }

    fn chooses(
        &mut self,
        step: &Step,
        logits: Option<&[f32]>,
        now: u64,
    ) -> Result<Vec<Out>, Failure> {
        let kept = self.texts.entry(step.text).or_default();
        if kept.answer.is_none() {
            // Behind what is wanted nothing comes before a token was chosen: numbers of one place are kept at most.
            if kept.early.iter().any(|(_, logits)| logits.is_some()) {
                return Err(lost("rows that nobody asked for"));
            }
            kept.early.push((step.rows, logits.map(<[f32]>::to_vec)));
            return Ok(Vec::new());
        }
        let mut outs = self.say(step.text, step.rows, logits, now)?;
        // Where one device has all layers it goes on by itself.
        if self.stage.is_first() && step.wants == 0 {
            outs.push(Out::Again);
        }
        Ok(outs)
    }

    /// So many rows were computed, behind the last of which tokens are chosen if there are numbers.
    fn say(
        &mut self,
        text: u64,
        rows: usize,
        logits: Option<&[f32]>,
        now: u64,
    ) -> Result<Vec<Out>, Failure> {
        let wants = logits.map_or(0, |numbers| numbers.len() / self.stage.words().max(1));
        let speaking = self.speaking();
        let kept = self.texts.get_mut(&text).ok_or_else(|| lost("an unknown text"))?;
        let answer = kept.answer.as_mut().ok_or_else(|| lost("an unknown text"))?;
        let asked = |next: Next<'_>| (next.tokens.len(), usize::from(next.wants) + next.guesses);
        if answer.next().map(asked) != Some((rows, wants)) {
            return Err(lost("rows that nobody asked for"));
        }
        if let Some(since) = kept.since.take()
            && let Some(cost) = self.prices.took(rows, now.saturating_sub(since))
        {
            answer.guesses_took(cost.saturating_mul(speaking));
        }
        let said = answer.computed(logits, now).map_err(wrong)?;
        let (right, is_over) = (answer.computed_tokens().len() as u32, answer.is_over());
        let (mut words, mut end) = (Vec::new(), None);
        for said in said {
            match said {
                Said::Token(_) => words.extend(pack(&said)),
                Said::Done(_) => end = Some(Out::Last(pack(&said))),
                Said::Embedding(_) => return Err(lost("numbers that nobody asked for")),
            }
        }
        let mut outs = Vec::new();
        if !words.is_empty() {
            outs.push(Out::Part(words));
        }
        outs.extend(end);
        if wants > 0 {
            self.forgets(text, right)?;
        }
        if wants > 0 && !is_over {
            outs.push(self.next_round(text, now)?);
        }
        Ok(outs)
    }

    /// Texts of which more is to be said.
    fn speaking(&self) -> u32 {
        self.texts.values().filter(|kept| kept.is_speaking()).count() as u32
    }

    /// The token that was chosen last, with guesses if they are worth it.
    fn next_round(&mut self, text: u64, now: u64) -> Result<Out, Failure> {
        // What one more row takes of a device's time, all others wait for.
        let price = self.prices.row().saturating_mul(self.speaking());
        let kept = self.texts.get_mut(&text).ok_or_else(|| lost("an unknown text"))?;
        let answer = kept.answer.as_mut().ok_or_else(|| lost("an unknown text"))?;
        if kept.guessing < MOST_GUESSING {
            answer.guess(READ_STEP - 1, price);
        }
        let next = answer.next().ok_or_else(|| lost("nothing is left to say"))?;
        kept.guessing = if next.guesses > 0 { kept.guessing + 1 } else { 0 };
        kept.since = Some(now);
        let tokens = next.tokens.iter().flat_map(|token| token.to_le_bytes());
        Ok(Out::Round(next.position.to_le_bytes().into_iter().chain(tokens).collect()))
    }
}

/// Rows as they travel, and which form that is.
fn formed(numbers: &[f32], width: usize, wire: Wire) -> (u8, Vec<u8>) {
    let numbers: Vec<[u8; 4]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
    let rows: Option<Vec<_>> = numbers.chunks(width).map(|row| wire.narrow(row)).collect();
    match rows.zip(Wire::ALL.iter().position(|known| *known == wire)) {
        Some((rows, form)) => (form as u8, rows.concat()),
        None => (0, numbers.concat()),
    }
}

/// Of the first row.
fn position(head: &[u8]) -> Result<u32, Failure> {
    let position = head.first_chunk().ok_or_else(|| lost("no numbers"))?;
    Ok(u32::from_le_bytes(*position))
}

/// A position, and the tokens from there on.
fn round(bytes: &[u8]) -> Option<(u32, Vec<Token>)> {
    let (words, []) = bytes.as_chunks::<4>() else { return None };
    let (position, tokens) = words.split_first()?;
    let tokens: Vec<Token> = tokens.iter().map(|token| u32::from_le_bytes(*token)).collect();
    let fits = (1..=READ_STEP).contains(&tokens.len());
    fits.then_some((u32::from_le_bytes(*position), tokens))
}

/// The request's own fault.
pub(super) fn wrong(words: impl ToString) -> Failure {
    Failure::Model { message: words.to_string() }
}

/// Another crew may do better.
pub(super) fn lost(words: &str) -> Failure {
    Failure::Internal { message: format!("a text that cannot go on here: {words}") }
}
