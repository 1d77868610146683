//! How much memory a run takes.

use alloc::collections::BTreeMap;

use crate::dtype::TensorType;
use crate::model::Model;
use crate::shape::Shapes;

impl Model {
    /// The most bytes that values take at a time, each from the node that makes it to the last that reads it. Weights
    /// and what only a run can tell are not counted.
    pub fn peak(&self, shapes: &Shapes) -> u64 {
        let bytes = |name: &str| shapes.of(name).map_or(0, TensorType::bytes);
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, node) in self.nodes().iter().enumerate() {
            last.extend(node.inputs().iter().map(|name| (name.as_str(), at)));
        }
        for output in self.outputs() {
            last.insert(output.name(), usize::MAX);
        }
        let mut now: u64 = self.inputs().map(|input| bytes(input.name())).sum();
        let mut peak = now;
        let mut ends: BTreeMap<usize, u64> = BTreeMap::new();
        for (at, node) in self.nodes().iter().enumerate() {
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
}
