//! Whether a graph can run as it stands: every value is made once, before it is read.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::error::{Path, ReadError, Shown};
use crate::model::Made;
use crate::node::{Attr, Node};
use crate::read::Graph;

/// Who makes which value of the graph. Tells nodes what the graphs inside them read.
pub(crate) fn graph(graph: &mut Graph) -> Result<BTreeMap<String, Made>, ReadError> {
    let mut reads = Reads::default();
    walk(graph, None, None, &mut reads)
}

/// Names visible from inside a graph: its own, and those of the graphs around it.
struct Scope<'a> {
    own: &'a BTreeMap<String, Made>,
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    fn has(&self, name: &str) -> bool {
        self.own.contains_key(name) || self.outer.is_some_and(|outer| outer.has(name))
    }
}

/// What a graph reads that it does not make.
#[derive(Default)]
struct Reads(BTreeSet<String>);

fn walk(
    graph: &mut Graph,
    outer: Option<&Scope<'_>>,
    within: Option<&Path<'_>>,
    captured: &mut Reads,
) -> Result<BTreeMap<String, Made>, ReadError> {
    let mut made = given(graph, within)?;
    for index in 0..graph.nodes.len() {
        let mut captures = Reads::default();
        let mut attributes = core::mem::take(&mut graph.nodes[index].attributes);
        let node = &graph.nodes[index];
        let path = Path { index, name: &node.name, op: &node.op, within };
        let scope = Scope { own: &made, outer };
        for (_, attr) in &mut attributes {
            if let Attr::Graph(inner) = attr {
                walk(inner, Some(&scope), Some(&path), &mut captures)?;
            }
        }
        for name in node.inputs.iter().filter(|name| !name.is_empty()) {
            if made.contains_key(name) {
                continue;
            }
            if !outer.is_some_and(|outer| outer.has(name)) {
                return Err(missing(&path, name, &graph.nodes));
            }
            captured.0.insert(name.clone());
        }
        // What is read further outside is read through every graph on the way.
        captured.0.extend(captures.0.iter().filter(|name| !made.contains_key(*name)).cloned());
        for name in node.makes() {
            if made.insert(name.to_string(), Made::Node(index)).is_some() {
                let what = format!("its output `{}` is made already", Shown(name));
                return Err(ReadError::Node { place: path.place(), what });
            }
        }
        graph.nodes[index].attributes = attributes;
        graph.nodes[index].captures = captures.0.into_iter().collect::<Vec<_>>();
    }
    for output in &graph.outputs {
        if made.contains_key(&output.name) {
            continue;
        }
        // A branch may hand on what it did not make.
        match outer.is_some_and(|outer| outer.has(&output.name)) {
            true => captured.0.insert(output.name.clone()),
            false => return Err(ReadError::Output { name: output.name.clone() }),
        };
    }
    Ok(made)
}

/// What is there before the first node.
fn given(graph: &Graph, within: Option<&Path<'_>>) -> Result<BTreeMap<String, Made>, ReadError> {
    let mut made = BTreeMap::new();
    for (index, input) in graph.inputs.iter().enumerate() {
        if input.name.is_empty() || made.insert(input.name.clone(), Made::Input(index)).is_some() {
            let what = match input.name.is_empty() {
                true => "the graph has an input without a name".to_string(),
                false => format!("the graph has two inputs `{}`", Shown(&input.name)),
            };
            return Err(match within {
                Some(path) => ReadError::Node { place: path.place(), what },
                None => ReadError::Tensor { name: input.name.clone(), what },
            });
        }
    }
    let twice = |name: &str| ReadError::Tensor {
        name: name.to_string(),
        what: "the file has two of this name".to_string(),
    };
    // Files of old list weights among the inputs, so a weight of an input's name is its value.
    for (index, weight) in graph.weights.iter().enumerate() {
        let before = made.insert(weight.name.clone(), Made::Weight(index));
        if before.is_some_and(|before| !matches!(before, Made::Input(_))) {
            return Err(twice(&weight.name));
        }
    }
    for (index, sparse) in graph.sparse.iter().enumerate() {
        let before = made.insert(sparse.name.clone(), Made::Sparse(index));
        if before.is_some_and(|before| !matches!(before, Made::Input(_))) {
            return Err(twice(&sparse.name));
        }
    }
    Ok(made)
}

