//! An array's file that fills while its job runs: beside the coordinator, what is done is copied at once, so that the file is
//! complete shortly after the last unit. What later checks change is copied again at the end.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use shoal_api::JobRequest;
use tokio::sync::watch;

use super::Context;
use crate::client::{Client, Copied, Job, Sink};
use crate::fail::Fail;
use crate::interrupt::Interrupts;

/// Between two looks at what is done: each lists all of it.
const PAUSE: Duration = Duration::from_millis(250);

/// Runs a job, and copies what is done of it meanwhile.
pub(super) async fn run(
    context: &Context,
    client: &Client,
    request: &JobRequest,
    interrupts: &Interrupts,
    (sink, copied): (Option<&mut Sink>, &mut Copied),
) -> Result<Job, Fail> {
    let Some(sink) = sink.filter(|sink| client.copies_into(sink)) else {
        return context.run(client, request, interrupts).await;
    };
    let (told, heard) = watch::channel((0, 0));
    let work = pin!(context.run_telling(client, request, interrupts, (told, false)));
    tokio::select! {
        outcome = work => outcome,
        never = follow(client, heard, sink, copied) => match never {},
    }
}

async fn follow(
    client: &Client,
    mut heard: watch::Receiver<(u64, u64)>,
    sink: &mut Sink,
    copied: &mut Copied,
) -> Infallible {
    while heard.changed().await.is_ok() {
        let (job, done) = *heard.borrow_and_update();
        // What cannot be written now is told at the end, when all else is done.
        if done > 0 && client.copy_early(job, sink, copied).await.is_err() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    pending().await
}
