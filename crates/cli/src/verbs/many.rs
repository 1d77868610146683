//! `shoal infer --batch`: a model over the rows of arrays, as a job that all nodes share.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use shoal_api::{
    BlobJson, CommonRequest, JobRequest, ModelJson, OnnxInputRequest, OnnxRequest, PortJson,
    TensorJson, WorkRequest,
};
use shoal_engine::intake;
use shoal_kinds::OnnxWork;
use shoal_kinds::onnx::{Element, Head, Port, Side, Wire, columns};
use shoal_protocol::{BlobRef, Hash};

use super::infer::files;
use super::result::save_rows;
use super::{Context, common, finished, policy, refused};
use crate::args::{Infer, JobArgs};
use crate::client::{Client, Job, Sink, Source};
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::{npy, show};

pub(super) async fn run(
    context: &Context,
    client: &Client,
    args: Infer,
    interrupts: &Interrupts,
) -> Result<(), Fail> {
    let began = Instant::now();
    let chosen = Chosen::find(client, &args.model).await?;
    let Some(output) = &args.output else {
        return Err(Fail::input("--batch gives arrays: say with -o where they go"));
    };
    let arrays = chosen.arrays(&args)?;
    let heads: Vec<Head> = arrays.iter().map(|array| array.head.clone()).collect();
    let checked = columns(&chosen.work(), &heads);
    let (items, _) = checked.map_err(|error| Fail::input(error.to_string()))?;
    if items == 0 {
        return Err(Fail::input("the arrays are empty: there is nothing to compute"));
    }
    // Opened before any work, so that a place that cannot be written shows at once.
    let sinks = chosen.sinks(output)?;
    let mut inputs = Vec::new();
    for Array { head, source } in arrays {
        let label = format!("sending {}", head.name);
        let bar = show::Bytes::new(&label, if context.json { 0 } else { source.size() });
        let blob = client.upload(&source, &bar).await;
        bar.clear();
        inputs.push(input(head, blob?));
    }
    let job = chosen.submit(context, client, &args.job, inputs, interrupts).await?;
    let rows = Rows::of(&job)?;
    let size = items * rows.bytes() as u64;
    let bar = show::Bytes::new("fetching the result", if context.json { 0 } else { size });
    let fetched = save_rows(client, &job, &rows, sinks, &bar).await;
    bar.clear();
    fetched?;
    let what = format!("{} items, {}", show::count(items as f64), show::size(size));
    finished(context, &job, Some(output), began, &what)
}

pub(super) fn input(head: Head, blob: BlobJson) -> OnnxInputRequest {
    let Head { name, element, dims } = head;
    let element = element.name().into();
    OnnxInputRequest { name: Some(name), blob: blob.hash, element, shape: dims }
}

/// An array that is a file.
pub(super) struct Array {
    pub(super) head: Head,
    source: Source,
}

impl Array {
    fn open(name: &str, path: &Path) -> Result<Array, Fail> {
        let cannot = |error: std::io::Error| Fail::reading(path, &error);
        let mut file = File::open(path).map_err(cannot)?;
        let about = file.metadata().map_err(cannot)?;
        if about.is_dir() {
            let path = path.display();
            return Err(Fail::input(format!("{path} is a folder: expected an .npy file")));
        }
        if !about.is_file() {
            return Err(Fail::irregular(path));
        }
        let head = npy::read_tensor_head(&mut file, about.len()).map_err(cannot)?;
        let (element, dims, start) =
            head.map_err(|error| Fail::input(format!("{} {error}", path.display())))?;
        let source = Source::File { path: path.to_owned(), start, size: about.len() - start };
        Ok(Array { head: Head { name: name.into(), element, dims }, source })
    }
}

/// The model that is to run: one that was added, or a file.
pub(super) struct Chosen {
    pub(super) model: ModelJson,
    /// Of a file: what has to be sent.
    file: Option<Bytes>,
    name: PathBuf,
}

impl Chosen {
    pub(super) async fn find(client: &Client, name: &str) -> Result<Chosen, Fail> {
        let path = PathBuf::from(name);
        if name.ends_with(".onnx") && path.exists() {
            return Chosen::open(&path);
        }
        let model = ModelJson::clone(&*client.model(name).await?);
        Ok(Chosen { model, file: None, name: path })
    }

    /// A file.
    pub(super) fn open(path: &Path) -> Result<Chosen, Fail> {
        let file = std::fs::read(path).map_err(|error| Fail::reading(path, &error))?;
        let plan = intake::model(&file).map_err(|error| refused(path, error))?;
        let model = ModelJson {
            name: path.display().to_string(),
            versions: Vec::new(),
            platform: "onnx".into(),
            inputs: plan.inputs.iter().map(port_json).collect(),
            outputs: plan.outputs.iter().map(port_json).collect(),
            file: BlobJson { hash: String::new(), size: file.len() as u64 },
            parts: Vec::new(),
        };
        Ok(Chosen { model, file: Some(file.into()), name: path.to_owned() })
    }

    /// As far as arrays are held against it.
    pub(super) fn work(&self) -> OnnxWork {
        let port = |port: &PortJson| {
            let side = |side: &i64| match u64::try_from(*side) {
                Ok(number) => Side::Fixed(number),
                Err(_) => Side::Open(String::new()),
            };
            let dims = (!port.shape.is_empty()).then(|| port.shape.iter().map(side).collect());
            let element = Element::of_wire(&port.datatype).unwrap_or(Element::F32);
            Port { name: port.name.clone(), element, dims }
        };
        let inputs = self.model.inputs.iter().map(port).collect();
        let model = BlobRef { hash: Hash([0; 32]), size: 0 };
        let (outputs, parts, wire) = (Vec::new(), Vec::new(), Wire::F32);
        OnnxWork { model, inputs, outputs, parts, wire, batch: None }
    }

