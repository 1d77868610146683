//! `shoal exec`: a WASI program over many inputs, like xargs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use shoal_api::{ExecRequest, FileRequest, JobRequest, LinesRequest, OnErrorJson, WorkRequest};

use super::failures::{self, Only};
use super::left::Left;
use super::result::STDIN;
use super::resume::Resume;
use super::stream::{Stream, To};
use super::{Context, check_stdout, common, file_name, finished, policy, refused};
use crate::args::{Exec, StderrArg};
use crate::client::{Client, Job, Sink, Source};
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::out_files::OutNames;
use crate::{answers, folder, show};

/// Files sent at a time: hides the round trips of many small ones.
const UPLOADS_AT_ONCE: usize = 8;

/// What the program runs over.
pub(super) enum Inputs {
    /// All of stdin; or with `--only` some of it, and which runs of the whole that is.
    Lines(Bytes, Option<Vec<u64>>),
    Files(Vec<(String, Source)>),
    /// All of stdin, in one run.
    Once(Bytes),
}

pub(super) async fn run(
    context: &Context,
    mut args: Exec,
    interrupts: &Interrupts,
) -> Result<(), Fail> {
    let reads_stdin = names_stdin(&mut args.files)?;
    keeps_no_files(&args)?;
    if let Some(output) = &args.output {
        check_stdout(context, output)?;
    }
    let began = Instant::now();
    let wasm = std::fs::read(&args.module).map_err(|error| Fail::reading(&args.module, &error))?;
    let memory = args.limit_memory.saturating_mul(1 << 20);
    shoal_engine::intake::wasi_program(&wasm, memory)
        .map_err(|error| refused(&args.module, error))?;
    let inputs = inputs(&args, reads_stdin).await?;
    let shared = match &args.folder {
        Some(folder) => folder::files(folder)?,
        None => Vec::new(),
    };
    keep_inputs(&args, &shared)?;
    if let Some(file) = &args.failures {
        check_stdout(context, file)?;
    }
    let beside = beside(&args, &inputs);
    let mut left = Left::new(context, out_files(&args, &inputs), beside.clone(), args.stderr)?;
    let mut place = Place::open(&args, &inputs)?;
    let (resume, inputs) = match &args.resume {
        Some(_) if context.json && args.output.is_none() => {
            return Err(Fail::input("--resume with --json needs -o: say where the answers go"));
        }
        Some(path) => {
            let (resume, left) = Resume::open(path, &args, (&wasm, &shared), inputs, &beside)?;
            (Some(resume), left)
        }
        None => (None, inputs),
    };
    let before = resume.as_ref().map_or(0, Resume::before);
    left.of_part(matches!(inputs, Inputs::Lines(_, Some(_))));
    let names = inputs.names(&args);
    if resume.as_ref().is_some_and(Resume::is_nothing_left) {
        if let Some(stream) = place.stream(context, &inputs, resume, (&mut left, names)) {
            stream.finish().await?;
        }
        if let Some(file) = &args.failures {
            failures::save(&[], file)?;
        }
        return all_there(context, args.output.as_deref(), before);
    }
    let client = context.client(&args.server)?;
    let request = compose(context, &client, &args, wasm.into(), &inputs, &shared).await?;
    let job = match place.stream(context, &inputs, resume, (&mut left, names)) {
        Some(mut stream) => {
            let job = stream.run(context, &client, &request, interrupts).await?;
            stream.finish().await?;
            job
        }
        None => {
            let job = context.run(&client, &request, interrupts).await?;
            place.fill(&client, &job).await?;
            left.fetch(&client, &job, |own| names.of(own.item)).await?;
            job
        }
    };
    let texts = place.texts();
    tell(context, &args, (&client, &job), &inputs, (texts, &left, began, before)).await
}

/// Where files go that runs leave: beside the answers, if those are files.
fn out_files<'a>(args: &'a Exec, inputs: &Inputs) -> Option<&'a Path> {
    match (&args.out_files, inputs) {
        (None, Inputs::Files(_)) => args.output.as_deref(),
        (named, _) => named.as_deref(),
    }
}

