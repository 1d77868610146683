//! Choosing the next token. What is chosen depends on the logits, the settings, the seed and the place alone, so that
//! an answer can be given again, by whoever computes the same logits.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::vocabulary::Token;

/// Alternatives that may be asked for with each token.
pub const MOST_ALTERNATIVES: u8 = 20;
/// Tokens whose likelihood may be moved.
pub const MOST_BIASES: usize = 1024;
/// What is less likely than the best by more than this has no chance worth counting.
const LEAST_CHANCE: f32 = 1e-12;
/// Tokens that are put in order at first: one of them is drawn but for a few of a hundred times.
const IN_ORDER: usize = 64;

/// How tokens are chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// 0: always the likeliest.
    pub temperature: f32,
    /// Only so many of the likeliest; 0: all.
    pub top_k: u32,
    /// Only the likeliest that together have this part of the chance.
    pub top_p: f32,
    /// Only those with at least this part of the likeliest's chance.
    pub min_p: f32,
    /// Taken from what was said before.
    pub presence: f32,
    /// Taken for each time that it was said before.
    pub frequency: f32,
    /// What was said before, or asked, is less likely by this factor.
    pub repeat: f32,
    pub bias: Vec<(Token, f32)>,
    pub seed: u64,
    /// The likelihood of the chosen token is wanted, and of so many others.
    pub alternatives: Option<u8>,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            presence: 0.0,
            frequency: 0.0,
            repeat: 1.0,
            bias: Vec::new(),
            seed: 0,
            alternatives: None,
        }
    }
}

/// A setting that makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{name} is {found}: expected {expected}")]
pub struct SamplingError {
    pub name: &'static str,
    pub found: f64,
    pub expected: &'static str,
}

impl Sampling {
    pub fn check(&self) -> Result<(), SamplingError> {
        let in_range = |name, found: f32, from: f32, to: f32, expected| {
            if (from..=to).contains(&found) {
                return Ok(());
            }
            Err(SamplingError { name, found: found.into(), expected })
        };
        in_range("temperature", self.temperature, 0.0, 2.0, "0 to 2")?;
        in_range("top_p", self.top_p, f32::MIN_POSITIVE, 1.0, "more than 0, up to 1")?;
        in_range("min_p", self.min_p, 0.0, 1.0, "0 to 1")?;
        in_range("presence_penalty", self.presence, -2.0, 2.0, "-2 to 2")?;
        in_range("frequency_penalty", self.frequency, -2.0, 2.0, "-2 to 2")?;
        in_range("repeat_penalty", self.repeat, 0.1, 10.0, "0.1 to 10")?;
        for (_, bias) in &self.bias {
            in_range("logit_bias", *bias, -100.0, 100.0, "-100 to 100")?;
        }
        let alternatives = f32::from(self.alternatives.unwrap_or(0));
        in_range("top_logprobs", alternatives, 0.0, f32::from(MOST_ALTERNATIVES), "0 to 20")?;
        if self.bias.len() > MOST_BIASES {
            let (name, found) = ("the number of biases", self.bias.len() as f64);
            return Err(SamplingError { name, found, expected: "at most 1024" });
        }
        Ok(())
    }
}

/// A token that was chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    pub token: Token,
    /// The logarithm of its chance, if asked for: as the model says it, before any setting.
    pub chance: Option<f32>,
    /// The likeliest tokens and their chances, if asked for.
    pub alternatives: Vec<(Token, f32)>,
}

/// Chooses the tokens of one answer.
#[derive(Clone, Debug)]
pub struct Sampler {
    sampling: Sampling,
    /// How often each token was said in the answer.
    said: BTreeMap<Token, u32>,
    /// What was asked: only for the factor of repeats.
    asked: BTreeMap<Token, ()>,
}

impl Sampler {
    pub fn new(sampling: Sampling, prompt: &[Token]) -> Sampler {
        let asked = if sampling.repeat == 1.0 { &[] } else { prompt };
        let asked = asked.iter().map(|token| (*token, ())).collect();
        Sampler { sampling, said: BTreeMap::new(), asked }
    }

