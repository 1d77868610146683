//! One module per verb; what they share is here.

mod calibration;
mod chat;
#[cfg(feature = "count")]
pub(crate) mod count;
mod devices;
mod exec;
mod explain;
mod failures;
mod infer;
mod join;
mod language;
mod left;
mod look;
mod many;
mod map;
mod model;
mod noop;
mod partial;
mod pictures;
mod policy;
mod quantize;
mod receipt;
mod reduce;
mod render;
mod result;
mod resume;
mod serve;
mod service;
mod sim;
mod stream;
mod talk;
mod up;
mod wires;

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Map, Value, json};
use shoal_api::{CommonRequest, JobRequest, LimitsJson};
use shoal_engine::intake::IntakeError;
use tokio::sync::watch;

use crate::args::{JobArgs, Server, Shoal, Verb};
use crate::client::{Client, Job, Manner, OnInterrupt, quoted};
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::{place, show};

/// What every verb is told.
pub(crate) struct Context {
    pub(crate) json: bool,
    /// Only what goes wrong is said on stderr.
    pub(crate) quiet: bool,
    pub(crate) data: Option<PathBuf>,
    /// How the verb stays with the job that it brings.
    pub(crate) manner: Manner,
}

impl Context {
    fn client(&self, server: &Server) -> Result<Client, Fail> {
        let target = place::target(server, self.data.as_deref())?;
        let client = Client::new(&target, &place::data_folder(self.data.as_deref())?)?;
        Ok(client.quiet(self.json || self.quiet))
    }

    fn data_folder(&self) -> Result<PathBuf, Fail> {
        place::data_folder(self.data.as_deref())
    }

    /// Runs a job with a progress bar, if people are watching.
    async fn run(
        &self,
        client: &Client,
        request: &JobRequest,
        interrupts: &Interrupts,
    ) -> Result<Job, Fail> {
        if self.json || self.quiet {
            return client.run(request, &self.manner, &show::Quiet, interrupts).await;
        }
        let bar = show::JobBar::new();
        let job = client.run(request, &self.manner, &bar, interrupts).await;
        bar.clear();
        job
    }

    /// The same, and tells somebody else how far it is. Where answers are printed on the terminal meanwhile, or what programs
    /// say on stderr, they take the place of the bar.
    async fn run_telling(
        &self,
        client: &Client,
        request: &JobRequest,
        interrupts: &Interrupts,
        (told, takes_terminal): (watch::Sender<(u64, u64)>, bool),
    ) -> Result<Job, Fail> {
        if self.json || self.quiet {
            let watcher = stream::Telling { watcher: &show::Quiet, told };
            return client.run(request, &self.manner, &watcher, interrupts).await;
        }
        let bar = if takes_terminal { show::JobBar::silent() } else { show::JobBar::new() };
        let watcher = stream::Telling { watcher: &bar, told };
        let job = client.run(request, &self.manner, &watcher, interrupts).await;
        bar.clear();
        job
    }
}

