//! A node while it is changed, and what comes to stand before and behind it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::dtype::{DType, TensorType};
use crate::model::Model;
use crate::node::Node;
use crate::read::graph;
use crate::wire::{Chunk, Writer};

/// Numbers of ONNX's `NodeProto`.
mod field {
    pub(super) const INPUT: u32 = 1;
    pub(super) const OUTPUT: u32 = 2;
    pub(super) const OPERATOR: u32 = 4;
    pub(super) const ATTRIBUTE: u32 = 5;
}

/// What an attribute is set to.
pub(super) enum Set {
    Int(i64),
    Ints(Vec<i64>),
}

pub(super) struct Draft<'a> {
    pub(super) node: &'a Node,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    dropped: BTreeSet<&'static str>,
    set: BTreeMap<&'static str, Set>,
    before: Vec<Writer>,
    behind: Vec<Writer>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(node: &'a Node) -> Draft<'a> {
        Draft {
            node,
            inputs: node.inputs.clone(),
            outputs: node.outputs.clone(),
            dropped: BTreeSet::new(),
            set: BTreeMap::new(),
            before: Vec::new(),
            behind: Vec::new(),
        }
    }

    pub(super) fn is_changed(&self) -> bool {
        !self.dropped.is_empty()
            || !self.set.is_empty()
            || self.inputs != self.node.inputs
            || self.outputs != self.node.outputs
    }

    /// The name of an input that is not left out.
    pub(super) fn input(&self, at: usize) -> Option<&str> {
        self.inputs.get(at).map(String::as_str).filter(|name| !name.is_empty())
    }

    pub(super) fn drop_attribute(&mut self, name: &'static str) {
        if self.node.attribute(name).is_some() {
            self.dropped.insert(name);
        }
    }

    pub(super) fn set(&mut self, name: &'static str, ints: Vec<i64>) {
        self.set.insert(name, Set::Ints(ints));
    }

    /// Another node that runs before this one.
    pub(super) fn before(&mut self, op: &str, io: (&[&str], &str), with: &[(&str, Set)]) {
        self.before.push(other(op, io, with));
    }

    /// Another node that makes this one's first output of what it makes now, which has this name.
    pub(super) fn behind(&mut self, op: &str, made: &str, inputs: &[&str], with: &[(&str, Set)]) {
        let last = core::mem::replace(&mut self.outputs[0], made.into());
        // What was put behind before reads what this one makes.
        self.behind.insert(0, other(op, (inputs, &last), with));
    }

    pub(super) fn write(self, writer: &mut Writer) {
        if !self.is_changed() {
            writer.bytes(graph::NODE, &self.node.bytes);
            return;
        }
        self.before.into_iter().for_each(|node| writer.message(graph::NODE, node));
        let mut own = Writer::default();
        self.inputs.iter().for_each(|name| own.text(field::INPUT, name));
        self.outputs.iter().for_each(|name| own.text(field::OUTPUT, name));
        let whole = Chunk { bytes: self.node.bytes.clone(), at: 0 };
        // It was read before, so that there is no error.
        for one in whole.fields().map_while(Result::ok) {
            let is_said = match one.number {
                field::INPUT | field::OUTPUT => true,
                field::ATTRIBUTE => one.clone().chunk().is_ok_and(|attribute| {
                    let is = |name: &str| crate::model::has_key(&attribute, name);
                    self.dropped.iter().copied().any(is) || self.set.keys().copied().any(is)
                }),
                _ => false,
            };
            if !is_said {
                own.whole(&one.whole);
            }
        }
        self.set.iter().for_each(|(name, set)| own.message(field::ATTRIBUTE, attribute(name, set)));
        writer.message(graph::NODE, own);
        self.behind.into_iter().for_each(|node| writer.message(graph::NODE, node));
    }
}

fn other(op: &str, (inputs, output): (&[&str], &str), with: &[(&str, Set)]) -> Writer {
    let mut node = Writer::default();
    inputs.iter().for_each(|name| node.text(field::INPUT, name));
    node.text(field::OUTPUT, output);
    node.text(field::OPERATOR, op);
    with.iter().for_each(|(name, set)| node.message(field::ATTRIBUTE, attribute(name, set)));
    node
}

/// ONNX's `AttributeProto`.
fn attribute(name: &str, set: &Set) -> Writer {
    let mut one = Writer::default();
    one.text(1, name);
    match set {
        Set::Int(int) => {
            one.varint(3, *int as u64);
            one.varint(20, 2);
        }
        Set::Ints(ints) => {
            ints.iter().for_each(|int| one.varint(8, *int as u64));
            one.varint(20, 7);
        }
    }
    one
}

/// Names for new values, and those of them that are constant.
pub(super) struct Names<'a> {
    model: &'a Model,
    given: usize,
    constants: Vec<Writer>,
}

impl<'a> Names<'a> {
    pub(super) fn new(model: &'a Model) -> Names<'a> {
        Names { model, given: 0, constants: Vec::new() }
    }

    /// A name that no value has.
    pub(super) fn fresh(&mut self) -> String {
        loop {
            let name = format!("shoal.{}", self.given);
            self.given += 1;
            if !self.model.made.contains_key(&name) {
                return name;
            }
        }
    }

    /// A constant row of whole numbers, or one alone.
    pub(super) fn ints(&mut self, dims: &[u64], ints: &[i64]) -> String {
        let raw = ints.iter().flat_map(|int| int.to_le_bytes()).collect();
        self.constant(&TensorType::new(DType::Int64, dims), raw)
    }

    pub(super) fn floats(&mut self, floats: &[f32]) -> String {
        let raw = floats.iter().flat_map(|float| float.to_le_bytes()).collect();
        self.constant(&TensorType::new(DType::Float32, [floats.len() as u64]), raw)
    }

    fn constant(&mut self, ty: &TensorType, raw: Vec<u8>) -> String {
        let name = self.fresh();
        let mut tensor = Writer::default();
        ty.dims.iter().for_each(|dim| tensor.varint(1, *dim));
        tensor.varint(2, ty.dtype.number());
        tensor.text(8, &name);
        tensor.bytes(9, &raw.into());
        self.constants.push(tensor);
        name
    }

    pub(super) fn write(self, writer: &mut Writer) {
        self.constants.into_iter().for_each(|one| writer.message(graph::INITIALIZER, one));
    }
}
