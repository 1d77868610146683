//! Small models for tests, written as ONNX's files are.

use shoal_kinds::onnx::tensor::{pack, unpack};
use shoal_kinds::onnx::{Element, Head, Tensor};
use shoal_onnx::DType;
use shoal_protocol::Failure;

use super::{Model, Threads, work_of};

#[derive(Clone, Copy)]
pub(super) enum With<'a> {
    Int(&'a str, i64),
    Ints(&'a str, &'a [i64]),
    Text(&'a str, &'a str),
}

/// A graph under way. An open side is `-1`.
pub(super) struct Graph(Vec<u8>);

impl Graph {
    /// With this input.
    pub(super) fn new(name: &str, dtype: DType, dims: &[i64]) -> Graph {
        Graph::inner().value(11, name, dtype, Some(dims))
    }

    /// One for a branch of another.
    pub(super) fn inner() -> Graph {
        let mut graph = Vec::new();
        bytes(&mut graph, 2, b"graph");
        Graph(graph)
    }

    /// Of any shape.
    pub(super) fn output(self, name: &str, dtype: DType) -> Graph {
        self.value(12, name, dtype, None)
    }

    /// What the file notes of a value in between.
    pub(super) fn info(self, name: &str, dtype: DType, dims: &[i64]) -> Graph {
        self.value(13, name, dtype, Some(dims))
    }

    fn value(mut self, field: u64, name: &str, dtype: DType, dims: Option<&[i64]>) -> Graph {
        let (mut tensor, mut kind, mut info) = (Vec::new(), Vec::new(), Vec::new());
        number(&mut tensor, 1, dtype.number());
        if let Some(dims) = dims {
            let mut shape = Vec::new();
            for dim in dims {
                let mut one = Vec::new();
                match u64::try_from(*dim) {
                    Ok(side) => number(&mut one, 1, side),
                    Err(_) => bytes(&mut one, 2, b"n"),
                }
                bytes(&mut shape, 1, &one);
            }
            bytes(&mut tensor, 2, &shape);
        }
        bytes(&mut kind, 1, &tensor);
        bytes(&mut info, 1, name.as_bytes());
        bytes(&mut info, 2, &kind);
        bytes(&mut self.0, field, &info);
        self
    }

    pub(super) fn ints(self, name: &str, ints: &[i64]) -> Graph {
        let raw: Vec<u8> = ints.iter().flat_map(|int| int.to_le_bytes()).collect();
        self.weight(name, DType::Int64, &[ints.len() as u64], &raw)
    }

    /// Ones.
    pub(super) fn floats(self, name: &str, dims: &[u64]) -> Graph {
        let raw = 1f32.to_le_bytes().repeat(dims.iter().product::<u64>() as usize);
        self.weight(name, DType::Float32, dims, &raw)
    }

    fn weight(mut self, name: &str, dtype: DType, dims: &[u64], raw: &[u8]) -> Graph {
        let mut tensor = Vec::new();
        dims.iter().for_each(|dim| number(&mut tensor, 1, *dim));
        number(&mut tensor, 2, dtype.number());
        bytes(&mut tensor, 8, name.as_bytes());
        bytes(&mut tensor, 9, raw);
        bytes(&mut self.0, 5, &tensor);
        self
    }

    pub(super) fn node(self, op: &str, inputs: &[&str], output: &str, with: &[With<'_>]) -> Graph {
        let attributes = with.iter().map(|with| {
            let mut one = Vec::new();
            match with {
                With::Int(name, int) => {
                    bytes(&mut one, 1, name.as_bytes());
                    number(&mut one, 3, *int as u64);
                    number(&mut one, 20, 2);
                }
                With::Ints(name, ints) => {
                    bytes(&mut one, 1, name.as_bytes());
                    ints.iter().for_each(|int| number(&mut one, 8, *int as u64));
                    number(&mut one, 20, 7);
                }
                With::Text(name, text) => {
                    bytes(&mut one, 1, name.as_bytes());
                    bytes(&mut one, 4, text.as_bytes());
                    number(&mut one, 20, 3);
                }
            }
            one
        });
        self.node_of(op, inputs, output, attributes.collect())
    }

    /// An `If` whose branches are both this.
    pub(super) fn branches(self, input: &str, inner: Graph, output: &str) -> Graph {
        let attributes = ["then_branch", "else_branch"].map(|name| {
            let mut one = Vec::new();
            bytes(&mut one, 1, name.as_bytes());
            bytes(&mut one, 6, &inner.0);
            number(&mut one, 20, 5);
            one
        });
        self.node_of("If", &[input], output, attributes.into())
    }

    fn node_of(mut self, op: &str, inputs: &[&str], output: &str, with: Vec<Vec<u8>>) -> Graph {
        let mut node = Vec::new();
        inputs.iter().for_each(|name| bytes(&mut node, 1, name.as_bytes()));
        bytes(&mut node, 2, output.as_bytes());
        bytes(&mut node, 4, op.as_bytes());
        with.iter().for_each(|one| bytes(&mut node, 5, one));
        bytes(&mut self.0, 1, &node);
        self
    }

    pub(super) fn file(self) -> Vec<u8> {
        let (mut opset, mut file) = (Vec::new(), Vec::new());
        number(&mut opset, 2, 17);
        number(&mut file, 1, 8);
        bytes(&mut file, 8, &opset);
        bytes(&mut file, 7, &self.0);
        file
    }
}

pub(super) fn load(file: Vec<u8>) -> Result<Model, Failure> {
    let work = work_of(&file)?;
    Model::load(file, &work, &Threads::new(1))
}

pub(super) fn int16s(numbers: &[i16]) -> (Element, Vec<u8>) {
    (Element::I16, numbers.iter().flat_map(|n| n.to_le_bytes()).collect())
}

pub(super) fn uint32s(numbers: &[u32]) -> (Element, Vec<u8>) {
    (Element::U32, numbers.iter().flat_map(|n| n.to_le_bytes()).collect())
}

/// What the first output is for a row of numbers as `x`.
pub(super) fn asked(file: Vec<u8>, (element, row): &(Element, Vec<u8>)) -> Vec<u8> {
    let work = work_of(&file).expect("its inputs");
    let model = Model::load(file, &work, &Threads::new(1)).expect("it loads");
    let dims = vec![(row.len() / element.bytes()) as u64];
    let head = Head { name: "x".into(), element: *element, dims };
    let answer = model.run(&work, &pack(&[Tensor { head, bytes: row }])).expect("an answer");
    unpack(&answer).expect("tensors")[0].bytes.to_vec()
}

fn bytes(to: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint(to, field << 3 | 2);
    varint(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

fn number(to: &mut Vec<u8>, field: u64, number: u64) {
    varint(to, field << 3);
    varint(to, number);
}

fn varint(to: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}