pub(crate) async fn run(args: Shoal) -> Result<(), Fail> {
    let manner = manner(&args);
    let context = Context { json: args.json, quiet: args.quiet, data: args.data, manner };
    match args.verb {
        Verb::Up(up) => up::run(&context, up).await,
        Verb::Serve(serve) => serve::run(&context, serve).await,
        Verb::Join(join) => join::run(&context, join).await,
        Verb::Service(service) => service::run(&context, service).await,
        Verb::Services(services) => service::list(&context, services).await,
        Verb::Ask(ask) => service::ask(&context, ask).await,
        Verb::Model(model) => model::run(&context, model).await,
        Verb::Models(models) => model::list(&context, models).await,
        Verb::Infer(infer) => work(async |stop| infer::run(&context, *infer, stop).await).await,
        Verb::Chat(chat) => chat::run(&context, *chat).await,
        Verb::Jobs(jobs) => look::jobs(&context, jobs).await,
        Verb::Nodes(nodes) => look::nodes(&context, nodes).await,
        Verb::Watch(watch) => look::watch(&context, watch).await,
        Verb::Fetch(fetch) => work(async |_| result::run(&context, fetch).await).await,
        Verb::Rm(rm) => look::rm(&context, rm).await,
        Verb::Cancel(cancel) => look::cancel(&context, cancel).await,
        Verb::Explain(explain) => explain::run(&context, explain).await,
        Verb::Receipt(receipt) => receipt::fetch(&context, receipt).await,
        Verb::Verify(verify) => receipt::verify(&context, &verify),
        Verb::Map(map) => work(async |stop| map::run(&context, map, stop).await).await,
        Verb::Render(render) => work(async |stop| render::run(&context, render, stop).await).await,
        Verb::Exec(exec) => work(async |stop| exec::run(&context, exec, stop).await).await,
        Verb::Sim(sim) => work(async |stop| sim::run(&context, *sim, stop).await).await,
        Verb::Noop(noop) => work(async |stop| noop::run(&context, noop, stop).await).await,
        #[cfg(feature = "count")]
        Verb::Count(count) => work(async |stop| count::run(&context, count, stop).await).await,
        Verb::Talk(talk) => talk::run(&context, talk).await,
        // Answered before a runtime is started.
        Verb::GpuWorker | Verb::LlmWorker | Verb::OnnxWorker(_) => Ok(()),
    }
}

/// How a verb stays with its job; of no meaning for those that bring none.
fn manner(args: &Shoal) -> Manner {
    let (stay, output, server) = match &args.verb {
        Verb::Map(map) => (Some(&map.job.stay), map.output.as_ref(), &map.server),
        Verb::Render(render) => (Some(&render.job.stay), Some(&render.output), &render.server),
        Verb::Exec(exec) => (Some(&exec.job.stay), exec.output.as_ref(), &exec.server),
        Verb::Sim(sim) => (Some(&sim.stay), sim.output.as_ref(), &sim.server),
        Verb::Infer(infer) => (Some(&infer.job.stay), infer.output.as_ref(), &infer.server),
        #[cfg(feature = "count")]
        Verb::Count(count) => (Some(&count.job.stay), None, &count.server),
        Verb::Watch(watch) => (None, watch.output.as_ref(), &watch.server),
        Verb::Up(_)
        | Verb::Serve(_)
        | Verb::Join(_)
        | Verb::Service(_)
        | Verb::Ask(_)
        | Verb::Services(_)
        | Verb::Model(_)
        | Verb::Chat(_)
        | Verb::Models(_)
        | Verb::Jobs(_)
        | Verb::Nodes(_)
        | Verb::Fetch(_)
        | Verb::Cancel(_)
        | Verb::Rm(_)
        | Verb::Explain(_)
        | Verb::Receipt(_)
        | Verb::Verify(_)
        | Verb::Noop(_)
        | Verb::Talk(_)
        | Verb::GpuWorker
        | Verb::LlmWorker
        | Verb::OnnxWorker(_) => return Manner { is_json: args.json, ..Manner::default() },
    };
    // What the environment says, it says to the next command as well.
    let flag = |name: &str, value: Option<String>, variable: &str| {
        let value = value.filter(|_| std::env::var_os(variable).is_none());
        value.map(|value| format!(" --{name} {}", quoted(&value))).unwrap_or_default()
    };
    let data = args.data.as_ref().map(|path| path.to_string_lossy().into_owned());
    Manner {
        detach: stay.is_some_and(|stay| stay.detach),
        on_interrupt: stay.map_or(OnInterrupt::Ask, |stay| stay.on_interrupt),
        output: output.cloned(),
        server: flag("url", server.url.clone(), "SHOAL_URL") + &flag("data", data, "SHOAL_DATA"),
        is_json: args.json,
    }
}

