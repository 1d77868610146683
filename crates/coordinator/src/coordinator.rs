//! One coordinator from start to stop.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};
use std::{fs, io};

use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::{interval, timeout};
use tokio_rustls::TlsAcceptor;

use crate::auth::Auth;
use crate::clock::Clock;
use crate::data::{DataFolder, write_private};
use crate::driver::crew::Crews;
use crate::driver::event::Event;
use crate::driver::{Driver, Places};
use crate::faults::Faults;
use crate::fields::Fields;
use crate::http::{self, App, Shared};
use crate::ice::Ice;
use crate::keys::Signer;
use crate::language::Languages;
use crate::network::Networks;
use crate::options::{OpenError, Options, RunError, Urls};
use crate::quic::Quic;
use crate::relay::Relay;
use crate::serve::Server;
use crate::store::blobs::Blobs;
use crate::store::verify;
use crate::tls;
use shoal_kinds::plan::Intake;

/// How often abandoned uploads are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);
/// How long nodes and answers on their way may take when the coordinator stops.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// A coordinator that holds its data folder and its port. [`Coordinator::run`] makes it work.
pub struct Coordinator {
    folder: DataFolder,
    listeners: Vec<TcpListener>,
    tls: TlsAcceptor,
    auth: Auth,
    signer: Arc<Signer>,
    networks: Networks,
    behind_proxy: bool,
    blobs: Blobs,
    kept: Blobs,
    fields: Arc<Fields>,
    driver: Driver,
    relay: Relay,
    quic: Quic,
    intake: Arc<dyn Intake>,
    urls: Urls,
}

impl Coordinator {
    /// Takes the data folder and the port and reads the facts. Nothing is served yet. Blocks, for as
    /// long as it takes to check the results on disk.
    pub fn open(options: Options) -> Result<Coordinator, OpenError> {
        Coordinator::open_with(options, Faults::default())
    }

    /// Like [`Coordinator::open`], with things that go wrong: for tests.
    #[doc(hidden)]
    pub fn open_with(options: Options, faults: Faults) -> Result<Coordinator, OpenError> {
        let folder = DataFolder::open(&options.data_dir)?;
        let listeners = listen(options.listen)?;
        let bound = listeners.first().and_then(|listener| listener.local_addr().ok());
        let bound = bound.unwrap_or(options.listen);
        let lan = lan_addresses(bound.ip());
        let auth = Auth::load(&folder)?;
        let signer = Arc::new(Signer::load(&folder.signing_key())?);
        let ice = Ice::of(&options)?;
        let networks = Networks::new().map_err(|error| OpenError::Random(error.to_string()))?;
        let tls = tls::acceptor(&folder, &lan)?;
        let quic = Quic::open(options.quic, options.listen, &listeners);
        let unsure_since = verify::horizon(&folder.database());
        let blobs = Blobs::open(&folder.blobs())
            .and_then(|blobs| blobs.check_since(unsure_since).map(|()| blobs))
            .map_err(|error| OpenError::file(folder.blobs(), error))?;
        let kept = Blobs::open(&folder.kept())
            .and_then(|kept| kept.check_since(unsure_since).map(|()| kept))
            .map_err(|error| OpenError::file(folder.kept(), error))?;
        let places = Places {
            database: folder.database(),
            results: folder.results(),
            kept: folder.kept(),
            ballast: folder.ballast(),
            unsure_since,
        };
        let fields = Arc::new(Fields::default());
        let relay = Relay::default();
        let (signs, pictures) = (Arc::clone(&signer), Arc::clone(&fields));
        let crews = Crews::new(signs, ice, kept.clone(), pictures, relay.clone());
        let driver = Driver::open(places, blobs.clone(), crews, Clock::start(), faults)?;
        let urls = Urls::new(bound, &lan, auth.key.text(), auth.token.text());
        let intake = options.intake;
        Ok(Coordinator {
            folder,
            listeners,
            tls,
            auth,
            signer,
            networks,
            behind_proxy: false,
            blobs,
            kept,
            fields,
            driver,
            relay,
            quic,
            intake,
            urls,
        })
    }

    /// Says that everybody comes through a proxy on this machine that writes `X-Forwarded-For`. Not to be
    /// said without one: then strangers could choose the network they seem to come from.
    #[must_use]
    pub fn behind_proxy(mut self, is_there: bool) -> Coordinator {
        self.behind_proxy = is_there;
        self
    }

    /// The port of UDP where frames may come by QUIC, or why there is none; nothing if it was not asked for.
    pub fn quic(&self) -> Option<Result<u16, &str>> {
        self.quic.state()
    }

    pub fn urls(&self) -> &Urls {
        &self.urls
    }

    /// The API key, as in the dashboard link.
    pub fn key(&self) -> &str {
        self.auth.key.text()
    }

    /// The join token, as in the join link.
    pub fn token(&self) -> &str {
        self.auth.token.text()
    }

    /// The relay, so that tests can let nodes talk without a job.
    #[doc(hidden)]
    pub fn relay(&self) -> Relay {
        self.relay.clone()
    }

