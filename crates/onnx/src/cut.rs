//! Where a graph can be cut in two, and what crosses there.
//!
//! Nodes keep the file's order, in which every node stands behind those it reads from. Two kinds of nodes are no
//! steps of it: those that nothing depends on, and those that depend on no input. The latter are weights: each slice
//! has those it needs.

use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::cost::Cost;
use crate::dtype::TensorType;
use crate::error::{CutError, Shown};
use crate::model::{Made, Model};
use crate::shape::Shapes;

/// A model laid out as a row of steps, for given inputs. Position `p` is before step `p`; position 0 has the model's
/// inputs, the last one its outputs.
#[derive(Clone, Debug)]
pub struct Cuts<'a> {
    pub(crate) model: &'a Model,
    pub(crate) shapes: &'a Shapes,
    /// Nodes in their order.
    pub(crate) steps: Vec<usize>,
    /// Of every node, whether it is a weight.
    pub(crate) constant: Vec<bool>,
    pub(crate) costs: Vec<Cost>,
    /// In the order in which they come to be.
    pub(crate) flows: Vec<Flow<'a>>,
    /// By position.
    pub(crate) tolls: Vec<Toll>,
}

/// A value that is made at one step and read at others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow<'a> {
    pub(crate) name: &'a str,
    /// It crosses these positions, both included.
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// What crosses a position.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Toll {
    pub(crate) tensors: usize,
    pub(crate) bytes: u64,
    /// Values of which only a run can tell what they are.
    unknown: usize,
}

/// A place to cut a model in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    pub at: usize,
    /// How many cross.
    pub tensors: usize,
    pub bytes: u64,
}

/// A tensor that crosses a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing<'a> {
    pub name: &'a str,
    /// `None` for what only a run can tell.
    pub ty: Option<&'a TensorType>,
}

impl Model {
    /// Lays the model out for cutting, with these shapes.
    pub fn cuts<'a>(&'a self, shapes: &'a Shapes) -> Cuts<'a> {
        let steps = self.steps();
        let constant = self.constant();
        let is_weight = |name: &str| match self.made.get(name) {
            Some(Made::Input(_)) => false,
            Some(Made::Weight(_) | Made::Sparse(_)) | None => true,
            Some(Made::Node(node)) => constant[*node],
        };
        let cost = |at: &usize| Cost::of(&self.graph.nodes[*at], shapes, is_weight);
        let costs = steps.iter().map(cost).collect();
        let flows = flows(self, &steps, is_weight);
        let tolls = tolls(&flows, shapes, steps.len());
        Cuts { model: self, shapes, steps, constant, costs, flows, tolls }
    }

    /// Nodes that depend on inputs and that outputs depend on, in their order.
    pub(crate) fn steps(&self) -> Vec<usize> {
        let constant = self.constant();
        let nodes = &self.graph.nodes;
        let mut wanted: BTreeSet<&str> =
            self.graph.outputs.iter().map(|output| output.name.as_str()).collect();
        let mut steps = Vec::new();
        for at in (0..nodes.len()).rev() {
            if nodes[at].makes().any(|name| wanted.contains(name)) {
                wanted.extend(nodes[at].reads());
                if !constant[at] {
                    steps.push(at);
                }
            }
        }
        steps.reverse();
        steps
    }

    /// For each node, whether it always makes the same.
    pub(crate) fn constant(&self) -> Vec<bool> {
        let mut constant: Vec<bool> = Vec::with_capacity(self.graph.nodes.len());
        for node in &self.graph.nodes {
            let is_same = node.reads().all(|name| match self.made.get(name) {
                Some(Made::Weight(_) | Made::Sparse(_)) => true,
                Some(Made::Node(maker)) => constant.get(*maker).copied().unwrap_or(false),
                Some(Made::Input(_)) | None => false,
            });
            constant.push(is_same && !node.draws());
        }
        constant
    }
}

impl<'a> Cuts<'a> {
    /// How many steps there are. Positions go from 0 to this.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// The node of a step, as its place in [`Model::nodes`].
    pub fn node(&self, step: usize) -> Option<usize> {
        self.steps.get(step).copied()
    }

    pub fn cost(&self, step: usize) -> Option<&Cost> {
        self.costs.get(step)
    }

