//! Whether a run fits: what a model's values take for the inputs of a request, before anything is computed. An engine
//! that finds no memory ends the whole process, so it must not come to that.

use std::sync::{Mutex, PoisonError};

use shoal_kinds::onnx::Head;
use shoal_onnx::{DType, Given, Model, TensorType};

use super::doubts;

/// What values between the operators may take together at any time of a run, however much a device lends.
const MOST_BYTES: u64 = 2 << 30;
/// Kinds of numbers, as ONNX counts them.
const DTYPES: std::ops::Range<u64> = 1..64;

/// Why it does not fit, or what is known of it.
type Verdict = Result<Fits, String>;

/// What is known of a run before it begins.
#[derive(Clone, Default)]
pub(super) struct Fits {
    /// Bytes that values take at a time; 0 where nobody can tell.
    pub(super) peak: u64,
    /// What the built-in engine is known to compute wrongly with such shapes.
    pub(super) doubt: Option<String>,
}

pub(super) struct Room {
    graph: Model,
    /// Requests mostly have the shapes of the one before.
    last: Mutex<Option<(Vec<Head>, Verdict)>>,
}

impl Room {
    pub(super) fn new(graph: Model) -> Room {
        Room { graph, last: Mutex::new(None) }
    }

    pub(super) fn graph(&self) -> &Model {
        &self.graph
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
        let Ok(shapes) = self.graph.shapes(&given) else { return Ok(Fits::default()) };
        let peak = self.graph.peak(&shapes);
        if peak > MOST_BYTES {
            let (peak, most) = (peak >> 20, MOST_BYTES >> 20);
            return Err(format!(
                "for these shapes the model needs {peak} MiB; at most {most} are allowed"
            ));
        }
        Ok(Fits { peak, doubt: doubts::of_shapes(&self.graph, &shapes) })
    }
}

fn given(head: &Head) -> Option<Given> {
    let dtype = DTYPES.filter_map(DType::of).find(|dtype| dtype.name() == head.element.name())?;
    Some(Given::new(head.name.as_str(), TensorType::new(dtype, head.dims.clone())))
}

#[cfg(all(test, feature = "intake"))]
mod tests {
    use super::super::made::{Graph, With};
    use super::*;
    use shoal_kinds::onnx::Element;

    #[test]
    fn as_much_is_booked_for_a_run_as_it_is_held_to() {
        let along = [With::Int("axis", 1)];
        let graph = Graph::new("x", DType::Float32, &[1, 1000]).node("ArgMax", &["x"], "y", &along);
        let file = graph.output("y", DType::Int64).file();
        let booked = crate::intake::model(&file).expect("a plan").peak;
        let room = Room::new(Model::read(file).expect("a model").spelled_out());
        let head = Head { name: "x".into(), element: Element::F32, dims: vec![1, 1000] };
        let held = room.check(&[head]).expect("it fits").peak;
        assert_eq!(booked, Some(held));
        assert!(held >= 8000, "it is looked at from the other end: {held}");
    }
}
