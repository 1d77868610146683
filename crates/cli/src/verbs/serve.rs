//! `shoal serve`: a coordinator alone; and what it shares with `shoal up`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use shoal_coordinator::{Coordinator, OpenError, Options, RunError, Urls};
use shoal_engine::intake::EngineIntake;
use shoal_host::tls::Fingerprint;
use shoal_protocol::PublicKey;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Context;
use crate::args::{Listen, Serve};
use crate::fail::Fail;
use crate::interrupt::signal;
use crate::{keys, place, show};

/// A coordinator at work; ends with what stopped it.
pub(super) type Serving = JoinHandle<Result<(), RunError>>;

/// How long a coordinator may take to say in its data folder that it runs.
const ANNOUNCE_PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn run(context: &Context, args: Serve) -> Result<(), Fail> {
    let data = context.data_folder()?;
    let coordinator = open(data.clone(), &args.listen)?;
    let links = Links::of(&coordinator, &data);
    let serving = begin(coordinator, &data, stop_on_signal()).await;
    if context.json {
        show::json(&links.as_json())?;
    } else {
        links.print()?;
        show::line("Ctrl-C stops the coordinator.")?;
    }
    ended(serving).await
}

/// Starts serving; ready when clients on this machine can find it.
pub(super) async fn begin(
    coordinator: Coordinator,
    data: &Path,
    stop: watch::Receiver<bool>,
) -> Serving {
    let serving = tokio::spawn(coordinator.run(wait(stop)));
    let deadline = Instant::now() + ANNOUNCE_PATIENCE;
    while !serving.is_finished() && Instant::now() < deadline {
        if place::running(data).ok().flatten().is_some_and(|it| it.pid == std::process::id()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    serving
}

pub(super) async fn ended(serving: Serving) -> Result<(), Fail> {
    let served = serving.await.map_err(|error| Fail::world("internal", error.to_string()))?;
    served.map_err(|error| Fail::world("coordinator", error.to_string()))
}

pub(super) fn open(data_dir: PathBuf, at: &Listen) -> Result<Coordinator, Fail> {
    let (stun, turn) = (at.stun.clone(), at.turn.clone());
    let intake = Arc::new(EngineIntake);
    let quic = !at.no_quic;
    let options = Options { data_dir, listen: at.listen, intake, quic, stun, turn };
    let opened = Coordinator::open(options).map(|coordinator| coordinator.behind_proxy(at.proxy));
    if let Ok(coordinator) = &opened
        && let Some(Err(reason)) = coordinator.quic()
    {
        eprintln!("no QUIC: {reason}; data between nodes goes over WebSocket");
    }
    opened.map_err(|error| {
        let code = match &error {
            OpenError::PortInUse { .. } => "port_in_use",
            OpenError::PortForbidden { .. } => "port_forbidden",
            OpenError::Listen { .. } => "cannot_listen",
            OpenError::Locked { .. } => "data_folder_in_use",
            OpenError::DiskFull { .. } => "disk_full",
            OpenError::Forbidden { .. } | OpenError::Folder { .. } => "data_folder",
            OpenError::NewerDatabase { .. }
            | OpenError::OlderDatabase { .. }
            | OpenError::Database { .. } => "database",
            OpenError::Certificate { .. } => "certificate",
            OpenError::Ice { .. } => "ice_server",
            OpenError::Random(_) => "internal",
        };
        Fail::world(code, error.to_string())
    })
}

/// What people need to reach a coordinator.
pub(super) struct Links {
    pub(super) urls: Urls,
    pub(super) key: String,
    /// The certificate other devices will see.
    fingerprint: Option<Fingerprint>,
    /// What receipts are signed with.
    receipts: Option<PublicKey>,
}

impl Links {
    pub(super) fn of(coordinator: &Coordinator, data: &Path) -> Links {
        let urls = coordinator.urls().clone();
        let is_local = urls.lan.is_empty();
        let fingerprint =
            if is_local { None } else { Fingerprint::of_file(&data.join("cert.pem")) };
        let receipts = keys::coordinator(data);
        Links { urls, key: coordinator.key().into(), fingerprint, receipts }
    }

    pub(super) fn print(&self) -> Result<(), Fail> {
        show::line(&format!("dashboard   {}", self.urls.dashboard))?;
        show::line(&format!("join link   {}", self.urls.join))?;
        if let Some(fingerprint) = self.fingerprint {
            show::line(&format!("certificate SHA-256 {fingerprint}"))?;
        }
        if let Some(key) = self.receipts {
            show::line(&format!("receipts    signed by {key}"))?;
        }
        Ok(())
    }

    pub(super) fn as_json(&self) -> serde_json::Value {
        json!({
            "url": self.urls.local,
            "key": self.key,
            "dashboard": self.urls.dashboard,
            "join": self.urls.join,
            "joinLocal": self.urls.join_local,
            "fingerprint": self.fingerprint.map(|fingerprint| fingerprint.to_string()),
            "receiptKey": self.receipts.map(|key| key.to_string()),
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
