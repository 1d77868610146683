//! A service whose members all work on each request together, as devices do that share every matrix of a language model.
//! A text is read and continued as in [`crate::rounds`]. But each token goes through some steps: in each of them every
//! part makes a number of what all parts have made in the step before, and keeps something of it. So a number that is
//! missing, of another text, position or epoch, makes another word.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use shoal_kinds::crew::{Out, Way};
use shoal_node::Passing;
use shoal_protocol::Attempt;

use crate::rounds::{Asked, Here, OVER, READ_STEP, mixed, word};
use crate::staged::SplitPlan;

/// Steps of a token.
const STEPS: usize = 3;
/// Of a step's numbers, that are here before it: more would be of what nobody can have begun.
const MOST_AHEAD: usize = 3;

/// What a device's parts keep of the texts.
#[derive(Clone, Default)]
pub(crate) struct Abreast {
    texts: BTreeMap<Attempt, Text>,
    dropped: BTreeSet<Attempt>,
}

#[derive(Clone, Default)]
struct Text {
    /// Of each part here, for each step.
    kept: Vec<[u64; STEPS]>,
    length: u64,
    told: VecDeque<Told>,
    under_way: Option<UnderWay>,
    /// By position, step and first part: for each token what each of those parts made.
    heard: BTreeMap<(u64, u64), BTreeMap<u64, Vec<u64>>>,
    /// At the last device: all that is to be read, and words that were said and that there are.
    asked: Option<(Vec<u64>, u64, u64)>,
}

/// What is read next.
#[derive(Clone)]
struct Told {
    position: u64,
    wants: bool,
    tokens: Vec<u64>,
}

#[derive(Clone)]
struct UnderWay {
    told: Told,
    step: usize,
    /// Of each token, before the step.
    numbers: Vec<u64>,
}

impl Abreast {
    pub(crate) fn forget(&mut self, call: Attempt) {
        self.texts.remove(&call);
        self.dropped.insert(call);
    }

    pub(crate) fn turn(&mut self, here: Here, item: &Passing) -> Result<Vec<Out>, String> {
        let call = item.call;
        if self.dropped.contains(&call) {
            return Err("the text was dropped".into());
        }
        let held = self.texts.values().filter(|text| text.length > 0).count();
        let text = self.texts.entry(call).or_default();
        if text.length == 0 && held >= here.plan.texts() {
            return Err(format!("{held} texts are held"));
        }
        text.kept.resize(here.parts.len as usize, [0; STEPS]);
        let mut outs = Vec::new();
        match item.way {
            Way::Asked if !here.is_last() => outs.push(Out::Aside(item.bytes.to_vec())),
            Way::Asked | Way::Aside => {
                assert!(here.is_last() && text.asked.is_none(), "told what it has no use for");
                let asked = Asked::read(&item.bytes);
                text.asked = Some((asked.tokens(), asked.said.len() as u64, asked.words()));
                outs.extend(text.tells());
            }
            Way::Again => outs.extend(text.tells()),
            Way::Among => text.hears(&item.bytes)?,
            Way::On | Way::Round => panic!("these members do not stand in a row"),
        }
        while text.goes_on(here, &mut outs)? {}
        Ok(outs)
    }
}

impl Text {
    /// At the last device: what is read next, for all.
    fn tells(&mut self) -> Option<Out> {
        let (tokens, ..) = self.asked.as_ref()?;
        let rest = &tokens[self.length as usize..];
        let tokens = rest[..rest.len().min(READ_STEP)].to_vec();
        let (position, wants) = (self.length, tokens.len() == rest.len());
        let head = [0, position, wants.into()];
        let bytes = bytes(head.into_iter().chain(tokens.iter().copied()));
        self.told.push_back(Told { position, wants, tokens });
        Some(Out::Among(bytes))
    }

    fn hears(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (numbers, _) = bytes.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|it| u64::from_le_bytes(*it)).collect();
        match numbers[0] {
            0 => {
                let (position, wants) = (numbers[1], numbers[2] == 1);
                self.told.push_back(Told { position, wants, tokens: numbers[3..].to_vec() });
            }
            _ => {
                let made = self.heard.entry((numbers[1], numbers[2])).or_default();
                assert!(made.insert(numbers[3], numbers[4..].to_vec()).is_none(), "said twice");
                if self.heard.len() > MOST_AHEAD {
                    return Err(format!("numbers of {} steps", self.heard.len()));
                }
            }
        }
        Ok(())
    }

    /// Begins what was told, or takes one more step if all numbers of the last one are here.
    fn goes_on(&mut self, here: Here, outs: &mut Vec<Out>) -> Result<bool, String> {
        let Some(under_way) = &mut self.under_way else {
            let Some(told) = self.told.pop_front() else { return Ok(false) };
            let (position, length) = (told.position, self.length);
            if position != length {
                return Err(format!("position {position} behind {length} positions"));
            }
            let numbers = told.tokens.clone();
            self.under_way = Some(UnderWay { told, step: 0, numbers });
            self.makes(here, outs);
            return Ok(true);
        };
        let (rows, parts) = (under_way.numbers.len(), here.plan.parts as usize);
        let place = (under_way.told.position, under_way.step as u64);
        let there = self.heard.get(&place).map_or(0, |all| all.values().map(Vec::len).sum());
        if there < rows * parts {
            return Ok(false);
        }
        let all = self.heard.remove(&place).unwrap_or_default();
        for (row, number) in under_way.numbers.iter_mut().enumerate() {
            let made = all.values().flat_map(|made| {
                let own = made.len() / rows;
                made[row * own..(row + 1) * own].iter()
            });
            *number = joined(*number, made.copied());
        }
        under_way.step += 1;
        if under_way.step < STEPS {
            self.makes(here, outs);
        } else {
            self.ends(here, outs);
        }
        Ok(true)
    }

    /// This device's parts make their numbers.
    fn makes(&mut self, here: Here, outs: &mut Vec<Out>) {
        let Some(UnderWay { told, step, numbers }) = self.under_way.as_ref() else { return };
        let mut made = Vec::new();
        for number in numbers {
            for (kept, part) in self.kept.iter_mut().zip(here.parts.start..) {
                made.push(of_part(&mut kept[*step], *number, part));
            }
        }
        let (position, number) = (told.position, *step as u64);
        let is_last_step = number + 1 == STEPS as u64;
        let head = [1, position, number, here.parts.start];
        let bytes = bytes(head.into_iter().chain(made.iter().copied()));
        if is_last_step && !told.wants {
            // Behind these nobody wants anything.
            return self.ends(here, outs);
        }
        match (is_last_step, here.is_last()) {
            (true, false) => {
                outs.push(Out::Choose(bytes));
                return self.ends(here, outs);
            }
            (true, true) => {}
            (false, _) => outs.push(Out::Among(bytes)),
        }
        self.heard.entry((position, number)).or_default().insert(here.parts.start, made);
    }

    /// These tokens went through all parts here.
    fn ends(&mut self, here: Here, outs: &mut Vec<Out>) {
        let Some(UnderWay { told, numbers, step }) = self.under_way.take() else { return };
        self.length += told.tokens.len() as u64;
        let Some((tokens, said, words)) = &mut self.asked else { return };
        if told.wants && step == STEPS {
            if said == words {
                return outs.push(Out::Last(OVER.into()));
            }
            *said += 1;
            let number = numbers.last().copied().unwrap_or(0);
            outs.push(Out::Part(word(number)));
            if said == words {
                return outs.push(Out::Last(OVER.into()));
            }
            tokens.push(number);
        }
        let alone = here.is_first();
        outs.extend(if alone { Some(Out::Again) } else { self.tells() });
    }
}

