//! How a job may be split, where it may run, and what a unit may use.

use alloc::string::String;
use serde::{Deserialize, Serialize};

use crate::policy::Policy;
use crate::sign::Signed;
use crate::time::Micros;
use crate::work::Work;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    pub name: String,
    /// For whom: shown to donors.
    pub owner: String,
    pub work: Work,
    pub items: u64,
    pub sizing: Sizing,
    pub strategy: Strategy,
    pub needs: Needs,
    pub limits: Limits,
    pub policy: Policy,
    /// Who stands for the code; `None` where there is none.
    pub signed: Option<Signed>,
}

/// How many items one unit may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizing {
    /// Units are multiples of this (but for the last one), and start at it.
    pub grain: u64,
    /// The most one unit may hold, by memory and dispatch limits. At least `grain`.
    pub most: u64,
    /// No unit is cut finer than multiples of this, not even one that takes too long: its items belong
    /// together. `grain` is a multiple of it.
    pub step: u64,
}

impl Sizing {
    /// Items that have nothing to do with each other.
    pub fn loose(grain: u64, most: u64) -> Sizing {
        Sizing { grain, most, step: 1 }
    }

    /// Every unit holds exactly `items` (but for the last one).
    pub fn fixed(items: u64) -> Sizing {
        Sizing::loose(items, items)
    }
}

/// Who gets how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// Units of one size, to every node in turn.
    RoundRobin,
    /// Units in proportion to the speed a node declared when it joined.
    Weight,
    /// Units sized by measured speed: start small, grow, shrink at the end so that all finish together.
    #[default]
    Adaptive,
}

/// Which part of a node computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Lane {
    /// Answered at once by the node itself.
    Inline,
    Gpu,
    Cpu,
}

/// What a node must have to be lent units of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    pub lane: Lane,
    /// Largest single GPU buffer a unit of `grain` items binds.
    pub buffer_bytes: u64,
    /// Invocations in one workgroup.
    pub workgroup_invocations: u32,
    /// Bytes of `var<workgroup>`.
    pub workgroup_bytes: u32,
    /// Storage buffers bound at once.
    pub storage_buffers: u32,
}

impl Needs {
    /// Nothing but the lane itself.
    pub fn lane(lane: Lane) -> Needs {
        Needs {
            lane,
            buffer_bytes: 0,
            workgroup_invocations: 0,
            workgroup_bytes: 0,
            storage_buffers: 0,
        }
    }
}

/// What one unit may use before it is ended. For exec each run of the program counts on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub time: Micros,
    pub memory: u64,
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { time: Micros::from_secs(30), memory: 256 << 20, output: 16 << 20 }
    }
}
