//! What the peer says: chunks are put in order, messages put together and checked, credit given and
//! acknowledgements owed.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use shoal_protocol::limit::{
    CHUNK_BYTES, LINK_WINDOW, MAX_CHANNELS, MAX_CHUNKS_AHEAD, MAX_MESSAGE_BYTES, MAX_OPEN_BYTES,
};
use shoal_protocol::{Hash, Hasher, Micros, Time};

use super::Broken;
use super::chunk::Chunk;

/// An acknowledgement waits this long for words to ride on: less than a browser's timer can do, and nothing
/// against the patience of the other end.
const ACK_DELAY: Micros = Micros::from_millis(4);
/// It waits no longer than for this many chunks or bytes: a fraction of what the slowest path has on the way.
const ACK_CHUNKS: u32 = 16;
const ACK_BYTES: u64 = 2 * CHUNK_BYTES as u64;
/// Memory reserved on a peer's mere word that a message will be large.
const MOST_RESERVED: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct Incoming {
    /// Every chunk below this number was taken.
    next: u64,
    /// Chunks that came before their turn.
    early: BTreeMap<u64, Early>,
    early_bytes: u64,
    /// Bytes of chunks taken in order in this epoch, and how many the peer may send.
    taken: u64,
    granted: u64,
    /// The owner does not keep up: nothing more is granted.
    pub(super) hold: bool,
    channels: BTreeMap<u16, Assembly>,
    open: u64,
    /// The message that failed its hash and is awaited again.
    refused: Option<(u16, u64)>,
    owed: Owed,
}

#[derive(Debug)]
struct Early {
    channel: u16,
    message: u64,
    total: Option<u64>,
    hash: Option<Hash>,
    bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct Assembly {
    /// The message that comes next or is coming.
    message: u64,
    part: Option<Part>,
}

#[derive(Debug)]
struct Part {
    total: u64,
    bytes: Vec<u8>,
    hasher: Hasher,
}

/// What is not acknowledged yet.
#[derive(Debug, Default)]
struct Owed {
    since: Option<Time>,
    chunks: u32,
    bytes: u64,
    urgent: bool,
}

impl Incoming {
    pub(super) fn new() -> Incoming {
        Incoming {
            next: 0,
            early: BTreeMap::new(),
            early_bytes: 0,
            taken: 0,
            granted: LINK_WINDOW,
            hold: false,
            channels: BTreeMap::new(),
            open: 0,
            refused: None,
            owed: Owed::default(),
        }
    }

    /// Takes a chunk; whole messages go to `done`. Whether it was new.
    pub(super) fn take(
        &mut self,
        now: Time,
        channel: u16,
        chunk: Chunk<'_>,
        done: &mut Vec<(u16, Vec<u8>)>,
    ) -> Result<bool, Broken> {
        let size = chunk.bytes.len() as u64;
        if size > CHUNK_BYTES as u64 {
            return Err(Broken::WrongLength);
        }
        if chunk.number < self.next || self.early.contains_key(&chunk.number) {
            // The acknowledgement got lost, or two paths brought it.
            self.owed.urgent = true;
            return Ok(false);
        }
        let ahead = chunk.number - self.next;
        if ahead >= MAX_CHUNKS_AHEAD || self.taken + self.early_bytes + size > self.granted {
            return Err(Broken::Flood);
        }
        self.owed.since.get_or_insert(now);
        self.owed.chunks += 1;
        self.owed.bytes += size;
        if ahead > 0 {
            let Chunk { number, message, total, hash, bytes } = chunk;
            let bytes = bytes.to_vec();
            self.early.insert(number, Early { channel, message, total, hash, bytes });
            self.early_bytes += size;
            self.owed.urgent = true;
            return Ok(true);
        }
        self.assemble(channel, chunk, done)?;
        while let Some(early) = self.early.remove(&self.next) {
            self.early_bytes -= early.bytes.len() as u64;
            let Early { channel, message, total, hash, ref bytes } = early;
            let chunk = Chunk { number: self.next, message, total, hash, bytes };
            self.assemble(channel, chunk, done)?;
        }
        Ok(true)
    }