/// What all parts together say to a request: the rest of it, where some was said already.
pub(crate) fn answer(plan: &SplitPlan, body: &[u8]) -> Vec<u8> {
    let asked = Asked::read(body);
    let mut kept = vec![[0; STEPS]; plan.parts as usize];
    let mut read = |token: u64| {
        (0..STEPS).fold(token, |number, step| {
            let parts = kept.iter_mut().zip(0..);
            let made: Vec<u64> =
                parts.map(|(kept, part)| of_part(&mut kept[step], number, part)).collect();
            joined(number, made.into_iter())
        })
    };
    let mut last = asked.tokens().into_iter().fold(0, |_, token| read(token));
    let mut bytes = Vec::new();
    for _ in asked.said.len() as u64..asked.words() {
        bytes.extend(word(last));
        last = read(last);
    }
    bytes.extend(OVER);
    bytes
}

fn of_part(kept: &mut u64, number: u64, part: u64) -> u64 {
    *kept = mixed(*kept ^ number, part);
    *kept
}

fn joined(number: u64, made: impl Iterator<Item = u64>) -> u64 {
    made.fold(number, mixed)
}

fn bytes(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    numbers.flat_map(u64::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_protocol::Span;
    use std::sync::Arc;

    const PLAN: SplitPlan = SplitPlan {
        parts: 5,
        members: 3,
        memory: 1,
        bytes: 0,
        rounds: 3,
        together: true,
        lied: false,
    };

    /// Devices with these parts, one text, until it is answered.
    fn crew(ends: &[u64], body: &[u8]) -> Result<Vec<u8>, String> {
        let begins = [0].into_iter().chain(ends.iter().copied());
        let cut: Vec<Span> =
            begins.zip(ends).map(|(from, to)| Span::new(from, to - from)).collect();
        let mut devices = vec![Abreast::default(); cut.len()];
        let mut todo = VecDeque::from([(0, Way::Asked, body.to_vec())]);
        let (mut said, last) = (Vec::new(), cut.len() - 1);
        while let Some((at, way, bytes)) = todo.pop_front() {
            let here = Here { plan: PLAN, parts: cut[at], lies: None };
            let item = Passing { call: Attempt(1), way, bytes: Arc::new(bytes) };
            for out in devices[at].turn(here, &item)? {
                match out {
                    Out::Again => todo.push_back((at, Way::Again, Vec::new())),
                    Out::Aside(bytes) => todo.push_back((last, Way::Aside, bytes)),
                    Out::Choose(bytes) => todo.push_back((last, Way::Among, bytes)),
                    Out::Among(bytes) => {
                        let others = (0..=last).filter(|other| *other != at);
                        todo.extend(others.map(|to| (to, Way::Among, bytes.clone())));
                    }
                    Out::Part(bytes) | Out::Last(bytes) => said.extend(bytes),
                    Out::On(_) | Out::Round(_) => panic!("these devices do not stand in a row"),
                }
            }
        }
        Ok(said)
    }

    #[test]
    fn devices_together_say_what_one_says_and_go_on_where_others_were_lost() {
        for number in 0..40_u64 {
            let body = number.to_le_bytes();
            let whole = answer(&PLAN, &body);
            for ends in [&[5][..], &[2, 5], &[1, 2, 5]] {
                assert_eq!(crew(ends, &body), Ok(whole.clone()), "{ends:?}");
            }
            let mut at = 0;
            while at + OVER.len() < whole.len() {
                let resumed = [&body[..], &whole[..at]].concat();
                assert_eq!(answer(&PLAN, &resumed), whole[at..]);
                assert_eq!(crew(&[3, 5], &resumed).as_deref(), Ok(&whole[at..]));
                let length = whole[at..at + 4].try_into().expect("a length");
                at += 4 + u32::from_le_bytes(length) as usize;
            }
        }
    }
}
