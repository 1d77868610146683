//! ONNX models, run by rten: pure Rust, the same natively and in a browser.
//!
//! rten computes with `float32`, `int32`, `int8` and `uint8`. Tensors of other types are converted on their way in and
//! out where nothing is lost by it; a number that does not fit is refused and named.

mod convert;
mod doubts;
mod room;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use rten::{ModelOptions, NodeId, RunOptions, ThreadPool, ValueOrView};
use shoal_kinds::onnx::tensor::{pack, unpack};
use shoal_kinds::onnx::{Head, Port, Tensor};
use shoal_kinds::{Kind, OnnxWork};
use shoal_protocol::Failure;

use convert::{computes_with, given, taken};
use room::Room;

/// The model of work that runs here; none if it is of another kind.
pub fn model(work: &Kind) -> Option<&OnnxWork> {
    if let Kind::Onnx(onnx) = work { Some(onnx) } else { None }
}

/// The threads that models of one device run in, all of them together.
#[derive(Clone)]
pub struct Threads(Arc<ThreadPool>);

impl Threads {
    /// A browser has none, and runs models in the Worker that asks.
    pub fn new(count: usize) -> Threads {
        Threads(Arc::new(ThreadPool::with_num_threads(count)))
    }
}

/// A model that can run at once. Several requests may run it at a time.
pub struct Model {
    engine: rten::Model,
    inputs: Vec<(NodeId, Port)>,
    outputs: Vec<(NodeId, Port)>,
    threads: Threads,
    room: Room,
}

impl Model {
    /// Loads a file. What it lacks, or this engine, is said.
    pub fn load(file: Vec<u8>, work: &OnnxWork, threads: &Threads) -> Result<Model, Failure> {
        for (what, ports) in [("input", &work.inputs), ("output", &work.outputs)] {
            let other = ports.iter().find(|port| !computes_with(port.element));
            if let Some(Port { name, element, .. }) = other {
                let words = "which the built-in engine does not compute with";
                return Err(unable(format!("the {what} {name:?} is {element}, {words}")));
            }
        }
        let graph = doubts::none(Bytes::copy_from_slice(&file)).map_err(unable)?;
        let load = || ModelOptions::with_all_ops().load(file);
        let engine = catch_unwind(AssertUnwindSafe(load))
            .map_err(|_| unable("the engine panicked when it loaded the model"))?
            .map_err(|error| unable(format!("the engine cannot load the model: {error}")))?;
        let find = |port: &Port| match engine.find_node(&port.name) {
            Some(id) => Ok((id, port.clone())),
            None => Err(unable(format!("the engine lost the model's value {:?}", port.name))),
        };
        let inputs = work.inputs.iter().map(find).collect::<Result<_, _>>()?;
        let outputs = work.outputs.iter().map(find).collect::<Result<_, _>>()?;
        Ok(Model { engine, inputs, outputs, threads: threads.clone(), room: Room::new(graph) })
    }

    /// Answers a request: packed tensors in, packed tensors out.
    pub fn run(&self, work: &OnnxWork, request: &[u8]) -> Result<Vec<u8>, Failure> {
        let tensors = unpack(request).map_err(refused)?;
        let heads: Vec<Head> = tensors.iter().map(|tensor| tensor.head.clone()).collect();
        work.takes(&heads).map_err(refused)?;
        self.room.check(&heads).map_err(refused)?;
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (id, port) in &self.inputs {
            let Some(tensor) = tensors.iter().find(|tensor| tensor.head.name == port.name) else {
                return Err(refused(format!("the input {:?} is missing", port.name)));
            };
            inputs.push((*id, ValueOrView::from(taken(tensor).map_err(refused)?)));
        }
        let ids: Vec<NodeId> = self.outputs.iter().map(|(id, _)| *id).collect();
        let options = Some(RunOptions::default().with_thread_pool(Some(self.threads.0.clone())));
        let run = || self.engine.run(inputs, &ids, options);
        let values = catch_unwind(AssertUnwindSafe(run))
            .map_err(|_| refused("the engine panicked when it ran the model"))?
            .map_err(|error| refused(format!("the model cannot be run on this: {error}")))?;
        let mut answers = Vec::with_capacity(values.len());
        for ((_, port), value) in self.outputs.iter().zip(&values) {
            answers.push(given(port, value).map_err(refused)?);
        }
        let tensors = answers.iter().map(|(head, bytes)| Tensor { head: head.clone(), bytes });
        Ok(pack(&tensors.collect::<Vec<_>>()))
    }
}

/// This device cannot; another one may.
fn unable(message: impl Into<String>) -> Failure {
    Failure::Unable { message: message.into() }
}

/// It would go wrong everywhere.
fn refused(message: impl ToString) -> Failure {
    Failure::Model { message: message.to_string() }
}
