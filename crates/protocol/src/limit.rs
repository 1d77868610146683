//! Every bound in one place, each with its reason.

use crate::time::Micros;

/// The protocol this build speaks. Raised when an older peer could misread a message.
pub const PROTOCOL_VERSION: u16 = 6;
/// The oldest peer this build still understands.
pub const OLDEST_VERSION: u16 = 6;

/// Largest control message on a socket. Bulk data goes by HTTP, so a larger frame is a fault or an attack.
pub const MAX_FRAME_BYTES: usize = 4 << 20;
/// Results up to this size ride inside `Done`; larger ones are stored by HTTP first, so that a socket
/// never stalls heartbeats behind megabytes.
pub const MAX_INLINE_BYTES: usize = 16 << 10;
/// Inline results in one `Done` together stay below this, well under a frame.
pub const MAX_DONE_BYTES: usize = 1 << 20;
/// Units lent to one node at a time: enough to cover a 50 ms round trip with units of 50 microseconds.
pub const MAX_LEASES_PER_NODE: usize = 1024;
/// Items in one batch message; a `Lend` of this many is about 40 kB.
pub const MAX_BATCH: usize = 1024;
/// Largest kernel source. Hand-written kernels are a few kB; this leaves room for generated ones.
pub const MAX_KERNEL_BYTES: usize = 256 << 10;
/// Largest text a node may send about itself or a failure.
pub const MAX_TEXT_BYTES: usize = 4 << 10;
/// Engines a node may name: a device has a handful, and a stranger's list is kept for as long as it is connected.
pub const MAX_ENGINES: usize = 32;
/// Longest name or version of an engine: people read it in a sentence.
pub const MAX_ENGINE_TEXT: usize = 64;
/// What is kept of a program's stderr, from its end, where the reason stands.
pub const MAX_STDERR_BYTES: usize = 2 << 10;
/// Units a job may have: each costs about 100 bytes of the coordinator's memory for ever.
pub const MAX_UNITS_PER_JOB: u64 = 2_000_000;
/// Jobs that run or wait at a time; more are refused with "try later".
pub const MAX_OPEN_JOBS: usize = 1_000;
/// Ended jobs kept with their results; the oldest is removed first.
pub const MAX_ENDED_JOBS: usize = 1_000;
/// Nodes connected at a time.
pub const MAX_NODES: usize = 20_000;
/// Bytes one unit may take or give, so that several fit a phone's memory at once.
pub const MAX_UNIT_BYTES: u64 = 16 << 20;

/// A node that holds leases says it lives this often.
pub const HEARTBEAT: Micros = Micros::from_millis(500);
/// A node without leases only keeps its connection open.
pub const IDLE_HEARTBEAT: Micros = Micros::from_secs(15);
/// Silence of a lease holder after which its units go to others: four missed heartbeats.
pub const SILENCE: Micros = Micros::from_millis(2_200);
/// Silence of an idle node after which its connection counts as dead.
pub const IDLE_SILENCE: Micros = Micros::from_secs(40);
/// A lease its node does not name this long after it was lent never arrived, or its answer did not.
pub const LOST_AFTER: Micros = Micros::from_secs(2);
/// What a unit should take: long enough to hide a round trip, short enough that losing one is cheap.
pub const TARGET_UNIT: Micros = Micros::from_millis(250);
/// Work lent ahead of need, so that no round trip stands between two units.
pub const LEND_AHEAD: Micros = Micros::from_millis(150);
/// A unit that failed on this many distinct nodes fails its job.
pub const FAIL_ON_NODES: usize = 2;
/// Tries of one unit, whatever the reasons; then its job fails.
pub const MAX_TRIES: u32 = 8;
/// A node must be this much over a unit's own time limit before the coordinator takes the unit back.
pub const OVERTIME: Micros = Micros::from_secs(5);
/// First and longest wait between two attempts of a node to reconnect.
pub const RECONNECT_FIRST: Micros = Micros::from_millis(200);
pub const RECONNECT_LONGEST: Micros = Micros::from_secs(10);

