//! What a file tells of its values before anybody says which shapes its inputs have.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::dtype::{DType, Dim};
use crate::model::{Made, Model};
use crate::read::Declared;
use crate::shape::Shapes;

pub(super) struct Known<'a> {
    pub(super) model: &'a Model,
    /// Where the inputs' shapes are declared in full.
    shapes: Option<Shapes>,
    declared: BTreeMap<&'a str, &'a Declared>,
}

impl<'a> Known<'a> {
    pub(super) fn of(model: &'a Model) -> Known<'a> {
        let graph = &model.graph;
        let infos = graph.infos.iter().chain(&graph.outputs).chain(&graph.inputs);
        let declared =
            infos.filter_map(|info| Some((info.name.as_str(), info.declared.as_ref()?))).collect();
        Known { model, shapes: model.shapes(&[]).ok(), declared }
    }

    pub(super) fn opset(&self) -> u64 {
        self.model.opset("").unwrap_or(0)
    }

    pub(super) fn dtype(&self, name: &str) -> Option<DType> {
        if let Some(Made::Weight(at)) = self.model.made.get(name) {
            return Some(self.model.graph.weights[*at].ty().dtype);
        }
        let shaped = self.shapes.as_ref().and_then(|shapes| shapes.of(name));
        shaped.map(|ty| ty.dtype).or_else(|| self.declared.get(name)?.dtype)
    }

    /// The sides of a value, none for those that are open.
    pub(super) fn sides(&self, name: &str) -> Option<Vec<Option<u64>>> {
        if let Some(Made::Weight(at)) = self.model.made.get(name) {
            return Some(
                self.model.graph.weights[*at].ty().dims.iter().copied().map(Some).collect(),
            );
        }
        if let Some(ty) = self.shapes.as_ref().and_then(|shapes| shapes.of(name)) {
            return Some(ty.dims.iter().copied().map(Some).collect());
        }
        let side = |dim: &Dim| match dim {
            Dim::Known(side) => Some(*side),
            Dim::Open(_) => None,
        };
        Some(self.declared.get(name)?.dims.as_ref()?.iter().map(side).collect())
    }

    pub(super) fn rank(&self, name: &str) -> Option<usize> {
        self.sides(name).map(|sides| sides.len())
    }

    /// The sides from a dimension on, if all of them are known.
    pub(super) fn sides_from(&self, name: &str, from: usize) -> Option<Vec<i64>> {
        let sides = self.sides(name)?;
        sides.get(from..)?.iter().map(|side| i64::try_from((*side)?).ok()).collect()
    }
}
