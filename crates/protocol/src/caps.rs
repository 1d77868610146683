//! What a node offers.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::job::{Footprint, Needs};
use crate::lane::Lane;

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
    /// Bytes of memory the donor lends: all units that run at once stay within it.
    pub memory: u64,
    /// Threads for all of them.
    pub threads: u16,
    /// What computes here, by name: an open list, at most [`crate::limit::MAX_ENGINES`].
    pub engines: Vec<Engine>,
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
    /// Bytes for all buffers of units that run at once. `None` where nobody knows, as WebGPU does not tell and the
    /// donor did not say: then only the other limits hold. A software GPU's buffers count as the device's memory.
    pub memory: Option<u64>,
    pub buffer_bytes: u64,
    pub workgroup_invocations: u32,
    pub workgroup_bytes: u32,
    pub storage_buffers: u32,
    /// Units in flight at a time: one computes while another's bytes travel.
    pub slots: u16,
}

/// Something that computes, by the name jobs ask for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    pub name: String,
    pub version: String,
}

impl Engine {
    /// Kernels, on the GPU lane.
    pub const WGSL: &str = "wgsl";
    /// Programs, on the CPU lane.
    pub const WASI: &str = "wasi";
    /// The same, which are components of WASI preview 2.
    pub const WASI_COMPONENTS: &str = "wasi-components";
    /// ONNX models, by the engine that is built in.
    pub const ONNX: &str = "onnx";
    /// The same by ONNX Runtime, where a device has it. With hardware behind it, that is named too: `onnxruntime-cuda`.
    pub const ONNX_RUNTIME: &str = "onnxruntime";
    /// The same in a browser, once a tab has loaded it; on its GPU `onnxruntime-web-webgpu`.
    pub const ONNX_RUNTIME_WEB: &str = "onnxruntime-web";
    /// Language models, by the engine that is built in.
    pub const LLM: &str = "llm";
    /// The same, where devices share every matrix.
    pub const LLM_TENSORS: &str = "llm-tensors";
    /// The same on a GPU: within a tolerance, not with the same bits.
    pub const LLM_GPU: &str = "llm-gpu";

    pub fn new(name: &str, version: &str) -> Engine {
        Engine { name: name.into(), version: version.into() }
    }
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

    /// Units with these needs that the node works on at a time, if it has nothing else to do.
    pub fn slots_for(&self, needs: &Needs) -> u16 {
        let Footprint { memory, gpu_memory, threads } = needs.takes;
        let memory = memory.saturating_add(if self.shares_memory() { gpu_memory } else { 0 });
        let gpu = self.gpu.as_ref().and_then(|gpu| gpu.memory).unwrap_or(u64::MAX);
        let pairs =
            [(self.memory, memory), (gpu, gpu_memory), (self.threads.into(), threads.into())];
        let slots = pairs.into_iter().filter_map(|(has, each): (u64, u64)| has.checked_div(each));
        let slots = slots.min().unwrap_or(u64::MAX);
        self.slots(needs.lane).min(u16::try_from(slots).unwrap_or(u16::MAX))
    }

    /// Whether all this may run here at once.
    pub fn holds(&self, all: &Footprint) -> bool {
        let shared = if self.shares_memory() { all.gpu_memory } else { 0 };
        let memory = all.memory.saturating_add(shared);
        let buffers = self.gpu.as_ref().and_then(|gpu| gpu.memory);
        memory <= self.memory
            && buffers.is_none_or(|most| all.gpu_memory <= most)
            && all.threads <= self.threads
    }

    /// Bytes of GPU buffers left beside what is in use; `None` if nobody knows.
    pub fn gpu_room(&self, used: &Footprint) -> Option<u64> {
        let gpu = self.gpu.as_ref()?;
        let own = gpu.memory.map(|most| most.saturating_sub(used.gpu_memory));
        let used = used.memory.saturating_add(used.gpu_memory);
        let shared = gpu.software.then(|| self.memory.saturating_sub(used));
        own.into_iter().chain(shared).min()
    }

    /// Bytes of memory left beside what is in use.
    pub fn memory_room(&self, used: &Footprint) -> u64 {
        let shared = if self.shares_memory() { used.gpu_memory } else { 0 };
        self.memory.saturating_sub(used.memory.saturating_add(shared))
    }

    /// Whether GPU buffers are in the device's memory.
    fn shares_memory(&self) -> bool {
        self.gpu.as_ref().is_some_and(|gpu| gpu.software)
    }

    pub fn has_engine(&self, name: &str) -> bool {
        self.engines.iter().any(|engine| engine.name == name)
    }

    /// Whether the node can compute units with these needs.
    pub fn meets(&self, needs: &Needs) -> bool {
        if self.slots(needs.lane) == 0 || !self.holds(&needs.takes) {
            return false;
        }
        if needs.engine.as_ref().is_some_and(|name| !self.has_engine(name)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn caps() -> Caps {
        Caps {
            kind: NodeKind::Native,
            name: String::new(),
            cpu_slots: 8,
            gpu: None,
            memory: 512 << 20,
            threads: 8,
            engines: vec![Engine::new(Engine::WASI, "1")],
            speed: 100,
            class: 0,
        }
    }

    fn takes(memory: u64, gpu_memory: u64, threads: u16) -> Footprint {
        Footprint { memory, gpu_memory, threads }
    }

    #[test]
    fn slots_are_as_many_as_memory_and_threads_hold() {
        let program = |takes| Needs::lane(Lane::Cpu).takes(takes);
        assert_eq!(caps().slots_for(&program(Footprint::NOTHING)), 8);
        assert_eq!(caps().slots_for(&program(takes(256 << 20, 0, 1))), 2);
        assert_eq!(caps().slots_for(&program(takes(0, 0, 3))), 2);
        assert_eq!(caps().slots_for(&program(takes(513 << 20, 0, 1))), 0);
        assert!(!caps().meets(&program(takes(513 << 20, 0, 1))));
    }

    #[test]
    fn buffers_of_a_software_gpu_are_in_the_same_memory() {
        let gpu = |software, memory| GpuCaps {
            name: String::new(),
            backend: String::new(),
            software,
            memory,
            buffer_bytes: 1 << 30,
            workgroup_invocations: 256,
            workgroup_bytes: 16 << 10,
            storage_buffers: 8,
            slots: 2,
        };
        let with = |gpu| Caps { gpu: Some(gpu), ..caps() };
        let both = takes(300 << 20, 300 << 20, 0);
        assert!(with(gpu(false, None)).holds(&both));
        assert!(!with(gpu(true, None)).holds(&both));
        assert!(!with(gpu(false, Some(256 << 20))).holds(&both));
    }

    #[test]
    fn an_engine_is_asked_for_by_its_name() {
        let needs = Needs::lane(Lane::Cpu);
        assert!(caps().meets(&needs.clone().engine(Engine::WASI)));
        assert!(!caps().meets(&needs.engine("llm-cpu")));
    }
}