/// Largest frame between two nodes, header included: what every browser passes as one data channel message.
pub const MAX_LINK_FRAME: usize = 64 << 10;
/// What sealing adds to a payload: the tag of ChaCha20-Poly1305.
pub const SEAL_BYTES: usize = 16;
/// Message bytes in one frame. The rest of a frame, 256 bytes, is room for header, acknowledgement, hash and
/// tag; a multiple of 256, so that no number of a tensor is cut in two.
pub const CHUNK_BYTES: usize = MAX_LINK_FRAME - 256;
/// Bytes a node may send to another before it hears that they were taken: 80 MB/s at a round trip of 50 ms,
/// and little enough that a phone can have a dozen peers.
pub const LINK_WINDOW: u64 = 4 << 20;
/// Frames with message bytes on the way at a time, so that one word of bits tells which arrived. Twice
/// what the window holds of full ones.
pub const MAX_CHUNKS_AHEAD: u64 = 128;
/// Largest message between two nodes. Tensors of a crew are smaller; larger blobs go in pieces.
pub const MAX_MESSAGE_BYTES: u64 = 64 << 20;
/// Messages of more than one chunk begun and not ended, together: two of the largest, because each
/// is kept in memory until its last byte is there.
pub const MAX_OPEN_BYTES: u64 = 2 * MAX_MESSAGE_BYTES;
/// Channels of one link. Each kind of talk has one; a job has less than ten kinds.
pub const MAX_CHANNELS: usize = 32;
/// Members of one crew: each talks to its neighbours, and rank and count fit a byte with room to spare.
pub const MAX_MEMBERS: usize = 64;
/// Pokes over a field since its last checkpoint: a hand makes some thirty a second, so these are two minutes
/// of stirring, and all of them fit a message to a member.
pub const MAX_POKES: usize = 4_096;
/// Crews a node is in at a time: each may hold a device's memory.
pub const MAX_CREWS_PER_NODE: usize = 4;
/// Steps of a simulation with one pass or several.
pub const MAX_PASSES: usize = 1024;
/// Pixels a side in the live picture of a simulation: what a page shows, at a tenth of the field's bytes.
pub const MAX_VIEW_SIDE: u32 = 512;

/// What nodes exchange of a blob at a time: small enough to be spread and sent again, large enough that a word
/// about each costs nothing beside it.
pub const PIECE_BYTES: u64 = 1 << 20;
/// Blobs of so many pieces are shared by nodes; smaller ones come sooner than two nodes meet.
pub const SHARED_FROM: u64 = 8 * PIECE_BYTES;
/// Pieces of one blob: 64 GiB, more than any device here holds in memory.
pub const MAX_PIECES: u32 = 1 << 16;
/// Nodes one node exchanges pieces with at a time: each costs a direct channel and some MiB.
pub const MAX_SWARM_LINKS: usize = 6;
/// Blobs a node needs at a time or says that it has: the coordinator keeps books of each.
pub const MAX_SHARED_BLOBS: usize = 64;
/// Pieces on the way from one node to another: one more than are being sent, so that no word stands between two.
pub const MAX_PIECES_ASKED: usize = 2;

/// What a node says unasked has a price in time, so that whoever talks without end waits for itself and not others
/// for it. Answers to what it was asked (units, pieces, auditions) are free, however many. A plain word: 500 a second.
pub const WORD_PRICE: Micros = Micros::from_millis(2);
/// A word that changes what the coordinator decides (a pause, a claim, a condition): 33 a second, far more than a
/// donor's hand or a device's sensors bring about, and a thousandth of what the coordinator can bear.
pub const CHANGE_PRICE: Micros = Micros::from_millis(30);
/// A node may owe this much: a hundred changes in a row, or a rule of its donor's about a thousand jobs.
pub const TALK_AHEAD: Micros = Micros::from_secs(4);
/// On a new connection it may owe this much: what a node says when it comes, and no reason to come again.
pub const TALK_AT_FIRST: Micros = Micros::from_secs(1);

/// Body of a request to a service: pictures of floats fit. Larger inputs belong into blobs.
pub const MAX_REQUEST_BYTES: usize = 64 << 20;
/// What one message holds of it: no message is larger than frames may be.
pub const REQUEST_PART_BYTES: usize = 1 << 20;
/// What one part of an answer holds, so that heartbeats never wait long behind it.
pub const ANSWER_PART_BYTES: usize = 256 << 10;
/// Requests of one node at a time, begun or not: more than any device computes at once.
pub const MAX_CALLS_PER_NODE: usize = 256;
