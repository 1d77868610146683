//! One life of a process that computes.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use shoal_engine::onnx::Trouble;

use super::pair::{self, Pair};
use super::talk::{self, Word};

/// What loading a library, a driver or a model may take: the largest is read from a slow disk.
pub(crate) const LOAD_WITHIN: Duration = Duration::from_secs(120);

/// What a killed process may take to be gone: its driver gives back gigabytes. One that a driver holds on to for longer is
/// waited for no more.
const GONE_WITHIN: Duration = Duration::from_secs(10);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Killed when dropped.
pub(crate) struct Process {
    child: Arc<Mutex<Child>>,
    pair: Pair,
    /// When what it does now must be done; none while it waits.
    watch: mpsc::Sender<Option<Instant>>,
    hung: Arc<Mutex<bool>>,
}

impl Process {
    /// Starts this program's file anew with these words, and waits until it says what it has opened. `name` is what its
    /// own lines are logged as.
    pub(crate) fn start(
        name: &'static str,
        words: &[&OsStr],
    ) -> Result<(Process, Vec<u8>), String> {
        let program = std::env::current_exe()
            .map_err(|error| format!("cannot find this program's own file: {error}"))?;
        let mut command = Command::new(program);
        command.args(words).stderr(Stdio::piped());
        // Ctrl-C is for the node, which then ends this process.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let spawned = pair::spawn(command);
        let (mut child, pair) =
            spawned.map_err(|error| format!("cannot start a process: {error}"))?;
        let Some(stderr) = child.stderr.take() else {
            return Err("the process has no pipes".into());
        };
        thread::spawn(move || log_all(name, stderr));
        let (child, hung) = (Arc::new(Mutex::new(child)), Arc::default());
        let (watch, watched) = mpsc::channel();
        let (dog, bark) = (Arc::clone(&child), Arc::clone(&hung));
        thread::spawn(move || guard(&watched, &dog, &bark));
        let mut process = Process { child, pair, watch, hung };
        let opened = process.within(LOAD_WITHIN, |process| talk::read(&mut process.pair.from));
        match opened.map_err(|why| format!("while it started, {why}"))? {
            (Word::Opened, bytes) => Ok((process, bytes)),
            (Word::Refused, why) => Err(String::from_utf8_lossy(&why).into_owned()),
            (other, _) => Err(format!("the process said {other:?} first")),
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        matches!(lock(&self.child).try_wait(), Ok(None))
    }

    /// Says a word, and gives what it answers to it.
    pub(crate) fn ask(
        &mut self,
        word: Word,
        bytes: &[u8],
        limit: Duration,
    ) -> Result<Vec<u8>, Trouble> {
        let said = self.within(limit, |process| {
            talk::write(&mut process.pair.to, word, bytes)?;
            talk::read(&mut process.pair.from)
        });
        match said.map_err(Trouble::Broken)? {
            (Word::Answer, answer) => Ok(answer),
            (Word::Refused, why) => Err(Trouble::Refused(String::from_utf8_lossy(&why).into())),
            (other, _) => Err(Trouble::Broken(format!("the process said {other:?} to {word:?}"))),
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
        // What it said was wrong, or it is about to end.
        let status = self.end();
        if *lock(&self.hung) {
            return format!("it did not answer within {:.1} s", limit.as_secs_f64());
        }
        match status {
            Some(status) => format!("the process ended: {status}"),
            None => format!("the process ended: {error}"),
        }
    }

    /// Kills it, and waits until it is gone, so that nothing of what it held is held any more. None if that takes too long.
    pub(crate) fn end(&self) -> Option<ExitStatus> {
        end(&self.child, GONE_WITHIN)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.end().is_none() {
            // Nothing is to be left of it either, whenever its driver lets go of it.
            let child = Arc::clone(&self.child);
            thread::spawn(move || lock(&child).wait());
        }
    }
}

fn end(child: &Mutex<Child>, within: Duration) -> Option<ExitStatus> {
    let _ = lock(child).kill();
    let until = Instant::now() + within;
    loop {
        match lock(child).try_wait() {
            Ok(None) if Instant::now() < until => (),
            ended => return ended.ok().flatten(),
        }
        thread::sleep(LOOK);
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

/// Libraries and drivers talk to themselves; who wants to listen sets `SHOAL_LOG=debug`.
fn log_all(name: &str, stderr: ChildStderr) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        tracing::debug!("{name}: {line}");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_ended_is_gone_and_one_that_ended_says_how() {
        let started = |script: &str| {
            let child = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn();
            Mutex::new(child.expect("a shell"))
        };
        let sleeps = started("exec sleep 600");
        let status = end(&sleeps, GONE_WITHIN).expect("it is gone");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
        assert_eq!(end(&sleeps, Duration::ZERO), Some(status));
        let over = started("exit 3");
        let _ = lock(&over).wait();
        assert_eq!(end(&over, Duration::ZERO).and_then(|status| status.code()), Some(3));
    }
}
