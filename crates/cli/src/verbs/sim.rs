//! `shoal sim`: a simulation that several nodes compute together.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use shoal_api::{JobRequest, SimRequest, WorkRequest};
use shoal_engine::intake::{self, SimAsk, values};
use shoal_kinds::SimWork;

use super::render::check_extension;
use super::{Context, check_stdout, common, finished, params, policy, read_kernel, refused};
use crate::args::{JobArgs, Sim};
use crate::arrays::first_state;
use crate::client::{Client, Job, Seen, Sink, Watcher};
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::npy::{self, Dtype};
use crate::show;
use tokio::task::JoinHandle;

/// Between two looks at a field that shows nothing, or a coordinator that is away.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

pub(super) async fn run(context: &Context, args: Sim, interrupts: &Interrupts) -> Result<(), Fail> {
    for place in args.output.iter().chain(&args.picture) {
        check_stdout(context, place)?;
    }
    if let Some(picture) = &args.picture {
        check_extension(picture)?;
    }
    let began = Instant::now();
    let wgsl = read_kernel(&args.kernel)?;
    let params = params(&args.params)?;
    let work = check(&args, &wgsl, &params)?;
    // Opened before any work, so that a place that cannot be written shows at once.
    let output = args.output.as_deref().map(Sink::create).transpose()?;
    let picture = args.picture.as_deref().map(Sink::create).transpose()?;

    let client = context.client(&args.server)?;
    let request = ask(context, &client, &args, wgsl, params, &work).await?;
    let looks = Looks {
        client: client.clone(),
        wanted: picture.is_some(),
        seen: Default::default(),
        task: Default::default(),
        told: Default::default(),
    };
    let job = looked_at(context, &client, &request, interrupts, &looks).await?;
    if let Some(output) = output {
        save(context, &client, job.id, &args, &work, output).await?;
    }
    let mut what = format!("{} × {} cells, {} steps", work.width, work.height, work.steps);
    if let Some(mut picture) = picture {
        let seen = looks.last(job.id).await.ok_or_else(|| {
            Fail::world("no_picture", "no picture of the field arrived while the job ran")
        })?;
        picture.write(&seen.png)?;
        picture.finish()?;
        what = format!("{what}, a picture of step {}", seen.step);
    }
    finished(context, &job, args.output.as_deref(), began, &what)
}

/// The engine's check, as the coordinator makes it too.
fn check(args: &Sim, source: &str, params: &Map<String, Value>) -> Result<SimWork, Fail> {
    let failed = |error| refused(&args.kernel, error);
    let params = &values(params).map_err(failed)?;
    let ((width, height), steps) = (args.grid, args.steps);
    let (halo, passes) = (args.halo, args.passes.as_deref());
    let ask = SimAsk { source, width, height, steps, halo, passes, params };
    Ok(intake::sim(&ask).map_err(failed)?.0)
}

async fn ask(
    context: &Context,
    client: &Client,
    args: &Sim,
    wgsl: String,
    params: Map<String, Value>,
    work: &SimWork,
) -> Result<JobRequest, Fail> {
    let job = JobArgs {
        name: args.name.clone(),
        unit: None,
        strategy: None,
        limit_seconds: args.limit_seconds,
        stay: args.stay.clone(),
        policy: args.policy.clone(),
    };
    let mut common = common(&args.kernel, &job)?;
    policy::add(context, client, &args.policy, wgsl.as_bytes(), &mut common).await?;
    let mut first = None;
    if let Some(path) = &args.first {
        let source = first_state(path, work)?;
        let bar = show::Bytes::new(
            "sending the first state",
            if context.json { 0 } else { source.size() },
        );
        let blob = client.upload(&source, &bar).await;
        bar.clear();
        first = Some(blob?.hash);
    }
    let (width, height) = args.grid;
    let work = WorkRequest::Sim(SimRequest {
        source: wgsl,
        width,
        height,
        steps: args.steps,
        halo: args.halo,
        passes: args.passes.clone(),
        params,
        members: args.members,
        keep_every: args.keep_every,
        speculate: args.speculate,
        reduce: args.reduce,
        first,
    });
    Ok(JobRequest { common, work })
}

