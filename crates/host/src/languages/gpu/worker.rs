//! The process that has a model on this machine's GPU, for the node that started it.

use std::io::{self, IsTerminal};

use shoal_engine::llm::gpu::{Card, GpuLoading, GpuWhole, waited};
use shoal_engine::llm::{Computes, Holds, Options, Step};
use shoal_gguf::Model;

use super::talk::{Answer, Ask, Next, Open};
use crate::child::{self, Word};
use crate::fail::Fail;

/// The verb by which this program's file, started anew, becomes the process.
pub const WORKER: &str = "llm-worker";

/// Computes for the node that started this process as [`WORKER`], until it is gone.
pub fn run() -> Result<(), Fail> {
    if io::stdin().is_terminal() {
        return Err(Fail::input(format!("{WORKER} is started by a node, not by hand")));
    }
    let card = match waited(Card::open()) {
        Ok(card) => card,
        Err(why) => return say(Word::Refused, why.as_bytes()),
    };
    say(Word::Opened, card.caps().name.as_bytes())?;
    let (words, used) = child::listen();
    let mut held = Held::Nothing;
    while let Ok((word, bytes)) = words.recv() {
        let answer = match word {
            Word::Model => held.give(&card, &bytes),
            Word::Request => held.ask(&bytes),
            Word::Opened | Word::Answer | Word::Refused => break,
        };
        // Memory as large as a tensor would be kept for nothing.
        if word == Word::Request {
            let _ = used.send(bytes);
        }
        match answer {
            Err(why) if card.is_lost() => {
                answered(&Answer::Lost(why))?;
                break;
            }
            Err(why) => say(Word::Refused, why.as_bytes())?,
            Ok(answer) => answered(&answer)?,
        }
    }
    child::leave()
}

/// How far it is.
enum Held {
    Nothing,
    Loading(Box<GpuLoading>),
    Whole(Box<GpuWhole>),
}

impl Held {
    /// What is to be loaded, or the bytes that it wants next.
    fn give(&mut self, card: &Card, bytes: &[u8]) -> Result<Answer, String> {
        let loading = match std::mem::replace(self, Held::Nothing) {
            Held::Nothing => Box::new(begun(card, bytes)?),
            Held::Loading(mut loading) => {
                loading.give(bytes).map_err(|error| error.to_string())?;
                loading
            }
            Held::Whole(_) => return Err("a model is loaded already".into()),
        };
        self.next(loading)
    }

    /// Asks for more, or has all of it, and tries it.
    fn next(&mut self, loading: Box<GpuLoading>) -> Result<Answer, String> {
        if let Some(range) = loading.wants() {
            *self = Held::Loading(loading);
            return Ok(Answer::Wants { from: range.start, to: range.end });
        }
        let stage = loading.finish().map_err(|error| error.to_string())?;
        let mut whole = GpuWhole::new(stage);
        waited(whole.tried())?;
        *self = Held::Whole(Box::new(whole));
        Ok(Answer::Done)
    }

    fn ask(&mut self, bytes: &[u8]) -> Result<Answer, String> {
        let Held::Whole(whole) = self else { return Err("no model is loaded".into()) };
        match postcard::from_bytes(bytes).map_err(|error| error.to_string())? {
            Ask::Run(steps) => {
                let steps: Vec<Step> = steps.into_iter().map(Next::step).collect();
                return whole.run(&steps).map(Answer::Numbers);
            }
            Ask::Drop(sequence) => whole.drop_sequence(sequence),
            Ask::Truncate { sequence, length } => whole.truncate(sequence, length)?,
            Ask::Copy { from, to, length } => whole.copy_prefix(from, to, length)?,
        }
        Ok(Answer::Done)
    }
}

fn begun(card: &Card, bytes: &[u8]) -> Result<GpuLoading, String> {
    let open: Open = postcard::from_bytes(bytes).map_err(|error| error.to_string())?;
    let Open { head, size, context, sequences } = open;
    let model = Model::read(head, size).map_err(|error| error.to_string())?;
    let options = Options { threads: 1, context, sequences: sequences as usize, kernel: None };
    GpuLoading::new(card, &model, model.whole(), &options).map_err(|error| error.to_string())
}

fn answered(answer: &Answer) -> Result<(), Fail> {
    let bytes = postcard::to_allocvec(answer).map_err(|error| failed(&error))?;
    say(Word::Answer, &bytes)
}

fn say(word: Word, bytes: &[u8]) -> Result<(), Fail> {
    child::write(&mut io::stdout().lock(), word, bytes).map_err(|error| failed(&error))
}

fn failed(error: &dyn std::error::Error) -> Fail {
    Fail::world("engine", format!("cannot answer the node: {error}"))
}
