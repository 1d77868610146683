//! The thread that waits for the GPU, so that nobody else has to. A browser does this by itself.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use wgpu::{BufferAsyncError, Device, PollType, SubmissionIndex};

use super::oneshot::Sender;

type Answer = Sender<Result<(), BufferAsyncError>>;

/// Ends with its thread when dropped.
pub(super) struct Poller {
    submissions: Option<mpsc::Sender<(SubmissionIndex, Answer)>>,
    thread: Option<JoinHandle<()>>,
}

impl Poller {
    pub(super) fn start(device: Device) -> Result<Poller, String> {
        let (sender, submissions) = mpsc::channel::<(SubmissionIndex, Answer)>();
        let thread = thread::Builder::new()
            .name("shoal-gpu".into())
            .spawn(move || {
                for (index, answer) in submissions {
                    let wait = PollType::Wait { submission_index: Some(index), timeout: None };
                    if device.poll(wait).is_err() {
                        answer.send(Err(BufferAsyncError));
                    }
                }
            })
            .map_err(|error| format!("no thread for the GPU: {error}"))?;
        Ok(Poller { submissions: Some(sender), thread: Some(thread) })
    }

    /// Sees to it that callbacks waiting for this submission are called; `answer` is used only if
    /// that fails.
    pub(super) fn wait(&self, index: SubmissionIndex, answer: Answer) {
        if let Some(submissions) = &self.submissions {
            let _ = submissions.send((index, answer));
        }
    }
}

/// Waits for the thread, which holds the device: drivers crash when a device goes while the process
/// ends.
impl Drop for Poller {
    fn drop(&mut self) {
        self.submissions = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
