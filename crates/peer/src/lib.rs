//! Buffers that two applications share: one exports, the other imports a copy, and versions travel between them.
//! Pure; its shell is an application that has a talking crew's `shoal_node::session::Member`, or any other way
//! that carries messages whole and in order on each channel. It speaks the words of `@shoal/sdk/gpu-p2p`, so the other
//! end may be a page.
//!
//! The contract is the brains': call something, then drain [`Connection::poll_output`]. [`Output::Send`] is for
//! `MemberInput::App`; what `MemberOutput::App` brings goes to [`Connection::hear`].
//!
//! ```
//! use shoal_peer::{Config, Connection, Output, Right, Rights};
//!
//! let mut owner = Connection::new(Config::new(1, 2, [1; 32]));
//! let mut guest = Connection::new(Config::new(2, 1, [2; 32]));
//! let handle = owner.export(vec![7; 1024], Rights::of(&[Right::Read]), "numbers")?;
//! let copy = guest.import(handle)?;
//! guest.pull(copy)?;
//! // What carries messages, here: a loop.
//! let mut quiet = false;
//! while !quiet {
//!     quiet = true;
//!     while let Some(output) = owner.poll_output() {
//!         if let Output::Send { channel, message } = output {
//!             guest.hear(channel, &message);
//!             quiet = false;
//!         }
//!     }
//!     while let Some(output) = guest.poll_output() {
//!         if let Output::Send { channel, message } = output {
//!             owner.hear(channel, &message);
//!             quiet = false;
//!         }
//!     }
//! }
//! assert_eq!(guest.copy(copy)?.bytes(), [7; 1024]);
//! # Ok::<(), shoal_peer::PeerError>(())
//! ```
//!
//! `export` is the owner's side, `ask` the importer's, `part` cuts versions and puts them together, `words` is what
//! is said; `pipe` is how an application reaches a node that carries for it; `gpu` (feature `wgpu`) takes bytes out of GPU buffers and puts them in.

mod ask;
mod capability;
mod connection;
mod error;
mod export;
#[cfg(feature = "wgpu")]
pub mod gpu;
mod handle;
mod hear;
mod part;
pub mod pipe;
mod words;

pub use ask::{Copy, Import, Op, RunThere};
pub use capability::Capabilities;
pub use connection::{Config, Connection, Output};
pub use error::{Code, PeerError};
pub use handle::{Handle, Right, Rights};

/// What both ends must have the same. The SDK's are made of these.
pub mod agreed {
    pub use crate::part::{PART_BYTES, WINDOW_BYTES};
    pub use crate::words::{CONTROL, DATA_CHANNELS, FIRST_DATA, MAX_WORDS_BYTES, VERSION};
}
