//! From a fresh clone to a running pool.

use crate::shell::{For, Outcome, build_shoal, command, not_started, shoal};
use crate::{programs, setup, web};

pub(crate) fn run(args: &[String]) -> Outcome {
    setup::for_building()?;
    web::build(For::Users)?;
    programs::build()?;
    println!("building shoal (a few minutes the first time)");
    build_shoal(For::Users)?;
    let mut up = command(shoal());
    if let Some(here) = std::env::var_os("PWD") {
        up.current_dir(here);
    }
    up.arg("up").args(args);
    replace(&mut up)
}

/// Becomes the command, so that signals and the exit code are its own.
#[cfg(unix)]
fn replace(command: &mut std::process::Command) -> Outcome {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    Err(not_started(command, &error))
}

#[cfg(not(unix))]
fn replace(command: &mut std::process::Command) -> Outcome {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => Err(not_started(command, &error)),
    }
}