    /// Serves until `shutdown` is ready, then tells the nodes, writes what is left and removes
    /// `running.json`. Needs a multi-thread tokio runtime with IO and time.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), RunError> {
        let listeners: Vec<_> = self
            .listeners
            .into_iter()
            .map(tokio::net::TcpListener::from_std)
            .collect::<Result<_, _>>()
            .map_err(RunError::Accept)?;
        let announcement = announcement(&self.urls, &self.auth);
        let (driver, thread) = self.driver.spawn().map_err(RunError::Accept)?;
        let (close, closing) = watch::channel(false);
        let (alive, mut all_gone) = mpsc::channel(1);
        let app = App::new(Shared {
            auth: self.auth,
            signer: self.signer,
            networks: self.networks,
            behind_proxy: self.behind_proxy,
            blobs: self.blobs.clone(),
            pieces: Default::default(),
            kept: self.kept,
            fields: self.fields,
            results: self.folder.results(),
            driver: driver.clone(),
            relay: self.relay,
            quic: self.quic.offered(),
            intake: self.intake,
            languages: Languages::default(),
            urls: self.urls,
            last_conn: AtomicU64::new(0),
            closing: closing.clone(),
            alive: alive.downgrade(),
        });
        self.quic.start(&app, &alive);
        let server = Server::new(http::router(app), self.tls, closing, alive);
        for listener in listeners {
            tokio::spawn(server.clone().accept(listener));
        }
        let sweeping = tokio::spawn(sweep(self.blobs));
        announce(&self.folder, &announcement);
        let mut ended = tokio::task::spawn_blocking(move || thread.join());
        let early = tokio::select! {
            () = shutdown => None,
            result = &mut ended => Some(result),
        };
        // Said first to the driver, so that nodes hear why before their sockets close.
        let _ = timeout(STOP_WITHIN, driver.tell(Event::Stop)).await;
        let result = match early {
            Some(result) => Some(result),
            None => match timeout(STOP_WITHIN, &mut ended).await {
                Ok(result) => Some(result),
                // It waits for the disk or the database. What it holds was never acknowledged.
                Err(_elapsed) => {
                    driver.give_up();
                    timeout(STOP_WITHIN, &mut ended).await.ok()
                }
            },
        };
        close.send_replace(true);
        sweeping.abort();
        drop(server);
        // Every connection holds its end of this channel, and nobody sends.
        let _ = timeout(STOP_WITHIN, all_gone.recv()).await;
        let _ = fs::remove_file(self.folder.running());
        match result {
            Some(Ok(Ok(result))) => result,
            // It panicked.
            Some(Ok(Err(_)) | Err(_)) => Err(RunError::DriverDied),
            // The system does not answer: nothing more can be done.
            None => Ok(()),
        }
    }
}

fn announce(folder: &DataFolder, announcement: &str) {
    if let Err(error) = write_private(&folder.running(), announcement.as_bytes()) {
        tracing::warn!("clients on this machine will not find the coordinator: {error}");
    }
}

/// What clients on this machine need to find the coordinator.
fn announcement(urls: &Urls, auth: &Auth) -> String {
    json!({
        "url": urls.local,
        "key": auth.key.text(),
        "beside": auth.beside.text(),
        "join": urls.join_local,
        "pid": std::process::id(),
    })
    .to_string()
}

async fn sweep(blobs: Blobs) {
    let mut hours = interval(SWEEP_EVERY);
    loop {
        hours.tick().await;
        let blobs = blobs.clone();
        let swept = tokio::task::spawn_blocking(move || blobs.sweep(SystemTime::now())).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!("abandoned uploads could not be removed: {error}");
        }
    }
}

/// Takes the port; on this machine's own address too if only another one was asked for, because plain
/// http works nowhere else.
fn listen(addr: SocketAddr) -> Result<Vec<TcpListener>, OpenError> {
    let first = bind(addr)?;
    let mut listeners = vec![first];
    if !addr.ip().is_unspecified() && !addr.ip().is_loopback() {
        let port =
            listeners.first().and_then(|l| l.local_addr().ok()).map_or(addr.port(), |a| a.port());
        listeners.push(bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))?);
    }
    Ok(listeners)
}

fn bind(addr: SocketAddr) -> Result<TcpListener, OpenError> {
    let listener = TcpListener::bind(addr).map_err(|source| {
        if source.kind() == io::ErrorKind::AddrInUse {
            OpenError::PortInUse { addr }
        } else if source.kind() == io::ErrorKind::PermissionDenied {
            OpenError::PortForbidden { addr }
        } else {
            OpenError::Listen { addr, source }
        }
    })?;
    listener.set_nonblocking(true).map_err(|source| OpenError::Listen { addr, source })?;
    Ok(listener)
}

/// Addresses other devices can reach: the one asked for, or the one packets to the network leave from.
fn lan_addresses(bound: IpAddr) -> Vec<IpAddr> {
    if bound.is_loopback() {
        return Vec::new();
    }
    if !bound.is_unspecified() {
        return vec![bound];
    }
    // Connecting a datagram socket sends nothing; it only asks the system for the way.
    let way = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        socket.local_addr()
    });
    way.map(|addr| addr.ip())
        .into_iter()
        .filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
        .collect()
}
