//! A deterministic world that runs the real scheduler and thousands of real nodes: virtual time, a network
//! that delays, loses and cuts, devices that are slow, vanish and come back, a coordinator that crashes.
//!
//! The same seed gives the same trace. After every step the oracle asserts what must always hold; after
//! the faults stop, everything must finish.

mod device;
mod oracle;
mod random;
mod scenario;
mod world;

pub use random::Random;
pub use scenario::{JobPlan, Scenario};
pub use world::{Probe, Report, World, run, run_probed};