    /// The token at this place of the answer. `allowed` leaves out those that a grammar forbids; of equals, the lowest
    /// number is chosen. None if nothing is allowed, or the logits are no numbers.
    pub fn choose(
        &mut self,
        logits: &[f32],
        place: u64,
        allowed: Option<&dyn Fn(Token) -> bool>,
    ) -> Option<Chosen> {
        let mut moved = self.moved(logits);
        if let Some(allowed) = allowed {
            for (token, logit) in (0..).zip(&mut moved) {
                if !allowed(token) {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
        let best = best(&moved)?;
        let token = if self.sampling.temperature == 0.0 {
            best
        } else {
            let mut chances = self.narrowed(&moved, moved[best as usize]);
            chances.drawn(unit(self.sampling.seed, place)).unwrap_or(best)
        };
        *self.said.entry(token).or_default() += 1;
        Some(self.told(logits, token))
    }

    /// What an earlier attempt chose at this point.
    pub fn said(&mut self, token: Token) {
        *self.said.entry(token).or_default() += 1;
    }

    fn moved(&self, logits: &[f32]) -> Vec<f32> {
        let Sampling { presence, frequency, repeat, bias, .. } = &self.sampling;
        let mut moved = logits.to_vec();
        if *repeat != 1.0 {
            let before =
                self.asked.keys().chain(self.said.keys().filter(|it| !self.asked.contains_key(it)));
            for token in before {
                if let Some(logit) = moved.get_mut(*token as usize) {
                    *logit = if *logit > 0.0 { *logit / repeat } else { *logit * repeat };
                }
            }
        }
        for (token, times) in &self.said {
            if let Some(logit) = moved.get_mut(*token as usize) {
                *logit -= presence + frequency * *times as f32;
            }
        }
        for (token, bias) in bias {
            if let Some(logit) = moved.get_mut(*token as usize) {
                *logit += bias;
            }
        }
        moved
    }

    /// The tokens that have a chance.
    fn narrowed(&self, logits: &[f32], best: f32) -> Chances {
        let Sampling { temperature, top_k, top_p, min_p, .. } = self.sampling;
        let least = LEAST_CHANCE.max(min_p);
        let powers: Vec<f32> = logits.iter().map(|it| exp((it - best) / temperature)).collect();
        let list = (0..).zip(powers).filter(|(_, chance)| *chance >= least).collect();
        let mut chances = Chances::new(list);
        if top_k > 0 {
            chances.keep(top_k as usize);
        }
        if top_p < 1.0 {
            chances.keep_part(f64::from(top_p));
        }
        chances
    }

    fn told(&self, logits: &[f32], token: Token) -> Chosen {
        let Some(count) = self.sampling.alternatives else {
            return Chosen { token, chance: None, alternatives: Vec::new() };
        };
        let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits.iter().map(|it| f64::from(libm::expf(it - best))).sum();
        let whole = f64::from(best) + libm::log(sum);
        let chance = |token: Token| {
            let logit = logits.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
            (f64::from(logit) - whole) as f32
        };
        let count = usize::from(count).min(logits.len());
        let mut order: Vec<Token> = (0..logits.len() as Token).collect();
        let by = |a: &Token, b: &Token| {
            logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b))
        };
        if count > 0 && count < order.len() {
            order.select_nth_unstable_by(count - 1, by);
        }
        order.truncate(count);
        order.sort_unstable_by(by);
        let alternatives = order.into_iter().map(|token| (token, chance(token))).collect();
        Chosen { token, chance: Some(chance(token)), alternatives }
    }
}

/// The likeliest; of equals, the first.
fn best(logits: &[f32]) -> Option<Token> {
    let mut best: Option<(Token, f32)> = None;
    for (token, logit) in (0..).zip(logits) {
        if *logit > best.map_or(f32::NEG_INFINITY, |(_, best)| best) {
            best = Some((token, *logit));
        }
    }
    best.filter(|(_, logit)| logit.is_finite()).map(|(token, _)| token)
}

/// Tokens and their parts of the whole, the likeliest first. Tens of thousands have some chance, and nearly always one
/// of the first few is drawn: only so many are put in order.
struct Chances {
    list: Vec<(Token, f32)>,
    /// Those at the front that are in order.
    in_order: usize,
    sum: f64,
}

impl Chances {
    fn new(list: Vec<(Token, f32)>) -> Chances {
        let sum = list.iter().map(|(_, chance)| f64::from(*chance)).sum();
        Chances { list, in_order: 0, sum }
    }

    /// The token at this place, the likeliest first; of equals, the lowest number.
    fn at(&mut self, place: usize) -> Option<(Token, f32)> {
        if place >= self.in_order {
            self.order((place + 1).max(self.in_order * 4).max(IN_ORDER));
        }
        self.list.get(place).copied()
    }

