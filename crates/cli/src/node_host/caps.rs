//! What this machine offers.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use shoal_protocol::{Caps, NodeKind};
use tokio::sync::mpsc;

use super::gpu::{GpuEvent, GpuLane, News, Opened};
use super::identity::{Kept, host_name};
use super::{Event, Host, Notice, Options};

/// Opening a GPU takes a second at most; a driver that hangs must not keep the node from joining.
const GPU_PATIENCE: Duration = Duration::from_secs(20);
/// A middling laptop is 100; a software GPU about that, a real one several times it.
const SPEED: u32 = 100;
const SPEED_WITH_GPU: u32 = 400;

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
    let (opened, lane, why_no_gpu) = if options.lend.no_gpu {
        (None, None, Some("--no-gpu".into()))
    } else {
        match tokio::time::timeout(GPU_PATIENCE, open_gpu(to_loop, &mut events)).await {
            Ok(Ok((lane, opened))) => (Some(opened), Some(lane), None),
            Ok(Err(reason)) => (None, None, Some(reason)),
            Err(_) => (None, None, Some("its driver does not answer".into())),
        }
    };
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    let cpus = options.lend.cpus.unwrap_or(u16::try_from(cores).unwrap_or(u16::MAX));
    let name = options.lend.node_name.clone().unwrap_or_else(|| match kept.number {
        1 => host_name(),
        number => format!("{} ({number})", host_name()),
    });
    let (gpu, class) = opened.map_or((None, 0), |opened| (Some(opened.caps), opened.class));
    let is_fast = gpu.as_ref().is_some_and(|gpu| !gpu.software);
    let speed = if is_fast { SPEED_WITH_GPU } else { SPEED };
    let caps = Caps { kind: NodeKind::Native, name, cpu_slots: cpus, gpu, speed, class };
    (Offered { caps, why_no_gpu }, lane, events)
}

async fn open_gpu(
    to_loop: mpsc::Sender<Event>,
    events: &mut mpsc::Receiver<Event>,
) -> Result<(GpuLane, Opened), String> {
    let notify = move |event: GpuEvent| drop(to_loop.blocking_send(Event::Gpu(event)));
    let mut lane = GpuLane::start(Arc::new(notify))?;
    while let Some(event) = events.recv().await {
        let Event::Gpu(event) = event else { continue };
        for news in lane.handle(event) {
            match news {
                News::Ready(opened) => return Ok((lane, opened)),
                News::Gone(reason) => return Err(reason),
                News::Ran(_) | News::Auditioned(..) | News::Answer(..) | News::Restarted(_) => {}
            }
        }
    }
    Err("the GPU process says nothing".into())
}

impl Host<'_> {
    /// What is left to offer when the GPU is gone.
    pub(super) fn without_gpu(&mut self) -> Option<Caps> {
        let gpu = self.caps.gpu.take();
        self.caps.class = 0;
        gpu.map(|_| self.caps.clone())
    }
}
