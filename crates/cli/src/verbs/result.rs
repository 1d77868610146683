//! `shoal result` and `shoal watch -o`: what a job gave, fetched by whoever likes, whenever they like. All that is known
//! of the job is what the coordinator says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;
use shoal_api::{FailureJson, FormJson, RenderJson};

use super::left::{Left, harmless_name};
use super::many::{Rows, element};
use super::render::check_extension;
use super::{Context, check_stdout, failures, infer, partial};
use crate::args::{Fetch, StderrArg};
use crate::client::{Client, Job, Sink, verdict};
use crate::fail::Fail;
use crate::out_files::OutNames;
use crate::picture::Picture;
use crate::{answers, show};

/// How whoever sends all of stdin calls it, beside files.
pub(super) const STDIN: &str = "stdin";

pub(super) async fn run(context: &Context, args: Fetch) -> Result<(), Fail> {
    let client = context.client(&args.server)?.known();
    let job = client.job(args.job).await?;
    let id = job.id;
    if !job.state.has_ended() {
        let message = format!(
            "job {id} ({}) is still running: wait for it with `shoal watch {id} -o FILE`",
            job.name
        );
        return Err(Fail::Input { code: "not_done".into(), message });
    }
    let output = args.output.as_deref();
    if let (Err(fail), true) = (verdict(job.clone(), false), args.partial) {
        let place = Place::open(context, &client, &job, output).await?;
        return Err(place.fill_partly(context, &client, &job, output, fail).await);
    }
    let job = verdict(job, false)?;
    let place = Place::open(context, &client, &job, output).await?;
    place.fill(context, &client, &job, output, (args.out_files.as_deref(), args.stderr)).await
}

/// Where a result goes, in the form that its kind of work has.
pub(super) enum Place {
    Array {
        sink: Sink,
        is_npy: bool,
    },
    Picture {
        sink: Sink,
        about: RenderJson,
    },
    /// A model's outputs, a file for each.
    Rows {
        sinks: Vec<Sink>,
        rows: Rows,
    },
    /// Answers one after the other.
    Stream {
        sink: Sink,
        as_lines: bool,
    },
    /// Answers as text in one JSON document.
    Texts,
    /// Answers as files, named as the inputs were.
    Folder {
        folder: PathBuf,
        names: Vec<String>,
    },
}

impl Place {
    /// Opened before anything is waited for or fetched, so that a place that cannot be written shows at once.
    pub(super) async fn open(
        context: &Context,
        client: &Client,
        job: &Job,
        output: Option<&Path>,
    ) -> Result<Place, Fail> {
        if let Some(output) = output {
            check_stdout(context, output)?;
        }
        if let Some(about) = &job.shown.render {
            let output = wanted(job, output, "out.png")?;
            check_extension(output)?;
            return Ok(Place::Picture { sink: Sink::create(output)?, about: *about });
        }
        match job.result.form {
            FormJson::Answers => Place::answers(context, client, job, output).await,
            FormJson::Nothing => {
                Err(Fail::input(format!("job {} has no result: its units are empty", job.id)))
            }
            FormJson::Rows => {
                let rows = Rows::of(job)?;
                let output = wanted(job, output, "outputs/")?;
                Ok(Place::Rows { sinks: sinks(&rows, output)?, rows })
            }
            FormJson::Items | FormJson::Tiles => {
                let output = wanted(job, output, "out.npy")?;
                let end = output.extension().filter(|_| job.output.is_some());
                let is_npy = end.is_some_and(|end| end.eq_ignore_ascii_case("npy"));
                Ok(Place::Array { sink: Sink::create(output)?, is_npy })
            }
        }
    }

    async fn answers(
        context: &Context,
        client: &Client,
        job: &Job,
        output: Option<&Path>,
    ) -> Result<Place, Fail> {
        let inputs = client.inputs(job.id).await?;
        let as_lines = inputs.inputs.iter().any(|input| input.role == "lines");
        let files = inputs.inputs.iter().filter(|input| input.role == "file");
        let names: Vec<&str> = files.filter_map(|input| input.name.as_deref()).collect();
        if as_lines || names == [STDIN] {
            return match output {
                None if context.json => Ok(Place::Texts),
                output => {
                    let sink = Sink::create(output.unwrap_or(Path::new("-")))?;
                    Ok(Place::Stream { sink, as_lines })
                }
            };
        }
        let folder = wanted(job, output, "outputs/")?;
        let names = names.into_iter().map(harmless).collect::<Result<_, _>>()?;
        std::fs::create_dir_all(folder).map_err(|error| Fail::writing(folder, &error))?;
        Ok(Place::Folder { folder: folder.to_owned(), names })
    }