    fn order(&mut self, count: usize) {
        let by = |a: &(Token, f32), b: &(Token, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        let rest = &mut self.list[self.in_order..];
        let count = count - self.in_order;
        let next = if count < rest.len() { rest.select_nth_unstable_by(count, by).0 } else { rest };
        next.sort_unstable_by(by);
        self.in_order += next.len();
    }

    /// Only so many.
    fn keep(&mut self, most: usize) {
        if most < self.list.len() {
            self.order(most);
            self.list.truncate(most);
            self.in_order = self.in_order.min(most);
            self.sum = self.list.iter().map(|(_, chance)| f64::from(*chance)).sum();
        }
    }

    /// Only those that together have this part.
    fn keep_part(&mut self, part: f64) {
        let (mut seen, mut count) = (0.0, 0);
        while let Some((_, chance)) = self.at(count) {
            (seen, count) = (seen + f64::from(chance), count + 1);
            if seen >= self.sum * part {
                break;
            }
        }
        self.list.truncate(count);
        (self.in_order, self.sum) = (count, seen);
    }

    /// The one in whose part of the whole the number falls.
    fn drawn(&mut self, unit: f64) -> Option<Token> {
        let (mut left, mut place, mut last) = (unit * self.sum, 0, None);
        while let Some((token, chance)) = self.at(place) {
            left -= f64::from(chance);
            (place, last) = (place + 1, Some(token));
            if left < 0.0 {
                break;
            }
        }
        last
    }
}

/// e to the power of what is not above zero, to about one part in ten million: as the engine computes it, many at a
/// time, and the same on every machine.
fn exp(x: f32) -> f32 {
    // Below it nothing has a chance, and no power of two is out of range.
    let x = if x > -87.0 { x } else { -87.0 };
    // Adding and taking away 1.5 * 2^23 rounds to a whole number.
    let n = x * core::f32::consts::LOG2_E + 12_582_912.0 - 12_582_912.0;
    let r = x - n * 0.693_359_4 - n * -2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    for factor in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = p * r + factor;
    }
    let p = p * r * r + r + 1.0;
    p * f32::from_bits(((n as i32 + 127) << 23).cast_unsigned())
}

/// A number from 0 to below 1 that follows from seed and place.
fn unit(seed: u64, place: u64) -> f64 {
    let mut mixed = seed ^ place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for factor in [0xbf58_476d_1ce4_e5b9u64, 0x94d0_49bb_1331_11eb, 0xbf58_476d_1ce4_e5b9] {
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(factor);
        mixed ^= mixed >> 27;
    }
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(sampling: Sampling, logits: &[f32], place: u64) -> Token {
        Sampler::new(sampling, &[]).choose(logits, place, None).unwrap().token
    }

    #[test]
    fn at_temperature_zero_the_likeliest_is_chosen_and_of_equals_the_first() {
        let greedy = Sampling { temperature: 0.0, ..Sampling::default() };
        assert_eq!(choose(greedy.clone(), &[1.0, 3.0, 3.0, 2.0], 7), 1);
        let biased = Sampling { bias: [(3, 5.0)].into(), ..greedy.clone() };
        assert_eq!(choose(biased, &[1.0, 3.0, 3.0, 2.0], 7), 3);
        let mut sampler = Sampler::new(greedy, &[]);
        let odd = |token: Token| token % 2 == 1;
        assert_eq!(sampler.choose(&[9.0, 0.0, 1.0], 0, Some(&odd)).unwrap().token, 1);
        assert!(sampler.choose(&[9.0, 0.0], 0, Some(&|_| false)).is_none());
        assert!(sampler.choose(&[f32::NAN; 2], 0, None).is_none());
    }

    #[test]
    fn the_same_seed_and_place_choose_the_same_and_chances_are_kept() {
        let logits = [0.0, libm::logf(2.0), libm::logf(5.0)];
        let mut counts = [0; 3];
        for place in 0..8000 {
            let sampling = Sampling { seed: 11, ..Sampling::default() };
            let token = choose(sampling.clone(), &logits, place);
            assert_eq!(token, choose(sampling, &logits, place));
            counts[token as usize] += 1;
        }
        // Parts of 8: 1, 2 and 5.
        let near = |found: i32, expected: i32| (found - expected).abs() < 150;
        assert!(
            near(counts[0], 1000) && near(counts[1], 2000) && near(counts[2], 5000),
            "{counts:?}"
        );
    }

    #[test]
    fn the_unlikely_are_left_out() {
        let logits = [0.0, libm::logf(2.0), libm::logf(5.0)];
        let seen = |sampling: &Sampling| -> Vec<Token> {
            let mut seen: Vec<_> =
                (0..500).map(|place| choose(sampling.clone(), &logits, place)).collect();
            seen.sort_unstable();
            seen.dedup();
            seen
        };
        let usual = Sampling::default;
        assert_eq!(seen(&usual()), [0, 1, 2]);
        assert_eq!(seen(&Sampling { top_k: 1, ..usual() }), [2]);
        assert_eq!(seen(&Sampling { top_k: 2, ..usual() }), [1, 2]);
        assert_eq!(seen(&Sampling { top_p: 0.6, ..usual() }), [2]);
        assert_eq!(seen(&Sampling { top_p: 0.7, ..usual() }), [1, 2]);
        assert_eq!(seen(&Sampling { min_p: 0.3, ..usual() }), [1, 2]);
    }

    #[test]
    fn putting_few_in_order_draws_as_putting_all() {
        // Many equals, and more than are put in order at first.
        let logits: Vec<f32> = (0..5000u64).map(|at| (at * 7919 % 1000) as f32 / 400.0).collect();
        for (top_k, top_p) in [(0, 1.0), (0, 0.9), (3, 1.0), (1500, 0.5), (9999, 1.0)] {
            let sampling = Sampling { top_k, top_p, ..Sampling::default() };
            let sampler = Sampler::new(sampling, &[]);
            let mut all: Vec<(Token, f32)> =
                (0..).zip(&logits).map(|(token, it)| (token, exp(it - 999.0 / 400.0))).collect();
            all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            all.truncate(if top_k == 0 { all.len() } else { top_k as usize });
            // What each and all before it have.
            let mut sum = 0.0;
            let mut add = |(_, chance): &(Token, f32)| {
                sum += f64::from(*chance);
                sum
            };
            let upto: Vec<f64> = all.iter().map(&mut add).collect();
            let part = upto[all.len() - 1] * f64::from(top_p);
            let enough = upto.iter().position(|upto| top_p < 1.0 && *upto >= part);
            all.truncate(enough.map_or(all.len(), |at| at + 1));
            let whole = upto[all.len() - 1];
            for at in 0..40 {
                let unit = f64::from(at) / 40.0 + 0.0123;
                let place = upto[..all.len()].iter().position(|upto| *upto > unit * whole);
                let wanted = place.map(|place| all[place].0);
                let found = sampler.narrowed(&logits, 999.0 / 400.0).drawn(unit);
                assert_eq!(found, wanted, "{top_k} {top_p} {unit}");
            }
        }
    }

    #[test]
    fn powers_of_e_are_near() {
        for at in 0..870 {
            let x = -at as f32 / 10.0;
            let (found, wanted) = (f64::from(exp(x)), libm::exp(f64::from(x)));
            assert!(((found - wanted) / wanted).abs() < 3e-7, "{x}: {found}");
        }
        assert!(exp(f32::NEG_INFINITY) < LEAST_CHANCE && exp(-1e9) < LEAST_CHANCE);
    }

    #[test]
    fn what_was_said_becomes_less_likely() {
        let greedy = Sampling { temperature: 0.0, ..Sampling::default() };
        let said = |sampling: Sampling, prompt: &[Token]| -> Vec<Token> {
            let mut sampler = Sampler::new(sampling, prompt);
            let logits = [2.0, 1.5, 1.0];
            (0..4).map(|place| sampler.choose(&logits, place, None).unwrap().token).collect()
        };
        assert_eq!(said(greedy.clone(), &[]), [0, 0, 0, 0]);
        let frequency = Sampling { frequency: 0.6, ..greedy.clone() };
        assert_eq!(said(frequency, &[]), [0, 1, 0, 2]);
        let presence = Sampling { presence: 0.6, ..greedy.clone() };
        assert_eq!(said(presence, &[]), [0, 1, 0, 0]);
        let repeat = Sampling { repeat: 4.0, ..greedy };
        assert_eq!(said(repeat, &[0]), [1, 2, 0, 0]);
    }

    #[test]
    fn chances_are_the_models_own() {
        let sampling = Sampling { temperature: 0.0, alternatives: Some(2), ..Sampling::default() };
        let sampling = Sampling { bias: [(0, 9.0)].into(), ..sampling };
        let logits = [0.0, libm::logf(2.0), libm::logf(5.0)];
        let chosen = Sampler::new(sampling, &[]).choose(&logits, 0, None).unwrap();
        let near = |found: f32, part: f32| (found - libm::logf(part)).abs() < 1e-5;
        assert_eq!(chosen.token, 0);
        assert!(near(chosen.chance.unwrap(), 1.0 / 8.0), "{chosen:?}");
        let [(first, best), (second, next)] = chosen.alternatives[..] else { panic!("two") };
        assert!(first == 2 && near(best, 5.0 / 8.0) && second == 1 && near(next, 2.0 / 8.0));
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let check = |sampling: Sampling| sampling.check().map_err(|error| error.name);
        assert_eq!(check(Sampling::default()), Ok(()));
        assert_eq!(
            check(Sampling { temperature: -1.0, ..Sampling::default() }),
            Err("temperature")
        );
        assert_eq!(check(Sampling { top_p: f32::NAN, ..Sampling::default() }), Err("top_p"));
        let bias = [(1, 101.0)].into();
        assert_eq!(check(Sampling { bias, ..Sampling::default() }), Err("logit_bias"));
    }
}
