//! A deterministic world that runs the real scheduler and thousands of real nodes: virtual time, a network that
//! delays, loses, doubles and cuts, devices that are slow, vanish, come back, lie and want
//! jobs to fail, a coordinator that crashes.
//!
//! The same seed gives the same trace. After every step the oracle asserts what must always hold; after
//! the faults stop, everything must finish.

mod coordinator;
mod crew;
mod device;
mod fault;
mod fleet;
mod flood;
mod hostile;
mod liar;
mod measure;
mod oracle;
mod random;
mod report;
mod scenario;
mod swarm;
mod world;

pub use crew::{CrewReport, crew};
pub use hostile::{Enemy, Way};
pub use liar::{Character, Lie};
pub use measure::{Checking, Churn, Gang, Pool, checking, churn};
pub use random::Random;
pub use report::{JobReport, Report};
pub use scenario::{Faults, JobPlan, Scenario};
pub use swarm::{SwarmPlan, SwarmReport, swarm, swarm_of};
pub use world::{Probe, World, run, run_probed};
