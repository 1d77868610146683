//! `shoal infer --images`: a model over many pictures, in jobs that all nodes share. Groups of pictures follow one another,
//! so that any number of them fits into memory, and what is found is told group by group.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use serde_json::json;
use shoal_api::ModelJson;
use shoal_kinds::onnx::{Element, Head};

use super::Context;
use super::many::{Chosen, Rows, element, input};
use crate::args::{Infer, Sight, Task};
use crate::client::{Client, Job, Sink, Source};
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::show;
use crate::sight::{self, Found, Seen};
use crate::tensors::Array;

/// Pictures of one job, and what they may take: the next group is made ready while one is computed.
const GROUP: usize = 2048;
const GROUP_BYTES: usize = 128 << 20;
/// Files of a folder that are taken for pictures.
const ENDINGS: [&str; 3] = ["png", "jpg", "jpeg"];
/// The file of results in a folder.
const RESULTS: &str = "results.jsonl";

pub(super) async fn run(
    context: &Context,
    client: &Client,
    args: Infer,
    interrupts: &Interrupts,
) -> Result<(), Fail> {
    if context.manner.detach {
        return Err(Fail::input("--images runs many jobs one after the other: leave out --detach"));
    }
    let began = Instant::now();
    let task = args.sight.task.ok_or_else(|| Fail::input("--images needs --task"))?;
    let paths = find(&args.sight.images)?;
    let chosen = Chosen::find(client, &args.model).await?;
    let mut told = Told::open(context, args.output.as_deref(), task)?;
    let (count, mut bad, mut jobs) = (paths.len(), 0, Vec::new());
    let maker = Arc::new(Maker { model: chosen.model.clone(), sight: args.sight.clone(), paths });
    let mut next = maker.clone().group(0);
    loop {
        let group = next.await.map_err(|error| Fail::world("internal", error.to_string()))?;
        if group.from == count {
            break;
        }
        next = maker.clone().group(group.until);
        let is_empty = group.inputs.is_empty();
        let found = if is_empty {
            Vec::new()
        } else {
            let (job, found) = ask(context, client, &chosen, &args, &group, interrupts).await?;
            jobs.push(job);
            found
        };
        let mut found = found.into_iter();
        for (path, seen) in maker.paths[group.from..group.until].iter().zip(group.seen) {
            bad += usize::from(seen.is_err());
            let found = match seen {
                Ok(seen) => {
                    let outputs = found.next().unwrap_or_default();
                    Found::read(&outputs, seen, task, &args.sight)
                }
                Err(fail) => Err(fail),
            };
            told.tell(path, found)?;
        }
    }
    told.finish()?;
    if !context.json {
        let took = show::duration(began.elapsed().as_secs_f64());
        let nodes: BTreeSet<u64> =
            jobs.iter().flat_map(|job| job.shares.iter().map(|share| share.node)).collect();
        let plural = if nodes.len() == 1 { "node" } else { "nodes" };
        eprintln!("{} pictures in {took} on {} {plural}", count - bad, nodes.len());
    }
    if bad > 0 {
        return Err(Fail::input(format!(
            "{bad} of {count} files are no pictures that can be read"
        )));
    }
    Ok(())
}

/// The pictures that are meant, folders with all they hold.
fn find(given: &[PathBuf]) -> Result<Vec<PathBuf>, Fail> {
    let mut paths = Vec::new();
    for path in given {
        if !path.is_dir() {
            std::fs::metadata(path).map_err(|error| Fail::reading(path, &error))?;
            paths.push(path.clone());
            continue;
        }
        let cannot = |error: std::io::Error| Fail::reading(path, &error);
        let mut inside = Vec::new();
        for entry in std::fs::read_dir(path).map_err(cannot)? {
            let file = entry.map_err(cannot)?.path();
            let ending = file.extension().map(|it| it.to_string_lossy().to_lowercase());
            if ending.is_some_and(|it| ENDINGS.contains(&it.as_str())) && !file.is_dir() {
                inside.push(file);
            }
        }
        if inside.is_empty() {
            let path = path.display();
            return Err(Fail::input(format!("{path} holds no pictures (.png, .jpg or .jpeg)")));
        }
        inside.sort();
        paths.extend(inside);
    }
    Ok(paths)
}

/// The pictures of a folder as one array, at most so many.
pub(super) fn calibrating(
    folder: &str,
    model: &ModelJson,
    sight: Sight,
    most: u64,
) -> Result<Array, Fail> {
    let mut paths = find(&[folder.into()])?;
    paths.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    let mut all: Option<Array> = None;
    for path in &paths {
        let (one, _) = sight::open(path, model, &sight)?;
        match &mut all {
            None => all = Some(one),
            Some(all) => {
                all.head.dims[0] += 1;
                all.bytes.extend_from_slice(&one.bytes);
            }
        }
    }
    all.ok_or_else(|| Fail::input(format!("{folder} holds no pictures")))
}

/// Makes inputs of pictures.
struct Maker {
    model: ModelJson,
    sight: Sight,
    paths: Vec<PathBuf>,
}

/// Some pictures, ready to be sent.
struct Group {
    from: usize,
    until: usize,
    /// Where each lies in its input, or why it is no picture.
    seen: Vec<Result<Seen, Fail>>,
    /// Of those that are pictures, one after the other.
    inputs: Vec<u8>,
    /// What all of them are, with as many as there are in the first axis.
    head: Option<Head>,
}

impl Maker {
    fn group(self: Arc<Self>, from: usize) -> tokio::task::JoinHandle<Group> {
        tokio::task::spawn_blocking(move || self.make(from))
    }

