//! A model: its graph, checked, and all that stands around it in the file.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

use crate::check;
use crate::error::{Path, Place, ReadError};
use crate::node::Node;
use crate::read::{Budget, Graph, ValueInfo};
use crate::tensor::{Tensor, read_pair};
use crate::wire::{Chunk, Writer};

/// Numbers of ONNX's `ModelProto`.
pub(crate) mod field {
    pub(crate) const IR_VERSION: u32 = 1;
    pub(crate) const GRAPH: u32 = 7;
    pub(crate) const OPSET: u32 = 8;
    pub(crate) const METADATA: u32 = 14;
    pub(crate) const TRAINING: u32 = 20;
    pub(crate) const FUNCTION: u32 = 25;
}

/// An ONNX model that was read and checked.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) ir_version: u64,
    pub(crate) opsets: BTreeMap<String, u64>,
    pub(crate) metadata: Vec<(String, String)>,
    /// Operators that the model itself defines, as (domain, name).
    pub(crate) functions: BTreeSet<(String, String)>,
    pub(crate) graph: Graph,
    /// Who makes which value.
    pub(crate) made: BTreeMap<String, Made>,
    /// The file's fields in their order, with their tags. The graph has its place and no bytes.
    pub(crate) fields: Vec<(u32, Bytes)>,
    pub(crate) bytes: Bytes,
}

/// Who makes a value of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// The one who asks.
    Input(usize),
    /// It is in the file.
    Weight(usize),
    Sparse(usize),
    Node(usize),
}

impl Model {
    /// Reads a file and checks its graph. The model shares the file's bytes.
    pub fn read(bytes: impl Into<Bytes>) -> Result<Model, ReadError> {
        let bytes = bytes.into();
        let mut budget = Budget::default();
        let mut model = Model {
            ir_version: 0,
            opsets: BTreeMap::new(),
            metadata: Vec::new(),
            functions: BTreeSet::new(),
            graph: Graph::default(),
            made: BTreeMap::new(),
            fields: Vec::new(),
            bytes: bytes.clone(),
        };
        let mut graph = None;
        for field in (Chunk { bytes, at: 0 }).fields() {
            let field = field?;
            budget.take::<(u32, Bytes)>(0)?;
            let whole =
                if field.number == field::GRAPH { Bytes::new() } else { field.whole.clone() };
            model.fields.push((field.number, whole));
            match field.number {
                field::IR_VERSION => model.ir_version = field.varint()?,
                field::GRAPH if graph.is_some() => {
                    return Err(ReadError::TwoGraphs { at: field.at });
                }
                field::GRAPH => graph = Some(Graph::read(&field.chunk()?, 0, None, &mut budget)?),
                field::OPSET => {
                    let (domain, version) = read_opset(&field.chunk()?, &mut budget)?;
                    model.opsets.insert(domain, version);
                }
                field::METADATA => {
                    model.metadata.push(read_pair(&field.chunk()?, &mut budget)?);
                }
                field::FUNCTION => {
                    model.functions.insert(read_function(&field.chunk()?, &mut budget)?);
                }
                _ => {}
            }
        }
        model.graph = graph.ok_or(ReadError::NoGraph)?;
        if model.opsets.is_empty() {
            return Err(ReadError::NoOpset);
        }
        model.made = check::graph(&mut model.graph)?;
        Ok(model)
    }

    /// The file again.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What must be given to run it. Inputs for which the file has a value are not among them.
    pub fn inputs(&self) -> impl Iterator<Item = &ValueInfo> {
        self.graph.inputs.iter().filter(|input| self.is_input(&input.name))
    }

    pub fn outputs(&self) -> &[ValueInfo] {
        &self.graph.outputs
    }

    /// In an order in which they can run.
    pub fn nodes(&self) -> &[Node] {
        &self.graph.nodes
    }

    /// Tensors of the file that nodes read by name.
    pub fn weights(&self) -> &[Tensor] {
        &self.graph.weights
    }

    /// Files beside this one that have some of its weights.
    pub fn external(&self) -> BTreeSet<&str> {
        let nodes = self.graph.nodes.iter().flat_map(Node::tensors);
        self.graph.weights.iter().chain(nodes).filter_map(Tensor::external).collect()
    }

    /// Every operator and how often it is there, those in graphs of nodes included. Operators of other domains are
    /// named `domain.Operator`.
    pub fn operators(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        count_operators(&self.graph, &mut counts);
        counts
    }

