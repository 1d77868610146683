//! What this machine offers, by its donor's choices.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use shoal_node::{Input, Rules};
use shoal_protocol::{Caps, Engine, GpuCaps, NodeKind};
use tokio::sync::mpsc;

use super::gpu::{GpuEvent, GpuLane, News, Opened};
use super::identity::{Kept, host_name};
use super::memory;
use super::{Event, Host, Notice, Options};

/// A middling laptop is 100; a software GPU about that, a real one several times it.
const SPEED: u32 = 100;
const SPEED_WITH_GPU: u32 = 400;

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
}

impl Lend {
    /// For a node that only talks.
    pub fn nothing() -> Lend {
        let (gpu, direct, rules) = (false, true, Rules::default());
        Lend { gpu, direct, cpus: Some(0), memory: Some(0), name: None, rules, battery_below: 0 }
    }
}

/// What is offered, and why something is not.
pub(super) struct Offered {
    pub(super) caps: Caps,
    why_no_gpu: Option<String>,
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
        }
    }
}

/// Opens the GPU, if it may be lent and there is one, and says what this machine offers.
pub(super) async fn offered(
    options: &Options,
    kept: &Kept,
    to_loop: mpsc::Sender<Event>,
    mut events: mpsc::Receiver<Event>,
) -> (Offered, Option<GpuLane>, mpsc::Receiver<Event>) {
    let (opened, lane, why_no_gpu) = if !options.lend.gpu {
        (None, None, Some("--no-gpu".into()))
    } else {
        match open_gpu(to_loop, &mut events).await {
            Ok((lane, opened)) => (Some(opened), Some(lane), None),
            Err(reason) => (None, None, Some(reason)),
        }
    };
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    let cpus = options.lend.cpus.unwrap_or(u16::try_from(cores).unwrap_or(u16::MAX));
    let name = options.lend.name.clone().unwrap_or_else(|| match kept.number {
        1 => host_name(),
        number => format!("{} ({number})", host_name()),
    });
    let (mut gpu, class) = opened.map_or((None, 0), |opened| (Some(opened.caps), opened.class));
    if let Some(gpu) = &mut gpu {
        gpu.memory = options.lend.memory;
    }
    let is_fast = gpu.as_ref().is_some_and(|gpu| !gpu.software);
    let speed = if is_fast { SPEED_WITH_GPU } else { SPEED };
    let memory = options.lend.memory.unwrap_or_else(|| memory::installed() / 2);
    let engines = engines(cpus, gpu.is_some());
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
    (Offered { caps, why_no_gpu }, lane, events)
}

/// Both come with this build. Neither measures itself: the coordinator does, job by job.
fn engines(cpus: u16, gpu: bool) -> Vec<Engine> {
    let all = [(gpu, Engine::WGSL), (cpus > 0, Engine::WASI)];
    let lent = all.into_iter().filter(|(lent, _)| *lent);
    lent.map(|(_, name)| Engine::new(name, env!("CARGO_PKG_VERSION"))).collect()
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

impl Host<'_> {
    /// The rest is still offered. A device that is looked at again in vain is no news.
    pub(super) fn gpu_gone(&mut self, reason: String) {
        if self.caps.gpu.take().is_some() {
            (self.notify)(Notice::GpuGone { reason });
            self.caps.class = 0;
            self.caps.engines = engines(self.caps.cpu_slots, false);
            self.replies.push_back(Input::Offer(self.caps.clone()));
        }
    }

    /// It is offered again, if it was gone.
    pub(super) fn gpu_ready(&mut self, opened: Opened) {
        if self.caps.gpu.is_none() {
            (self.notify)(Notice::GpuRestarted { reason: "it answers again".into() });
            let gpu = GpuCaps { memory: self.lent_memory, ..opened.caps };
            (self.caps.gpu, self.caps.class) = (Some(gpu), opened.class);
            self.caps.engines = engines(self.caps.cpu_slots, true);
            self.replies.push_back(Input::Offer(self.caps.clone()));
        }
    }
}
