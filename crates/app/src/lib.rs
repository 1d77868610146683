//! Native applications in a Shoal pool. An application joins by the pool's join link, meets others by their numbers, and
//! shares buffers with them; the other end may be such an application too, or a page with `@shoal/sdk/gpu-p2p`.
//!
//! ```no_run
//! use shoal_app::{Event, Pool, Right, Rights};
//!
//! let pool = Pool::join("http://127.0.0.1:7420/join#TOKEN")?;
//! let peer = pool.connect(2)?;
//! let handle = peer.export(vec![0; 1024], Rights::of(&[Right::Read, Right::Write]), "numbers")?;
//! peer.say(serde_json::json!({ "numbers": handle }))?;
//! // The peer imports it, computes, and pushes what it made.
//! while !matches!(peer.next()?, Event::Written { .. }) {}
//! let (version, bytes) = peer.exported(&handle)?;
//! # let _ = (version, bytes);
//! # Ok::<(), shoal_app::PeerError>(())
//! ```
//!
//! The links are made by a node that lends nothing, `shoal talk --pipe`, which this crate starts as a process of its own
//! and ends with the [`Pool`]. `SHOAL_BIN` says where `shoal` is, if not in `PATH`. What peers ask for is answered by a
//! thread in the background, also while the application computes.

mod carrier;
mod desk;
mod peer;
mod pool;

pub use peer::{Event, Peer};
pub use pool::{Options, Pool};
pub use shoal_peer::{Capabilities, Code, Handle, Import, PeerError, Right, Rights, RunThere};
