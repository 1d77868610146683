//! Conversations that share one model: each go computes the next step of all that fit into it, so that weights are read
//! once for all of them, and who had to wait is first in the next one. Between two goes others can be asked, or left.
//! What is left of one that is over stays while nobody needs its seat: a text that begins in the same way need not be
//! read from its beginning.

use std::collections::VecDeque;
use std::sync::Arc;

use shoal_text::{Answer, Asked, Bounds, Said, Spelling, pack};

use super::prices::Prices;
use super::rests::Rests;
use super::whole::{Computes, Holds, Outcome, Step};

/// Conversations with a model that is loaded. Whoever asks names each by a number of its own.
pub struct Conversations<C> {
    engine: C,
    bounds: Bounds,
    spelling: Option<Arc<Spelling>>,
    room: Room,
    prices: Prices,
    /// The one that had its go longest ago comes first.
    open: VecDeque<Open>,
    /// Texts that become numbers: one has a go beside those who speak.
    texts: VecDeque<Open>,
    rests: Rests,
    /// First come, first served.
    waiting: VecDeque<(u64, Asked)>,
    last_sequence: u64,
}

/// What there is room for.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Conversations at a time: the memory for so many was promised.
    pub seats: usize,
    /// Tokens of all of them in one go: nobody is heard meanwhile.
    pub tokens: usize,
    /// Whether a conversation that is alone may compute guesses of what it says next.
    pub guesses: bool,
}

struct Open {
    number: u64,
    sequence: u64,
    answer: Answer,
}

/// Those that have a step in a go, and their steps.
struct Go {
    taken: Vec<Open>,
    steps: Vec<Step>,
}

/// What became of a conversation in a go.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// It goes on with these words, as they travel.
    Part(Vec<u8>),
    /// It ends with these.
    Done(Vec<u8>),
    Failed(String),
    /// The engine failed: another device may do better.
    Broke(String),
}

impl<C: Holds> Conversations<C> {
    pub fn new(
        engine: C,
        bounds: Bounds,
        room: Room,
        spelling: Option<Arc<Spelling>>,
    ) -> Conversations<C> {
        Conversations {
            engine,
            bounds,
            spelling,
            room,
            prices: Prices::new(),
            open: VecDeque::new(),
            texts: VecDeque::new(),
            rests: Rests::default(),
            waiting: VecDeque::new(),
            last_sequence: 0,
        }
    }

    /// Begins an answer as soon as there is a seat.
    pub fn ask(&mut self, number: u64, asked: Asked) {
        self.waiting.push_back((number, asked));
    }