/// What is written beside the answers, by the names of all inputs, also of those that do not run: what they left stays.
fn beside(args: &Exec, inputs: &Inputs) -> OutNames {
    match inputs {
        Inputs::Files(_) => {
            let names: Vec<String> = args.files.iter().map(|path| file_name(path)).collect();
            OutNames::of(names.iter().map(String::as_str))
        }
        Inputs::Lines(..) => OutNames::of_lines(),
        Inputs::Once(_) => OutNames::default(),
    }
}

impl Inputs {
    fn names(&self, args: &Exec) -> Names<'_> {
        match self {
            Inputs::Files(files) => Names::Files(files),
            Inputs::Lines(_, runs) => {
                Names::Lines { per_run: args.batch.unwrap_or(1), runs: runs.as_deref() }
            }
            Inputs::Once(_) => Names::Once,
        }
    }
}

/// What the user calls the items of a job.
#[derive(Clone, Copy)]
pub(super) enum Names<'a> {
    Files(&'a [(String, Source)]),
    Lines { per_run: u32, runs: Option<&'a [u64]> },
    Once,
}

impl Names<'_> {
    pub(super) fn of(&self, item: u64) -> String {
        let at = usize::try_from(item).unwrap_or(usize::MAX);
        match self {
            Names::Files(files) => files.get(at).map_or_else(String::new, |(name, _)| name.clone()),
            Names::Lines { per_run, runs } => {
                let run = runs.and_then(|runs| runs.get(at)).copied().unwrap_or(item);
                failures::lines(run, *per_run)
            }
            Names::Once => STDIN.into(),
        }
    }
}

/// How it went: the inputs that failed, and how many did not.
async fn tell(
    context: &Context,
    args: &Exec,
    (client, job): (&Client, &Job),
    inputs: &Inputs,
    (texts, left, began, before): (Vec<String>, &Left, Instant, usize),
) -> Result<(), Fail> {
    let mut failures = failures::of(client, job).await?;
    let what = counted(job, failures.len(), before);
    if let Inputs::Lines(_, Some(runs)) = inputs {
        failures::renumber(&mut failures, runs, args.batch.unwrap_or(1));
    }
    if let Some(file) = &args.failures {
        failures::save(&failures, file)?;
    }
    if context.json {
        // What would have gone to stdout is part of the document.
        let (key, value) = match &args.output {
            Some(path) => ("output", json!(path.display().to_string())),
            None => ("answers", json!(texts)),
        };
        let left = left.list();
        show::json(&json!({"job": job, key: value, "failures": failures, "left": left}))?;
    } else {
        failures::tell(&failures, args.failures.as_deref());
    }
    let named = left.finish(context, job);
    if !context.json {
        finished(context, job, args.output.as_deref(), began, &what)?;
    }
    named.and(failures::verdict(&failures, job))
}

async fn inputs(args: &Exec, reads_stdin: bool) -> Result<Inputs, Fail> {
    let only = args.only.as_deref().map(Only::read).transpose()?;
    if !args.files.is_empty() {
        let files = files(&args.files)?;
        return Ok(Inputs::Files(match only {
            Some(only) => only.files(files)?,
            None => files,
        }));
    }
    let is_wanted = args.lines || reads_stdin || !std::io::stdin().is_terminal();
    let bytes = if is_wanted { read_stdin().await? } else { Bytes::new() };
    if !args.lines {
        return Ok(Inputs::Once(bytes));
    }
    if bytes.is_empty() {
        return Err(Fail::input("stdin is empty: there are no lines to process"));
    }
    let Some(only) = only else { return Ok(Inputs::Lines(bytes, None)) };
    let (bytes, runs) = only.lines(&bytes, args.batch.unwrap_or(1))?;
    Ok(Inputs::Lines(bytes, Some(runs)))
}

/// Whether the only file is `-`, which is stdin: then there are none.
fn names_stdin(files: &mut Vec<PathBuf>) -> Result<bool, Fail> {
    let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
    match files.iter().any(is_stdin) {
        false => Ok(false),
        true if files.len() == 1 => {
            files.clear();
            Ok(true)
        }
        true => {
            Err(Fail::input("- (stdin) cannot be one of several files: save it to a file first"))
        }
    }
}

