//! `--partial`: what is done of a job that failed or was cancelled goes where the result was to go, with a list of what is
//! missing beside it. How the command ends stays as it was.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::json;
use shoal_api::MissingJson;

use super::Context;
use crate::client::{Client, Sink};
use crate::fail::{Fail, plain};
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
    let delivered = async {
        let missing = client.missing(job).await?;
        if missing.done == 0 {
            return Ok::<_, Fail>(format!("nothing is done: {} is not written", output.display()));
        }
        save(&client.partly()).await?;
        Ok(told(&missing, output))
    };
    match delivered.await {
        Ok(text) => note(context, &text),
        Err(error) => {
            note(context, &format!("what is done could not be saved: {}", error.message()));
        }
    }
    fail
}

/// Says what became of what is done, before the failure itself is told in the same way.
pub(super) fn note(context: &Context, text: &str) {
    if context.json {
        eprintln!("{}", json!({"partial": {"message": text}}));
    } else {
        eprintln!("{text}");
    }
}

/// All of a result is in this file now: a list of what was missing before is wrong.
pub(super) fn complete(context: &Context, output: Option<&Path>) {
    let Some(output) = output.filter(|output| output.as_os_str() != "-") else { return };
    let list = beside(output);
    match std::fs::remove_file(&list) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            let list = list.display();
            note(
                context,
                &format!("{list} is out of date, and cannot be removed: {}", plain(&error)),
            );
        }
    }
}

/// Lists what is missing beside the file, and says both.
fn told(missing: &MissingJson, output: &Path) -> String {
    let (done, items) = (show::count(missing.done as f64), show::count(missing.items as f64));
    let some = format!("{done} of {items} items are done");
    if output.as_os_str() == "-" {
        return some;
    }
    let list = beside(output);
    let written = write(missing, &list);
    let (output, list) = (output.display(), list.display());
    match written {
        Ok(()) => format!("{some}: {output}. {list} lists the missing ones"),
        Err(error) => {
            let why = error.message();
            format!("{some}: {output}. The list of the missing ones could not be saved: {why}")
        }
    }
}

fn write(missing: &MissingJson, list: &Path) -> Result<(), Fail> {
    let mut sink = Sink::create(list)?;
    sink.write(serde_json::to_string(missing).unwrap_or_default().as_bytes())?;
    sink.finish()
}

fn beside(output: &Path) -> PathBuf {
    let mut name: OsString = output.into();
    name.push(MISSING);
    name.into()
}
