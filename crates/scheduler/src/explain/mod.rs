//! Why things are as they are, for people: as values for pages, and in words, one sentence each.

mod crew;
mod job;
mod lacking;
mod node;
mod service;
mod unit;

pub(crate) use crew::in_millis as millis;
pub use job::WhyJob;
pub(crate) use lacking::{asked, offered};
pub use node::WhyNode;
pub use service::WhyService;
pub use unit::WhyUnit;

use alloc::format;
use alloc::string::String;

/// `1 node`, `2 nodes`.
fn many(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