    /// With what is done of a job that ended like that.
    pub(super) async fn fill_partly(
        self,
        context: &Context,
        client: &Client,
        job: &Job,
        output: Option<&Path>,
        fail: Fail,
    ) -> Fail {
        if job.result.form == FormJson::Answers {
            let text = "nothing is saved: --partial is for arrays and pictures, and these are the answers of a program";
            partial::note(context, text);
            return fail;
        }
        let save = async |client: &Client| {
            let bar = show::Bytes::new("fetching what is done", 0);
            let saved = self.save(client, job, &BTreeSet::new(), &bar).await;
            bar.clear();
            saved.map(drop)
        };
        partial::deliver(context, client, fail, output, save).await
    }

    pub(super) async fn fill(
        self,
        context: &Context,
        client: &Client,
        job: &Job,
        output: Option<&Path>,
        (out_files, stderr): (Option<&Path>, StderrArg),
    ) -> Result<(), Fail> {
        let (folder, beside) = self.named(out_files);
        let mut left = Left::new(context, folder.as_deref(), beside, stderr)?;
        let failures = failures::of(client, job).await?;
        let failed: BTreeSet<u64> = failures.iter().map(|failure| failure.item).collect();
        let bytes = if context.json { 0 } else { job.result.bytes };
        let bar = show::Bytes::new("fetching the result", bytes);
        let filled = self.save(client, job, &failed, &bar).await;
        bar.clear();
        let filled = filled?;
        left.fetch(client, job, harmless_name).await?;
        partial::complete(context, output);
        let named = left.finish(context, job);
        told(context, job, (output, filled), &failures, &left)?;
        named.and(failures::verdict(&failures, job))
    }

    /// The folder for what runs left beside their answers, and the names there.
    fn named(&self, out_files: Option<&Path>) -> (Option<PathBuf>, OutNames) {
        let named = out_files.map(Path::to_owned);
        match self {
            Place::Folder { folder, names } => {
                let beside = OutNames::of(names.iter().map(String::as_str));
                (named.or_else(|| Some(folder.clone())), beside)
            }
            Place::Stream { as_lines: true, .. } | Place::Texts => (named, OutNames::of_lines()),
            Place::Stream { .. }
            | Place::Array { .. }
            | Place::Picture { .. }
            | Place::Rows { .. } => (named, OutNames::default()),
        }
    }

    /// Gives texts back if they are to be printed.
    async fn save(
        self,
        client: &Client,
        job: &Job,
        failed: &BTreeSet<u64>,
        bar: &show::Bytes,
    ) -> Result<Option<Vec<String>>, Fail> {
        match self {
            Place::Array { mut sink, is_npy: true } => {
                let fetched = client.npy(job.id, bar, |piece| sink.write(piece)).await;
                fetched.and_then(|()| sink.finish()).map(|()| None)
            }
            Place::Array { mut sink, is_npy: false } => {
                let fetched = client.result(job.id, bar, |piece| sink.write(piece)).await;
                fetched.and_then(|()| sink.finish()).map(|()| None)
            }
            Place::Picture { sink, about } => {
                picture(client, job, &about, sink, bar).await.map(|()| None)
            }
            Place::Rows { sinks, rows } => {
                save_rows(client, job, &rows, sinks, bar).await.map(|()| None)
            }
            Place::Stream { mut sink, as_lines } => {
                let written = answers::write(client, job.id, &mut sink, as_lines).await;
                written.and_then(|_| sink.finish()).map(|()| None)
            }
            Place::Texts => texts(client, job).await.map(Some),
            Place::Folder { folder, names } => {
                save_files(client, job, &folder, &names, failed).await.map(|()| None)
            }
        }
    }
}