    fn make(&self, from: usize) -> Group {
        let (seen, inputs) = (Vec::new(), Vec::new());
        let mut group = Group { from, until: from, seen, inputs, head: None };
        for path in self.paths.iter().skip(from).take(GROUP) {
            let opened = sight::open(path, &self.model, &self.sight);
            group.seen.push(opened.map(|(array, mut seen)| {
                seen.forget_image();
                group.inputs.extend_from_slice(&array.bytes);
                match &mut group.head {
                    Some(head) => head.dims[0] += 1,
                    None => group.head = Some(array.head),
                }
                seen
            }));
            group.until += 1;
            if group.inputs.len() >= GROUP_BYTES {
                break;
            }
        }
        group
    }
}

/// Runs the model over a group: the outputs for each picture.
async fn ask(
    context: &Context,
    client: &Client,
    chosen: &Chosen,
    args: &Infer,
    group: &Group,
    interrupts: &Interrupts,
) -> Result<(Job, Vec<Vec<Array>>), Fail> {
    let head = group.head.clone().ok_or_else(|| Fail::input("there are no pictures"))?;
    let source = Source::Memory(Bytes::copy_from_slice(&group.inputs));
    let bar =
        show::Bytes::new("sending the pictures", if context.json { 0 } else { source.size() });
    let blob = client.upload(&source, &bar).await;
    bar.clear();
    let inputs = vec![input(head, blob?)];
    let job = chosen.submit(context, client, &args.job, inputs, interrupts).await?;
    let rows = Rows::of(&job)?;
    let elements: Vec<Element> = rows.tensors.iter().map(element).collect::<Result<_, _>>()?;
    let mut found: Vec<Vec<Array>> = Vec::new();
    let each = |at: usize, bytes: &[u8]| {
        if at == 0 {
            found.push(Vec::new());
        }
        let tensor = &rows.tensors[at];
        let dims = std::iter::once(1).chain(tensor.shape.iter().copied()).collect();
        let head = Head { name: tensor.name.clone(), element: elements[at], dims };
        if let Some(outputs) = found.last_mut() {
            outputs.push(Array { head, bytes: bytes.to_vec() });
        }
        Ok(())
    };
    rows.fetch(client, &job, &show::Bytes::hidden(), each).await?;
    Ok((job, found))
}

/// Where what is found goes.
struct Told {
    json: bool,
    sink: Option<Sink>,
    /// For pictures with their boxes, and those that are there.
    folder: Option<PathBuf>,
    drawn: BTreeSet<PathBuf>,
}

impl Told {
    fn open(context: &Context, output: Option<&Path>, task: Task) -> Result<Told, Fail> {
        let json = context.json;
        let drawn = BTreeSet::new();
        let Some(output) = output else {
            return Ok(Told { json, sink: None, folder: None, drawn });
        };
        let is_file = !output.is_dir() && output.extension().is_some();
        if is_file {
            return Ok(Told { json, sink: Some(Sink::create(output)?), folder: None, drawn });
        }
        std::fs::create_dir_all(output).map_err(|error| Fail::writing(output, &error))?;
        let folder = (task == Task::Detect).then(|| output.to_owned());
        Ok(Told { json, sink: Some(Sink::create(&output.join(RESULTS))?), folder, drawn })
    }

    fn tell(&mut self, path: &Path, found: Result<Found, Fail>) -> Result<(), Fail> {
        let shown = path.display().to_string();
        if let Err(fail) = &found {
            eprintln!("{}", show::harmless(fail.message()));
        }
        let mut line = match &found {
            Ok(found) => found.json(),
            Err(fail) => json!({"error": fail.message()}),
        };
        line["file"] = shown.clone().into();
        if let (Some(folder), Ok(found)) = (&self.folder, found.as_ref()) {
            // Pictures of several folders may have one name.
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            let numbered = (2..).map(|count| folder.join(format!("{name}-{count}.png")));
            let mut places = std::iter::once(folder.join(format!("{name}.png"))).chain(numbered);
            let Some(drawn) = places.find(|place| !self.drawn.contains(place)) else {
                return Ok(());
            };
            self.drawn.insert(drawn.clone());
            found.draw_again(path, &drawn)?;
            line["drawn"] = drawn.display().to_string().into();
        }
        match (&mut self.sink, found) {
            (Some(sink), _) => sink.write(format!("{line}\n").as_bytes()),
            (None, _) if self.json => show::line(&line.to_string()),
            (None, Ok(found)) => show::line(&format!("{shown}: {}", found.words())),
            (None, Err(_)) => Ok(()),
        }
    }

    fn finish(self) -> Result<(), Fail> {
        self.sink.map_or(Ok(()), Sink::finish)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_all_of_its_pictures_in_order() {
        let folder = std::env::temp_dir().join(format!("shoal-pictures-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let said =
            |given: &Path| find(&[given.to_owned()]).map_err(|fail| fail.message().to_owned());
        assert!(said(&folder).is_err_and(|words| words.contains("holds no pictures")));
        for name in ["b.PNG", "a.jpeg", "notes.txt"] {
            std::fs::write(folder.join(name), b"").expect("a file");
        }
        let found = said(&folder).expect("two pictures");
        assert_eq!(found, [folder.join("a.jpeg"), folder.join("b.PNG")]);
        let named = folder.join("notes.txt");
        assert_eq!(said(&named), Ok(vec![named.clone()]), "whoever names a file means it");
        assert!(said(&folder.join("none.png")).is_err());
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
