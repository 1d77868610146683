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
    /// Whether several nodes may keep it ready together, each some of its parts.
    pub split: Split,
}

/// When several nodes keep one service ready together. Only work that says what a crew of it has to do can be split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Split {
    /// Each node that keeps it ready has all of it.
    #[default]
    Never,
    /// Where no node has the memory for all of it, or several together would answer a request sooner.
    Auto,
    /// So many nodes, while there are as many; otherwise one that has the memory for all of it.
    Exactly(u8),
}
