//! Some steps of a model as a model of their own: a valid ONNX file with only their weights.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::cut::{Crossing, Cuts, names};
use crate::dtype::TensorType;
use crate::error::CutError;
use crate::metadata::{SLICE, SliceNote};
use crate::model::{Made, Model, field, has_key, pair};
use crate::read::{ValueInfo, graph};
use crate::wire::{Chunk, Pieces, Writer};

/// A part of a model that runs alone.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The ONNX file.
    pub file: Pieces,
    /// Its inputs: what it reads of what crosses its begin.
    pub takes: Vec<String>,
    /// Its outputs: what it makes of what crosses its end.
    pub gives: Vec<String>,
    /// What crosses its end and comes from before its begin. Whoever runs it hands that on.
    pub passes: Vec<String>,
}

impl Cuts<'_> {
    /// The file of the steps from one position to another.
    pub fn slice(&self, from: usize, to: usize) -> Result<Slice, CutError> {
        let last = self.steps.len();
        if from > to || to > last {
            return Err(CutError::NoSuchRange { from, to, last });
        }
        if from == to {
            return Err(CutError::Empty);
        }
        self.at(from)?;
        self.at(to)?;
        let needs = Needs::of(self, from, to);
        let takes: Vec<_> =
            self.crossing(from).into_iter().filter(|one| needs.values.contains(one.name)).collect();
        let (gives, passes): (Vec<_>, Vec<_>) =
            self.crossing(to).into_iter().partition(|one| needs.made.contains(one.name));
        let mut outputs = gives.clone();
        if to == last {
            outputs.extend(self.fixed_outputs());
        }
        let (takes_names, gives_names) = (names(&takes), names(&outputs));
        let note = SliceNote {
            from,
            to,
            steps: last,
            takes: takes_names.clone(),
            gives: gives_names.clone(),
            passes: names(&passes),
        };
        let written = self.graph(&needs, &takes, &outputs);
        let file = self.model.around(written, &note);
        Ok(Slice { file, takes: takes_names, gives: gives_names, passes: note.passes })
    }

    /// Outputs of the model that are weights. They cross nothing: the last slice has them.
    fn fixed_outputs(&self) -> impl Iterator<Item = Crossing<'_>> {
        let flows: BTreeSet<&str> = self.flows.iter().map(|flow| flow.name).collect();
        let outputs = self.model.graph.outputs.iter().map(|output| output.name.as_str());
        let fixed = outputs.filter(move |name| !flows.contains(name));
        fixed.map(|name| Crossing { name, ty: self.shapes.of(name) })
    }

    fn graph(&self, needs: &Needs<'_>, takes: &[Crossing<'_>], gives: &[Crossing<'_>]) -> Writer {
        let whole = &self.model.graph;
        let mut writer = Writer::default();
        whole.others.iter().for_each(|other| writer.whole(other));
        for at in &needs.nodes {
            writer.bytes(graph::NODE, &whole.nodes[*at].bytes);
        }
        for weight in whole.weights.iter().filter(|weight| needs.values.contains(weight.name())) {
            writer.bytes(graph::INITIALIZER, &weight.chunk.bytes);
        }
        for sparse in whole.sparse.iter().filter(|one| needs.values.contains(one.name.as_str())) {
            writer.bytes(graph::SPARSE, &sparse.bytes);
        }
        for one in takes {
            self.info(&mut writer, graph::INPUT, &whole.inputs, one);
        }
        // Files of old list weights among the inputs.
        for input in whole.inputs.iter().filter(|input| needs.values.contains(input.name())) {
            if !self.model.is_input(&input.name) {
                writer.bytes(graph::INPUT, &input.bytes);
            }
        }
        for one in gives {
            self.info(&mut writer, graph::OUTPUT, &whole.outputs, one);
        }
        let is_inside = |name: &str| {
            needs.has(name) && takes.iter().chain(gives).all(|other| other.name != name)
        };
        for info in whole.infos.iter().filter(|info| is_inside(&info.name)) {
            writer.bytes(graph::VALUE_INFO, &info.bytes);
        }
        for note in whole.annotations.iter().filter(|note| needs.has(&note.name)) {
            writer.bytes(graph::ANNOTATION, &note.bytes);
        }
        writer
    }

    /// As the file declares it, or with the type that was inferred.
    fn info(&self, writer: &mut Writer, field: u32, declared: &[ValueInfo], one: &Crossing<'_>) {
        match (declared.iter().find(|info| info.name == one.name), one.ty) {
            (Some(info), _) => writer.bytes(field, &info.bytes),
            (None, Some(ty)) => writer.message(field, info(one.name, ty)),
            // A weight that is an output, of a type that is not known: its name alone.
            (None, None) => {
                let mut name = Writer::default();
                name.text(1, one.name);
                writer.message(field, name);
            }
        }
    }
}

