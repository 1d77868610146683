//! A node and its attributes.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

use crate::read::Graph;
use crate::tensor::Tensor;

/// One application of an operator.
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub(crate) name: String,
    pub(crate) op: String,
    /// Empty for ONNX's own operators.
    pub(crate) domain: String,
    /// An empty name stands for an input that is left out.
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) attributes: Vec<(String, Attr)>,
    /// What the graphs in its attributes read of the graphs around them.
    pub(crate) captures: Vec<String>,
    /// As it stands in the file.
    pub(crate) bytes: Bytes,
}

#[derive(Clone, Debug)]
pub(crate) enum Attr {
    Float(f32),
    Int(i64),
    Text(Bytes),
    Tensor(Box<Tensor>),
    Graph(Box<Graph>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Texts(Vec<Bytes>),
    /// What nothing here asks for: types, sparse tensors, lists of graphs.
    Other,
}

impl Node {
    /// May be empty.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn op(&self) -> &str {
        &self.op
    }

    /// Empty for ONNX's own operators.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Names of values; an empty one is left out.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// Names of values; an empty one is left out.
    pub fn outputs(&self) -> &[String] {
        &self.outputs
    }

    /// An attribute that is a whole number.
    pub fn int(&self, name: &str) -> Option<i64> {
        if let Some(Attr::Int(int)) = self.attribute(name) { Some(*int) } else { None }
    }

    /// An attribute that is a list of whole numbers.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        if let Some(Attr::Ints(ints)) = self.attribute(name) { Some(ints) } else { None }
    }

    /// An attribute that is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        let Some(Attr::Text(text)) = self.attribute(name) else { return None };
        core::str::from_utf8(text).ok()
    }

    /// Whether it says something by this name.
    pub fn has(&self, attribute: &str) -> bool {
        self.attribute(attribute).is_some()
    }

    /// Nodes of the graphs in its attributes, those inside them included.
    pub fn inside(&self) -> usize {
        let nodes = self.graphs().flat_map(|graph| &graph.nodes);
        nodes.map(|node| 1 + node.inside()).sum()
    }

    /// All it reads: its inputs, and what the graphs inside it read.
    pub fn reads(&self) -> impl Iterator<Item = &str> {
        let all = self.inputs.iter().chain(&self.captures).map(String::as_str);
        all.filter(|name| !name.is_empty())
    }

    /// What it makes that has a name.
    pub fn makes(&self) -> impl Iterator<Item = &str> {
        self.outputs.iter().map(String::as_str).filter(|name| !name.is_empty())
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&Attr> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, attr)| attr)
    }

    /// Tensors in attributes are weights like others: the exporters of some frameworks put all of them there.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.attributes.iter().filter_map(|(_, attr)| match attr {
            Attr::Tensor(tensor) => Some(&**tensor),
            Attr::Float(_) | Attr::Int(_) | Attr::Text(_) | Attr::Graph(_) => None,
            Attr::Floats(_) | Attr::Ints(_) | Attr::Texts(_) | Attr::Other => None,
        })
    }

    pub(crate) fn graphs(&self) -> impl Iterator<Item = &Graph> {
        self.attributes.iter().filter_map(|(_, attr)| match attr {
            Attr::Graph(graph) => Some(&**graph),
            Attr::Float(_) | Attr::Int(_) | Attr::Text(_) | Attr::Tensor(_) => None,
            Attr::Floats(_) | Attr::Ints(_) | Attr::Texts(_) | Attr::Other => None,
        })
    }

    /// Draws numbers: running it twice gives two answers.
    pub(crate) fn draws(&self) -> bool {
        let drawing = [
            "RandomNormal",
            "RandomUniform",
            "RandomNormalLike",
            "RandomUniformLike",
            "Bernoulli",
            "Multinomial",
        ];
        drawing.contains(&self.op.as_str())
            || self.graphs().any(|graph| graph.nodes.iter().any(Node::draws))
    }
}
