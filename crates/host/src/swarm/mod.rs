//! Blobs from other nodes and for them: the pure part decides, here it is wired to the disk, the coordinator and
//! the crews of two by which pieces travel.

mod clerks;
mod library;
mod marks;
mod shelf;
mod wait;

pub(crate) use library::Library;
pub(crate) use shelf::Shelf;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use shoal_node::{Input, MemberInput, SwarmInput, SwarmOutput, Swarms};
use shoal_protocol::swarm::{BLOBS, bytes_in};
use shoal_protocol::{BlobRef, CrewId, Hash, NodeId, PieceSet, Time};
use tokio::sync::mpsc;

use super::session::Session;
use super::wire::Origin;
use super::{Event, Host, Notice};
use clerks::{Clerks, DiskOrder, FetchOrder};
use wait::Waits;

/// The donor hears of what the device gave each time it is so much more.
const TOLD_EVERY: u64 = 64 << 20;

/// What the loop hears about blobs.
pub(super) enum SwarmEvent {
    /// A thread waits until these pieces of the blob are on the shelf (`true`), or cannot be had that way.
    Need {
        blob: BlobRef,
        needs: PieceSet,
        reply: SyncSender<bool>,
    },
    Ready {
        blob: BlobRef,
        hashes: Vec<Hash>,
        needs: PieceSet,
        has: PieceSet,
    },
    /// The coordinator does not say what its pieces are.
    Unknown {
        blob: BlobRef,
        why: String,
    },
    Fetched {
        blob: BlobRef,
        piece: u32,
        result: Result<Vec<u8>, String>,
    },
    Loaded {
        blob: BlobRef,
        piece: u32,
        to: NodeId,
        bytes: Option<Vec<u8>>,
    },
    /// It is on the shelf, and others had to go.
    Whole {
        blob: BlobRef,
        dropped: Vec<Hash>,
    },
    /// The pieces that were needed of it are on the shelf, and others had to go.
    Settled {
        blob: BlobRef,
        dropped: Vec<Hash>,
    },
    /// It could not be stored.
    Lost {
        blob: BlobRef,
        why: String,
    },
}

pub(super) struct Sharing {
    swarms: Swarms,
    clerks: Clerks,
    shelf: Shelf,
    waits: Waits,
    /// The crew in which each other node is reached.
    links: BTreeMap<NodeId, CrewId>,
    told: u64,
}

/// With a folder for blobs and a radio to reach others. Without, this node exchanges none.
pub(super) fn start(
    folder: Option<PathBuf>,
    origin: &Origin,
    session: &Session,
    to_loop: &mpsc::Sender<Event>,
) -> Option<(Library, Sharing)> {
    let shelf = Shelf::open(folder?);
    let started = shelf.and_then(|shelf| {
        let library = Library::new(shelf.clone(), to_loop.clone());
        Ok((library, Sharing::start(shelf, origin, session, to_loop)?))
    });
    started.map_err(|error| tracing::warn!("no blobs are exchanged: {error}")).ok()
}

impl Sharing {
    fn start(
        shelf: Shelf,
        origin: &Origin,
        session: &Session,
        to_loop: &mpsc::Sender<Event>,
    ) -> std::io::Result<Sharing> {
        let to_loop = to_loop.clone();
        let report: clerks::Report =
            Arc::new(move |event| drop(to_loop.blocking_send(Event::Swarm(Box::new(event)))));
        let clerks = Clerks::start(&shelf, origin, session, &report)?;
        let mut swarms = Swarms::new();
        swarms.handle(Time(0), SwarmInput::Have(shelf.held()));
        for (blob, has) in shelf.parts() {
            swarms.handle(Time(0), SwarmInput::HavePart { blob, has });
        }
        let (waits, links) = (Waits::default(), BTreeMap::new());
        Ok(Sharing { swarms, clerks, shelf, waits, links, told: 0 })
    }

    pub(super) fn folder(&self) -> String {
        self.shelf.folder().display().to_string()
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.swarms.next_timeout()
    }
}

