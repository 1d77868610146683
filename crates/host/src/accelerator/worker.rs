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
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Ok(message) = talk::read(&mut stdin) {
            if heard.send(message).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    let mut session: Option<Session> = None;
    while let Ok((word, bytes)) = words.recv() {
        let said = match (word, &mut session) {
            (Word::Model, _) => library.load(&bytes, threads).map(|loaded| {
                session = Some(loaded);
                (Word::Loaded, Vec::new())
            }),
            (Word::Request, Some(session)) => {
                session.run(&bytes).map(|answer| (Word::Answer, answer))
            }
            (Word::Request, None) => Err("no model is loaded".into()),
            (Word::Opened | Word::Loaded | Word::Answer | Word::Refused, _) => return Ok(()),
        };
        match said {
            Ok((word, bytes)) => say(word, &bytes)?,
            Err(why) => say(Word::Refused, why.as_bytes())?,
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
