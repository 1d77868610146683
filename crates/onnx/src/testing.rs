//! Small models for tests, written as one reads them.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

use crate::dtype::{DType, TensorType};
use crate::model::Model;
use crate::read::graph;
use crate::wire::Writer;

pub(crate) enum With<'a> {
    Int(&'a str, i64),
    Ints(&'a str, &'a [i64]),
    Text(&'a str, &'a str),
    Graph(&'a str, Build),
}

/// A graph. An open dimension is `-1`.
#[derive(Default)]
pub(crate) struct Build {
    graph: Writer,
    around: Writer,
}

impl Build {
    pub(crate) fn new() -> Build {
        let mut build = Build::default();
        build.graph.text(2, "graph");
        build
    }

    pub(crate) fn input(self, name: &str, dims: &[i64]) -> Build {
        self.value(graph::INPUT, name, DType::Float32, dims)
    }

    pub(crate) fn input_of(self, name: &str, dtype: DType, dims: &[i64]) -> Build {
        self.value(graph::INPUT, name, dtype, dims)
    }

    /// Of any shape.
    pub(crate) fn info_of(self, name: &str, dtype: DType) -> Build {
        self.value(graph::VALUE_INFO, name, dtype, &[])
    }

    pub(crate) fn output(self, name: &str) -> Build {
        self.value(graph::OUTPUT, name, DType::Float32, &[])
    }

    pub(crate) fn info(self, name: &str, dims: &[i64]) -> Build {
        self.value(graph::VALUE_INFO, name, DType::Float32, dims)
    }

    fn value(mut self, field: u32, name: &str, dtype: DType, dims: &[i64]) -> Build {
        let mut tensor = Writer::default();
        tensor.varint(1, dtype.number());
        if !dims.is_empty() {
            let mut shape = Writer::default();
            for dim in dims {
                let mut one = Writer::default();
                match dim {
                    -1 => one.text(2, "n"),
                    dim => one.varint(1, *dim as u64),
                }
                shape.message(1, one);
            }
            tensor.message(2, shape);
        }
        let mut kind = Writer::default();
        kind.message(1, tensor);
        let mut info = Writer::default();
        info.text(1, name);
        info.message(2, kind);
        self.graph.message(field, info);
        self
    }

    /// All zeros.
    pub(crate) fn weight(self, name: &str, dims: &[u64]) -> Build {
        let ty = TensorType::new(DType::Float32, dims);
        let zeros = vec![0; ty.bytes() as usize];
        self.tensor(name, &ty, zeros)
    }

    pub(crate) fn ints(self, name: &str, ints: &[i64]) -> Build {
        let ty = TensorType::new(DType::Int64, [ints.len() as u64]);
        let bytes = ints.iter().flat_map(|int| int.to_le_bytes()).collect();
        self.tensor(name, &ty, bytes)
    }

    fn tensor(mut self, name: &str, ty: &TensorType, raw: Vec<u8>) -> Build {
        let mut tensor = Writer::default();
        ty.dims.iter().for_each(|dim| tensor.varint(1, *dim));
        tensor.varint(2, ty.dtype.number());
        tensor.text(8, name);
        tensor.bytes(9, &raw.into());
        self.graph.message(graph::INITIALIZER, tensor);
        self
    }

    /// Named after its first output.
    pub(crate) fn node(self, op: &str, inputs: &[&str], outputs: &[&str]) -> Build {
        self.node_with(op, inputs, outputs, Vec::new())
    }

    pub(crate) fn node_with(
        mut self,
        op: &str,
        inputs: &[&str],
        outputs: &[&str],
        with: Vec<With<'_>>,
    ) -> Build {
        let mut node = Writer::default();
        inputs.iter().for_each(|name| node.text(1, name));
        outputs.iter().for_each(|name| node.text(2, name));
        node.text(3, &String::from_iter(["make_", outputs.first().unwrap_or(&"")]));
        node.text(4, op);
        for with in with {
            let mut attribute = Writer::default();
            match with {
                With::Int(name, int) => {
                    attribute.text(1, name);
                    attribute.varint(3, int as u64);
                    attribute.varint(20, 2);
                }
                With::Ints(name, ints) => {
                    attribute.text(1, name);
                    ints.iter().for_each(|int| attribute.varint(8, *int as u64));
                    attribute.varint(20, 7);
                }
                With::Text(name, text) => {
                    attribute.text(1, name);
                    attribute.text(4, text);
                    attribute.varint(20, 3);
                }
                With::Graph(name, graph) => {
                    attribute.text(1, name);
                    attribute.message(6, graph.graph);
                    attribute.varint(20, 5);
                }
            }
            node.message(5, attribute);
        }
        self.graph.message(graph::NODE, node);
        self
    }

    /// A field of the graph that no version of ONNX has.
    pub(crate) fn unknown(mut self, field: u32, text: &str) -> Build {
        self.graph.text(field, text);
        self.around.text(field, text);
        self
    }

    pub(crate) fn bytes(self) -> Bytes {
        let mut model = Writer::default();
        model.varint(1, 8);
        let mut opset = Writer::default();
        opset.varint(2, 17);
        model.message(8, opset);
        model.message(7, self.graph);
        let around = self.around.finish().to_bytes();
        model.whole(&around);
        model.finish().to_bytes()
    }

    pub(crate) fn model(self) -> Model {
        match Model::read(self.bytes()) {
            Ok(model) => model,
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn refusal(self) -> String {
        match Model::read(self.bytes()) {
            Ok(_) => panic!("it was not refused"),
            Err(error) => alloc::format!("{error}"),
        }
    }
}