/// ONNX's `ValueInfoProto` of a tensor.
fn info(name: &str, ty: &TensorType) -> Writer {
    let mut shape = Writer::default();
    for dim in &ty.dims {
        let mut one = Writer::default();
        one.varint(1, *dim);
        shape.message(1, one);
    }
    let mut tensor = Writer::default();
    tensor.varint(1, ty.dtype.number());
    tensor.message(2, shape);
    let mut kind = Writer::default();
    kind.message(1, tensor);
    let mut info = Writer::default();
    info.text(1, name);
    info.message(2, kind);
    info
}

/// What a slice is made of.
pub(crate) struct Needs<'a> {
    /// Its steps and the weights' nodes they read from, in the file's order.
    pub(crate) nodes: BTreeSet<usize>,
    /// Everything they read.
    pub(crate) values: BTreeSet<&'a str>,
    /// Everything its steps make.
    made: BTreeSet<&'a str>,
}

impl<'a> Needs<'a> {
    pub(crate) fn of(cuts: &Cuts<'a>, from: usize, to: usize) -> Needs<'a> {
        let model = cuts.model;
        let steps = &cuts.steps[from..to];
        let mut needs = Needs {
            nodes: steps.iter().copied().collect(),
            values: BTreeSet::new(),
            made: steps.iter().flat_map(|at| model.graph.nodes[*at].makes()).collect(),
        };
        let constant = &cuts.constant;
        let mut open: Vec<usize> = steps.to_vec();
        let is_last = to == cuts.steps.len();
        for output in model.graph.outputs.iter().filter(|_| is_last) {
            needs.read(&output.name, model, constant, &mut open);
        }
        while let Some(at) = open.pop() {
            for name in model.graph.nodes[at].reads() {
                needs.read(name, model, constant, &mut open);
            }
        }
        needs
    }

    fn read(&mut self, name: &'a str, model: &Model, constant: &[bool], open: &mut Vec<usize>) {
        if !self.values.insert(name) {
            return;
        }
        if let Some(Made::Node(maker)) = model.made.get(name)
            && constant.get(*maker).copied().unwrap_or(false)
            && self.nodes.insert(*maker)
        {
            open.push(*maker);
        }
    }

    fn has(&self, name: &str) -> bool {
        self.values.contains(name) || self.made.contains(name)
    }
}

impl Model {
    /// All that stands around the graph, with another graph, and a note of what it is.
    pub(crate) fn around(&self, graph: Writer, note: &SliceNote) -> Pieces {
        let mut writer = Writer::default();
        let mut graph = Some(graph);
        for (number, whole) in &self.fields {
            match *number {
                field::GRAPH => {
                    if let Some(graph) = graph.take() {
                        writer.message(field::GRAPH, graph);
                    }
                }
                // How to train the whole is of no use to a part of it.
                field::TRAINING => {}
                field::METADATA if is_ours(whole) => {}
                _ => writer.whole(whole),
            }
        }
        writer.message(field::METADATA, pair(SLICE, &note.to_string()));
        writer.finish()
    }
}

fn is_ours(field: &bytes::Bytes) -> bool {
    let chunk = Chunk { bytes: field.clone(), at: 0 };
    let pair = chunk.fields().next().and_then(Result::ok).and_then(|field| field.chunk().ok());
    pair.is_some_and(|pair| has_key(&pair, SLICE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Given;
    use crate::testing::{Build, With};
    use alloc::vec;

    /// Two branches of a sum, each with a weight of its own, and one that is made.
    fn branches() -> Build {
        Build::new()
            .input("x", &[-1, 4])
            .weight("a", &[4])
            .weight("b", &[4])
            .ints("shape", &[4])
            .node("Add", &["x", "a"], &["left"])
            .node("ConstantOfShape", &["shape"], &["zeros"])
            .node("Abs", &["x"], &["unused"])
            .node("Mul", &["x", "b"], &["right"])
            .node("Sub", &["right", "zeros"], &["bare"])
            .node("Add", &["left", "bare"], &["sum"])
            .info("right", &[2, 4])
            .output("sum")
            .output("left")
    }

    fn shapes(model: &Model) -> crate::Shapes {
        let ty = TensorType::new(crate::DType::Float32, [2, 4]);
        model.shapes(&[Given::new("x", ty)]).expect("shapes")
    }

    #[test]
    fn a_slice_has_only_what_it_needs() {
        let model = branches().unknown(999, "kept").model();
        let shapes = shapes(&model);
        let cuts = model.cuts(&shapes);
        assert_eq!(cuts.steps(), 4, "what nobody reads and what is always the same are no steps");
        let slice = cuts.slice(1, 3).expect("a slice");
        assert_eq!((slice.takes, slice.gives), (vec!["x".into()], vec!["bare".into()]));
        assert_eq!(slice.passes, ["left"], "an output of the whole, made before");
        let read = Model::read(slice.file.to_bytes()).expect("readable");
        let ops: Vec<_> = read.nodes().iter().map(|node| node.op()).collect();
        assert_eq!(ops, ["ConstantOfShape", "Mul", "Sub"]);
        let weights: Vec<_> = read.weights().iter().map(|weight| weight.name()).collect();
        assert_eq!(weights, ["b", "shape"]);
        assert_eq!(read.outputs()[0].expects(), "float32[2 x 4]");
        assert_eq!(read.inputs().next().expect("x").expects(), "float32[n x 4]", "as declared");
        assert_eq!(read.graph.infos.len(), 1);
        assert_eq!(read.opset(""), Some(17));
        let is_kept = |field: &bytes::Bytes| field.ends_with(b"kept");
        assert!(read.graph.others.iter().any(is_kept));
        assert!(read.fields.iter().any(|(_, field)| is_kept(field)));
        let note = read.slice_note().expect("readable").expect("there");
        assert_eq!((note.from, note.to, note.steps), (1, 3, 4));
        assert_eq!(note.passes, ["left"]);
    }

    #[test]
    fn a_slice_of_everything_is_the_model() {
        let model = branches().model();
        let shapes = shapes(&model);
        let slice = model.cuts(&shapes).slice(0, 4).expect("a slice");
        assert_eq!(slice.takes, ["x"]);
        assert_eq!(slice.gives, ["left", "sum"]);
        assert!(slice.passes.is_empty());
    }

    #[test]
    fn slices_of_slices_are_noted_once() {
        let model = branches().model();
        let whole = shapes(&model);
        let first = model.cuts(&whole).slice(0, 3).expect("a slice");
        let first = Model::read(first.file.to_bytes()).expect("readable");
        let inner = shapes(&first);
        let second = first.cuts(&inner).slice(0, 1).expect("a slice");
        let second = Model::read(second.file.to_bytes()).expect("readable");
        assert_eq!(second.metadata().count(), 1);
    }

    #[test]
    fn what_is_not_there_is_not_cut() {
        let model = branches().model();
        let shapes = shapes(&model);
        let cuts = model.cuts(&shapes);
        assert_eq!(cuts.slice(2, 2).expect_err("empty"), CutError::Empty);
        let beyond = CutError::NoSuchRange { from: 0, to: 5, last: 4 };
        assert_eq!(cuts.slice(0, 5).expect_err("four steps"), beyond);
        assert!(cuts.slice(3, 1).is_err());
    }

    #[test]
    fn nothing_is_cut_where_a_run_alone_can_tell_what_crosses() {
        let model = Build::new()
            .input("x", &[4])
            .node("Relu", &["x"], &["y"])
            .node("NonZero", &["y"], &["places"])
            .node("Cast", &["places"], &["z"])
            .output("z")
            .model();
        let shapes = model.shapes(&[]).expect("shapes");
        assert_eq!(shapes.missing().len(), 1);
        let cuts = model.cuts(&shapes);
        let at: Vec<_> = cuts.iter().map(|cut| cut.at).collect();
        assert_eq!(at, [1]);
        let why = cuts.slice(0, 2).expect_err("unknown").to_string();
        assert_eq!(
            why,
            "the model cannot be cut at 2: what `places` is can only be told when it runs"
        );
        assert!(cuts.slice(1, 3).is_ok());
    }

    #[test]
    fn what_a_graph_inside_reads_comes_with_its_node() {
        let then = Build::new().node("Add", &["y", "w"], &["sum"]).output("sum");
        let or = Build::new().node("Sub", &["y", "v"], &["rest"]).output("rest");
        let with = vec![With::Graph("then_branch", then), With::Graph("else_branch", or)];
        let model = Build::new()
            .input("x", &[2])
            .input("c", &[1])
            .weight("w", &[2])
            .weight("v", &[2])
            .node("Relu", &["x"], &["y"])
            .node_with("If", &["c"], &["z"], with)
            .output("z")
            .model();
        let shapes = model.shapes(&[]).expect("shapes");
        assert_eq!(shapes.of("z").expect("z").dims, [2]);
        let slice = model.cuts(&shapes).slice(1, 2).expect("a slice");
        assert_eq!(slice.takes, ["c", "y"]);
        let read = Model::read(slice.file.to_bytes()).expect("readable");
        assert_eq!(read.weights().len(), 2);
    }
}
