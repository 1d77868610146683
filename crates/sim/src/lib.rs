//! A deterministic world that runs the real scheduler and thousands of real nodes: virtual time, a network that
//! delays, loses, doubles and cuts, devices that are slow, vanish, come back, lie and want
//! jobs to fail, a coordinator that crashes.
//!
//! The same seed gives the same trace. After every step the oracle asserts what must always hold; after
//! the faults stop, everything must finish.

mod abreast;
mod callers;
mod clockwork;
mod coordinator;
mod crew;
mod device;
mod fault;
mod fleet;
mod flood;
mod hostile;
mod liar;
mod lies;
mod measure;
mod mix;
mod oracle;
mod random;
mod report;
mod rounds;
mod scenario;
mod staged;
mod swarm;
mod world;

pub use clockwork::{Clock, Clockwork, Events, Wire};
pub use crew::{CrewPlan, CrewReport};
pub use hostile::{Enemy, Trick};
pub use liar::{Character, Lie};
pub use measure::{Checking, Churn, Gang, Pool, checking, churn};
pub use mix::{crew, farm, lying_crew, lying_split, run, split, swarm, swarm_of};
pub use random::Random;
pub use report::{JobReport, Report};
pub use scenario::{Faults, JobPlan, Links, Scenario};
pub use swarm::{SwarmCost, SwarmPlan, SwarmReport, swarm_cost};
pub use world::{Probe, World, run_probed};
