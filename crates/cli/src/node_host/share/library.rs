//! Where a thread that computes gets a whole blob that other nodes need too: from the shelf, once the node's loop
//! has seen to it that it is there.

use std::path::PathBuf;
use std::sync::mpsc::sync_channel;

use bytes::Bytes;
use shoal_protocol::BlobRef;
use shoal_protocol::share::is_shared;
use tokio::sync::mpsc;

use super::super::Event;
use super::{ShareEvent, Shelf};

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Library {
    shelf: Shelf,
    /// `None` in a process without the loop: what is on the shelf is all there is.
    to_loop: Option<mpsc::Sender<Event>>,
}

impl Library {
    pub(in super::super) fn new(shelf: Shelf, to_loop: mpsc::Sender<Event>) -> Library {
        Library { shelf, to_loop: Some(to_loop) }
    }

    /// For another process of the same node.
    pub(crate) fn looking_at(folder: PathBuf) -> Library {
        Library { shelf: Shelf::at(folder), to_loop: None }
    }

    /// The file with a whole blob, from other nodes or the coordinator, in pieces, going on with what was there.
    /// Waits for it. `None` if it is not one that is shared, or cannot be had this way: then the coordinator is
    /// asked for all of it.
    pub(crate) fn file(&self, blob: BlobRef) -> Option<PathBuf> {
        self.get(blob)?;
        self.shelf.file(blob)
    }

    /// The same as bytes.
    pub(crate) fn read(&self, blob: BlobRef) -> Option<Bytes> {
        self.get(blob)?;
        self.shelf.read(blob)
    }

    /// Waits until it is on the shelf.
    fn get(&self, blob: BlobRef) -> Option<()> {
        if !is_shared(&blob) {
            return None;
        }
        if self.shelf.find(blob).is_some() {
            return Some(());
        }
        let (reply, answer) = sync_channel(1);
        let need = Event::Share(Box::new(ShareEvent::Need { blob, reply }));
        self.to_loop.as_ref()?.blocking_send(need).ok()?;
        answer.recv().unwrap_or(false).then_some(())
    }
}
