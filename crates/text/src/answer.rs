//! One answer from its question to its end: what is to be computed next, and what is said once it was. Whoever computes
//! is asked for one step at a time, so that others' steps come between and an answer can be left at any of them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::ask::{Ask, Asked, Done, Said, Why};
use crate::choose::{Chooser, ChooserError};
use crate::embed::Pool;
use crate::form::Spelling;
use crate::lookup::Lookup;
use crate::sample::SamplingError;
use crate::vocabulary::Token;

/// What an answer is kept to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Words that the model knows.
    pub words: u32,
    /// Tokens of a conversation at most, question and answer together.
    pub context: u32,
    /// Tokens of a prompt that are computed in one step.
    pub step: usize,
}

impl Bounds {
    /// The tokens that are read before the first one is chosen, if they are as they should be.
    pub fn read(&self, asked: &Asked) -> Result<Vec<Token>, AnswerError> {
        asked.ask.sampling.check()?;
        if asked.ask.prompt.is_empty() {
            return Err(AnswerError::Empty);
        }
        let read = asked.read();
        let (found, most) = (read.len(), self.context);
        if found as u64 > u64::from(most) {
            return Err(AnswerError::TooLong { found, most });
        }
        match read.iter().find(|token| **token >= self.words) {
            Some(token) => Err(AnswerError::NoToken(*token)),
            None => Ok(read),
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AnswerError {
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    #[error(transparent)]
    Chooser(#[from] ChooserError),
    #[error("the prompt is empty")]
    Empty,
    #[error("the prompt has {found} tokens; at most {most} fit")]
    TooLong { found: usize, most: u32 },
    #[error("the model has no token {0}")]
    NoToken(Token),
    #[error("the model gave no numbers to choose from")]
    NoNumbers,
}

/// Tokens that are to be computed behind those before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next<'a> {
    /// How many went before.
    pub position: u32,
    pub tokens: &'a [Token],
    /// The numbers behind the last one are wanted.
    pub wants: bool,
    /// So many at the end are guesses: the numbers before each of them are wanted as well.
    pub guesses: usize,
}

/// An answer on its way. Times are microseconds of any clock.
#[derive(Debug)]
pub struct Answer {
    /// The question, and what was said to it.
    tokens: Vec<Token>,
    /// Of the question.
    prompt: usize,
    ends: Vec<Token>,
    most: u64,
    step: usize,
    chooser: Chooser,
    /// Tokens that were computed.
    position: usize,
    /// Those among them that somebody else had computed.
    found: usize,
    /// Tokens that were said.
    said: u64,
    /// Those among them that somebody else had said.
    taken_over: usize,
    /// Nothing is said: the text becomes numbers.
    pool: Option<Pool>,
    /// Tokens that the model knows.
    words: usize,
    context: usize,
    lookup: Lookup,
    may_guess: bool,
    /// Of `tokens`, so many at the end are guesses.
    guesses: usize,
    /// What they cost.
    cost: u32,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Reads { began: u64 },
    Speaks { began: u64, prompt_micros: u64 },
    Over,
}

impl Answer {
    /// Whoever asks has checked it; what comes over a network is checked again. `spelling` as for [`Chooser::new`].
    pub fn new(
        asked: Asked,
        bounds: Bounds,
        spelling: Option<&Arc<Spelling>>,
        now: u64,
    ) -> Result<Answer, AnswerError> {
        let (tokens, step) = (bounds.read(&asked)?, bounds.step);
        let chooser = Chooser::new(&asked, spelling)?;
        let Asked { ask: Ask { prompt, most, ends, embed, guess, .. }, said } = asked;
        let room = u64::from(bounds.context).saturating_sub(prompt.len() as u64);
        Ok(Answer {
            tokens,
            prompt: prompt.len(),
            ends,
            most: u64::from(most).min(room),
            step: step.max(1),
            chooser,
            position: 0,
            found: 0,
            said: said.len() as u64,
            taken_over: said.len(),
            pool: embed.map(Pool::new),
            words: bounds.words as usize,
            context: bounds.context as usize,
            lookup: Lookup::new(),
            may_guess: guess,
            guesses: 0,
            cost: 0,
            phase: Phase::Reads { began: now },
        })
    }

    /// What is to be computed now; nothing when the answer is over.
    pub fn next(&self) -> Option<Next<'_>> {
        if self.is_over() {
            return None;
        }
        let rest = self.tokens.get(self.position..).unwrap_or_default();
        let tokens = &rest[..rest.len().min(self.step)];
        let (position, wants) = (self.position as u32, tokens.len() == rest.len());
        let wants = wants && self.pool.is_none();
        Some(Next { position, tokens, wants, guesses: self.guesses })
    }

    /// Adds guesses to what is computed next, if they are worth it and there is room: so many at most. Each costs `price`,
    /// where a step without guesses costs [`crate::STEP_PRICE`].
    pub fn guess(&mut self, most: usize, price: u32) {
        let Phase::Speaks { .. } = self.phase else { return };
        if self.guesses > 0 || !self.may_guess {
            return;
        }
        // The last token is only said, and nothing is computed beyond the context.
        let left = usize::try_from(self.most.saturating_sub(self.said + 1)).unwrap_or(usize::MAX);
        let room = self.context.saturating_sub(self.tokens.len());
        let room = room.min(left).min(self.step - 1);
        let guessed = self.lookup.guess(&self.tokens, most.min(room), price).to_vec();
        (self.guesses, self.cost) = (guessed.len(), guessed.len() as u32 * price);
        self.tokens.extend(guessed);
    }

    /// What the guesses that were computed cost, as measured. A step that was held up says little: no more counts than
    /// twice what was expected.
    pub fn guesses_took(&mut self, cost: u32) {
        self.cost = cost.min(self.cost.saturating_mul(2));
    }

    /// All tokens that were computed, in order.
    pub fn computed_tokens(&self) -> &[Token] {
        &self.tokens[..self.position]
    }

    /// How many of the first tokens that are to be computed are in a text that was computed before. The last one is not
    /// counted: what follows it is not known.
    pub fn in_common(&self, before: &[Token]) -> usize {
        if self.pool.is_some() {
            // The numbers of all of them count.
            return 0;
        }
        let most = self.tokens.len().saturating_sub(1);
        self.tokens[..most].iter().zip(before).take_while(|(own, other)| own == other).count()
    }

    /// Before anything is computed: the first tokens, so many, are there already.
    pub fn begin_behind(&mut self, found: usize) {
        if self.position == 0 {
            self.found = found.min(self.tokens.len().saturating_sub(1));
            self.position = self.found;
        }
    }

    /// It was computed, with these numbers if they were wanted, those of several tokens behind each other: what is said now,
    /// the end last. Whoever computes forgets what it has beyond [`Answer::computed_tokens`]: wrong guesses.
    pub fn computed(&mut self, logits: Option<&[f32]>, now: u64) -> Result<Vec<Said>, AnswerError> {
        let Some(Next { tokens, wants, .. }) = self.next() else { return Ok(Vec::new()) };
        self.position += tokens.len() - self.guesses;
        if !wants {
            return Ok(Vec::new());
        }
        let (began, prompt_micros) = match self.phase {
            Phase::Reads { began } => (now, now.saturating_sub(began)),
            Phase::Speaks { began, prompt_micros } => (began, prompt_micros),
            Phase::Over => return Ok(Vec::new()),
        };
        self.phase = Phase::Over;
        let guesses = self.tokens.split_off(self.tokens.len() - core::mem::take(&mut self.guesses));
        let before = self.tokens.len();
        let mut said = Vec::new();
        let (mut right, mut why) = (0, None);
        for at in 0..=guesses.len() {
            why = self.choose(row(logits, at, self.words), &mut said)?;
            let Some(token) = self.tokens.get(self.position).filter(|_| why.is_none()) else {
                break;
            };
            if guesses.get(at) != Some(token) {
                break;
            }
            // It was computed already.
            self.position += 1;
            right += 1;
        }
        self.lookup.learn(guesses.len(), right, core::mem::take(&mut self.cost));
        if guesses.is_empty() {
            self.tokens[before..].iter().for_each(|token| self.lookup.said(*token));
        }
        match why {
            None => self.phase = Phase::Speaks { began, prompt_micros },
            Some(why) => said.push(Said::Done(Done {
                why,
                prompt_micros,
                answer_micros: now.saturating_sub(began),
                found: self.found.min(self.prompt) as u32,
                guessed: self.lookup.guessed,
                right: self.lookup.right,
                taken_over: self.taken_over as u32,
            })),
        }
        Ok(said)
    }

    /// The next token, by the numbers behind those before it; or why there is none behind it.
    fn choose(&mut self, logits: &[f32], said: &mut Vec<Said>) -> Result<Option<Why>, AnswerError> {
        if self.said >= self.most {
            return Ok(Some(Why::Length));
        }
        let chosen = self.chooser.choose(logits, self.said).ok_or(AnswerError::NoNumbers)?;
        let token = chosen.token;
        if self.ends.contains(&token) {
            return Ok(Some(Why::End));
        }
        self.said += 1;
        said.push(Said::Token(chosen));
        if self.said == self.most {
            return Ok(Some(Why::Length));
        }
        self.tokens.push(token);
        Ok(None)
    }

    /// Whether it becomes numbers: each step is [`Answer::read`].
    pub fn embeds(&self) -> bool {
        self.pool.is_some()
    }

    /// It was computed, with these numbers behind each token: at its end, the numbers of the text.
    pub fn read(&mut self, numbers: &[f32], now: u64) -> Result<Vec<Said>, AnswerError> {
        let Some(rows) = self.next().map(|next| next.tokens.len()) else { return Ok(Vec::new()) };
        let Phase::Reads { began } = self.phase else { return Err(AnswerError::NoNumbers) };
        let pool = self.pool.as_mut().ok_or(AnswerError::NoNumbers)?;
        pool.add(rows, numbers).ok_or(AnswerError::NoNumbers)?;
        self.position += rows;
        if self.position < self.tokens.len() {
            return Ok(Vec::new());
        }
        self.phase = Phase::Over;
        let prompt_micros = now.saturating_sub(began);
        let done = Done { prompt_micros, ..Done::new(Why::End) };
        let numbers = pool.finish().into_iter().map(Said::Embedding);
        Ok(numbers.chain([Said::Done(done)]).collect())
    }

    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }
}

/// The numbers behind the first token whose numbers are wanted, or behind a later one.
fn row(logits: Option<&[f32]>, at: usize, words: usize) -> &[f32] {
    let rows = logits.unwrap_or_default();
    rows.get(at * words..(at + 1) * words).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::Pooling;
    use crate::sample::Sampling;
    use alloc::vec;

    const BOUNDS: Bounds = Bounds { words: 10, context: 8, step: 2 };

    fn ask(prompt: &[Token], most: u32) -> Asked {
        let sampling = Sampling { temperature: 0.0, ..Sampling::default() };
        let ask = Ask {
            prompt: prompt.into(),
            most,
            ends: [9].into(),
            sampling,
            form: None,
            embed: None,
            guess: true,
        };
        Asked { ask, said: Vec::new() }
    }

    /// A model that counts: behind each token the next one is the likeliest.
    fn logits(last: Token) -> Vec<f32> {
        (0..10).map(|token| if token == last + 1 { 1.0 } else { 0.0 }).collect()
    }

    /// Where each began, its tokens, and whether numbers were wanted.
    type Steps = Vec<(u32, Vec<Token>, bool)>;

    /// All steps, and all that is said, a microsecond for each token.
    fn run(ask: Asked) -> (Steps, Vec<Said>) {
        let mut answer = Answer::new(ask, BOUNDS, None, 0).unwrap();
        let (mut steps, mut said, mut now) = (Vec::new(), Vec::new(), 0);
        while let Some(Next { position, tokens, wants, .. }) = answer.next() {
            let last = *tokens.last().unwrap();
            now += tokens.len() as u64;
            steps.push((position, tokens.to_vec(), wants));
            let numbers = wants.then(|| logits(last));
            said.extend(answer.computed(numbers.as_deref(), now).unwrap());
        }
        assert!(answer.is_over());
        (steps, said)
    }

    fn tokens(said: &[Said]) -> Vec<Token> {
        said.iter()
            .filter_map(|said| match said {
                Said::Token(chosen) => Some(chosen.token),
                Said::Done(_) | Said::Embedding(_) => None,
            })
            .collect()
    }

    #[test]
    fn a_prompt_is_read_in_steps_and_each_token_follows_the_last() {
        let (steps, said) = run(ask(&[3, 4, 5], 3));
        let expected = [(0, vec![3, 4], false), (2, vec![5], true), (3, vec![6], true)];
        assert_eq!(steps[..3], expected);
        assert_eq!(tokens(&said), [6, 7, 8]);
        // What is said last need not be computed.
        assert_eq!(steps.len(), 4);
        let done = Done { prompt_micros: 3, answer_micros: 2, ..Done::new(Why::Length) };
        assert_eq!(said.last(), Some(&Said::Done(done)));
    }

    #[test]
    fn it_ends_with_the_models_end_or_where_nothing_more_fits() {
        let (_, said) = run(ask(&[7], 100));
        assert_eq!(tokens(&said), [8]);
        assert!(matches!(said.last(), Some(Said::Done(Done { why: Why::End, .. }))));
        let (steps, said) = run(ask(&[0, 0, 0, 0, 0, 0], 100));
        assert_eq!((steps.len(), tokens(&said)), (4, vec![1, 2]));
        // No room at all: nothing is said.
        let (steps, said) = run(ask(&[1; 8], 100));
        assert_eq!((steps.len(), said.len()), (4, 1));
    }

    #[test]
    fn another_goes_on_behind_what_was_said() {
        let (_, whole) = run(ask(&[3, 4], 4));
        for said in 0..4 {
            let said: Vec<Token> = tokens(&whole)[..said].into();
            let (steps, rest) = run(Asked { said: said.clone(), ..ask(&[3, 4], 4) });
            assert_eq!([said.clone(), tokens(&rest)].concat(), tokens(&whole));
            assert_eq!(steps[0], (0, vec![3, 4], said.is_empty()));
            let Some(Said::Done(done)) = rest.last() else { panic!("it has no end: {rest:?}") };
            assert_eq!(done.taken_over as usize, said.len());
        }
        // All was said but that it is the end.
        let (_, rest) = run(Asked { said: tokens(&whole), ..ask(&[3, 4], 4) });
        assert!(matches!(rest[..], [Said::Done(Done { why: Why::Length, .. })]));
    }

    #[test]
    fn what_was_computed_before_is_not_computed_again_and_the_words_are_the_same() {
        let (_, whole) = run(ask(&[3, 4, 5], 3));
        let mut answer = Answer::new(ask(&[3, 4, 5], 3), BOUNDS, None, 0).unwrap();
        assert_eq!([&[][..], &[3, 4, 7], &[3, 4, 5, 6]].map(|it| answer.in_common(it)), [0, 2, 2]);
        answer.begin_behind(2);
        assert_eq!(answer.computed_tokens(), [3, 4]);
        assert_eq!(
            answer.next(),
            Some(Next { position: 2, tokens: &[5], wants: true, guesses: 0 })
        );
        let mut said = Vec::new();
        while let Some(next) = answer.next() {
            let numbers = logits(next.tokens[0]);
            said.extend(answer.computed(Some(&numbers), 0).unwrap());
        }
        assert_eq!(tokens(&said), tokens(&whole));
        assert!(matches!(said.last(), Some(Said::Done(Done { found: 2, .. }))));
        assert_eq!(answer.computed_tokens(), [3, 4, 5, 6, 7], "the last word was only said");
        // All is known but what follows it: the last token is computed for that.
        let mut answer = Answer::new(ask(&[3, 4, 5], 3), BOUNDS, None, 0).unwrap();
        answer.begin_behind(9);
        assert_eq!(
            answer.next(),
            Some(Next { position: 2, tokens: &[5], wants: true, guesses: 0 })
        );
    }

    /// A model that draws: what it likes follows from the last tokens, so that it repeats itself now and then.
    fn drawn(tokens: &[Token]) -> Vec<f32> {
        let [.., before, last] = tokens else { return vec![0.0; 10] };
        (0..10).map(|token| ((token * 7 + last * 3 + before * 5) % 11) as f32 / 3.0).collect()
    }

    /// What is said with so many guesses at a time, how it ends, and in how many steps.
    fn guessing(ask: Asked, most: usize) -> (Vec<Token>, Done, usize) {
        let bounds = Bounds { words: 10, context: 200, step: 64 };
        let mut answer = Answer::new(ask, bounds, None, 0).unwrap();
        let (mut said, mut steps, mut held) = (Vec::new(), 0, Vec::new());
        loop {
            answer.guess(most, 16);
            let Some(Next { position, tokens, guesses, .. }) = answer.next() else { break };
            held.truncate(position as usize);
            held.extend_from_slice(tokens);
            assert!(held.len() <= 200 && guesses <= most);
            let rows = held.len() - guesses..=held.len();
            let numbers: Vec<f32> = rows.flat_map(|length| drawn(&held[..length])).collect();
            said.extend(answer.computed(Some(&numbers), 0).unwrap());
            assert!(held.starts_with(answer.computed_tokens()));
            steps += 1;
        }
        let Some(Said::Done(done)) = said.last().cloned() else { panic!("no end") };
        (tokens(&said), done, steps)
    }

    #[test]
    fn with_guesses_the_words_are_the_same_and_the_steps_are_fewer() {
        let mut saved = 0;
        for (temperature, frequency, seed) in
            [(0.0, 0.0, 1), (0.3, 0.0, 2), (0.8, 0.0, 3), (0.8, 0.7, 4), (0.0, 0.3, 5)]
        {
            for (most, ends) in [(150, vec![]), (1_000, vec![]), (150, vec![4])] {
                let mut asked = ask(&[1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4], most);
                asked.ask.ends = ends;
                let sampling = Sampling { temperature, frequency, seed, ..Sampling::default() };
                asked.ask.sampling = sampling;
                let (plain, end, slow) = guessing(asked.clone(), 0);
                assert_eq!((end.guessed, slow >= plain.len()), (0, true));
                let (found, done, steps) = guessing(asked, 5);
                assert_eq!((&found, done.why), (&plain, end.why), "{temperature} {frequency}");
                assert!(done.right <= done.guessed && steps + done.right as usize >= plain.len());
                saved += slow - steps;
            }
        }
        assert!(saved > 200, "{saved}");
    }

    #[test]
    fn a_text_that_becomes_numbers_is_read_to_its_end_and_nothing_is_said() {
        let asked = Asked { ask: Ask::embedding([3, 4, 5].into(), Pooling::Mean), said: vec![] };
        let mut answer = Answer::new(asked, BOUNDS, None, 0).unwrap();
        assert!(answer.embeds() && answer.in_common(&[3, 4, 5]) == 0);
        let (mut steps, mut said) = (Vec::new(), Vec::new());
        while let Some(Next { position, tokens, wants, .. }) = answer.next() {
            steps.push((position, tokens.to_vec(), wants));
            let numbers: Vec<f32> = tokens.iter().flat_map(|token| [0.0, *token as f32]).collect();
            said.extend(answer.read(&numbers, 7).unwrap());
        }
        assert_eq!(steps, [(0, vec![3, 4], false), (2, vec![5], false)]);
        let done = Done { prompt_micros: 7, ..Done::new(Why::End) };
        assert_eq!(said, [Said::Embedding([0.0, 1.0].into()), Said::Done(done)]);
        let asked = Asked { ask: Ask::embedding([3].into(), Pooling::Mean), said: vec![] };
        let mut answer = Answer::new(asked, BOUNDS, None, 0).unwrap();
        assert_eq!(answer.read(&[], 0), Err(AnswerError::NoNumbers));
    }

    #[test]
    fn what_cannot_be_answered_is_refused() {
        let refused = |ask: Asked| Answer::new(ask, BOUNDS, None, 0).err();
        assert_eq!(refused(ask(&[], 1)), Some(AnswerError::Empty));
        assert_eq!(refused(ask(&[1; 9], 1)), Some(AnswerError::TooLong { found: 9, most: 8 }));
        assert_eq!(refused(ask(&[1, 10], 1)), Some(AnswerError::NoToken(10)));
        let mut hot = ask(&[1], 1);
        hot.ask.sampling.temperature = f32::NAN;
        assert!(matches!(refused(hot), Some(AnswerError::Sampling(_))));
        let mut answer = Answer::new(ask(&[1], 1), BOUNDS, None, 0).unwrap();
        assert_eq!(answer.computed(None, 0), Err(AnswerError::NoNumbers));
        assert!(answer.is_over());
    }
}