fn missing(path: &Path<'_>, name: &str, nodes: &[Node]) -> ReadError {
    let later = nodes.iter().position(|node| node.makes().any(|made| made == name));
    let name = Shown(name);
    let what = match later {
        Some(later) => format!("its input `{name}` is made only behind it, by node {later}"),
        None => format!("no node makes its input `{name}`"),
    };
    ReadError::Node { place: path.place(), what }
}

#[cfg(test)]
mod tests {
    use crate::model::Model;
    use crate::testing::{Build, With};
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn a_refusal_names_node_and_operator() {
        let nobody = Build::new().input("x", &[1]).node("Add", &["x", "y"], &["z"]).output("z");
        assert_eq!(nobody.refusal(), "node 0 `make_z` (Add): no node makes its input `y`");
        let later = Build::new()
            .input("x", &[1])
            .node("Add", &["x", "y"], &["z"])
            .node("Relu", &["x"], &["y"])
            .output("z");
        let said = "node 0 `make_z` (Add): its input `y` is made only behind it, by node 1";
        assert_eq!(later.refusal(), said);
        let twice = Build::new()
            .input("x", &[1])
            .node("Relu", &["x"], &["y"])
            .node("Abs", &["x"], &["y"])
            .output("y");
        assert_eq!(twice.refusal(), "node 1 `make_y` (Abs): its output `y` is made already");
        let no_output = Build::new().input("x", &[1]).output("y");
        assert_eq!(no_output.refusal(), "no node makes the output `y`");
        let unnamed = Build::new().input("x", &[1]).node("", &["x"], &["y"]).output("y");
        assert_eq!(unnamed.refusal(), "node 0 `make_y` (): it has no operator");
    }

    #[test]
    fn inputs_that_are_left_out_are_no_names() {
        let model = Build::new()
            .input("x", &[1, 3, 4, 4])
            .node("Resize", &["x", "", ""], &["y"])
            .output("y")
            .model();
        assert_eq!(model.nodes()[0].inputs(), ["x", "", ""]);
    }

    #[test]
    fn graphs_inside_nodes_read_from_around_them() {
        let inner = || Build::new().node("Add", &["x", "w"], &["sum"]).output("sum");
        let deep = Build::new()
            .node_with("If", &["c"], &["r"], vec![With::Graph("then_branch", inner())])
            .output("r");
        let model = Build::new()
            .input("x", &[2])
            .input("c", &[1])
            .weight("w", &[2])
            .node_with("If", &["c"], &["y"], vec![With::Graph("then_branch", deep)])
            .output("y")
            .model();
        assert_eq!(model.graph.nodes[0].captures, ["c", "w", "x"]);
        let lost = Build::new()
            .input("c", &[1])
            .node_with("If", &["c"], &["y"], vec![With::Graph("then_branch", inner())])
            .output("y");
        let said = "node 0 `make_sum` (Add) in a graph of node 0 `make_y` (If): no node makes its input `x`";
        assert_eq!(lost.refusal(), said);
    }

    #[test]
    fn graphs_are_not_nested_for_ever() {
        let mut inner = Build::new().node("Abs", &["x"], &["y"]).output("y");
        for _ in 0..10 {
            let with = vec![With::Graph("body", inner)];
            inner = Build::new().node_with("Loop", &[], &["y"], with).output("y");
        }
        assert!(inner.refusal().contains("graphs are nested deeper than 8"));
    }

    #[test]
    fn what_is_no_model_says_so() {
        let said = |bytes: &[u8]| Model::read(bytes.to_vec()).expect_err("no model").to_string();
        assert_eq!(said(b""), "the file has no graph");
        assert!(said(b"<html><body>404</body></html>").starts_with("this is not an ONNX file"));
        let whole = Build::new().input("x", &[1]).node("Relu", &["x"], &["y"]).output("y").bytes();
        for end in 0..whole.len() {
            assert!(Model::read(whole.slice(..end)).is_err(), "cut off at {end}");
        }
    }
}
