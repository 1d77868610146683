//! How a job may be split, where it may run, and what a unit may use.

use alloc::string::String;
use serde::{Deserialize, Serialize};

use crate::id::clip;
use crate::lane::Lane;
use crate::limit::MAX_ENGINE_TEXT;
use crate::time::Micros;

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

/// What one unit takes of a node while it runs; of a simulation, the smallest part a member can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Footprint {
    /// Bytes of the device's memory.
    pub memory: u64,
    /// Bytes of all GPU buffers together.
    pub gpu_memory: u64,
    pub threads: u16,
}

impl Footprint {
    pub const NOTHING: Footprint = Footprint { memory: 0, gpu_memory: 0, threads: 0 };

    /// Of both at once.
    pub fn and(self, other: Footprint) -> Footprint {
        Footprint {
            memory: self.memory.saturating_add(other.memory),
            gpu_memory: self.gpu_memory.saturating_add(other.gpu_memory),
            threads: self.threads.saturating_add(other.threads),
        }
    }
}

/// What a node must have to be lent units of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    pub lane: Lane,
    /// Counted for all units that run at once.
    pub takes: Footprint,
    /// An engine the node must have beyond what the lane itself says: every node with the lane has
    /// [`Engine::WGSL`](crate::Engine::WGSL) or [`Engine::WASI`](crate::Engine::WASI).
    pub engine: Option<String>,
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
            takes: Footprint::NOTHING,
            engine: None,
            buffer_bytes: 0,
            workgroup_invocations: 0,
            workgroup_bytes: 0,
            storage_buffers: 0,
        }
    }

    pub fn takes(self, takes: Footprint) -> Needs {
        Needs { takes, ..self }
    }

    /// The same on a node with this engine only.
    pub fn engine(self, name: &str) -> Needs {
        Needs { engine: Some(clip(name.into(), MAX_ENGINE_TEXT)), ..self }
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