impl Host<'_> {
    /// One input to the exchange, then everything it asks for.
    pub(super) fn swarm(&mut self, input: SwarmInput<'_>) {
        let now = self.now();
        let Some(sharing) = &mut self.sharing else { return };
        sharing.swarms.handle(now, input);
        while let Some(output) = self.sharing.as_mut().and_then(|s| s.swarms.poll_output()) {
            self.swarm_wants(output);
        }
    }

    pub(super) fn swarm_tick(&mut self) {
        let now = self.now();
        let due = self.sharing.as_ref().and_then(Sharing::next_timeout);
        if due.is_some_and(|due| due <= now) {
            self.swarm(SwarmInput::Tick);
        }
    }

    fn swarm_wants(&mut self, output: SwarmOutput) {
        let Some(sharing) = &mut self.sharing else { return };
        let kept = match output {
            SwarmOutput::Say(say) => return self.replies.tell_brain(Input::SwarmSays(say)),
            SwarmOutput::Tell { to, words } => {
                if let Some(crew) = sharing.links.get(&to).copied() {
                    let input = MemberInput::App { to, channel: BLOBS, message: words };
                    self.member(crew, input);
                }
                return self.tell_given();
            }
            SwarmOutput::Fetch { blob, piece } => {
                let order = FetchOrder::Piece { blob, piece };
                sharing.clerks.fetch(order).then_some(()).ok_or(blob)
            }
            SwarmOutput::Store { blob, piece, bytes } => {
                let kept = sharing.clerks.disk(DiskOrder::Store { blob, piece, bytes });
                sharing.answer_parts(blob.hash);
                kept.then_some(()).ok_or(blob)
            }
            SwarmOutput::Load { blob, piece, to } => {
                let order = DiskOrder::Load { blob, piece, to };
                sharing.clerks.disk(order).then_some(()).ok_or(blob)
            }
            SwarmOutput::Part(blob) => {
                sharing.answer_parts(blob.hash);
                sharing.clerks.disk(DiskOrder::Settle(blob)).then_some(()).ok_or(blob)
            }
            SwarmOutput::Whole(blob) => {
                sharing.clerks.disk(DiskOrder::Finish(blob)).then_some(()).ok_or(blob)
            }
            SwarmOutput::Failed { blob, why } => {
                tracing::debug!("blob {} does not come from nodes: {why}", blob.hash);
                return self.swarm_answer(blob.hash, false);
            }
        };
        if let Err(blob) = kept {
            self.swarm_lost(blob, "too much waits for the disk");
        }
    }

    pub(super) fn swarm_event(&mut self, event: SwarmEvent) {
        match event {
            SwarmEvent::Need { blob, needs, reply } => self.swarm_need(blob, needs, reply),
            SwarmEvent::Ready { blob, hashes, needs, has } => {
                let bytes = bytes_in(&blob, &needs);
                let here = bytes - bytes_in(&blob, &needs.without(&has));
                (self.notify)(Notice::Fetches { bytes, here });
                self.swarm(SwarmInput::Want { blob, hashes, needs, has });
            }
            SwarmEvent::Unknown { blob, why } => {
                tracing::debug!("pieces of blob {} are not known: {why}", blob.hash);
                self.swarm_answer(blob.hash, false);
            }
            SwarmEvent::Fetched { blob, piece, result } => {
                self.swarm(SwarmInput::Fetched { blob: blob.hash, piece, result });
            }
            SwarmEvent::Loaded { blob, piece, to, bytes } => {
                let (blob, bytes) = (blob.hash, bytes.as_deref());
                self.swarm(SwarmInput::Loaded { blob, piece, to, bytes });
            }
            SwarmEvent::Whole { blob, dropped } => {
                self.swarm_answer(blob.hash, true);
                self.swarm_dropped(dropped);
            }
            SwarmEvent::Settled { blob, dropped } => {
                self.swarm_settled(blob.hash);
                self.swarm_dropped(dropped);
            }
            SwarmEvent::Lost { blob, why } => self.swarm_lost(blob, &why),
        }
        self.settle();
    }

    /// Others had to make room.
    fn swarm_dropped(&mut self, dropped: Vec<Hash>) {
        for hash in dropped {
            self.swarm(SwarmInput::Drop(hash));
            self.swarm_answer(hash, false);
        }
    }

    fn swarm_lost(&mut self, blob: BlobRef, why: &str) {
        tracing::debug!("blob {} is not shared: {why}", blob.hash);
        self.swarm(SwarmInput::Drop(blob.hash));
        if let Some(sharing) = &self.sharing {
            sharing.clerks.disk(DiskOrder::Forget(blob.hash));
        }
        self.swarm_answer(blob.hash, false);
    }

    /// Two nodes were called together to exchange pieces.
    pub(super) fn swarm_linked(&mut self, crew: CrewId, other: NodeId) {
        if let Some(sharing) = &mut self.sharing {
            sharing.links.insert(other, crew);
        }
    }

    pub(super) fn swarm_unlinked(&mut self, crew: CrewId) {
        let Some(sharing) = &mut self.sharing else { return };
        let gone = sharing.links.iter().find(|(_, known)| **known == crew).map(|(node, _)| *node);
        if let Some(node) = gone {
            sharing.links.remove(&node);
            self.swarm(SwarmInput::Gone(node));
        }
    }

    pub(super) fn is_swarm(&self, crew: CrewId) -> bool {
        let sharing = self.sharing.as_ref();
        sharing.is_some_and(|sharing| sharing.links.values().any(|known| *known == crew))
    }

    fn tell_given(&mut self) {
        let Some(sharing) = &mut self.sharing else { return };
        let given = sharing.swarms.exchanged().given;
        if given >= sharing.told + TOLD_EVERY {
            sharing.told = given;
            (self.notify)(Notice::Gave { bytes: given });
        }
    }
}
