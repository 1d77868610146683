//! Why things are as they are, for people: as values for pages, and in words, one sentence each.

mod job;
mod node;
mod unit;

pub use job::WhyJob;
pub use node::WhyNode;
pub use unit::WhyUnit;
