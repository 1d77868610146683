//! What is on disk: facts in SQLite, blobs and results in files.
//!
//! - [`facts`]: the durable log, one row for each batch, [`log`]: reading it back, and [`compact`]: keeping it short
//! - [`verify`]: after a crash, which merged bytes are really there
//! - [`blobs`]: bytes by their hash, [`receive`]: taking uploads in, [`turn`]: one at a time, [`drafts`]: those that others write
//! - [`kept`]: checkpoints of simulations
//! - [`results`]: one append file for each job
//! - [`send`]: files as response bodies
//! - [`place`]: reading and writing at a position

pub(crate) mod blobs;
pub(crate) mod compact;
pub(crate) mod drafts;
pub(crate) mod facts;
mod kept;
mod log;
pub(crate) mod pieces;
pub(crate) mod place;
pub(crate) mod receive;
pub(crate) mod results;
pub(crate) mod send;
mod turn;
pub(crate) mod verify;
