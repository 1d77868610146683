//! The conversations' side: what they have computed by the process that has the model.

use std::ffi::OsStr;
use std::ops::Range;
use std::time::Duration;

use shoal_engine::llm::{Computes, Holds, Step};
use shoal_engine::onnx::Trouble;

use super::talk::{Answer, Ask, Next, Open};
use super::worker::WORKER;
use crate::child::{LOAD_WITHIN, Process, Word};

/// What computing may take: the longest step of the largest model on a GPU of software. A driver that takes longer hangs.
const RUN_WITHIN: Duration = Duration::from_secs(120);

/// A model on a GPU. Once its process is gone it computes nothing more.
pub(in crate::languages) struct Remote {
    process: Process,
    is_lost: bool,
}

impl Remote {
    /// Opens the GPU and loads a model, a tensor at a time.
    pub(in crate::languages) fn load(
        open: &Open,
        read: &mut dyn FnMut(Range<u64>) -> Result<Vec<u8>, String>,
    ) -> Result<Remote, String> {
        let (process, _) = Process::start("language model on the GPU", &[OsStr::new(WORKER)])?;
        let mut remote = Remote { process, is_lost: false };
        let open = postcard::to_allocvec(open).map_err(|error| error.to_string())?;
        let mut answer = remote.say(Word::Model, &open, LOAD_WITHIN)?;
        loop {
            match answer {
                Answer::Wants { from, to } => {
                    let bytes = read(from..to)?;
                    answer = remote.say(Word::Model, &bytes, LOAD_WITHIN)?;
                }
                Answer::Done => return Ok(remote),
                Answer::Numbers(_) | Answer::Lost(_) => return Err(unexpected()),
            }
        }
    }

    fn ask(&mut self, ask: &Ask) -> Result<Answer, String> {
        let bytes = postcard::to_allocvec(ask).map_err(|error| error.to_string())?;
        self.say(Word::Request, &bytes, RUN_WITHIN)
    }

    fn say(&mut self, word: Word, bytes: &[u8], within: Duration) -> Result<Answer, String> {
        if self.is_lost {
            return Err("its process ended before".into());
        }
        let answer = match self.process.ask(word, bytes, within) {
            Ok(answer) => postcard::from_bytes(&answer).map_err(|error| error.to_string()),
            Err(Trouble::Refused(why)) => return Err(why),
            Err(Trouble::Broken(why)) => Err(why),
        };
        let (Ok(Answer::Lost(why)) | Err(why)) = answer else { return answer };
        // The next to ask has the model loaded anew, where this process must not have the GPU's memory any more.
        self.process.end();
        self.is_lost = true;
        tracing::warn!("a language model on the GPU is lost: {why}");
        Err(format!("the GPU is lost: {why}"))
    }

    fn done(&mut self, ask: &Ask) -> Result<(), String> {
        match self.ask(ask)? {
            Answer::Done => Ok(()),
            Answer::Wants { .. } | Answer::Numbers(_) | Answer::Lost(_) => Err(unexpected()),
        }
    }
}

impl Computes for Remote {
    fn run(&mut self, steps: &[Step]) -> Result<Vec<Option<Vec<f32>>>, String> {
        match self.ask(&Ask::Run(steps.iter().map(Next::of).collect()))? {
            Answer::Numbers(numbers) if numbers.len() == steps.len() => Ok(numbers),
            Answer::Wants { .. } | Answer::Done | Answer::Numbers(_) | Answer::Lost(_) => {
                Err(unexpected())
            }
        }
    }
}

impl Holds for Remote {
    fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Where it fails the process is gone, and the sequence with it.
    fn drop_sequence(&mut self, sequence: u64) {
        let _ = self.done(&Ask::Drop(sequence));
    }

    fn truncate(&mut self, sequence: u64, length: u32) -> Result<(), String> {
        self.done(&Ask::Truncate { sequence, length })
    }

    fn copy_prefix(&mut self, from: u64, to: u64, length: u32) -> Result<(), String> {
        self.done(&Ask::Copy { from, to, length })
    }
}

fn unexpected() -> String {
    "the model's process answered what was not asked".into()
}
