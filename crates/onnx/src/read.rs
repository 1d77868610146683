//! From bytes to nodes, attributes and values. Everything keeps the bytes it was read from, so that it can be written
//! again as it was, unknown fields included.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;

use crate::dtype::{DType, Dim};
use crate::error::{Path, ReadError};
use crate::limit::{MOST_MADE_BYTES, MOST_NESTED, MOST_RANK};
use crate::node::{Attr, Node};
use crate::tensor::{Named, Tensor};
use crate::wire::{Chunk, Field, Held, packed};

/// What reading may still take.
pub(crate) struct Budget {
    left: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { left: MOST_MADE_BYTES }
    }
}

impl Budget {
    /// One more `T`, and bytes beside it.
    pub(crate) fn take<T>(&mut self, beside: usize) -> Result<(), ReadError> {
        let bytes = size_of::<T>().saturating_add(beside);
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or(ReadError::TooMuch { most: MOST_MADE_BYTES })?;
        Ok(())
    }

    pub(crate) fn text(&mut self, chunk: &Chunk) -> Result<String, ReadError> {
        // A name is held twice: where it stands and where it is looked up.
        self.take::<[String; 2]>(chunk.bytes.len().saturating_mul(2))?;
        chunk.text().map(ToString::to_string)
    }
}

/// A graph as it stands in the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) weights: Vec<Tensor>,
    pub(crate) sparse: Vec<Named>,
    pub(crate) inputs: Vec<ValueInfo>,
    pub(crate) outputs: Vec<ValueInfo>,
    pub(crate) infos: Vec<ValueInfo>,
    pub(crate) annotations: Vec<Named>,
    /// Its name, its description and what is not understood, with their tags.
    pub(crate) others: Vec<Bytes>,
}

/// Numbers of ONNX's `GraphProto`.
pub(crate) mod graph {
    pub(crate) const NODE: u32 = 1;
    pub(crate) const INITIALIZER: u32 = 5;
    pub(crate) const INPUT: u32 = 11;
    pub(crate) const OUTPUT: u32 = 12;
    pub(crate) const VALUE_INFO: u32 = 13;
    pub(crate) const ANNOTATION: u32 = 14;
    pub(crate) const SPARSE: u32 = 15;
}

impl Graph {
    pub(crate) fn read(
        chunk: &Chunk,
        depth: usize,
        within: Option<&Path<'_>>,
        budget: &mut Budget,
    ) -> Result<Graph, ReadError> {
        if let Some(path) = within.filter(|_| depth > MOST_NESTED) {
            return Err(ReadError::TooDeep { place: path.place(), most: MOST_NESTED });
        }
        budget.take::<Graph>(0)?;
        let mut read = Graph::default();
        for field in chunk.fields() {
            let field = field?;
            match field.number {
                graph::NODE => {
                    let index = read.nodes.len();
                    read.nodes.push(Node::read(field.chunk()?, index, depth, within, budget)?);
                }
                graph::INITIALIZER => read.weights.push(Tensor::read(field.chunk()?, budget)?),
                graph::INPUT => read.inputs.push(ValueInfo::read(field.chunk()?, budget)?),
                graph::OUTPUT => read.outputs.push(ValueInfo::read(field.chunk()?, budget)?),
                graph::VALUE_INFO => read.infos.push(ValueInfo::read(field.chunk()?, budget)?),
                // The sparse tensor's name is its values'.
                graph::SPARSE => read.sparse.push(Named::read(field, &[1, 8], budget)?),
                graph::ANNOTATION => read.annotations.push(Named::read(field, &[1], budget)?),
                _ => {
                    budget.take::<Bytes>(0)?;
                    read.others.push(field.whole);
                }
            }
        }
        Ok(read)
    }
}

impl Named {
    /// The name is at the end of this path of fields.
    fn read(field: Field, path: &[u32], budget: &mut Budget) -> Result<Named, ReadError> {
        let whole = field.chunk()?;
        let mut found = Some(whole.clone());
        for number in path {
            let mut next = None;
            for field in found.iter().flat_map(Chunk::fields) {
                let field = field?;
                if field.number == *number {
                    next = Some(field.chunk()?);
                }
            }
            found = next;
        }
        budget.take::<Named>(0)?;
        let name = found.map_or(Ok(String::new()), |name| budget.text(&name))?;
        Ok(Named { name, bytes: whole.bytes })
    }
}

