//! Slices of one model that stand side by side, as one file again. Whoever has several of them runs them as one: no value
//! between them is copied, and an engine that fuses operators does so across their bounds.

use alloc::collections::BTreeSet;
use alloc::string::String;
use bytes::Bytes;
use thiserror::Error;

use crate::error::{MetadataError, Shown};
use crate::metadata::SliceNote;
use crate::model::{Made, Model};
use crate::read::graph;
use crate::wire::{Pieces, Writer};

/// Why files are not joined.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JoinError {
    #[error("there is nothing to join")]
    Nothing,
    #[error(transparent)]
    Note(#[from] MetadataError),
    #[error("file {at} is no slice of a model")]
    NoSlice { at: usize },
    #[error("file {at} begins at position {from} of its model, but the one before ends at {to}")]
    Apart { at: usize, from: usize, to: usize },
    #[error("no slice makes `{}`", Shown(.name))]
    NotMade { name: String },
}

impl Model {
    /// One file of slices that follow each other. Its outputs are those named, each an output of some slice; its inputs
    /// are what no slice before makes.
    pub fn join(slices: &[Model], gives: &[&str]) -> Result<Pieces, JoinError> {
        let Some(first) = slices.first() else { return Err(JoinError::Nothing) };
        let note = follow(slices)?;
        let mut joint = Joint::default();
        first.graph.others.iter().for_each(|other| joint.writer.whole(other));
        slices.iter().for_each(|slice| joint.add(slice));
        let outputs = slices.iter().flat_map(|slice| &slice.graph.outputs);
        for name in gives {
            let found = outputs.clone().find(|output| output.name == *name);
            let found = found.ok_or_else(|| JoinError::NotMade { name: (*name).into() })?;
            joint.writer.bytes(graph::OUTPUT, &found.bytes);
        }
        // What is made and read inside keeps its type, which the slices wrote down.
        let is_inner = |name: &str| !gives.contains(&name);
        for inner in outputs.filter(|output| is_inner(&output.name)) {
            joint.once(graph::VALUE_INFO, &inner.name, &inner.bytes);
        }
        let note = SliceNote { gives: gives.iter().map(|name| (*name).into()).collect(), ..note };
        Ok(first.around(joint.writer, &note))
    }
}

/// A note of all of them together, if they follow each other.
fn follow(slices: &[Model]) -> Result<SliceNote, JoinError> {
    let mut all: Option<SliceNote> = None;
    for (at, slice) in slices.iter().enumerate() {
        let note = slice.slice_note()?.ok_or(JoinError::NoSlice { at })?;
        let Some(before) = &mut all else {
            all = Some(note);
            continue;
        };
        if note.from != before.to || note.steps != before.steps {
            return Err(JoinError::Apart { at, from: note.from, to: before.to });
        }
        before.to = note.to;
        before.passes.retain(|name| note.passes.contains(name));
    }
    all.ok_or(JoinError::Nothing)
}

/// A graph that grows by whole slices.
#[derive(Default)]
struct Joint<'a> {
    writer: Writer,
    /// Values that nodes of it make.
    made: BTreeSet<&'a str>,
    /// Weights, inputs and types that were written, each with its field.
    written: BTreeSet<(u32, &'a str)>,
}

impl<'a> Joint<'a> {
    fn add(&mut self, slice: &'a Model) {
        let whole = &slice.graph;
        for input in &whole.inputs {
            let is_made = self.made.contains(input.name.as_str());
            if !is_made || !slice.is_input(&input.name) {
                self.once(graph::INPUT, &input.name, &input.bytes);
            }
        }
        for weight in &whole.weights {
            self.once(graph::INITIALIZER, weight.name(), &weight.chunk.bytes);
        }
        for sparse in &whole.sparse {
            self.once(graph::SPARSE, &sparse.name, &sparse.bytes);
        }
        for node in &whole.nodes {
            // Nodes that always make the same are in every slice that needs them.
            if node.makes().any(|name| self.made.contains(name)) {
                continue;
            }
            self.writer.bytes(graph::NODE, &node.bytes);
            self.made.extend(node.makes());
        }
        for info in whole.infos.iter().filter(|info| !is_end(slice, &info.name)) {
            self.once(graph::VALUE_INFO, &info.name, &info.bytes);
        }
        for note in &whole.annotations {
            self.once(graph::ANNOTATION, &note.name, &note.bytes);
        }
    }