fn told(
    context: &Context,
    job: &Job,
    (output, texts): (Option<&Path>, Option<Vec<String>>),
    failures: &[FailureJson],
    left: &Left,
) -> Result<(), Fail> {
    if context.json {
        let (key, value) = match texts {
            Some(texts) => ("answers", json!(texts)),
            None => ("output", json!(output.map(|path| path.display().to_string()))),
        };
        let left = left.list();
        return show::json(&json!({"job": job, key: value, "failures": failures, "left": left}));
    }
    failures::tell(failures, None);
    if job.reduced.is_some() && job.items > 1 {
        eprintln!(
            "note: this job folded its items in {} blocks, and the result has a value for each block. \
             Only `shoal map --reduce` itself makes one value of them",
            job.items
        );
    }
    if let Some(place) = output.filter(|path| path.as_os_str() != "-") {
        let (place, name, size) = (place.display(), &job.name, show::size(job.result.bytes));
        eprintln!("{place}: {size}, the result of job {} ({})", job.id, show::harmless(name));
    }
    Ok(())
}

/// What cannot go to a terminal needs a place.
fn wanted<'a>(job: &Job, output: Option<&'a Path>, such_as: &str) -> Result<&'a Path, Fail> {
    output.ok_or_else(|| {
        let id = job.id;
        Fail::input(format!("say where the result of job {id} goes, such as -o {such_as}"))
    })
}

/// A name that somebody else chose must stay in its folder.
fn harmless(name: &str) -> Result<String, Fail> {
    let is_plain = Path::new(name).file_name().is_some_and(|it| it == name) && !name.contains('\\');
    if is_plain {
        return Ok(name.into());
    }
    let name = show::harmless(name);
    Err(Fail::input(format!(
        "the job has an output named {name:?}, which cannot be a file name here"
    )))
}

async fn picture(
    client: &Client,
    job: &Job,
    about: &RenderJson,
    mut sink: Sink,
    bar: &show::Bytes,
) -> Result<(), Fail> {
    let mut picture = Picture::new(about)?;
    client.result(job.id, bar, |piece| picture.push(piece)).await?;
    sink.write(&picture.png()?)?;
    sink.finish()
}

/// One file for a model with one output, else a folder.
fn sinks(rows: &Rows, output: &Path) -> Result<Vec<Sink>, Fail> {
    let is_file = !output.is_dir() && output.extension().is_some_and(|it| it == "npy");
    match rows.tensors.as_slice() {
        [_] if is_file => Ok(vec![Sink::create(output)?]),
        tensors => {
            let names = tensors.iter().map(|tensor| tensor.name.as_str());
            infer::files(output, names)?.iter().map(|path| Sink::create(path)).collect()
        }
    }
}

pub(super) async fn save_rows(
    client: &Client,
    job: &Job,
    rows: &Rows,
    mut sinks: Vec<Sink>,
    bar: &show::Bytes,
) -> Result<(), Fail> {
    for (sink, tensor) in sinks.iter_mut().zip(&rows.tensors) {
        let shape: Vec<u64> =
            std::iter::once(job.items).chain(tensor.shape.iter().copied()).collect();
        sink.write(&shoal_kinds::npy::head(element(tensor)?.numpy(), &shape))?;
    }
    rows.fetch(client, job, bar, |at, bytes| sinks[at].write(bytes)).await?;
    sinks.into_iter().try_for_each(Sink::finish)
}

async fn texts(client: &Client, job: &Job) -> Result<Vec<String>, Fail> {
    let mut texts = Vec::new();
    answers::each(client, job.id, |_, answer| {
        texts.push(String::from_utf8_lossy(answer).into_owned());
        Ok(())
    })
    .await?;
    Ok(texts)
}

async fn save_files(
    client: &Client,
    job: &Job,
    folder: &Path,
    names: &[String],
    failed: &BTreeSet<u64>,
) -> Result<(), Fail> {
    answers::each(client, job.id, |index, answer| {
        let wanted = !failed.contains(&(index as u64));
        let Some(name) = names.get(index).filter(|_| wanted) else { return Ok(()) };
        let mut sink = Sink::create(&folder.join(name))?;
        sink.write(answer)?;
        sink.finish()
    })
    .await
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_stay_in_their_folder() {
        assert!(harmless("a.txt").is_ok() && harmless(".hidden").is_ok());
        for bad in ["", ".", "..", "../a", "/etc/passwd", "a/b", "a\\b", "a/"] {
            assert!(harmless(bad).is_err(), "{bad}");
        }
    }
}