    /// The arrays of `--batch` and `--input`.
    fn arrays(&self, args: &Infer) -> Result<Vec<Array>, Fail> {
        let given = args.batch.iter().map(|text| self.array(text).map(|(_, array)| array));
        let named = args.input.iter().map(|(name, path)| Array::open(name, Path::new(path)));
        given.chain(named).collect()
    }

    /// An array that is given as `[NAME=]FILE`.
    pub(super) fn array(&self, text: &str) -> Result<(PathBuf, Array), Fail> {
        let inputs = self.model.inputs.as_slice();
        let named = text.split_once('=').filter(|(name, _)| {
            !Path::new(text).exists() || inputs.iter().any(|input| input.name == *name)
        });
        let (name, path) = match (named, inputs) {
            (Some((name, path)), _) => (name, path),
            (None, [only]) => (only.name.as_str(), text),
            (None, inputs) => {
                let names: Vec<_> = inputs.iter().map(|input| input.name.as_str()).collect();
                return Err(Fail::input(format!(
                    "the model has {} inputs ({}): say which one it is for with NAME={text}",
                    names.len(),
                    names.join(", ")
                )));
            }
        };
        Ok((path.into(), Array::open(name, Path::new(path))?))
    }

    /// Where the outputs go, in their order.
    fn sinks(&self, output: &Path) -> Result<Vec<Sink>, Fail> {
        let is_file = !output.is_dir() && output.extension().is_some_and(|it| it == "npy");
        match self.model.outputs.as_slice() {
            [_] if is_file => Ok(vec![Sink::create(output)?]),
            outputs if is_file => Err(Fail::input(format!(
                "the model has {} outputs: name a folder with -o",
                outputs.len()
            ))),
            outputs => {
                let names = outputs.iter().map(|port| port.name.as_str());
                files(output, names)?.iter().map(|path| Sink::create(path)).collect()
            }
        }
    }

    /// Runs the job.
    pub(super) async fn submit(
        &self,
        context: &Context,
        client: &Client,
        args: &JobArgs,
        inputs: Vec<OnnxInputRequest>,
        interrupts: &Interrupts,
    ) -> Result<Job, Fail> {
        let mut common: CommonRequest = common(&self.name, args)?;
        let model = match &self.file {
            Some(file) => {
                policy::add(context, client, &args.policy, file, &mut common).await?;
                let size = if context.json { 0 } else { file.len() as u64 };
                let bar = show::Bytes::new("sending the model", size);
                let sent = client.upload(&Source::Memory(file.clone()), &bar).await;
                bar.clear();
                sent?.hash
            }
            None => {
                policy::add_rules(context, client, &args.policy, &mut common).await?;
                self.model.file.hash.clone()
            }
        };
        let work = WorkRequest::Onnx(OnnxRequest { inputs, ..OnnxRequest::new(model) });
        context.run(client, &JobRequest { common, work }, interrupts).await
    }
}

pub(super) fn port_json(port: &Port) -> PortJson {
    PortJson {
        name: port.name.clone(),
        datatype: port.element.wire_name().into(),
        shape: port.dims.iter().flatten().map(side).collect(),
    }
}

fn side(side: &Side) -> i64 {
    match side {
        Side::Fixed(number) => i64::try_from(*number).unwrap_or(i64::MAX),
        Side::Open(_) => -1,
    }
}

/// What the result of a job is made of.
pub(super) struct Rows {
    pub(super) tensors: Vec<TensorJson>,
    sizes: Vec<usize>,
}

impl Rows {
    pub(super) fn of(job: &Job) -> Result<Rows, Fail> {
        let tensors = job.shown.tensors.clone().ok_or_else(strange)?;
        let size = |tensor: &TensorJson| {
            let head =
                Head { name: String::new(), element: element(tensor)?, dims: tensor.shape.clone() };
            head.bytes().ok_or_else(strange)
        };
        let sizes = tensors.iter().map(size).collect::<Result<_, _>>()?;
        Ok(Rows { tensors, sizes })
    }

    /// Of one row.
    fn bytes(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// Fetches all rows and hands what belongs to each tensor to `each`, with the tensor's number.
    pub(super) async fn fetch(
        &self,
        client: &Client,
        job: &Job,
        bar: &show::Bytes,
        mut each: impl FnMut(usize, &[u8]) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        let row = self.bytes().max(1);
        let mut held: Vec<u8> = Vec::new();
        let mut got = 0;
        let take = |piece: &[u8]| {
            held.extend_from_slice(piece);
            let whole = held.len() / row * row;
            for row in held[..whole].chunks(row) {
                let mut rest = row;
                for (at, size) in self.sizes.iter().enumerate() {
                    let (bytes, behind) = rest.split_at(*size);
                    rest = behind;
                    each(at, bytes)?;
                }
                got += 1;
            }
            held.drain(..whole);
            Ok(())
        };
        client.result(job.id, bar, take).await?;
        if got != job.items || !held.is_empty() {
            let items = job.items;
            let message = format!("the result has {got} rows instead of {items}");
            return Err(Fail::world("bad_answer", message));
        }
        Ok(())
    }
}

pub(super) fn element(tensor: &TensorJson) -> Result<Element, Fail> {
    let known = Element::ALL.iter().copied().find(|known| known.name() == tensor.element);
    known.ok_or_else(strange)
}

fn strange() -> Fail {
    Fail::world("bad_answer", "the coordinator does not say what the rows of the result hold")
}