    fn once(&mut self, field: u32, name: &'a str, bytes: &Bytes) {
        if self.written.insert((field, name)) {
            self.writer.bytes(field, bytes);
        }
    }
}

fn is_end(slice: &Model, name: &str) -> bool {
    matches!(slice.made.get(name), Some(Made::Input(_)))
        || slice.graph.outputs.iter().any(|output| output.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;
    use alloc::vec::Vec;

    /// Two branches that share a made weight, and a value that passes over two parts.
    fn model() -> Model {
        Build::new()
            .input("x", &[1, 4])
            .weight("a", &[4, 4])
            .weight("b", &[4, 4])
            .node("Transpose", &["a"], &["turned"])
            .node("MatMul", &["x", "turned"], &["h"])
            .node("MatMul", &["h", "b"], &["k"])
            .node("MatMul", &["k", "turned"], &["l"])
            .node("Add", &["l", "h"], &["y"])
            .output("y")
            .model()
    }

    fn slices(model: &Model, bounds: &[usize]) -> Vec<Model> {
        let shapes = model.shapes(&[]).expect("shapes");
        let cuts = model.cuts(&shapes);
        let slice = |two: &[usize]| cuts.slice(two[0], two[1]).expect("a slice").file.to_bytes();
        bounds.windows(2).map(|two| Model::read(slice(two)).expect("readable")).collect()
    }

    #[test]
    fn slices_side_by_side_are_the_steps_they_were_cut_from() {
        let model = model();
        let parts = slices(&model, &[0, 1, 2, 3, 4]);
        let joined = Model::join(&parts[1..], &["y"]).expect("they follow each other");
        let joined = Model::read(joined.to_bytes()).expect("readable");
        let names: Vec<&str> = joined.inputs().map(|input| input.name()).collect();
        assert_eq!(names, ["h"]);
        assert_eq!((joined.nodes().len(), joined.weights().len()), (4, 2));
        let note = joined.slice_note().expect("a note").expect("a note");
        assert_eq!((note.from, note.to, note.steps), (1, 4, 4));
        let shapes = joined.shapes(&[]).expect("shapes");
        assert_eq!(shapes.of("y").expect("y").dims, [1, 4]);
    }

    #[test]
    fn all_of_them_are_the_whole() {
        let model = model();
        let parts = slices(&model, &[0, 2, 4]);
        let joined = Model::join(&parts, &["y"]).expect("they follow each other");
        let joined = Model::read(joined.to_bytes()).expect("readable");
        assert_eq!(joined.nodes().len(), model.nodes().len());
        assert_eq!(joined.outputs().len(), 1);
    }

    #[test]
    fn what_does_not_follow_is_not_joined() {
        let model = model();
        let parts = slices(&model, &[0, 1, 2, 3, 4]);
        let apart = [parts[0].clone(), parts[2].clone()];
        let error = Model::join(&apart, &["l"]).expect_err("one is missing");
        assert_eq!(error, JoinError::Apart { at: 1, from: 2, to: 1 });
        assert_eq!(Model::join(&[], &[]).expect_err("none"), JoinError::Nothing);
        let whole = core::slice::from_ref(&model);
        assert_eq!(Model::join(whole, &["y"]).expect_err("whole"), JoinError::NoSlice { at: 0 });
        let name = "nothing";
        let error = Model::join(&parts, &[name]).expect_err("nobody makes it");
        assert_eq!(error, JoinError::NotMade { name: name.into() });
    }
}