/// A value's name, and its type as the file declares it.
#[derive(Clone, Debug)]
pub struct ValueInfo {
    pub(crate) name: String,
    pub(crate) declared: Option<Declared>,
    pub(crate) bytes: Bytes,
}

/// A type as a file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// `None` for what is no tensor (a sequence, a map) or has a type this crate does not know.
    pub dtype: Option<DType>,
    /// `None` if the file does not even say how many.
    pub dims: Option<Vec<Dim>>,
}

impl ValueInfo {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn declared(&self) -> Option<&Declared> {
        self.declared.as_ref()
    }

    fn read(chunk: Chunk, budget: &mut Budget) -> Result<ValueInfo, ReadError> {
        budget.take::<ValueInfo>(0)?;
        let (mut name, mut declared) = (String::new(), None);
        for field in chunk.fields() {
            let field = field?;
            match field.number {
                1 => name = budget.text(&field.chunk()?)?,
                2 => declared = Some(Declared::read(&field.chunk()?, budget)?),
                _ => {}
            }
        }
        Ok(ValueInfo { name, declared, bytes: chunk.bytes })
    }
}

impl Declared {
    fn read(chunk: &Chunk, budget: &mut Budget) -> Result<Declared, ReadError> {
        let mut declared = Declared { dtype: None, dims: None };
        for field in chunk.fields() {
            let field = field?;
            if field.number != 1 {
                continue;
            }
            for field in field.chunk()?.fields() {
                let field = field?;
                match field.number {
                    1 => declared.dtype = DType::of(field.varint()?),
                    2 => declared.dims = Some(read_dims(&field.chunk()?, budget)?),
                    _ => {}
                }
            }
        }
        Ok(declared)
    }
}

fn read_dims(chunk: &Chunk, budget: &mut Budget) -> Result<Vec<Dim>, ReadError> {
    let mut dims = Vec::new();
    for field in chunk.fields() {
        let field = field?;
        if field.number != 1 {
            continue;
        }
        let dim = field.chunk()?;
        if dims.len() == MOST_RANK {
            return Err(ReadError::Wire { at: dim.at, what: "a shape with too many dimensions" });
        }
        budget.take::<Dim>(0)?;
        let mut read = Dim::Open(String::new());
        for field in dim.fields() {
            let field = field?;
            match field.number {
                // Some exporters write -1 for what is open.
                1 => {
                    let dim = field.varint()?;
                    let is_open = dim as i64 <= -1;
                    read = if is_open { Dim::Open(String::new()) } else { Dim::Known(dim) };
                }
                2 => read = Dim::Open(budget.text(&field.chunk()?)?),
                _ => {}
            }
        }
        dims.push(read);
    }
    Ok(dims)
}

impl Node {
    fn read(
        chunk: Chunk,
        index: usize,
        depth: usize,
        within: Option<&Path<'_>>,
        budget: &mut Budget,
    ) -> Result<Node, ReadError> {
        budget.take::<Node>(0)?;
        let mut node = Node { bytes: chunk.bytes.clone(), ..Node::default() };
        let mut attributes = Vec::new();
        for field in chunk.fields() {
            let field = field?;
            match field.number {
                1 => node.inputs.push(budget.text(&field.chunk()?)?),
                2 => node.outputs.push(budget.text(&field.chunk()?)?),
                3 => node.name = budget.text(&field.chunk()?)?,
                4 => node.op = budget.text(&field.chunk()?)?,
                5 => attributes.push(field.chunk()?),
                7 => node.domain = budget.text(&field.chunk()?)?,
                _ => {}
            }
        }
        // The default domain has two names.
        if node.domain == "ai.onnx" {
            node.domain.clear();
        }
        let path = Path { index, name: &node.name, op: &node.op, within };
        if node.op.is_empty() {
            let what = "it has no operator".to_string();
            return Err(ReadError::Node { place: path.place(), what });
        }
        let read = |chunk| read_attribute(&chunk, depth, &path, budget);
        let attributes: Result<_, _> = attributes.into_iter().map(read).collect();
        node.attributes = attributes?;
        Ok(node)
    }
}

