//! A job: its work, and all that was agreed about it.

use alloc::string::String;
use serde::{Deserialize, Serialize};
use shoal_protocol::{Limits, Micros, Needs, Policy, Signed, Sizing, Strategy};

use crate::kind::Kind;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    pub name: String,
    /// For whom: shown to donors.
    pub owner: String,
    pub work: Kind,
    pub items: u64,
    pub sizing: Sizing,
    pub strategy: Strategy,
    pub needs: Needs,
    pub limits: Limits,
    pub policy: Policy,
    /// Who stands for the code; `None` where there is none.
    pub signed: Option<Signed>,
}

/// A job without an end: kept ready on some nodes, it answers requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceSpec {
    /// What clients call it; no two services have the same.
    pub name: String,
    /// For whom: shown to donors.
    pub owner: String,
    pub work: Kind,
    pub needs: Needs,
    /// For each request.
    pub limits: Limits,
    pub signed: Option<Signed>,
    /// Nodes that keep it ready: always so many, and at most so many when requests wait.
    pub least: u16,
    pub most: u16,
    /// Requests that may wait; more are refused at once.
    pub queue: u32,
    /// A replica beyond `least` that had nothing to do for so long is given up.
    pub idle: Micros,
    /// Whether nodes that are not the operator's own may serve it. Nobody checks their answers.
    pub strangers: bool,
}