/// Answers to lines are kept by what the lines say, and files go by the lines' numbers, which change.
fn keeps_no_files(args: &Exec) -> Result<(), Fail> {
    let wants_files = args.out_files.is_some() || args.stderr == StderrArg::Files;
    if args.lines && args.resume.is_some() && wants_files {
        return Err(Fail::input(
            "with --lines, --resume keeps answers but not files: leave out --resume, or leave out \
             --out-files and --stderr files, or put each line into a file and pass the files",
        ));
    }
    Ok(())
}

/// Off the main thread, so that an interrupt is heard while a person types.
async fn read_stdin() -> Result<Bytes, Fail> {
    let read = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    });
    match read.await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(error)) => Err(Fail::reading(Path::new("stdin"), &error)),
        Err(error) => Err(Fail::world("internal", error.to_string())),
    }
}

fn files(paths: &[PathBuf]) -> Result<Vec<(String, Source)>, Fail> {
    let mut seen: BTreeMap<String, &Path> = BTreeMap::new();
    let mut files = Vec::new();
    for path in paths {
        let about = std::fs::metadata(path).map_err(|error| Fail::reading(path, &error))?;
        if about.is_dir() {
            return Err(Fail::input(format!("{} is a folder: pass files instead", path.display())));
        }
        if !about.is_file() {
            return Err(Fail::irregular(path));
        }
        let name = file_name(path);
        if let Some(other) = seen.insert(name.clone(), path) {
            return Err(Fail::input(format!(
                "{} and {} would both be written to {name}: run them separately",
                other.display(),
                path.display()
            )));
        }
        files.push((name, Source::File { path: path.clone(), start: 0, size: about.len() }));
    }
    Ok(files)
}

/// Answers must not replace what they are made from.
fn keep_inputs(args: &Exec, shared: &[(String, Source)]) -> Result<(), Fail> {
    let Some(output) = &args.output else { return Ok(()) };
    let shared = shared.iter().filter_map(|(_, source)| match source {
        Source::File { path, .. } => Some(path),
        Source::Memory(_) | Source::Spooled { .. } => None,
    });
    let read = args.files.iter().chain([&args.module]).chain(shared);
    let read: BTreeSet<PathBuf> = read.filter_map(|path| path.canonicalize().ok()).collect();
    let written: Vec<PathBuf> = match args.files.as_slice() {
        [] => vec![output.clone()],
        files => files.iter().map(|path| output.join(file_name(path))).collect(),
    };
    // A path that does not exist yet is nobody's input.
    let is_read = |path: &&PathBuf| path.canonicalize().is_ok_and(|path| read.contains(&path));
    match written.iter().find(is_read) {
        Some(path) => Err(Fail::input(format!(
            "the output would overwrite the input {}: choose another -o",
            path.display()
        ))),
        None => Ok(()),
    }
}

async fn compose(
    context: &Context,
    client: &Client,
    args: &Exec,
    wasm: Bytes,
    inputs: &Inputs,
    shared: &[(String, Source)],
) -> Result<JobRequest, Fail> {
    let mut common = common(&args.module, &args.job)?;
    policy::add(context, client, &args.job.policy, &wasm, &mut common).await?;
    common.limits.memory_mib = Some(args.limit_memory);
    common.limits.output_mib = Some(args.limit_output);
    let hidden = show::Bytes::hidden();
    let module = client.upload(&Source::Memory(wasm), &hidden).await?;
    let mut work = ExecRequest {
        module: module.hash,
        args: args.args.clone(),
        env: args.env.iter().cloned().collect(),
        clock: args.clock,
        on_error: if args.stop_on_error { OnErrorJson::Stop } else { OnErrorJson::Continue },
        ok_exit: args.ok_exit.clone(),
        retry: args.retry,
        ..ExecRequest::default()
    };
    match inputs {
        Inputs::Lines(bytes, _) => {
            let blob = client.upload(&Source::Memory(bytes.clone()), &hidden).await?;
            let per_run = Some(args.batch.unwrap_or(1).into());
            work.lines = Some(LinesRequest { blob: blob.hash, per_run });
        }
        Inputs::Files(files) => {
            work.files = send_all(context, client, "sending files", files).await?;
        }
        Inputs::Once(bytes) => {
            let stdin = [("stdin".to_owned(), Source::Memory(bytes.clone()))];
            work.files = send_all(context, client, "", &stdin).await?;
        }
    }
    if !shared.is_empty() {
        work.folder = send_all(context, client, "sending the folder", shared).await?;
    }
    Ok(JobRequest { common, work: WorkRequest::Exec(work) })
}