/// Numbers of ONNX's `AttributeProto`, which are its types' too where there is one.
fn read_attribute(
    chunk: &Chunk,
    depth: usize,
    path: &Path<'_>,
    budget: &mut Budget,
) -> Result<(String, Attr), ReadError> {
    budget.take::<(String, Attr)>(0)?;
    let (mut name, mut kind, mut refers) = (String::new(), 0, false);
    let mut found: Vec<(u64, Attr)> = Vec::new();
    let (mut floats, mut ints, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for field in chunk.fields() {
        let field = field?;
        let held = match field.number {
            1 => {
                name = budget.text(&field.chunk()?)?;
                continue;
            }
            20 => {
                kind = field.varint()?;
                continue;
            }
            21 => {
                refers = true;
                continue;
            }
            2 => (1, Attr::Float(f32::from_le_bytes(field.fixed32()?))),
            3 => (2, Attr::Int(field.varint()? as i64)),
            4 => (3, Attr::Text(field.chunk()?.bytes)),
            5 => (4, Attr::Tensor(Box::new(Tensor::read(field.chunk()?, budget)?))),
            6 => {
                let graph = Graph::read(&field.chunk()?, depth + 1, Some(path), budget)?;
                (5, Attr::Graph(Box::new(graph)))
            }
            7 => {
                read_floats(&field, &mut floats, budget)?;
                continue;
            }
            8 => {
                read_ints(&field, &mut ints, budget)?;
                continue;
            }
            9 => {
                budget.take::<Bytes>(0)?;
                texts.push(field.chunk()?.bytes);
                continue;
            }
            _ => continue,
        };
        found.push(held);
    }
    if !floats.is_empty() || kind == 6 {
        found.push((6, Attr::Floats(floats)));
    }
    if !ints.is_empty() || kind == 7 {
        found.push((7, Attr::Ints(ints)));
    }
    if !texts.is_empty() || kind == 8 {
        found.push((8, Attr::Texts(texts)));
    }
    Ok((name, if refers { Attr::Other } else { of_kind(kind, found) }))
}

/// The one of these that an attribute of this type has.
fn of_kind(kind: u64, mut found: Vec<(u64, Attr)>) -> Attr {
    let attr = match kind {
        // Files of old leave it to the reader.
        0 => found.pop(),
        kind => found.into_iter().rev().find(|(of, _)| *of == kind),
    };
    // What is zero may be left out.
    match (attr, kind) {
        (Some((_, attr)), _) => attr,
        (None, 1) => Attr::Float(0.0),
        (None, 2) => Attr::Int(0),
        (None, 3) => Attr::Text(Bytes::new()),
        (None, _) => Attr::Other,
    }
}

fn read_floats(field: &Field, to: &mut Vec<f32>, budget: &mut Budget) -> Result<(), ReadError> {
    match &field.held {
        Held::Bytes(list) => {
            budget.take::<()>(list.bytes.len())?;
            let (all, _) = list.bytes.as_chunks::<4>();
            to.extend(all.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        }
        Held::Varint(_) | Held::Fixed32(_) | Held::Fixed64 => {
            budget.take::<f32>(0)?;
            to.push(f32::from_le_bytes(field.fixed32()?));
        }
    }
    Ok(())
}

fn read_ints(field: &Field, to: &mut Vec<i64>, budget: &mut Budget) -> Result<(), ReadError> {
    match &field.held {
        Held::Bytes(list) => {
            for number in packed(list) {
                budget.take::<i64>(0)?;
                to.push(number? as i64);
            }
        }
        Held::Varint(_) | Held::Fixed32(_) | Held::Fixed64 => {
            budget.take::<i64>(0)?;
            to.push(field.varint()? as i64);
        }
    }
    Ok(())
}
