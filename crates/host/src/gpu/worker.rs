//! The GPU process: takes units and crews' commands from its node, fetches inputs straight into GPU
//! memory, computes, and stores the results itself. It knows no leases; its node kills it when a
//! kernel does not end.

use std::collections::BTreeMap;
use std::io::{self, BufReader, IsTerminal};
use std::sync::{Arc, Mutex, mpsc};

use pollster::block_on;
use shoal_engine::wgsl::{Gpu, probe};
use shoal_protocol::limit::MAX_LEASES_PER_NODE;
use shoal_protocol::{CrewId, Lease};

use super::super::cache::Cache;
use super::super::child::leave;
use super::super::courier::Courier;
use super::super::session::Session;
use super::super::swarm::Library;
use super::super::wire::Origin;
use super::band::{self, Band};
use super::device::{Device, Job, lock, say};
use super::process::WORKER;
use super::talk::{self, FromWorker, Opened, ToWorker};
use crate::fail::Fail;
use crate::tls::Trust;

/// Units that wait for a slot: no node holds more. Beyond them, the side that listens waits for a
/// slot, which never waits for it.
const MAX_UNITS: usize = MAX_LEASES_PER_NODE;

/// Computes for the node that started this process as [`WORKER`], until it is gone.
pub fn run() -> Result<(), Fail> {
    if io::stdin().is_terminal() {
        return Err(Fail::input(format!("{WORKER} is started by a node, not by hand")));
    }
    let gpu = block_on(Gpu::open());
    say(&FromWorker::Ready(gpu.as_ref().map(opened).map_err(Clone::clone)));
    let Ok(gpu) = gpu else { return Ok(()) };
    Worker {
        device: Arc::new(Device::new(gpu)),
        session: Session::default(),
        trust: Trust::nobody(),
        cache: Cache::default(),
        library: None,
        origin: None,
        units: None,
        bands: BTreeMap::new(),
    }
    .listen();
    leave()
}

/// A device that cannot even run the probe may still compute: its answers are compared by tolerance.
fn opened(gpu: &Gpu) -> Opened {
    Opened { caps: gpu.caps(), class: block_on(probe(gpu)).unwrap_or(0) }
}

/// The side that listens to the node.
struct Worker {
    device: Arc<Device>,
    session: Session,
    trust: Trust,
    cache: Cache,
    library: Option<Library>,
    /// Where to fetch from, once that is known.
    origin: Option<Origin>,
    /// The way to the slots, from then on.
    units: Option<mpsc::SyncSender<Lease>>,
    bands: BTreeMap<CrewId, Band>,
}

impl Worker {
    fn listen(mut self) {
        let mut input = BufReader::new(io::stdin());
        while let Ok(message) = talk::read(&mut input) {
            match message {
                ToWorker::Session { base, token, pin, shelf, beside } => {
                    self.library = shelf.map(|folder| Library::looking_at(folder.into()));
                    self.session.set(&token, beside);
                    self.reach(&base, pin);
                }
                ToWorker::Job { job, items, work } => {
                    lock(&self.device.jobs).insert(job, Arc::new(Job::new(items, *work)));
                }
                ToWorker::Run(lease) => {
                    if let Some(units) = &self.units {
                        let _ = units.send(lease);
                    }
                }
                ToWorker::Cancel(attempt) => {
                    lock(&self.device.cancelled).insert(attempt);
                }
                ToWorker::Forget(job) => {
                    lock(&self.device.jobs).remove(&job);
                }
                ToWorker::Audition { crew, job } => {
                    let device = self.device.clone();
                    std::thread::spawn(move || band::audition(&device, crew, job));
                }
                ToWorker::Crew { crew, command } => {
                    if let Some(band) = self.band(crew) {
                        let _ = band.send(command);
                    }
                }
                ToWorker::Leave(crew) => {
                    self.bands.remove(&crew);
                }
            }
        }
    }

    /// How the coordinator is reached; the first time, the slots begin.
    fn reach(&mut self, base: &str, pin: Option<String>) {
        if let Some(pin) = pin.and_then(|pin| pin.parse().ok()) {
            self.trust.pin(pin);
        }
        if self.units.is_none() {
            let tls = self.trust.config().ok();
            self.origin = tls.and_then(|tls| Origin::new(base, tls));
            self.units = self.origin.as_ref().map(|origin| self.start_slots(origin));
        }
    }

    fn courier(&self, origin: &Origin) -> Courier {
        let courier = Courier::new(origin.clone(), self.session.clone(), self.cache.clone());
        courier.with_library(self.library.clone())
    }

    /// The crew's thread, started with its first command.
    fn band(&mut self, crew: CrewId) -> Option<&Band> {
        if !self.bands.contains_key(&crew) {
            let origin = self.origin.as_ref()?;
            let couriers = [self.courier(origin), self.courier(origin)];
            self.bands.insert(crew, band::start(crew, &self.device, couriers));
        }
        self.bands.get(&crew)
    }

    fn start_slots(&self, origin: &Origin) -> mpsc::SyncSender<Lease> {
        let (units, queue) = mpsc::sync_channel::<Lease>(MAX_UNITS);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..self.device.gpu.caps().slots.max(1) {
            let mut courier = self.courier(origin);
            let (queue, device) = (queue.clone(), self.device.clone());
            std::thread::spawn(move || {
                loop {
                    let next = lock(&queue).recv();
                    let Ok(lease) = next else { return };
                    device.serve(&mut courier, &lease);
                }
            });
        }
        units
    }
}