/// A verb that brings work, which an interrupt ends.
async fn work(verb: impl AsyncFnOnce(&Interrupts) -> Result<(), Fail>) -> Result<(), Fail> {
    let interrupts = Interrupts::listen();
    interrupts.guard(verb(&interrupts)).await
}

/// What a request says whatever its kind.
fn common(file: &Path, job: &JobArgs) -> Result<CommonRequest, Fail> {
    let positive = job.limit_seconds > 0.0 && job.limit_seconds.is_finite();
    if !positive {
        return Err(Fail::input("--limit-seconds must be more than 0"));
    }
    Ok(CommonRequest {
        name: Some(job.name.clone().unwrap_or_else(|| file_name(file))),
        owner: Some(owner(job.stay.owner.as_deref())),
        strategy: job.strategy.map(Into::into),
        unit: job.unit,
        limits: LimitsJson { seconds: Some(job.limit_seconds), ..LimitsJson::default() },
        ..CommonRequest::default()
    })
}

/// For whom a job runs, as donors see it: whoever was named, else the user.
fn owner(named: Option<&str>) -> String {
    if let Some(named) = named {
        return named.into();
    }
    let names = ["USER", "USERNAME", "LOGNAME"];
    let found =
        names.iter().find_map(|name| std::env::var(name).ok()).filter(|name| !name.is_empty());
    found.unwrap_or_else(|| "someone".into())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn read_kernel(path: &Path) -> Result<String, Fail> {
    let bytes = std::fs::read(path).map_err(|error| Fail::reading(path, &error))?;
    String::from_utf8(bytes)
        .map_err(|_| Fail::input(format!("{} is not text: expected a WGSL kernel", path.display())))
}

/// The values of `--param`, as JSON: numbers, truth values and lists of numbers.
fn params(given: &[(String, String)]) -> Result<Map<String, Value>, Fail> {
    let mut params = Map::new();
    for (name, text) in given {
        let value = match text.split_once(',') {
            None => param(text),
            Some(_) => text.split(',').map(param).collect::<Option<_>>().map(Value::Array),
        };
        let value = value.ok_or_else(|| {
            Fail::input(format!(
                "--param {name}={text}: expected a number, true, false, or numbers separated by commas"
            ))
        })?;
        if params.insert(name.clone(), value).is_some() {
            return Err(Fail::input(format!("--param {name} is given twice")));
        }
    }
    Ok(params)
}

fn param(text: &str) -> Option<Value> {
    let text = text.trim();
    match text {
        "true" => return Some(true.into()),
        "false" => return Some(false.into()),
        _ => {}
    }
    if let Ok(int) = text.parse::<i64>() {
        return Some(int.into());
    }
    text.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number)
}

/// Puts the file's name before what the check says.
fn refused(path: &Path, error: IntakeError) -> Fail {
    Fail::Input {
        code: error.code.into(),
        message: format!("{}: {}", path.display(), error.message),
    }
}

/// Tells how a job went: a line for people on stderr, or the job as JSON on stdout.
fn finished(
    context: &Context,
    job: &Job,
    output: Option<&Path>,
    began: Instant,
    what: &str,
) -> Result<(), Fail> {
    if context.json {
        let output = output.map(|path| path.display().to_string());
        return show::json(&json!({"job": job, "output": output}));
    }
    if context.quiet {
        return Ok(());
    }
    let took = show::duration(began.elapsed().as_secs_f64());
    let nodes = match job.shares.len() {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    };
    let place = output.filter(|path| path.as_os_str() != "-");
    let place = place.map(|path| format!("{}: ", path.display())).unwrap_or_default();
    let checked = show::checked(job);
    eprintln!("{place}{what} in {took} on {nodes}; {checked} (job {})", job.id);
    Ok(())
}

/// JSON and a result cannot both go to stdout.
fn check_stdout(context: &Context, output: &Path) -> Result<(), Fail> {
    if context.json && output.as_os_str() == "-" {
        return Err(Fail::input("--json and -o - both write to stdout: name a file"));
    }
    Ok(())
}