async fn save(
    context: &Context,
    client: &Client,
    job: u64,
    args: &Sim,
    work: &SimWork,
    mut sink: Sink,
) -> Result<(), Fail> {
    let wants_npy = args.output.as_deref().and_then(Path::extension);
    let wants_npy = wants_npy.is_some_and(|end| end.eq_ignore_ascii_case("npy"));
    if let Some(dtype) = Dtype::of_wgsl(&work.scalar).filter(|_| wants_npy) {
        let mut shape = vec![work.height.into(), work.width.into()];
        if work.lanes > 1 {
            shape.push(work.lanes.into());
        }
        sink.write(&npy::header(dtype, &shape))?;
    }
    let wanted = work.row_bytes() * u64::from(work.height);
    let bar = show::Bytes::new("fetching the field", if context.json { 0 } else { wanted });
    let mut got = 0;
    let fetched = client
        .result(job, &bar, |piece| {
            got += piece.len() as u64;
            sink.write(piece)
        })
        .await;
    bar.clear();
    fetched?;
    if got != wanted {
        let message = format!("the field has {got} bytes instead of {wanted}");
        return Err(Fail::world("bad_answer", message));
    }
    sink.finish()
}

async fn looked_at(
    context: &Context,
    client: &Client,
    request: &JobRequest,
    interrupts: &Interrupts,
    looks: &Looks,
) -> Result<Job, Fail> {
    if context.json {
        let watcher = Looking { inner: show::Quiet, looks };
        return client.run(request, &context.manner, &watcher, interrupts).await;
    }
    let watcher = Looking { inner: show::JobBar::new(), looks };
    let job = client.run(request, &context.manner, &watcher, interrupts).await;
    watcher.inner.clear();
    job
}

/// Looks at the field while the job runs, so that there is a picture at its end, and tells its totals.
struct Looks {
    client: Client,
    /// A picture is.
    wanted: bool,
    seen: Arc<Mutex<Option<Seen>>>,
    task: RefCell<Option<JoinHandle<()>>>,
    /// The step of the last total that was printed.
    told: Cell<Option<u64>>,
}

struct Looking<'a, W> {
    inner: W,
    looks: &'a Looks,
}

impl<W: Watcher> Watcher for Looking<'_, W> {
    fn changed(&self, job: &Job) {
        if self.looks.wanted {
            self.looks.begin(job.id);
        }
        if let Some(total) = self.looks.news(job) {
            self.inner.note(&total);
        }
        self.inner.changed(job);
    }

    fn note(&self, text: &str) {
        self.inner.note(text);
    }
}

impl Looks {
    fn begin(&self, job: u64) {
        let (client, seen) = (self.client.clone(), self.seen.clone());
        self.task.borrow_mut().get_or_insert_with(|| {
            tokio::spawn(async move {
                let mut after = 0;
                loop {
                    match client.field(job, after).await {
                        Ok(Some(next)) => {
                            after = next.version;
                            *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
                        }
                        Ok(None) | Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
                    }
                }
            })
        });
    }

    /// A total that was not told yet. One of a crew that went back to a checkpoint is told again.
    fn news(&self, job: &Job) -> Option<String> {
        let total = job.sim.as_ref()?.reduced.as_ref()?;
        let values = total.values.iter();
        let values = values.map(|value| value.map_or("not a number".into(), |it| it.to_string()));
        let values: Vec<String> = values.collect();
        let news = self.told.replace(Some(total.step)) != Some(total.step);
        news.then(|| format!("step {}: {} {}", total.step, total.how.name(), values.join(" ")))
    }

    /// The last picture there is.
    async fn last(&self, job: u64) -> Option<Seen> {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        let had = self.seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        let after = had.as_ref().map_or(0, |seen| seen.version);
        self.client.field(job, after).await.ok().flatten().or(had)
    }
}
