//! Why things are as they are, for people: as values for pages, and in words, one sentence each.

mod crew;
mod job;
mod node;
mod unit;

pub(crate) use crew::in_millis as millis;
pub use job::WhyJob;
pub use node::WhyNode;
pub use unit::WhyUnit;
