//! The process that carries: `shoal talk --pipe`, its two pipes, and the threads that keep them moving.

use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use shoal_peer::pipe::{FromCarrier, ToCarrier};
use shoal_peer::{Code, PeerError};

use crate::desk::Desk;
use crate::pool::Options;

/// Records that wait to be written. The node reads on at all times, so it is seldom more than a few.
const MAX_RECORDS: usize = 256;
/// Of its last words, for the error that tells why it ended.
const MAX_LAST_WORDS: usize = 4 << 10;

/// Ended when dropped.
pub(crate) struct Carrier {
    child: Child,
    listener: Option<JoinHandle<()>>,
}

impl Carrier {
    /// Starts it. What it says goes to the desk, which says what it is to carry.
    pub(crate) fn start(options: &Options) -> Result<(Carrier, Arc<Desk>), PeerError> {
        let mut command = Command::new(&options.shoal);
        command.args(["talk", &options.link, "--pipe"]);
        if options.relay_only {
            command.arg("--no-direct");
        }
        if let Some(data) = &options.data {
            command.arg("--data").arg(data);
        }
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().map_err(|error| {
            let program = options.shoal.display();
            no_mesh(format!("`{program}` cannot be started: {error}; set SHOAL_BIN to where it is"))
        })?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(no_mesh("a process without pipes".into()));
        };
        let (say, to_say) = sync_channel(MAX_RECORDS);
        let desk = Arc::new(Desk::new(say, options.can.clone()));
        thread::spawn(move || write_all(stdin, &to_say));
        let last_words = thread::spawn(move || read_text(stderr));
        let listening = desk.clone();
        let listener = thread::spawn(move || {
            let fault = listen(stdout, &listening);
            let said = last_words.join().unwrap_or_default();
            let why = [said.trim(), fault.as_str(), "the node ended"];
            let why = why.into_iter().find(|why| !why.is_empty()).unwrap_or_default();
            listening.over(no_mesh(String::from(why)));
        });
        Ok((Carrier { child, listener: Some(listener) }, desk))
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

fn no_mesh(message: String) -> PeerError {
    PeerError { code: Code::NoMesh, message }
}

/// Ends when the desk is gone or the pipe is cut; the listener sees the latter too.
fn write_all(stdin: ChildStdin, records: &Receiver<ToCarrier>) {
    let mut stdin = BufWriter::new(stdin);
    while let Ok(record) = records.recv() {
        let mut next = Some(record);
        while let Some(record) = next {
            if record.write(&mut stdin).is_err() {
                return;
            }
            next = records.try_recv().ok();
        }
        if stdin.flush().is_err() {
            return;
        }
    }
}

/// What broke, or nothing where it just ended.
fn listen(stdout: ChildStdout, desk: &Desk) -> String {
    let mut stdout = BufReader::new(stdout);
    loop {
        match FromCarrier::read(&mut stdout) {
            Ok(Some(record)) => desk.hear(record),
            Ok(None) => return String::new(),
            Err(error) => return error.to_string(),
        }
    }
}

fn read_text(mut stderr: ChildStderr) -> String {
    let (mut text, mut bytes) = (Vec::new(), [0; 1024]);
    while let Ok(length @ 1..) = stderr.read(&mut bytes) {
        text.extend_from_slice(&bytes[..length]);
        let over = text.len().saturating_sub(MAX_LAST_WORDS);
        text.drain(..over);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// To whoever writes to the process. It waits only while the process reads.
pub(crate) type Say = SyncSender<ToCarrier>;
