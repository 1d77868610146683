//! What this machine offers, by its donor's choices.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use shoal_node::Rules;
use shoal_protocol::{Caps, Engine, NodeKind};
use tokio::sync::mpsc;

use super::accelerator::{Accelerate, Accelerator};
use super::gpu::{GpuEvent, GpuLane, News, Opened};
use super::identity::host_name;
use super::{Event, Notice};

/// A middling laptop is 100; a software GPU about that, a real one several times it.
const SPEED: u32 = 100;
const SPEED_WITH_GPU: u32 = 400;
/// Memory where nobody tells: what the smallest machines of today have.
const UNKNOWN_MEMORY: u64 = 2 << 30;

/// The donor's choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lend {
    /// Whether kernels run on this machine's GPU.
    pub gpu: bool,
    /// Whether it talks to other nodes directly, not only through the coordinator.
    pub direct: bool,
    /// Programs that run at a time; all cores if it says nothing.
    pub cpus: Option<u16>,
    /// Bytes of memory for all units that run at once; half of the machine's if it says nothing.
    pub memory: Option<u64>,
    /// What others call this machine; its host name if it says nothing.
    pub name: Option<String>,
    /// For whom it works.
    pub rules: Rules,
    /// Pauses on battery below this charge, in percent; 0 never does.
    pub battery_below: u8,
    /// Which ONNX Runtime computes models, beside the built-in engine.
    pub accelerate: Accelerate,
    /// Whether it computes all models that it can, faster or not.
    pub prefer_accelerator: bool,
}

impl Lend {
    /// For a node that only talks.
    pub fn nothing() -> Lend {
        let (gpu, direct, rules) = (false, true, Rules::default());
        Lend {
            gpu,
            direct,
            cpus: Some(0),
            memory: Some(0),
            name: None,
            rules,
            battery_below: 0,
            accelerate: Accelerate::Never,
            prefer_accelerator: false,
        }
    }
}

/// What is offered, and why something is not.
pub(super) struct Offered {
    pub(super) caps: Caps,
    pub(super) accelerator: Option<Arc<Accelerator>>,
    why_no_gpu: Option<String>,
    why_no_accelerator: Option<String>,
}

impl Offered {
    pub(super) fn notice(&self) -> Notice {
        let gpu = self.caps.gpu.as_ref().map(|gpu| {
            let software = if gpu.software { ", a software GPU" } else { "" };
            format!("{} ({}{software})", gpu.name, gpu.backend)
        });
        Notice::Offers {
            name: self.caps.name.clone(),
            cpus: self.caps.cpu_slots,
            memory: self.caps.memory,
            gpu,
            why_no_gpu: self.why_no_gpu.clone(),
            accelerator: self.accelerator.as_ref().map(|it| it.name()),
            why_no_accelerator: self.why_no_accelerator.clone(),
        }
    }
}

/// Opens the GPU, if it may be lent and there is one, looks for ONNX Runtime, and says what this machine offers.
pub(super) async fn offered(
    lend: &Lend,
    number: usize,
    to_loop: mpsc::Sender<Event>,
    mut events: mpsc::Receiver<Event>,
) -> (Offered, Option<GpuLane>, mpsc::Receiver<Event>) {
    let (opened, lane, why_no_gpu) = if !lend.gpu {
        (None, None, Some("--no-gpu".into()))
    } else {
        match open_gpu(to_loop, &mut events).await {
            Ok((lane, opened)) => (Some(opened), Some(lane), None),
            Err(reason) => (None, None, Some(reason)),
        }
    };
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    let cpus = lend.cpus.unwrap_or(u16::try_from(cores).unwrap_or(u16::MAX));
    let name = lend.name.clone().unwrap_or_else(|| match number {
        1 => host_name(),
        number => format!("{} ({number})", host_name()),
    });
    let (accelerator, why_no_accelerator) = open_accelerator(lend, cpus).await;
    let (mut gpu, class) = opened.map_or((None, 0), |opened| (Some(opened.caps), opened.class));
    if let Some(gpu) = &mut gpu {
        gpu.memory = lend.memory;
    }
    let is_fast = gpu.as_ref().is_some_and(|gpu| !gpu.software);
    let speed = if is_fast { SPEED_WITH_GPU } else { SPEED };
    let memory = lend.memory.unwrap_or_else(|| installed_memory() / 2);
    let engines = engines(cpus, gpu.is_some(), accelerator.as_deref());
    let caps = Caps {
        kind: NodeKind::Native,
        name,
        cpu_slots: cpus,
        gpu,
        memory,
        threads: cpus,
        engines,
        speed,
        class,
    };
    (Offered { caps, accelerator, why_no_gpu, why_no_accelerator }, lane, events)
}

