//! One life of the GPU process: its pipes, and the threads that keep them moving.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;

use shoal_node::supervise::EngineId;
use shoal_protocol::JobId;
use shoal_protocol::limit::MAX_LEASES_PER_NODE;

use super::super::beside::Neighbour;
use super::talk::{self, FromWorker, ToWorker};

/// The verb by which this program's file, started anew, becomes the GPU process.
pub const WORKER: &str = "gpu-worker";

/// Words that wait to be written. A unit needs four at most (its job, run, cancel, forget), and a
/// node holds a bounded number of units: a process that leaves more unread does not listen.
const MAX_WORDS: usize = 4 * MAX_LEASES_PER_NODE;

/// Something happened to a process.
pub(crate) enum GpuEvent {
    Said { engine: EngineId, message: Box<Said> },
    Died { engine: EngineId },
}

/// What the process said; its words stay inside this module's parent.
pub(crate) struct Said(pub(super) FromWorker);

/// Called from a thread that reads from the process.
pub(crate) type Notify = Arc<dyn Fn(GpuEvent) + Send + Sync>;

/// How a process reaches the coordinator.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) base: String,
    pub(crate) token: String,
    pub(crate) pin: Option<String>,
    pub(crate) shelf: Option<String>,
    pub(crate) beside: Option<Neighbour>,
}

impl Access {
    pub(super) fn message(&self) -> ToWorker {
        let Access { base, token, pin, shelf, beside } = self.clone();
        // Else the message could not be written, and the process would never begin. Its bytes go by HTTP then.
        let beside = beside.filter(Neighbour::is_tellable);
        ToWorker::Session { base, token, pin, shelf, beside }
    }
}

/// Killed when dropped.
pub(super) struct Process {
    child: Child,
    words: mpsc::SyncSender<ToWorker>,
    /// Jobs this process was told of.
    told: BTreeSet<JobId>,
}

impl Process {
    pub(super) fn start(engine: EngineId, notify: Notify) -> Result<Process, String> {
        let program = std::env::current_exe()
            .map_err(|error| format!("cannot find this program's own file: {error}"))?;
        let mut command = Command::new(program);
        command.arg(WORKER).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for the node, which then ends this process.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child =
            command.spawn().map_err(|error| format!("cannot start the GPU process: {error}"))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err("the GPU process has no pipes".into());
        };
        let (words, queue) = mpsc::sync_channel(MAX_WORDS);
        // Threads of their own: a full pipe must never hold up the node's loop.
        thread::spawn(move || write_all(stdin, &queue));
        thread::spawn(move || read_all(stdout, engine, &notify));
        thread::spawn(move || log_all(stderr));
        Ok(Process { child, words, told: BTreeSet::new() })
    }

    pub(super) fn tell(&mut self, message: ToWorker) {
        // The node's loop must not wait. A process that died, here or before, is noticed by the
        // thread that reads from it; what it was not told, the next one is.
        if let Err(mpsc::TrySendError::Full(_)) = self.words.try_send(message) {
            let _ = self.child.kill();
        }
    }

    /// Whether this process was not told of the job yet; it counts as told from now on.
    pub(super) fn is_news(&mut self, job: JobId) -> bool {
        self.told.insert(job)
    }

    pub(super) fn forget(&mut self, job: JobId) {
        self.told.remove(&job);
    }

    /// How a process that ended by itself ended.
    pub(super) fn epitaph(mut self) -> String {
        match self.child.wait() {
            Ok(status) => format!("the GPU process ended: {status}"),
            Err(_) => "the GPU process ended".into(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_all(mut stdin: ChildStdin, queue: &mpsc::Receiver<ToWorker>) {
    while let Ok(message) = queue.recv() {
        if talk::write(&mut stdin, &message).is_err() {
            return;
        }
    }
}

/// Drivers talk to themselves; who wants to listen sets `SHOAL_LOG=debug`.
fn log_all(stderr: ChildStderr) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        tracing::debug!("GPU process: {line}");
    }
}

fn read_all(stdout: ChildStdout, engine: EngineId, notify: &Notify) {
    let mut stdout = BufReader::new(stdout);
    while let Ok(message) = talk::read(&mut stdout) {
        notify(GpuEvent::Said { engine, message: Box::new(Said(message)) });
    }
    notify(GpuEvent::Died { engine });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No folder has such a name where names are text.
    #[cfg(unix)]
    #[test]
    fn a_folder_whose_name_is_no_text_does_not_keep_the_process_from_its_session() {
        use std::os::unix::ffi::OsStrExt;

        let folder_said = |name: &[u8]| {
            let folder = std::ffi::OsStr::from_bytes(name).into();
            let beside = Some(Neighbour { folder, word: "word".into() });
            let (base, token, pin) = ("http://pool".into(), "token".into(), None);
            let message = Access { base, token, pin, shelf: None, beside }.message();
            let mut pipe = Vec::new();
            talk::write(&mut pipe, &message).expect("it can be said");
            let Ok(ToWorker::Session { beside, .. }) = talk::read(&mut &pipe[..]) else {
                panic!("it was a session")
            };
            beside.map(|it| it.folder)
        };
        assert_eq!(folder_said(b"/data"), Some("/data".into()));
        assert_eq!(folder_said(b"/da\xffta"), None);
    }
}