    /// All nodes with their places, those in graphs of nodes included.
    pub fn places(&self) -> Vec<(Place, &Node)> {
        let mut places = Vec::new();
        find_places(&self.graph, None, &mut places);
        places
    }

    /// Nodes in the longest row in which each reads what the one before made. Those in graphs of a node count as if
    /// they stood in that row, one after the other.
    pub fn longest_row(&self) -> usize {
        let mut made = BTreeMap::new();
        for node in &self.graph.nodes {
            let before = node.reads().filter_map(|name| made.get(name)).max().copied().unwrap_or(0);
            let inside: usize = node.graphs().map(count_nodes).sum();
            made.extend(node.makes().map(|name| (name, before + 1 + inside)));
        }
        made.into_values().max().unwrap_or(0)
    }

    pub fn ir_version(&self) -> u64 {
        self.ir_version
    }

    /// The version of a domain's operators; ONNX's own domain is the empty one.
    pub fn opset(&self, domain: &str) -> Option<u64> {
        self.opsets.get(domain).copied()
    }

    /// What the file says of itself.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        self.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub(crate) fn is_input(&self, name: &str) -> bool {
        matches!(self.made.get(name), Some(Made::Input(_)))
    }
}

pub(crate) fn pair(key: &str, value: &str) -> Writer {
    let mut pair = Writer::default();
    pair.text(1, key);
    pair.text(2, value);
    pair
}

pub(crate) fn has_key(pair: &Chunk, key: &str) -> bool {
    let keys = pair.fields().map_while(Result::ok).filter(|field| field.number == 1);
    keys.last().and_then(|field| field.chunk().ok()).is_some_and(|own| own.bytes == key.as_bytes())
}

fn count_operators(graph: &Graph, counts: &mut BTreeMap<String, usize>) {
    for node in &graph.nodes {
        let mut name = node.domain.clone();
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(&node.op);
        *counts.entry(name).or_default() += 1;
        node.graphs().for_each(|graph| count_operators(graph, counts));
    }
}

fn find_places<'a>(
    graph: &'a Graph,
    within: Option<&Path<'_>>,
    places: &mut Vec<(Place, &'a Node)>,
) {
    for (index, node) in graph.nodes.iter().enumerate() {
        let path = Path { index, name: &node.name, op: &node.op, within };
        places.push((path.place(), node));
        node.graphs().for_each(|graph| find_places(graph, Some(&path), places));
    }
}

fn count_nodes(graph: &Graph) -> usize {
    let inside = graph.nodes.iter().flat_map(Node::graphs).map(count_nodes);
    graph.nodes.len() + inside.sum::<usize>()
}

fn read_opset(chunk: &Chunk, budget: &mut Budget) -> Result<(String, u64), ReadError> {
    let (mut domain, mut version) = (String::new(), 0);
    for field in chunk.fields() {
        let field = field?;
        match field.number {
            1 => domain = budget.text(&field.chunk()?)?,
            2 => version = field.varint()?,
            _ => {}
        }
    }
    // The default domain has two names.
    if domain == "ai.onnx" {
        domain.clear();
    }
    Ok((domain, version))
}

/// ONNX's `FunctionProto`: only which operator it is.
fn read_function(chunk: &Chunk, budget: &mut Budget) -> Result<(String, String), ReadError> {
    let (mut domain, mut name) = (String::new(), String::new());
    for field in chunk.fields() {
        let field = field?;
        match field.number {
            1 => name = budget.text(&field.chunk()?)?,
            10 => domain = budget.text(&field.chunk()?)?,
            _ => {}
        }
    }
    Ok((domain, name))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use crate::testing::{Build, With};

    #[test]
    fn the_longest_row_counts_what_is_read_from_around_a_graph() {
        let wide = Build::new()
            .input("x", &[2])
            .node("Abs", &["x"], &["a"])
            .node("Neg", &["x"], &["b"])
            .node("Add", &["a", "b"], &["y"])
            .output("y");
        assert_eq!(wide.model().longest_row(), 2);
        let inner =
            Build::new().node("Abs", &["b"], &["r"]).node("Neg", &["r"], &["s"]).output("s");
        let deep = Build::new()
            .input("x", &[2])
            .input("c", &[1])
            .node("Abs", &["x"], &["a"])
            .node("Neg", &["a"], &["b"])
            .node_with("If", &["c"], &["y"], vec![With::Graph("then_branch", inner)])
            .node("Relu", &["y"], &["z"])
            .output("z");
        assert_eq!(deep.model().longest_row(), 6);
    }
}