/// Stores named files and lists them as a job request does.
async fn send_all(
    context: &Context,
    client: &Client,
    label: &str,
    files: &[(String, Source)],
) -> Result<Vec<FileRequest>, Fail> {
    let total = if context.json { 0 } else { files.iter().map(|(_, source)| source.size()).sum() };
    let bar = show::Bytes::new(label, total);
    let sent: Result<Vec<FileRequest>, Fail> = stream::iter(files)
        .map(|(name, source)| {
            let bar = bar.clone();
            async move {
                let blob = client.upload(source, &show::Bytes::hidden()).await?;
                bar.add(blob.size);
                Ok(FileRequest { name: name.clone(), blob: blob.hash })
            }
        })
        .buffered(UPLOADS_AT_ONCE)
        .try_collect()
        .await;
    bar.clear();
    sent
}

/// Where answers go.
enum Place {
    Stdout(Vec<Vec<u8>>),
    File(Option<Sink>),
    Folder(PathBuf),
}

impl Place {
    /// Opened before any work, so that a place that cannot be written shows at once.
    fn open(args: &Exec, inputs: &Inputs) -> Result<Place, Fail> {
        match (inputs, &args.output) {
            (Inputs::Files(_), None) => Err(Fail::input(
                "name a folder for the outputs with -o DIR: each goes to DIR/NAME, where NAME is its file's name",
            )),
            (Inputs::Files(_), Some(folder)) => {
                std::fs::create_dir_all(folder).map_err(|error| Fail::writing(folder, &error))?;
                Ok(Place::Folder(folder.clone()))
            }
            (Inputs::Lines(..) | Inputs::Once(_), Some(file)) => {
                Ok(Place::File(Some(Sink::create(file)?)))
            }
            (Inputs::Lines(..) | Inputs::Once(_), None) => Ok(Place::Stdout(Vec::new())),
        }
    }

    /// The way of answers that are written as they come.
    fn stream<'a>(
        &'a mut self,
        context: &Context,
        inputs: &'a Inputs,
        resume: Option<Resume>,
        beside: (&'a mut Left, Names<'a>),
    ) -> Option<Stream<'a>> {
        let as_lines = matches!(inputs, Inputs::Lines(..));
        let to = match (self, inputs) {
            (Place::Stdout(_), _) if context.json => return None,
            (Place::Stdout(_), _) => To::Row { sink: None, as_lines },
            // A file appears under its name only when it is whole.
            (Place::File(sink), _) => To::Row { sink: sink.take(), as_lines },
            (Place::Folder(folder), Inputs::Files(files)) => To::Folder { folder, files },
            (Place::Folder(_), _) => return None,
        };
        Some(Stream::new(to, resume, beside))
    }

    /// Fetches all answers at once, for a document that has them all.
    async fn fill(&mut self, client: &Client, job: &Job) -> Result<(), Fail> {
        let Place::Stdout(kept) = self else { return Ok(()) };
        let each = answers::each(client, job.id, |_, answer| {
            kept.push(answer.to_vec());
            Ok(())
        });
        each.await.map(drop)
    }

    fn texts(&self) -> Vec<String> {
        match self {
            Place::Stdout(answers) => {
                answers.iter().map(|answer| String::from_utf8_lossy(answer).into_owned()).collect()
            }
            Place::File(_) | Place::Folder(_) => Vec::new(),
        }
    }
}

/// What was done, in words.
fn counted(job: &Job, failed: usize, before: usize) -> String {
    let runs = if job.items == 1 { "run" } else { "runs" };
    let before = if before == 0 { String::new() } else { format!(" ({before} done before)") };
    match failed {
        0 => format!("{} {runs}{before}", job.items),
        failed => format!("{} {runs}{before}, {failed} failed,", job.items),
    }
}

/// There was nothing left to run.
fn all_there(context: &Context, output: Option<&Path>, before: usize) -> Result<(), Fail> {
    if context.json {
        let output = output.map(|path| path.display().to_string());
        return show::json(&json!({"job": null, "output": output, "failures": [], "left": []}));
    }
    if !context.quiet {
        eprintln!("all {before} answers are there: nothing to run");
    }
    Ok(())
}