    /// Nobody wants this answer any more: nothing more of it is computed.
    pub fn leave(&mut self, number: u64) {
        self.waiting.retain(|(other, _)| *other != number);
        if let Some(at) = self.texts.iter().position(|text| text.number == number)
            && let Some(text) = self.texts.remove(at)
        {
            self.engine.drop_sequence(text.sequence);
        }
        let Some(at) = self.open.iter().position(|open| open.number == number) else { return };
        if let Some(open) = self.open.remove(at) {
            self.rests.keep(&mut self.engine, open.sequence, open.answer.computed_tokens());
        }
    }

    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.texts.is_empty() && self.waiting.is_empty()
    }

    /// Whether its engine will never compute again.
    pub fn is_lost(&self) -> bool {
        self.engine.is_lost()
    }

    /// What one go computes: a step of as many conversations as fit.
    fn steps(&mut self) -> Option<Go> {
        let (mut taken, mut steps, mut tokens) = (Vec::<Open>::new(), Vec::new(), 0);
        // Where others want their step, a row is worth more to them than a guess.
        let guesses = self.room.guesses && self.open.len() == 1 && self.texts.is_empty();
        while let Some(open) = self.open.front_mut() {
            if guesses {
                open.answer.guess(self.room.tokens.saturating_sub(1), self.prices.row());
            }
            let Some(next) = open.answer.next() else {
                self.open.pop_front();
                continue;
            };
            tokens += next.tokens.len();
            if tokens > self.room.tokens && !taken.is_empty() {
                break;
            }
            let (position, tokens) = (next.position, next.tokens.to_vec());
            let wants = if next.wants { 1 + next.guesses } else { 0 };
            steps.push(Step { sequence: open.sequence, position, tokens, wants });
            taken.extend(self.open.pop_front());
        }
        (!steps.is_empty()).then_some(Go { taken, steps })
    }

    /// What came of a go that took from one time to another.
    fn came(&mut self, go: Go, outcomes: Vec<Outcome>, began: u64, now: u64) -> Vec<(u64, Heard)> {
        let Go { mut taken, steps } = go;
        let mut heard = Vec::new();
        self.costs(&steps, &mut taken, now.saturating_sub(began));
        for ((mut open, outcome), step) in taken.into_iter().zip(outcomes).zip(&steps) {
            let number = open.number;
            let said = outcome.map_err(Heard::Broke).and_then(|logits| {
                let said = open.answer.computed(logits.as_deref(), now);
                let said = said.map_err(|error| Heard::Failed(error.to_string()))?;
                let right = open.answer.computed_tokens().len() as u32;
                // Wrong guesses were computed too.
                if right < step.position + step.tokens.len() as u32 {
                    self.engine.truncate(open.sequence, right).map_err(Heard::Broke)?;
                }
                Ok(said)
            });
            match said {
                Ok(said) => {
                    let over = said.iter().any(|said| matches!(said, Said::Done(_)));
                    let words: Vec<u8> = said.iter().flat_map(pack).collect();
                    if over {
                        let tokens = open.answer.computed_tokens();
                        self.rests.keep(&mut self.engine, open.sequence, tokens);
                        heard.push((number, Heard::Done(words)));
                        continue;
                    }
                    if !words.is_empty() {
                        heard.push((number, Heard::Part(words)));
                    }
                    self.open.push_back(open);
                }
                Err(why) => {
                    self.engine.drop_sequence(open.sequence);
                    heard.push((number, why));
                }
            }
        }
        heard
    }

    /// What guesses cost, if that is what was computed.
    fn costs(&mut self, steps: &[Step], taken: &mut [Open], micros: u64) {
        if let ([Step { wants, tokens, .. }], [open]) = (steps, taken)
            && tokens.len() == *wants
            && let Some(cost) = self.prices.took(*wants, micros)
        {
            open.answer.guesses_took(cost);
        }
    }

    /// Lets in who waits, while there are seats.
    fn seat(&mut self, now: u64) -> Vec<(u64, Heard)> {
        let mut refused = Vec::new();
        let seats = self.room.seats.max(1);
        while self.open.len() + self.texts.len() < seats
            && let Some((number, asked)) = self.waiting.pop_front()
        {
            match Answer::new(asked, self.bounds, self.spelling.as_ref(), now) {
                Ok(mut answer) => {
                    self.last_sequence += 1;
                    let all = self.open.iter().chain(&self.texts);
                    let others = all.map(|it| (it.sequence, it.answer.computed_tokens()));
                    let others: Vec<_> = others.collect();
                    let (engine, own) = (&mut self.engine, self.last_sequence);
                    let sequence = self.rests.begin(engine, own, (&others, seats), &mut answer);
                    let place = if answer.embeds() { &mut self.texts } else { &mut self.open };
                    place.push_back(Open { number, sequence, answer });
                }
                Err(error) => refused.push((number, Heard::Failed(error.to_string()))),
            }
        }
        refused
    }
}

impl<C: Computes> Conversations<C> {
    /// Computes one step of as many conversations as fit. `clock` gives microseconds.
    pub fn go(&mut self, clock: &dyn Fn() -> u64) -> Vec<(u64, Heard)> {
        let mut heard = self.seat(clock());
        heard.extend(self.read(clock));
        let Some(go) = self.steps() else { return heard };
        let began = clock();
        let outcomes = self.engine.run_each(&go.steps);
        heard.extend(self.came(go, outcomes, began, clock()));
        heard
    }

