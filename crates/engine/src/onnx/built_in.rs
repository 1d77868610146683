//! The engine that is built in: rten, pure Rust, the same natively and in a browser.
//!
//! rten computes with `float32`, `int32`, `int8` and `uint8`. Tensors of other types are converted on their way in and
//! out where nothing is lost by it, `float16` to more digits than it has; a number that does not fit is refused and
//! named.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rten::{ModelOptions, NodeId, RunOptions, ThreadPool, ValueOrView};
use shoal_kinds::OnnxWork;
use shoal_kinds::onnx::tensor::{pack, unpack};
use shoal_kinds::onnx::{Port, Tensor};

use super::convert::{computes_with, given, taken};
use super::doubts;
use super::engine::Trouble;

/// The threads that models of one device run in, all of them together.
#[derive(Clone)]
pub struct Threads(Arc<ThreadPool>);

impl Threads {
    /// A browser has none, and runs models in the Worker that asks.
    pub fn new(count: usize) -> Threads {
        Threads(Arc::new(ThreadPool::with_num_threads(count)))
    }
}

pub(super) struct BuiltIn {
    engine: rten::Model,
    inputs: Vec<(NodeId, Port)>,
    outputs: Vec<(NodeId, Port)>,
}

impl BuiltIn {
    /// Loads the graph's file. What this engine lacks is said.
    pub(super) fn load(graph: &shoal_onnx::Model, work: &OnnxWork) -> Result<BuiltIn, String> {
        for (what, ports) in [("input", &work.inputs), ("output", &work.outputs)] {
            let other = ports.iter().find(|port| !computes_with(port.element));
            if let Some(Port { name, element, .. }) = other {
                let words = "which the built-in engine does not compute with";
                return Err(format!("the {what} {name:?} is {element}, {words}"));
            }
        }
        doubts::none(graph)?;
        let file = graph.bytes().to_vec();
        let load = || ModelOptions::with_all_ops().load(file);
        let engine = catch_unwind(AssertUnwindSafe(load))
            .map_err(|_| "the engine panicked when it loaded the model".to_owned())?
            .map_err(|error| format!("the engine cannot load the model: {error}"))?;
        let find = |port: &Port| match engine.find_node(&port.name) {
            Some(id) => Ok((id, port.clone())),
            None => Err(format!("the engine lost the model's value {:?}", port.name)),
        };
        let inputs = work.inputs.iter().map(find).collect::<Result<_, _>>()?;
        let outputs = work.outputs.iter().map(find).collect::<Result<_, _>>()?;
        Ok(BuiltIn { engine, inputs, outputs })
    }

    /// Packed tensors in, packed tensors out.
    pub(super) fn run(&self, threads: &Threads, request: &[u8]) -> Result<Vec<u8>, Trouble> {
        let tensors = unpack(request).map_err(refused)?;
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (id, port) in &self.inputs {
            let Some(tensor) = tensors.iter().find(|tensor| tensor.head.name == port.name) else {
                return Err(refused(format!("the input {:?} is missing", port.name)));
            };
            inputs.push((*id, ValueOrView::from(taken(tensor).map_err(refused)?)));
        }
        let ids: Vec<NodeId> = self.outputs.iter().map(|(id, _)| *id).collect();
        let options = Some(RunOptions::default().with_thread_pool(Some(threads.0.clone())));
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

fn refused(message: impl ToString) -> Trouble {
    Trouble::Refused(message.to_string())
}
