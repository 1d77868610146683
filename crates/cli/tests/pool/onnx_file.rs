//! Small ONNX files, written by hand.

/// An operator, its inputs and its output.
type Node<'a> = (&'a str, &'a [&'a str], &'a str);

/// A graph of nodes with one output each.
pub(crate) struct Graph<'a> {
    pub(crate) nodes: &'a [Node<'a>],
    /// Name and dimensions; 0 is open.
    pub(crate) inputs: &'a [(&'a str, &'a [u8])],
    pub(crate) outputs: &'a [(&'a str, &'a [u8])],
}

impl Graph<'_> {
    pub(crate) fn file(&self) -> Vec<u8> {
        let mut graph = text(2, "test");
        for (at, (operator, inputs, output)) in self.nodes.iter().enumerate() {
            let inputs: Vec<u8> = inputs.iter().flat_map(|name| text(1, name)).collect();
            let name = format!("step {at}");
            let node = [inputs, text(2, output), text(3, &name), text(4, operator)].concat();
            graph.extend(message(1, &node));
        }
        self.inputs.iter().for_each(|(name, dims)| graph.extend(value(11, name, dims)));
        self.outputs.iter().for_each(|(name, dims)| graph.extend(value(12, name, dims)));
        let opset = message(8, &[text(1, ""), number(2, 17)].concat());
        [number(1, 8), opset, message(7, &graph)].concat()
    }
}

/// What most tests ask: `y = |max(x, 0) - x|`, so that negative numbers come back positive and others as 0.
pub(crate) fn negative_part() -> Vec<u8> {
    let nodes: &[Node<'_>] =
        &[("Relu", &["x"], "r"), ("Sub", &["r", "x"], "d"), ("Abs", &["d"], "y")];
    Graph { nodes, inputs: &[("x", &[0, 3])], outputs: &[("y", &[0, 3])] }.file()
}

/// `y = x + w`, whose weight is in a file of this name.
pub(crate) fn weights_elsewhere(file: &str) -> Vec<u8> {
    let place = message(13, &[text(1, "location"), text(2, file)].concat());
    let weight = [number(1, 3), number(2, 1), text(8, "w"), place, number(14, 1)].concat();
    let step = [text(1, "x"), text(1, "w"), text(2, "y"), text(4, "Add")].concat();
    let steps = [message(1, &step), text(2, "test"), message(5, &weight)].concat();
    let graph = [steps, value(11, "x", &[3]), value(12, "y", &[3])].concat();
    let opset = message(8, &[text(1, ""), number(2, 17)].concat());
    [number(1, 8), opset, message(7, &graph)].concat()
}

fn value(field: u8, name: &str, dims: &[u8]) -> Vec<u8> {
    let dim = |dim: &u8| message(1, &if *dim == 0 { text(2, "n") } else { number(1, *dim) });
    let dims: Vec<u8> = dims.iter().flat_map(dim).collect();
    let tensor = [number(1, 1), message(2, &dims)].concat();
    message(field, &[text(1, name), message(2, &message(1, &tensor))].concat())
}

fn number(field: u8, number: u8) -> Vec<u8> {
    vec![field << 3, number]
}

fn text(field: u8, text: &str) -> Vec<u8> {
    message(field, text.as_bytes())
}

fn message(field: u8, bytes: &[u8]) -> Vec<u8> {
    let mut all = vec![field << 3 | 2];
    let mut length = bytes.len();
    while length > 127 {
        all.push(length as u8 | 128);
        length >>= 7;
    }
    all.push(length as u8);
    all.extend(bytes);
    all
}
