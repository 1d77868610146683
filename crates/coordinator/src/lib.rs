//! Shell of the scheduler: HTTP, sockets, facts on disk, blobs, pages. It decides nothing: what runs
//! where is the business of `shoal-scheduler`, how things are computed that of whoever implements
//! [`Intake`].
//!
//! A request comes in through [`serve`] and [`http`]; a node's messages through [`socket`]; both become
//! events of the one thread in [`driver`], which alone touches the scheduler and the facts in [`store`].
//! What nodes say to each other passes from socket to socket through [`relay`], or by [`quic`] where UDP is open.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod auth;
mod clock;
mod coordinator;
mod data;
mod driver;
mod error;
mod faults;
mod fields;
mod health;
mod http;
mod ice;
mod keys;
mod language;
mod network;
mod options;
mod ping;
mod plan;
mod quic;
mod relay;
mod serve;
mod socket;
mod store;
mod tls;

pub use coordinator::Coordinator;
#[doc(hidden)]
pub use faults::{Fault, Faults, Point};
pub use options::{DEFAULT_PORT, OpenError, Options, RunError, Urls};
#[doc(hidden)]
pub use relay::{Relay, RelayCounts};
