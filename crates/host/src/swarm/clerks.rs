//! The threads that move pieces for the loop: one for the disk, which keeps the order of what is stored and loaded,
//! and a few for the coordinator.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use shoal_protocol::{BlobRef, Hash, NodeId, PieceSet};

use super::super::cache::Cache;
use super::super::courier::Courier;
use super::super::session::Session;
use super::super::wire::Origin;
use super::{Shelf, SwarmEvent};

/// Pieces fetched from the coordinator at a time, with their connections.
const FETCHERS: usize = 2;
/// Orders that wait. There are as many pieces under way as the coordinator and other nodes are allowed, far fewer.
const MAX_ORDERS: usize = 1024;

pub(super) type Report = Arc<dyn Fn(SwarmEvent) + Send + Sync>;

pub(super) struct Clerks {
    disk: SyncSender<DiskOrder>,
    fetch: SyncSender<FetchOrder>,
}

pub(super) enum DiskOrder {
    Store {
        blob: BlobRef,
        piece: u32,
        bytes: Vec<u8>,
    },
    Load {
        blob: BlobRef,
        piece: u32,
        to: NodeId,
    },
    Finish(BlobRef),
    /// What was needed of it is stored.
    Settle(BlobRef),
    /// These wait for what was ordered before.
    Answer(Vec<SyncSender<bool>>),
    Forget(Hash),
}

pub(super) enum FetchOrder {
    /// The hashes of its pieces, and which of them are here; these are needed.
    Prepare {
        blob: BlobRef,
        needs: PieceSet,
    },
    Piece {
        blob: BlobRef,
        piece: u32,
    },
}

impl Clerks {
    pub(super) fn start(
        shelf: &Shelf,
        origin: &Origin,
        session: &Session,
        report: &Report,
    ) -> std::io::Result<Clerks> {
        let (disk, orders) = sync_channel(MAX_ORDERS);
        let (place, tell) = (shelf.clone(), Arc::clone(report));
        spawn("shelf", move || keep(&place, &orders, &tell))?;
        let (fetch, orders) = sync_channel(MAX_ORDERS);
        let orders = Arc::new(Mutex::new(orders));
        for number in 0..FETCHERS {
            let courier = Courier::new(origin.clone(), session.clone(), Cache::default());
            let (orders, shelf, report) = (Arc::clone(&orders), shelf.clone(), Arc::clone(report));
            spawn(&format!("fetch-{number}"), move || {
                fetch_all(courier, &shelf, &orders, &report)
            })?;
        }
        Ok(Clerks { disk, fetch })
    }

    /// Whether it will be done. The loop never waits for the disk.
    pub(super) fn disk(&self, order: DiskOrder) -> bool {
        self.disk.try_send(order).is_ok()
    }

    pub(super) fn fetch(&self, order: FetchOrder) -> bool {
        self.fetch.try_send(order).is_ok()
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

fn keep(shelf: &Shelf, orders: &Receiver<DiskOrder>, report: &Report) {
    while let Ok(order) = orders.recv() {
        match order {
            DiskOrder::Store { blob, piece, bytes } => {
                if let Err(error) = shelf.store(blob, piece, &bytes) {
                    report(SwarmEvent::Lost { blob, why: crate::fail::plain(&error) });
                }
            }
            DiskOrder::Load { blob, piece, to } => {
                let bytes = shelf.load(blob, piece).ok();
                report(SwarmEvent::Loaded { blob, piece, to, bytes });
            }
            DiskOrder::Settle(blob) => {
                let dropped = shelf.settle(blob.hash);
                report(SwarmEvent::Settled { blob, dropped });
            }
            DiskOrder::Answer(waiting) => {
                for reply in waiting {
                    // Whoever does not wait any more needs no answer.
                    let _ = reply.send(true);
                }
            }
            DiskOrder::Finish(blob) => report(match shelf.finish(blob) {
                Ok(dropped) => SwarmEvent::Whole { blob, dropped },
                Err(error) => SwarmEvent::Lost { blob, why: crate::fail::plain(&error) },
            }),
            DiskOrder::Forget(hash) => shelf.forget(hash),
        }
    }
}

fn fetch_all(
    mut courier: Courier,
    shelf: &Shelf,
    orders: &Mutex<Receiver<FetchOrder>>,
    report: &Report,
) {
    loop {
        let next = orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(FetchOrder::Prepare { blob, needs }) => report(match courier.piece_hashes(blob) {
                Ok(hashes) => {
                    let has = shelf.check(blob, &hashes, &needs);
                    SwarmEvent::Ready { blob, hashes, needs, has }
                }
                Err(failure) => SwarmEvent::Unknown { blob, why: failure.to_string() },
            }),
            Ok(FetchOrder::Piece { blob, piece }) => {
                let result = courier.piece(blob, piece).map_err(|failure| failure.to_string());
                report(SwarmEvent::Fetched { blob, piece, result });
            }
            Err(_) => return,
        }
    }
}
