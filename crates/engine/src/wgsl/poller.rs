//! The thread that waits for the GPU, so that nobody else has to. A browser does this by itself.

use std::sync::mpsc;
use std::thread;

use wgpu::{BufferAsyncError, Device, PollType, SubmissionIndex};

use super::oneshot::Sender;

type Answer = Sender<Result<(), BufferAsyncError>>;

/// Ends with its thread when dropped.
pub(super) struct Poller(mpsc::Sender<(SubmissionIndex, Answer)>);

impl Poller {
    pub(super) fn start(device: Device) -> Result<Poller, String> {
        let (sender, submissions) = mpsc::channel::<(SubmissionIndex, Answer)>();
        thread::Builder::new()
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
        Ok(Poller(sender))
    }

    /// Sees to it that callbacks waiting for this submission are called; `answer` is used only if that fails.
    pub(super) fn wait(&self, index: SubmissionIndex, answer: Answer) {
        let _ = self.0.send((index, answer));
    }
}