/// Or why there is none, where the donor named one or the system has one.
async fn open_accelerator(lend: &Lend, cpus: u16) -> (Option<Arc<Accelerator>>, Option<String>) {
    if cpus == 0 {
        return (None, None);
    }
    let (accelerate, preferred) = (lend.accelerate.clone(), lend.prefer_accelerator);
    let open = move || Accelerator::open(&accelerate, cpus, preferred);
    match tokio::task::spawn_blocking(open).await {
        Ok(Some(Ok(accelerator))) => (Some(Arc::new(accelerator)), None),
        Ok(Some(Err(why))) => (None, Some(why)),
        Ok(None) => (None, None),
        Err(error) => (None, Some(error.to_string())),
    }
}

/// All but ONNX Runtime come with this build. None measures itself: the coordinator does, job by job.
pub(super) fn engines(cpus: u16, gpu: bool, accelerator: Option<&Accelerator>) -> Vec<Engine> {
    let all = [
        (gpu, Engine::WGSL),
        (cpus > 0, Engine::WASI),
        (cpus > 0, Engine::WASI_COMPONENTS),
        (cpus > 0, Engine::ONNX),
        (cpus > 0, Engine::LLM),
        (cpus > 0, Engine::LLM_TENSORS),
        (cpus > 0 && gpu, Engine::LLM_GPU),
    ];
    let lent = all.into_iter().filter(|(lent, _)| *lent);
    let built_in = lent.map(|(_, name)| Engine::new(name, env!("CARGO_PKG_VERSION")));
    let beside = accelerator.filter(|_| cpus > 0).into_iter().flat_map(|it| {
        let with = |provider: &String| format!("{}-{provider}", Engine::ONNX_RUNTIME);
        let names = it.providers().iter().map(with);
        let names = std::iter::once(Engine::ONNX_RUNTIME.to_owned()).chain(names);
        names.map(|name| Engine::new(&name, it.version()))
    });
    built_in.chain(beside).collect()
}

async fn open_gpu(
    to_loop: mpsc::Sender<Event>,
    events: &mut mpsc::Receiver<Event>,
) -> Result<(GpuLane, Opened), String> {
    let notify = move |event: GpuEvent| drop(to_loop.blocking_send(Event::Gpu(event)));
    let mut lane = GpuLane::start(Arc::new(notify));
    loop {
        while let Some(news) = lane.news() {
            match news {
                News::Ready(opened) => return Ok((lane, opened)),
                News::Gone(reason) => return Err(reason),
                News::Ran(_) | News::Auditioned(..) | News::Answer(..) | News::Restarted(_) => {}
            }
        }
        // One that is opening always has one.
        let wake = lane.next_deadline().unwrap_or_else(|| Instant::now() + Duration::from_secs(1));
        tokio::select! {
            Some(event) = events.recv() => if let Event::Gpu(event) = event {
                lane.handle(event);
            },
            () = tokio::time::sleep_until(wake.into()) => lane.overdue(),
        }
    }
}

/// Bytes this process may use: the machine's, or less in a container.
fn installed_memory() -> u64 {
    let total = fs::read_to_string("/proc/meminfo").ok().and_then(|text| from_meminfo(&text));
    let total = total.or_else(from_sysctl).unwrap_or(UNKNOWN_MEMORY);
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|text| text.trim().parse::<u64>().ok());
    limit.map_or(total, |limit| limit.min(total))
}

fn from_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// On macOS and the BSDs.
fn from_sysctl() -> Option<u64> {
    let said = Command::new("sysctl").args(["-n", "hw.memsize"]).output().ok()?;
    String::from_utf8(said.stdout).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_from_meminfo() {
        let text = "MemTotal:       16302048 kB\nMemFree:          221912 kB\n";
        assert_eq!(from_meminfo(text), Some(16_302_048 * 1024));
        assert_eq!(from_meminfo("MemFree: 1 kB"), None);
        assert!(installed_memory() > 0);
    }
}
