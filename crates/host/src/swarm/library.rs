//! Where a thread that computes gets a blob that other nodes need too, or some bytes of it: from the shelf, once the
//! node's loop has seen to it that it is there.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;

use bytes::Bytes;
use shoal_protocol::swarm::{is_shared, pieces_in, pieces_of};
use shoal_protocol::{BlobRef, PieceSet};
use tokio::sync::mpsc;

use super::super::Event;
use super::{Shelf, SwarmEvent};

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
        self.get(blob, &PieceSet::full(pieces_of(&blob)))?;
        self.shelf.file(blob)
    }

    /// The same as bytes.
    pub(crate) fn read(&self, blob: BlobRef) -> Option<Bytes> {
        self.get(blob, &PieceSet::full(pieces_of(&blob)))?;
        self.shelf.read(blob)
    }

    /// Some bytes of a blob. Only the pieces they lie in come here, stay, and are given to others. Each is checked by
    /// its hash; the whole cannot be.
    pub(crate) fn range(&self, blob: BlobRef, range: Range<u64>) -> Option<Bytes> {
        if range.start > range.end || range.end > blob.size || !is_shared(&blob) {
            return None;
        }
        let needs = pieces_in(&blob, [range.clone()]);
        let read = || self.get(blob, &needs).and_then(|()| self.shelf.range(blob, range.clone()));
        // A piece that was changed on the disk is found when it is read, and comes again.
        read().or_else(read)
    }

    /// The same if they are on the shelf already.
    pub(crate) fn range_here(&self, blob: BlobRef, range: Range<u64>) -> Option<Bytes> {
        if range.start > range.end || range.end > blob.size || !is_shared(&blob) {
            return None;
        }
        let here = self.shelf.holds(blob, &pieces_in(&blob, [range.clone()]));
        here.then(|| self.shelf.range(blob, range)).flatten()
    }

    /// Waits until all of these bytes are on the shelf, so that no range of them waits later.
    pub(crate) fn gather(&self, blob: BlobRef, ranges: &[Range<u64>]) {
        if ranges.iter().all(|range| range.start <= range.end && range.end <= blob.size) {
            // What cannot be had this way is asked of the coordinator, range by range.
            let _ = self.get(blob, &pieces_in(&blob, ranges.iter().cloned()));
        }
    }

    /// Waits until these pieces are on the shelf.
    fn get(&self, blob: BlobRef, needs: &PieceSet) -> Option<()> {
        if !is_shared(&blob) {
            return None;
        }
        if self.shelf.holds(blob, needs) {
            return Some(());
        }
        let (reply, answer) = sync_channel(1);
        let need = SwarmEvent::Need { blob, needs: needs.clone(), reply };
        self.to_loop.as_ref()?.blocking_send(Event::Swarm(Box::new(need))).ok()?;
        answer.recv().unwrap_or(false).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_protocol::hash;
    use shoal_protocol::limit::PIECE_BYTES;

    #[test]
    fn a_range_comes_once_and_again_if_the_disk_lost_it() {
        let folder = std::env::temp_dir().join(format!("shoal-library-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let shelf = Shelf::open(folder.clone()).expect("a folder");
        let bytes: Vec<u8> = (0..9 * PIECE_BYTES).map(|at| (at >> 10) as u8).collect();
        let blob = BlobRef { hash: hash(&bytes), size: bytes.len() as u64 };
        let (to_loop, mut events) = mpsc::channel(4);
        let library = Library::new(shelf.clone(), to_loop);
        let (place, content) = (shelf.clone(), bytes.clone());
        // What the loop does, without other nodes.
        let answers = std::thread::spawn(move || {
            let mut wanted = Vec::new();
            while let Some(Event::Swarm(event)) = events.blocking_recv() {
                let SwarmEvent::Need { blob, needs, reply } = *event else { continue };
                wanted.extend(needs.iter());
                for piece in needs.iter().map(|piece| piece as usize) {
                    let bytes = content.chunks(PIECE_BYTES as usize).nth(piece).expect("a piece");
                    place.store(blob, piece as u32, bytes).expect("stored");
                }
                reply.send(true).expect("somebody waits");
            }
            wanted
        });
        let (from, to) = (2 * PIECE_BYTES - 3, 2 * PIECE_BYTES + 3);
        let range = from as usize..to as usize;
        for _ in 0..2 {
            assert_eq!(library.range(blob, from..to).expect("here"), bytes[range.clone()]);
        }
        let part = folder.join(format!("{}.part", blob.hash));
        std::fs::write(part, vec![0; bytes.len()]).expect("changed");
        assert_eq!(library.range(blob, from..to).expect("again"), bytes[range]);
        assert!(library.range(blob, 0..blob.size + 1).is_none());
        // Who is in a hurry gets what is here, and waits for nothing.
        assert!(library.range_here(blob, from..to).is_some());
        assert!(library.range_here(blob, 5 * PIECE_BYTES..6 * PIECE_BYTES).is_none());
        drop(library);
        assert_eq!(answers.join().expect("no panic")[..2], [1, 2]);
        std::fs::remove_dir_all(folder).expect("gone");
    }
}
