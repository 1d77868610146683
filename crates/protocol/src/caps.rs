//! What a node offers.

use alloc::string::String;
use serde::{Deserialize, Serialize};

use crate::job::{Lane, Needs};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeKind {
    Native,
    Browser,
    Simulated,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caps {
    pub kind: NodeKind,
    /// What people call it: a host name, or "Chromium on Linux".
    pub name: String,
    /// Programs run at a time; 0 if the node runs none.
    pub cpu_slots: u16,
    pub gpu: Option<GpuCaps>,
    /// Declared relative speed; 100 is a middling laptop. Used by [`crate::Strategy::Weight`] and as a first guess.
    pub speed: u32,
    /// Which probe result its floating point gives: equal numbers agree bit for bit. 0 is unknown.
    pub class: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuCaps {
    pub name: String,
    pub backend: String,
    /// A CPU that plays GPU (lavapipe, SwiftShader).
    pub software: bool,
    pub buffer_bytes: u64,
    pub workgroup_invocations: u32,
    pub workgroup_bytes: u32,
    pub storage_buffers: u32,
    /// Units in flight at a time: one computes while another's bytes travel.
    pub slots: u16,
}

impl Caps {
    /// Units of a lane the node works on at a time; 0 if it has no such lane.
    pub fn slots(&self, lane: Lane) -> u16 {
        match lane {
            Lane::Inline => 1,
            Lane::Gpu => self.gpu.as_ref().map_or(0, |gpu| gpu.slots),
            Lane::Cpu => self.cpu_slots,
        }
    }

    /// Whether the node can compute units with these needs.
    pub fn meets(&self, needs: &Needs) -> bool {
        if self.slots(needs.lane) == 0 {
            return false;
        }
        match (needs.lane, &self.gpu) {
            (Lane::Gpu, Some(gpu)) => {
                gpu.buffer_bytes >= needs.buffer_bytes
                    && gpu.workgroup_invocations >= needs.workgroup_invocations
                    && gpu.workgroup_bytes >= needs.workgroup_bytes
                    && gpu.storage_buffers >= needs.storage_buffers
            }
            (Lane::Gpu, None) => false,
            (Lane::Inline | Lane::Cpu, _) => true,
        }
    }
}
