//! What starts a coordinator, and what can stop it from starting.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use crate::store::place::is_full;
use shoal_kinds::plan::Intake;

/// The port a coordinator listens on unless told otherwise.
pub const DEFAULT_PORT: u16 = 7420;

#[derive(Clone)]
pub struct Options {
    /// Made if it does not exist; readable by its owner only.
    pub data_dir: PathBuf,
    /// An unspecified address (`0.0.0.0`) serves the network too; port 0 takes a free one.
    pub listen: SocketAddr,
    pub intake: Arc<dyn Intake>,
    /// Whether nodes' frames may also come by QUIC, on the same port of UDP.
    pub quic: bool,
    /// STUN servers for direct links between nodes: `stun:host:port`. None is needed within one network.
    pub stun: Vec<String>,
    /// TURN servers: `turn:host:port user password`, or `turn:host:port secret:SECRET` where user and password
    /// are made for each node, as `turnserver --use-auth-secret` takes them.
    pub turn: Vec<String>,
}

/// Where a coordinator is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Urls {
    /// For programs and browsers on this machine: plain http.
    pub local: String,
    /// For other devices: https, one for each address found; empty if only this machine is served.
    pub lan: Vec<String>,
    /// For nodes on this machine.
    pub join_local: String,
    /// For any device: by https on the network where there is one, else the local link.
    pub join: String,
    /// The dashboard on this machine, with its key.
    pub dashboard: String,
}

impl Urls {
    pub(crate) fn new(listen: SocketAddr, lan: &[IpAddr], key: &str, token: &str) -> Urls {
        let port = listen.port();
        let host = if listen.ip().is_loopback() { listen.ip() } else { loopback_like(listen.ip()) };
        let local = format!("http://{}", SocketAddr::new(host, port));
        let lan: Vec<String> =
            lan.iter().map(|ip| format!("https://{}", SocketAddr::new(*ip, port))).collect();
        let join_local = format!("{local}/join#{token}");
        let join = lan.first().map_or(join_local.clone(), |url| format!("{url}/join#{token}"));
        let dashboard = format!("{local}/#key={key}");
        Urls { local, lan, join_local, join, dashboard }
    }
}

fn loopback_like(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
    }
}

/// Why a coordinator cannot start. Each text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "port {} on {} is in use by another program: stop that program, or choose another port with --listen {}",
        addr.port(), addr.ip(), SocketAddr::new(addr.ip(), next_port(addr.port()))
    )]
    PortInUse { addr: SocketAddr },
    #[error("not allowed to listen on {addr}: ports below 1024 need privileges; try --listen {}", SocketAddr::new(addr.ip(), DEFAULT_PORT))]
    PortForbidden { addr: SocketAddr },
    #[error("cannot listen on {addr}: {source}")]
    Listen { addr: SocketAddr, source: io::Error },
    #[error(
        "the data folder {} is used by another running coordinator: stop it, or choose another folder with --data",
        path.display()
    )]
    Locked { path: PathBuf },
    #[error("no permission to use {}: choose another folder with --data, or change its owner", path.display())]
    Forbidden { path: PathBuf },
    #[error("the disk of the data folder is full: {} could not be written; free some space", path.display())]
    DiskFull { path: PathBuf },
    #[error("cannot use {}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error(
        "{} was written by a newer Shoal (format {found}; this build reads up to {newest}): update this program, or choose another folder with --data",
        path.display()
    )]
    NewerDatabase { path: PathBuf, found: u32, newest: u32 },
    #[error(
        "{} was written by an older Shoal (format {found}; this build reads format {reads}): let that version finish its jobs and fetch their results, then choose another folder with --data, or move shoal.db and results away",
        path.display()
    )]
    OlderDatabase { path: PathBuf, found: u32, reads: u32 },
    #[error("{} cannot be read as Shoal's database: {message}", path.display())]
    Database { path: PathBuf, message: String },
    #[error("{} holds no usable certificate: {message}; remove cert.pem and cert.key to have new ones made", path.display())]
    Certificate { path: PathBuf, message: String },
    #[error("the {kind} server {given:?} is not understood: expected {expected}")]
    Ice { kind: &'static str, given: String, expected: &'static str },
    #[error("the system gave no random bytes for keys: {0}")]
    Random(String),
}

impl OpenError {
    /// Sorts an error on a file of the data folder by what the user can do about it.
    pub(crate) fn file(path: impl Into<PathBuf>, source: io::Error) -> OpenError {
        let path = path.into();
        let kind = source.kind();
        if matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) {
            OpenError::Forbidden { path }
        } else if is_full(&source) {
            OpenError::DiskFull { path }
        } else {
            OpenError::Folder { path, source }
        }
    }
}

fn next_port(port: u16) -> u16 {
    port.checked_add(1).unwrap_or(DEFAULT_PORT)
}

/// Why a running coordinator stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("the facts can no longer be written to {}: {message}", path.display())]
    Store { path: PathBuf, message: String },
    #[error("cannot accept connections: {0}")]
    Accept(io::Error),
    #[error(
        "the driver stopped unexpectedly: this is a fault in Shoal, please report it with the log"
    )]
    DriverDied,
}
