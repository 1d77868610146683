//! `--partial`: what is done of a job that failed or was cancelled goes where the result was to go, with a list of what is
//! missing beside it. How the command ends stays as it was.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use shoal_api::MissingJson;

use super::Context;
use crate::client::{Client, Sink};
use crate::fail::Fail;
use crate::show;

/// Added to the name of the file with what is done.
const MISSING: &str = ".missing.json";

/// Whether what is done is to be delivered of a job that ended like that: its number.
pub(super) fn ended(fail: &Fail) -> Option<u64> {
    match fail {
        Fail::Job { job, .. } => job["id"].as_u64(),
        Fail::Stopped { job, .. } => Some(*job),
        Fail::Input { .. }
        | Fail::Runs { .. }
        | Fail::World { .. }
        | Fail::Interrupted { .. }
        | Fail::Detached { .. }
        | Fail::HungUp
        | Fail::PipeClosed => None,
    }
}

/// Has `save` fetch what is done, if there is something and it is wanted. Gives back why the job is not done.
pub(super) async fn deliver(
    context: &Context,
    client: &Client,
    fail: Fail,
    wanted: Option<&Path>,
    save: impl AsyncFnOnce(&Client) -> Result<(), Fail>,
) -> Fail {
    let (Some(job), Some(output)) = (ended(&fail), wanted) else { return fail };
    let note = |text: &str| {
        if !context.json {
            eprintln!("{text}");
        }
    };
    let delivered = async {
        let missing = client.missing(job).await?;
        if missing.done == 0 {
            return Ok(format!("nothing is done: {} is not written", output.display()));
        }
        save(&client.partly()).await?;
        told(&missing, output)
    };
    match delivered.await {
        Ok(text) => note(&text),
        Err(error) => note(&format!("what is done could not be saved: {}", error.message())),
    }
    fail
}

/// Lists what is missing beside the file, and says both.
fn told(missing: &MissingJson, output: &Path) -> Result<String, Fail> {
    let (done, items) = (show::count(missing.done as f64), show::count(missing.items as f64));
    let some = format!("{done} of {items} items are done");
    if output.as_os_str() == "-" {
        return Ok(some);
    }
    let list = beside(output);
    let mut sink = Sink::create(&list)?;
    sink.write(serde_json::to_string(missing).unwrap_or_default().as_bytes())?;
    sink.finish()?;
    let (output, list) = (output.display(), list.display());
    Ok(format!("{some}: {output}. {list} lists the missing ones"))
}

fn beside(output: &Path) -> PathBuf {
    let mut name: OsString = output.into();
    name.push(MISSING);
    name.into()
}
