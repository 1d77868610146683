//! Whether a run fits: what a model's values take for the inputs of a request, before anything is computed. An engine
//! that finds no memory ends the whole process, so it must not come to that.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use shoal_kinds::onnx::Head;
use shoal_onnx::{DType, Given, Model, Shapes, TensorType};

/// What values between the operators may take together at any time of a run.
const MOST_BYTES: u64 = 2 << 30;
/// Kinds of numbers, as ONNX counts them.
const DTYPES: std::ops::Range<u64> = 1..64;

type Verdict = Result<(), String>;

pub(super) struct Room {
    graph: Model,
    /// Requests mostly have the shapes of the one before.
    last: Mutex<Option<(Vec<Head>, Verdict)>>,
}

impl Room {
    pub(super) fn new(graph: Model) -> Room {
        Room { graph, last: Mutex::new(None) }
    }

    /// Says what speaks against inputs of these shapes.
    pub(super) fn check(&self, heads: &[Head]) -> Verdict {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, verdict)) = &*last
            && before == heads
        {
            return verdict.clone();
        }
        let verdict = self.look(heads);
        *last = Some((heads.to_vec(), verdict.clone()));
        verdict
    }

    fn look(&self, heads: &[Head]) -> Verdict {
        let given: Vec<Given> = heads.iter().filter_map(given).collect();
        // What cannot be told before is left to the engine, which says why it fails.
        let Ok(shapes) = self.graph.shapes(&given) else { return Ok(()) };
        for (place, node) in self.graph.places() {
            let rank = |at: usize| shapes.of(node.inputs().get(at)?).map(|ty| ty.dims.len());
            // rten forgets to take away the dimension that it added.
            if node.op() == "MatMul" && rank(1) == Some(1) && rank(0).is_none_or(|rank| rank > 2) {
                return Err(format!(
                    "{place}: the built-in engine multiplies many matrices by a vector only if it is a matrix of one \
                     column"
                ));
            }
        }
        let peak = peak(&self.graph, &shapes);
        if peak > MOST_BYTES {
            let (peak, most) = (peak >> 20, MOST_BYTES >> 20);
            return Err(format!(
                "for these shapes the model needs {peak} MiB; at most {most} are allowed"
            ));
        }
        Ok(())
    }
}

fn given(head: &Head) -> Option<Given> {
    let dtype = DTYPES.filter_map(DType::of).find(|dtype| dtype.name() == head.element.name())?;
    Some(Given::new(head.name.as_str(), TensorType::new(dtype, head.dims.clone())))
}

/// The most that values take at a time, each from the node that makes it to the last that reads it.
fn peak(graph: &Model, shapes: &Shapes) -> u64 {
    let bytes = |name: &str| shapes.of(name).map_or(0, TensorType::bytes);
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, node) in graph.nodes().iter().enumerate() {
        last.extend(node.inputs().iter().map(|name| (name.as_str(), at)));
    }
    for output in graph.outputs() {
        last.insert(output.name(), usize::MAX);
    }
    let mut now: u64 = graph.inputs().map(|input| bytes(input.name())).sum();
    let mut peak = now;
    let mut ends: BTreeMap<usize, u64> = BTreeMap::new();
    for (at, node) in graph.nodes().iter().enumerate() {
        for name in node.outputs().iter().filter(|name| !name.is_empty()) {
            let size = bytes(name);
            now = now.saturating_add(size);
            let end = ends.entry(*last.get(name.as_str()).unwrap_or(&at)).or_default();
            *end = end.saturating_add(size);
        }
        peak = peak.max(now);
        now -= ends.remove(&at).unwrap_or(0);
    }
    peak
}