    /// Every place between the ends where the model can be cut.
    pub fn iter(&self) -> impl Iterator<Item = Cut> {
        (1..self.steps.len()).filter_map(|at| self.cut(at))
    }

    /// The cut at a position, or why there is none.
    pub fn at(&self, at: usize) -> Result<Cut, CutError> {
        let last = self.steps.len();
        if at > last {
            return Err(CutError::NoSuchRange { from: at, to: at, last });
        }
        self.cut(at).ok_or_else(|| {
            let unknown = self.crossing(at).into_iter().find(|one| one.ty.is_none());
            let name = unknown.map_or("", |one| one.name);
            let why = format!("what `{}` is can only be told when it runs", Shown(name));
            CutError::NotThere { at, why }
        })
    }

    pub(crate) fn cut(&self, at: usize) -> Option<Cut> {
        let toll = self.tolls.get(at)?;
        // At the ends, whatever the model itself takes and gives.
        let is_end = at == 0 || at == self.steps.len();
        let cut = Cut { at, tensors: toll.tensors, bytes: toll.bytes };
        (is_end || toll.unknown == 0).then_some(cut)
    }

    /// The tensors that cross a position: whatever is made before it and read behind it, the model's outputs that are
    /// made before it included.
    pub fn crossing(&self, at: usize) -> Vec<Crossing<'a>> {
        let here = self.flows.iter().filter(|flow| flow.first <= at && at <= flow.last);
        here.map(|flow| Crossing { name: flow.name, ty: self.shapes.of(flow.name) }).collect()
    }
}

fn flows<'a>(model: &'a Model, steps: &[usize], is_weight: impl Fn(&str) -> bool) -> Vec<Flow<'a>> {
    let mut flows: Vec<Flow<'a>> = Vec::new();
    let mut places: BTreeMap<&'a str, usize> = BTreeMap::new();
    let begin = |flows: &mut Vec<Flow<'a>>, places: &mut BTreeMap<&'a str, usize>, name, first| {
        places.insert(name, flows.len());
        // Read by nobody yet.
        flows.push(Flow { name, first, last: 0 });
    };
    let mut read: Vec<bool> = Vec::new();
    for input in model.inputs() {
        begin(&mut flows, &mut places, input.name.as_str(), 0);
        read.push(false);
    }
    for (step, at) in steps.iter().enumerate() {
        let node = &model.graph.nodes[*at];
        for name in node.reads().filter(|name| !is_weight(name)) {
            if let Some(place) = places.get(name) {
                flows[*place].last = step;
                read[*place] = true;
            }
        }
        for name in node.makes() {
            begin(&mut flows, &mut places, name, step + 1);
            read.push(false);
        }
    }
    for output in &model.graph.outputs {
        if let Some(place) = places.get(output.name.as_str()) {
            flows[*place].last = steps.len();
            read[*place] = true;
        }
    }
    let mut is_read = read.into_iter();
    flows.retain(|_| is_read.next().unwrap_or(false));
    flows
}

fn tolls(flows: &[Flow<'_>], shapes: &Shapes, steps: usize) -> Vec<Toll> {
    // What begins and what ends at each position, then summed up.
    let mut begins = vec![Toll::default(); steps + 2];
    let mut ends = begins.clone();
    for flow in flows {
        let ty = shapes.of(flow.name);
        for toll in [&mut begins[flow.first], &mut ends[flow.last + 1]] {
            toll.tensors += 1;
            toll.bytes = toll.bytes.saturating_add(ty.map_or(0, TensorType::bytes));
            toll.unknown += usize::from(ty.is_none());
        }
    }
    let mut now = Toll::default();
    let each = begins.iter().zip(&ends).take(steps + 1).map(|(begin, end)| {
        now.tensors = (now.tensors + begin.tensors).saturating_sub(end.tensors);
        now.bytes = now.bytes.saturating_add(begin.bytes).saturating_sub(end.bytes);
        now.unknown = (now.unknown + begin.unknown).saturating_sub(end.unknown);
        now
    });
    each.collect()
}

/// Names in their order.
pub(crate) fn names(crossing: &[Crossing<'_>]) -> Vec<String> {
    crossing.iter().map(|one| one.name.into()).collect()
}