    /// The chunk whose turn it is.
    fn assemble(
        &mut self,
        channel: u16,
        chunk: Chunk<'_>,
        done: &mut Vec<(u16, Vec<u8>)>,
    ) -> Result<(), Broken> {
        self.next += 1;
        self.taken += chunk.bytes.len() as u64;
        if !self.channels.contains_key(&channel) && self.channels.len() >= MAX_CHANNELS {
            return Err(Broken::Flood);
        }
        let assembly = self.channels.entry(channel).or_default();
        let again = self.refused == Some((channel, assembly.message));
        let first = chunk.total.is_some();
        if again && assembly.part.is_none() && !(first && chunk.message == assembly.message) {
            // Said before the peer knew that it must go back.
            return Ok(());
        }
        if chunk.message != assembly.message || first != assembly.part.is_none() {
            return Err(Broken::Disorder);
        }
        let single = first && chunk.hash.is_some();
        if let Some(total) = chunk.total {
            begin(assembly, total)?;
            self.open += if single { 0 } else { total };
            if self.open > MAX_OPEN_BYTES {
                return Err(Broken::Flood);
            }
        }
        let Some(part) = &mut assembly.part else { return Err(Broken::Disorder) };
        part.add(&chunk)?;
        let Some(hash) = chunk.hash else { return Ok(()) };
        let Some(part) = assembly.part.take() else { return Err(Broken::Disorder) };
        self.open -= if single { 0 } else { part.total };
        if part.hasher.finish() == hash {
            assembly.message += 1;
            self.refused = self.refused.filter(|_| !again);
            done.push((channel, part.bytes));
            return Ok(());
        }
        if self.refused.is_some() {
            return Err(Broken::WrongHash);
        }
        self.refused = Some((channel, chunk.message));
        self.owed.urgent = true;
        Ok(())
    }

    /// Raises what the peer may send, unless the owner does not keep up.
    pub(super) fn grant(&mut self) -> u64 {
        if !self.hold {
            self.granted = self.granted.max(self.taken + LINK_WINDOW);
        }
        self.granted
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Bit `i`: chunk `next + 1 + i` is here.
    pub(super) fn have(&self) -> u128 {
        let bits = self.early.keys().map(|number| 1 << (number - self.next - 1));
        bits.fold(0, |have: u128, bit: u128| have | bit)
    }

    pub(super) fn refused(&self) -> Option<(u16, u64)> {
        self.refused
    }

    /// The peer should hear from us now.
    pub(super) fn hurry(&mut self) {
        self.owed.urgent = true;
    }

    /// All that arrived is being said.
    pub(super) fn settle(&mut self) {
        self.owed = Owed::default();
    }

    /// When the peer must be told what arrived.
    pub(super) fn owed(&self) -> Option<Time> {
        let owed = &self.owed;
        if owed.urgent || owed.chunks >= ACK_CHUNKS || owed.bytes >= ACK_BYTES {
            return Some(Time(0));
        }
        owed.since.map(|since| since + ACK_DELAY)
    }

    /// Panics where an invariant does not hold.
    pub(super) fn check(&self) {
        let early: usize = self.early.values().map(|early| early.bytes.len()).sum();
        assert_eq!(self.early_bytes, early as u64, "early bytes are counted wrong");
        assert!(
            self.early.keys().all(|number| *number > self.next),
            "a chunk in turn was not taken"
        );
        assert!((self.early.len() as u64) < MAX_CHUNKS_AHEAD, "too many early chunks");
        assert!(self.taken + self.early_bytes <= self.granted, "more came than was granted");
        assert!(self.granted <= self.taken + LINK_WINDOW, "more than a window is granted");
        let open = self.channels.values().filter_map(|assembly| assembly.part.as_ref());
        assert_eq!(
            self.open,
            open.map(|part| part.total).sum::<u64>(),
            "open messages are counted wrong"
        );
        assert!(self.open <= MAX_OPEN_BYTES && self.channels.len() <= MAX_CHANNELS);
    }
}

fn begin(assembly: &mut Assembly, total: u64) -> Result<(), Broken> {
    if total > MAX_MESSAGE_BYTES {
        return Err(Broken::TooLong);
    }
    let bytes = Vec::with_capacity(total.min(MOST_RESERVED) as usize);
    assembly.part = Some(Part { total, bytes, hasher: Hasher::new() });
    Ok(())
}

impl Part {
    /// The last chunk, and no other, makes the message as long as it said.
    fn add(&mut self, chunk: &Chunk<'_>) -> Result<(), Broken> {
        let length = self.bytes.len() as u64 + chunk.bytes.len() as u64;
        let ends = chunk.hash.is_some();
        let fits = if ends { length == self.total } else { length < self.total };
        if !fits || chunk.bytes.is_empty() && self.total > 0 {
            return Err(Broken::WrongLength);
        }
        self.hasher.update(chunk.bytes);
        self.bytes.extend_from_slice(chunk.bytes);
        Ok(())
    }
}
