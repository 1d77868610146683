//! `shoal serve`: a coordinator alone; and what it shares with `shoal up`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use shoal_coordinator::{Coordinator, OpenError, Options, Urls};
use tokio::sync::watch;

use super::Context;
use crate::args::Serve;
use crate::fail::Fail;
use crate::intake::EngineIntake;
use crate::show;

pub(super) async fn run(context: &Context, args: Serve) -> Result<(), Fail> {
    let coordinator = open(context.data_folder()?, args.listen.listen)?;
    let links = Links::of(&coordinator);
    let stop = stop_on_signal();
    let serving = coordinator.run(wait(stop));
    if context.json {
        show::json(&links.as_json())?;
    } else {
        links.print()?;
        show::line("Ctrl-C stops it.")?;
    }
    serving.await.map_err(|error| Fail::world("coordinator", error.to_string()))
}

pub(super) fn open(data_dir: PathBuf, listen: SocketAddr) -> Result<Coordinator, Fail> {
    let options = Options { data_dir, listen, intake: Arc::new(EngineIntake) };
    Coordinator::open(options).map_err(|error| {
        let code = match &error {
            OpenError::PortInUse { .. } => "port_in_use",
            OpenError::PortForbidden { .. } => "port_forbidden",
            OpenError::Listen { .. } => "cannot_listen",
            OpenError::Locked { .. } => "data_folder_in_use",
            OpenError::DiskFull { .. } => "disk_full",
            OpenError::Forbidden { .. } | OpenError::Folder { .. } => "data_folder",
            OpenError::NewerDatabase { .. } | OpenError::Database { .. } => "database",
            OpenError::Certificate { .. } => "certificate",
            OpenError::Random(_) => "internal",
        };
        Fail::world(code, error.to_string())
    })
}

/// What people need to reach a coordinator.
pub(super) struct Links {
    pub(super) urls: Urls,
    pub(super) key: String,
}

impl Links {
    pub(super) fn of(coordinator: &Coordinator) -> Links {
        Links { urls: coordinator.urls().clone(), key: coordinator.key().into() }
    }

    pub(super) fn print(&self) -> Result<(), Fail> {
        show::line(&format!("dashboard   {}", self.urls.dashboard))?;
        show::line(&format!("join link   {}", self.urls.join))
    }

    pub(super) fn as_json(&self) -> serde_json::Value {
        json!({
            "url": self.urls.local,
            "key": self.key,
            "dashboard": self.urls.dashboard,
            "join": self.urls.join,
            "joinLocal": self.urls.join_local,
            "pid": std::process::id(),
        })
    }
}

/// Turns true at the first Ctrl-C or termination request; a second one ends the process at once.
pub(super) fn stop_on_signal() -> watch::Receiver<bool> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        signal().await;
        let _ = stop.send(true);
        signal().await;
        std::process::exit(130);
    });
    stopped
}

pub(super) async fn wait(mut stop: watch::Receiver<bool>) {
    // An error means that whoever could ask to stop is gone, which asks for it too.
    let _ = stop.wait_for(|stop| *stop).await;
}

#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn signal() {
    let _ = tokio::signal::ctrl_c().await;
}
