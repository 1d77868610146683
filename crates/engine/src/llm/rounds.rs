//! Some layers of a model in a chain of devices, through which texts go round and round: the first device reads tokens,
//! each passes on what its layers make of them, the last one chooses a token and tells the first. So a text costs a hop
//! for each boundary, and one back. What the devices in between get are numbers; only the first and the last see tokens.
//!
//! What passes, all little-endian:
//!
//! | way | bytes |
//! |---|---|
//! | `Asked`, `Aside` | what was asked, as [`Asked`] reads it |
//! | `On` | position of the first row u32; a byte: bit 0 whether a token is to be chosen behind the last one, the others which form the rows have, as in [`Wire::ALL`]; then each row in that form |
//! | `Round` | position u32, token u32 |
//!
//! Each row is formed by itself, so that it becomes the same bytes whatever is sent with it: a text that is read again
//! after a loss goes on as before. Rows that the wanted form has no room for travel as they are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use shoal_kinds::Wire;
use shoal_kinds::crew::{Out, Way};
use shoal_protocol::Failure;
use shoal_text::{Answer, Asked, Bounds, Said, Spelling, Token, pack};

use super::stage::{Input, MOST_ROWS, Output, Row, Stage};

/// Tokens of a text that are read in one go: others' turns come between, and the next device begins meanwhile.
pub const READ_STEP: usize = 64;
/// Texts that were dropped, and whose words may still be on their way.
const MOST_DROPPED: usize = 1024;
const HEAD: usize = 5;

/// One device's layers, and what it keeps of each text.
pub struct Rounds {
    stage: Stage,
    bounds: Bounds,
    spelling: Option<Arc<Spelling>>,
    wire: Wire,
    texts: BTreeMap<u64, Text>,
    dropped: Dropped,
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
    /// At the first device: all that is to be read.
    read: Vec<Token>,
    /// At the last one, once it knows what was asked.
    answer: Option<Answer>,
    /// At the last one, before that: for each step how many rows it had, and what came out if it was wanted.
    early: Vec<(usize, Option<Vec<f32>>)>,
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
    wants: bool,
}

impl Rounds {
    /// `spelling` as for an [`Answer`]; only the last device needs it.
    pub fn new(
        stage: Stage,
        bounds: Bounds,
        spelling: Option<Arc<Spelling>>,
        wire: Wire,
    ) -> Rounds {
        let (texts, dropped) = (BTreeMap::new(), Dropped::default());
        Rounds { stage, bounds, spelling, wire, texts, dropped }
    }

    /// A new epoch: nothing is left of any text.
    pub fn clear(&mut self) {
        for text in std::mem::take(&mut self.texts).into_keys() {
            self.stage.drop_sequence(text);
        }
    }

    /// Nobody wants that text any more.
    pub fn forget(&mut self, text: u64) {
        self.texts.remove(&text);
        self.stage.drop_sequence(text);
        self.dropped.insert(text);
    }

