//! The process that loads the library and runs one model for the node that started it.

use std::io::{self, IsTerminal};
use std::path::Path;

use serde::{Deserialize, Serialize};
use shoal_engine::onnx::{Library, Session};

use crate::child::{self, Word};
use crate::fail::Fail;

/// The verb by which this program's file, started anew, becomes the process.
pub const WORKER: &str = "onnx-worker";

/// What a library says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Opened {
    pub(super) version: String,
    /// Hardware it may compute with, beside processors.
    pub(super) providers: Vec<String>,
}

/// Runs models for the node that started this process as [`WORKER`], until it is gone.
pub fn run(library: &Path, threads: usize) -> Result<(), Fail> {
    if io::stdin().is_terminal() {
        return Err(Fail::input(format!("{WORKER} is started by a node, not by hand")));
    }
    let library = match Library::open(library) {
        Ok(library) => library,
        Err(why) => return say(Word::Refused, why.as_bytes()),
    };
    let providers = library.providers().into_iter().map(String::from).collect();
    let opened = Opened { version: library.version().into(), providers };
    let opened = postcard::to_allocvec(&opened).map_err(|error| failed(&error))?;
    say(Word::Opened, &opened)?;
    let (words, used) = child::listen();
    let mut session: Option<Session> = None;
    while let Ok((word, bytes)) = words.recv() {
        let refuse = |why: String| say(Word::Refused, why.as_bytes());
        match (word, &mut session) {
            (Word::Model, _) => match library.load(&bytes, threads) {
                Ok(loaded) => {
                    session = Some(loaded);
                    say(Word::Answer, &[])?;
                }
                Err(why) => refuse(why)?,
            },
            (Word::Request, Some(session)) => {
                match session.run(&bytes) {
                    Ok(answer) => say(Word::Answer, answer)?,
                    Err(why) => refuse(why)?,
                }
                let _ = used.send(bytes);
            }
            (Word::Request, None) => refuse("no model is loaded".into())?,
            (Word::Opened | Word::Answer | Word::Refused, _) => return Ok(()),
        }
    }
    Ok(())
}

fn say(word: Word, bytes: &[u8]) -> Result<(), Fail> {
    child::write(&mut io::stdout().lock(), word, bytes).map_err(|error| failed(&error))
}

fn failed(error: &dyn std::error::Error) -> Fail {
    Fail::world("engine", format!("cannot answer the node: {error}"))
}