    /// Reads some of a text that becomes numbers.
    fn read(&mut self, clock: &dyn Fn() -> u64) -> Option<(u64, Heard)> {
        let mut text = self.texts.pop_front()?;
        let (number, sequence) = (text.number, text.sequence);
        let next = text.answer.next();
        let step = next.map(|next| Step {
            sequence,
            position: next.position,
            tokens: next.tokens.to_vec(),
            wants: 0,
        });
        let numbers = step.map_or(Ok(Vec::new()), |step| self.engine.read(&step));
        let said = numbers.map_err(Heard::Broke).and_then(|numbers| {
            let said = text.answer.read(&numbers, clock());
            said.map_err(|error| Heard::Failed(error.to_string()))
        });
        match said {
            Ok(_) if !text.answer.is_over() => {
                self.texts.push_back(text);
                None
            }
            said => {
                self.engine.drop_sequence(sequence);
                let told = said.map(|said| Heard::Done(said.iter().flat_map(pack).collect()));
                Some((number, told.unwrap_or_else(|why| why)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_text::{Ask, Sampling, Words};
    use std::collections::BTreeMap;

    /// Behind each token the next one is the likeliest. Remembers who was computed together.
    #[derive(Default)]
    struct Counter {
        goes: Vec<Vec<u64>>,
        lengths: BTreeMap<u64, u32>,
        broken: Option<u64>,
    }

    impl Computes for Counter {
        fn run(&mut self, steps: &[Step]) -> Result<Vec<Option<Vec<f32>>>, String> {
            if steps.iter().any(|step| Some(step.sequence) == self.broken) {
                return Err("it is broken".into());
            }
            self.goes.push(steps.iter().map(|step| step.sequence).collect());
            let mut give = |step: &Step| {
                let length = self.lengths.entry(step.sequence).or_default();
                assert_eq!(*length, step.position, "nothing is left out");
                *length += step.tokens.len() as u32;
                let row = |last: &u32| {
                    let last = *last;
                    (0..100).map(move |token| if token == last + 1 { 1.0 } else { 0.0 })
                };
                let first = step.tokens.len() - step.wants;
                (step.wants > 0).then(|| step.tokens[first..].iter().flat_map(row).collect())
            };
            Ok(steps.iter().map(&mut give).collect())
        }
    }

    impl Holds for Counter {
        fn drop_sequence(&mut self, sequence: u64) {
            self.lengths.remove(&sequence);
        }

        fn truncate(&mut self, sequence: u64, length: u32) -> Result<(), String> {
            let held = self.lengths.get_mut(&sequence).ok_or("an unknown text")?;
            assert!(length <= *held, "nothing is there that was not computed");
            *held = length;
            Ok(())
        }

        fn copy_prefix(&mut self, _: u64, _: u64, _: u32) -> Result<(), String> {
            Err("no text here is long enough".into())
        }
    }

    const BOUNDS: Bounds = Bounds { words: 100, context: 40, step: 4 };

    fn ask(prompt: &[u32], most: u32) -> Asked {
        let sampling = Sampling { temperature: 0.0, ..Sampling::default() };
        let ask = Ask {
            prompt: prompt.into(),
            most,
            ends: [99].into(),
            sampling,
            form: None,
            embed: None,
            guess: true,
        };
        Asked { ask, said: Vec::new() }
    }

    /// What each said, as tokens, and how it ended.
    type Found = BTreeMap<u64, (Vec<u32>, Option<String>)>;

    /// All that is said until all ended.
    fn all(conversations: &mut Conversations<Counter>) -> Found {
        let mut found = Found::new();
        while !conversations.is_idle() {
            for (number, heard) in conversations.go(&|| 0) {
                let own = found.entry(number).or_default();
                assert_eq!(own.1, None, "nothing comes behind the end");
                let (words, end) = match heard {
                    Heard::Part(words) => (words, None),
                    Heard::Done(words) => (words, Some("done".into())),
                    Heard::Failed(why) | Heard::Broke(why) => (Vec::new(), Some(why)),
                };
                own.1 = end;
                let mut read = Words::default();
                read.push(&words);
                while let Some(said) = read.take().expect("as it should be") {
                    if let Said::Token(chosen) = said {
                        own.0.push(chosen.token);
                    }
                }
            }
        }
        found
    }

    fn open(seats: usize) -> Conversations<Counter> {
        Conversations::new(
            Counter::default(),
            BOUNDS,
            Room { seats, tokens: 4, guesses: true },
            None,
        )
    }

    #[test]
    fn conversations_take_turns_and_share_goes_while_there_are_seats() {
        let mut conversations = open(2);
        conversations.ask(7, ask(&[1, 2, 3, 4, 5, 6], 3));
        conversations.ask(8, ask(&[20], 4));
        conversations.ask(9, ask(&[50], 1));
        let found = all(&mut conversations);
        let done = || Some(String::from("done"));
        assert_eq!(found[&7], (vec![7, 8, 9], done()));
        assert_eq!(found[&8], (vec![21, 22, 23, 24], done()));
        assert_eq!(found[&9], (vec![51], done()));
        let Counter { goes, lengths, .. } = &conversations.engine;
        // A long prompt takes a go for itself; then both share one, and who waited comes in.
        assert_eq!(goes[..3], [vec![1], vec![2, 1], vec![2, 1]]);
        assert!(goes.iter().any(|go| go.contains(&3)));
        assert!(lengths.is_empty(), "all were dropped");
    }

    #[test]
    fn who_leaves_is_not_computed_for_and_gives_its_seat_away() {
        let mut conversations = open(1);
        conversations.ask(1, ask(&[1], 30));
        conversations.ask(2, ask(&[1], 30));
        conversations.ask(3, ask(&[10], 2));
        assert_eq!(conversations.go(&|| 0).len(), 1);
        conversations.leave(1);
        conversations.leave(2);
        let found = all(&mut conversations);
        assert_eq!(found.keys().collect::<Vec<_>>(), [&3]);
        assert_eq!(conversations.engine.lengths.len(), 0);
        conversations.leave(3);
    }

    #[test]
    fn one_that_fails_fails_alone() {
        let mut conversations = open(4);
        conversations.engine.broken = Some(2);
        conversations.ask(1, ask(&[1], 2));
        conversations.ask(2, ask(&[1], 2));
        conversations.ask(3, ask(&[100], 2));
        let found = all(&mut conversations);
        assert_eq!(found[&1].0, [2, 3]);
        assert_eq!(found[&2].1.as_deref(), Some("it is broken"));
        assert_eq!(found[&3].1.as_deref(), Some("the model has no token 100"));
    }
}
