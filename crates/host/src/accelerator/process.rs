//! One life of a process that runs a model.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use shoal_engine::onnx::Trouble;

use super::pair::{self, Pair};
use super::talk::{self, Opened, Word};

/// The verb by which this program's file, started anew, becomes the process.
pub const WORKER: &str = "onnx-worker";

/// What loading a library or a model may take: the largest is read from a slow disk.
const LOAD_WITHIN: Duration = Duration::from_secs(120);

/// Killed when dropped.
pub(super) struct Process {
    child: Arc<Mutex<Child>>,
    pair: Pair,
    /// When what it does now must be done; none while it waits.
    watch: mpsc::Sender<Option<Instant>>,
    hung: Arc<Mutex<bool>>,
}

impl Process {
    /// Starts one, which loads the library.
    pub(super) fn start(library: &Path, threads: u16) -> Result<(Process, Opened), String> {
        let program = std::env::current_exe()
            .map_err(|error| format!("cannot find this program's own file: {error}"))?;
        let mut command = Command::new(program);
        command.arg(WORKER).arg(library).arg(threads.to_string());
        command.stderr(Stdio::piped());
        // Ctrl-C is for the node, which then ends this process.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let spawned = pair::spawn(command);
        let (mut child, pair) =
            spawned.map_err(|error| format!("cannot start a process: {error}"))?;
        let Some(stderr) = child.stderr.take() else {
            return Err("the process has no pipes".into());
        };
        thread::spawn(move || log_all(stderr));
        let (child, hung) = (Arc::new(Mutex::new(child)), Arc::default());
        let (watch, watched) = mpsc::channel();
        let (dog, bark) = (Arc::clone(&child), Arc::clone(&hung));
        thread::spawn(move || guard(&watched, &dog, &bark));
        let mut process = Process { child, pair, watch, hung };
        let opened = process.within(LOAD_WITHIN, |process| talk::read(&mut process.pair.from));
        let opened = match opened.map_err(|why| format!("loading the library: {why}"))? {
            (Word::Opened, bytes) => postcard::from_bytes(&bytes).map_err(|e| e.to_string())?,
            (Word::Refused, why) => return Err(String::from_utf8_lossy(&why).into_owned()),
            (other, _) => return Err(format!("the process said {other:?} first")),
        };
        Ok((process, opened))
    }

    pub(super) fn is_alive(&self) -> bool {
        matches!(lock(&self.child).try_wait(), Ok(None))
    }

    pub(super) fn load(&mut self, file: &[u8]) -> Result<(), Trouble> {
        match self.ask(Word::Model, file, LOAD_WITHIN)? {
            (Word::Loaded, _) => Ok(()),
            (other, _) => Err(Trouble::Broken(format!("the process said {other:?} to a model"))),
        }
    }

    /// Packed tensors in, packed tensors out.
    pub(super) fn run(&mut self, request: &[u8], limit: Duration) -> Result<Vec<u8>, Trouble> {
        match self.ask(Word::Request, request, limit)? {
            (Word::Answer, answer) => Ok(answer),
            (other, _) => Err(Trouble::Broken(format!("the process said {other:?} to a request"))),
        }
    }

    fn ask(
        &mut self,
        word: Word,
        bytes: &[u8],
        limit: Duration,
    ) -> Result<(Word, Vec<u8>), Trouble> {
        let said = self.within(limit, |process| {
            talk::write(&mut process.pair.to, word, bytes)?;
            talk::read(&mut process.pair.from)
        });
        match said.map_err(Trouble::Broken)? {
            (Word::Refused, why) => Err(Trouble::Refused(String::from_utf8_lossy(&why).into())),
            said => Ok(said),
        }
    }

    /// Does what may never end: then the process is killed, which ends it.
    fn within<T>(
        &mut self,
        limit: Duration,
        work: impl FnOnce(&mut Process) -> std::io::Result<T>,
    ) -> Result<T, String> {
        let _ = self.watch.send(Some(Instant::now() + limit));
        let done = work(self);
        let _ = self.watch.send(None);
        done.map_err(|error| self.epitaph(limit, &error))
    }

    /// How it ended.
    fn epitaph(&self, limit: Duration, error: &std::io::Error) -> String {
        if *lock(&self.hung) {
            return format!("it did not answer within {:.1} s", limit.as_secs_f64());
        }
        let mut child = lock(&self.child);
        // What it said was wrong, or it is about to end.
        let _ = child.kill();
        match child.wait() {
            Ok(status) => format!("the process ended: {status}"),
            Err(_) => format!("the process ended: {error}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut child = lock(&self.child);
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Kills a process that is not done in time.
fn guard(watched: &mpsc::Receiver<Option<Instant>>, child: &Mutex<Child>, hung: &Mutex<bool>) {
    let Ok(mut until) = watched.recv() else { return };
    loop {
        let next = match until {
            None => watched.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
            Some(at) => watched.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        match next {
            Ok(next) => until = next,
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                *lock(hung) = true;
                let _ = lock(child).kill();
                until = None;
            }
        }
    }
}

/// Libraries talk to themselves; who wants to listen sets `SHOAL_LOG=debug`.
fn log_all(stderr: ChildStderr) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        tracing::debug!("ONNX Runtime: {line}");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