    /// Computes all that is given together. `now` is in microseconds of any clock.
    pub fn turn(&mut self, given: &[Given<'_>], now: u64) -> Turn {
        let mut made: Vec<Result<Vec<Out>, Failure>> = Vec::with_capacity(given.len());
        let mut steps = Vec::new();
        for (at, given) in given.iter().enumerate() {
            let begun = self.begin(at, given, now);
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
            self.compute(&batch, now, &mut made);
        }
        Turn { made, usual, single: usual }
    }

    /// What there is to compute, and what is said before it is.
    fn begin(
        &mut self,
        at: usize,
        given: &Given<'_>,
        now: u64,
    ) -> Result<(Vec<Out>, Option<Step>), Failure> {
        let Given { text, way, bytes } = *given;
        if self.dropped.contains(text) {
            return Err(lost("the text was dropped"));
        }
        match way {
            Way::Asked => {
                let asked = Asked::unpack(bytes).ok_or_else(|| wrong("no text to continue"))?;
                if asked.ask.embed.is_some() {
                    return Err(wrong("devices that share a model give no numbers of texts"));
                }
                let read = self.bounds.read(&asked).map_err(wrong)?;
                let mut outs = Vec::new();
                let mut kept = Text { read, ..Text::default() };
                match self.stage.is_last() {
                    true => kept.answer = Some(self.answer(asked, now)?),
                    false => outs.push(Out::Aside(bytes.to_vec())),
                }
                self.texts.insert(text, kept);
                Ok((outs, Some(self.reads(at, text)?)))
            }
            Way::Again => Ok((Vec::new(), Some(self.reads(at, text)?))),
            Way::Round => {
                let (position, token) = two(bytes).ok_or_else(|| lost("no token"))?;
                self.follows(text, position)?;
                let (tokens, hidden) = (vec![token], Vec::new());
                let step = Step { at, text, position, tokens, hidden, rows: 1, wants: true };
                Ok((Vec::new(), Some(step)))
            }
            Way::On => self.passed(at, text, bytes).map(|step| (Vec::new(), Some(step))),
            Way::Among => Err(lost("numbers of a device with a share of the same layers")),
            Way::Aside => {
                let asked = Asked::unpack(bytes).ok_or_else(|| wrong("no text to continue"))?;
                let answer = self.answer(asked, now)?;
                let kept = self.texts.entry(text).or_default();
                kept.answer = Some(answer);
                let mut outs = Vec::new();
                for (rows, logits) in std::mem::take(&mut kept.early) {
                    outs.extend(self.say(text, rows, logits.as_deref(), now)?);
                }
                Ok((outs, None))
            }
        }
    }

    fn answer(&self, asked: Asked, now: u64) -> Result<Answer, Failure> {
        Answer::new(asked, self.bounds, self.spelling.as_ref(), now).map_err(wrong)
    }

    /// The next tokens of a text that is being read.
    fn reads(&self, at: usize, text: u64) -> Result<Step, Failure> {
        let position = self.stage.length(text);
        let kept = self.texts.get(&text).ok_or_else(|| lost("an unknown text"))?;
        let rest = kept.read.get(position as usize..).filter(|rest| !rest.is_empty());
        let rest = rest.ok_or_else(|| lost("nothing is left to read"))?;
        let tokens = rest[..rest.len().min(READ_STEP)].to_vec();
        let (rows, wants) = (tokens.len(), tokens.len() == rest.len());
        Ok(Step { at, text, position, tokens, hidden: Vec::new(), rows, wants })
    }

    /// What the device before made.
    fn passed(&self, at: usize, text: u64, bytes: &[u8]) -> Result<Step, Failure> {
        let (head, numbers) =
            bytes.split_first_chunk::<HEAD>().ok_or_else(|| lost("no numbers"))?;
        let position = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        self.follows(text, position)?;
        let form = Wire::ALL.get(usize::from(head[4] >> 1));
        let form = form.ok_or_else(|| lost("rows in an unknown form"))?;
        let row = form.bytes(self.stage.width() as u64 * 4) as usize;
        let rows = numbers.len() / row.max(1);
        if rows == 0 || rows > READ_STEP || !numbers.len().is_multiple_of(row) {
            return Err(lost("rows of another width"));
        }
        let mut hidden = Vec::with_capacity(rows * self.stage.width());
        for row in numbers.chunks_exact(row) {
            let numbers = form.widen(row).ok_or_else(|| lost("rows of another form"))?;
            let (numbers, _) = numbers.as_chunks::<4>();
            hidden.extend(numbers.iter().map(|number| f32::from_le_bytes(*number)));
        }
        let (tokens, wants) = (Vec::new(), head[4] & 1 != 0);
        Ok(Step { at, text, position, tokens, hidden, rows, wants })
    }

    /// A hole is an error, not a guess: an answer from it would be fluent and wrong.
    fn follows(&self, text: u64, position: u32) -> Result<(), Failure> {
        let here = self.stage.length(text);
        match here == position {
            true => Ok(()),
            false => Err(lost(&format!("position {position} behind {here} positions"))),
        }
    }

    fn compute(&mut self, steps: &[Step], now: u64, made: &mut [Result<Vec<Out>, Failure>]) {
        let output = match self.run(steps) {
            Ok(output) => output,
            // One that is wrong must not fail the others.
            Err(_) if steps.len() > 1 => {
                return steps.iter().for_each(|step| {
                    self.compute(std::slice::from_ref(step), now, made);
                });
            }
            Err(failure) => {
                steps.iter().for_each(|step| made[step.at] = Err(failure.clone()));
                return;
            }
        };
        let (mut place, mut logits) = (0, 0);
        for step in steps {
            let outs = match &output {
                Output::Hidden(numbers) => {
                    let own = step.rows * self.stage.width();
                    let numbers = &numbers[place..place + own];
                    place += own;
                    Ok(self.passes(step, numbers))
                }
                Output::Logits(numbers) => {
                    let own = if step.wants { self.stage.words() } else { 0 };
                    let numbers = step.wants.then(|| &numbers[logits..logits + own]);
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
                (0..step.rows).map(|at| Row {
                    sequence: step.text,
                    position: step.position + at as u32,
                    wants_logits: step.wants && at + 1 == step.rows,
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
    fn passes(&self, step: &Step, numbers: &[f32]) -> Vec<Out> {
        let (form, rows) = formed(numbers, self.stage.width(), self.wire);
        let mut bytes = Vec::with_capacity(HEAD + rows.len());
        bytes.extend(step.position.to_le_bytes());
        bytes.push(u8::from(step.wants) | form << 1);
        bytes.extend(rows);
        let mut outs = vec![Out::On(bytes)];
        if self.stage.is_first() && !step.wants {
            outs.push(Out::Again);
        }
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
        if self.stage.is_first() && !step.wants {
            outs.push(Out::Again);
        }
        Ok(outs)
    }

    /// So many rows were computed, behind which a token is chosen if there are numbers.
    fn say(
        &mut self,
        text: u64,
        rows: usize,
        logits: Option<&[f32]>,
        now: u64,
    ) -> Result<Vec<Out>, Failure> {
        let kept = self.texts.get_mut(&text);
        let answer = kept.and_then(|kept| kept.answer.as_mut());
        let answer = answer.ok_or_else(|| lost("an unknown text"))?;
        let expected = answer.next().map(|next| (next.tokens.len(), next.wants));
        if expected != Some((rows, logits.is_some())) {
            return Err(lost("rows that nobody asked for"));
        }
        let said = answer.computed(logits, now).map_err(wrong)?;
        let over = answer.is_over();
        let mut outs = Vec::new();
        for said in said {
            let word = pack(&said);
            match said {
                Said::Token(chosen) => {
                    outs.push(Out::Part(word));
                    if !over {
                        let position = self.stage.length(text).to_le_bytes();
                        outs.push(Out::Round([position, chosen.token.to_le_bytes()].concat()));
                    }
                }
                Said::Done(_) => outs.push(Out::Last(word)),
                Said::Embedding(_) => return Err(lost("numbers that nobody asked for")),
            }
        }
        Ok(outs)
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

fn two(bytes: &[u8]) -> Option<(u32, u32)> {
    let (words, []) = bytes.as_chunks::<4>() else { return None };
    let [first, second] = words else { return None };
    Some((u32::from_le_bytes(*first), u32::from_le_bytes(*second)))
}

/// The request's own fault.
pub(super) fn wrong(words: impl ToString) -> Failure {
    Failure::Model { message: words.to_string() }
}

/// Another crew may do better.
pub(super) fn lost(words: &str) -> Failure {
    Failure::Internal { message: format!("a text that cannot go on here: {words}") }
}
