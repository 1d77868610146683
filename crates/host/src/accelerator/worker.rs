//! The process that loads the library and runs one model for the node that started it.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use shoal_engine::onnx::{Library, Session};

use super::process::WORKER;
use super::talk::{self, Opened, Word};
use crate::fail::Fail;

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
    // A thread of its own: when the node is gone, this process is too, whatever the library is doing.
    let (heard, words) = mpsc::sync_channel(1);
    let (used, unused) = mpsc::channel();
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let memory = || unused.try_recv().unwrap_or_default();
        while let Ok(message) = talk::read_into(&mut stdin, memory()) {
            if heard.send(message).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    let mut session: Option<Session> = None;
    while let Ok((word, bytes)) = words.recv() {
        let refuse = |why: String| say(Word::Refused, why.as_bytes());
        match (word, &mut session) {
            (Word::Model, _) => match library.load(&bytes, threads) {
                Ok(loaded) => {
                    session = Some(loaded);
                    say(Word::Loaded, &[])?;
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
            (Word::Opened | Word::Loaded | Word::Answer | Word::Refused, _) => return Ok(()),
        }
    }
    Ok(())
}

fn say(word: Word, bytes: &[u8]) -> Result<(), Fail> {
    talk::write(&mut io::stdout().lock(), word, bytes).map_err(|error| failed(&error))
}

fn failed(error: &dyn std::error::Error) -> Fail {
    Fail::world("engine", format!("cannot answer the node: {error}"))
}
