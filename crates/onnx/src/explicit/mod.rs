//! The same model in other words: what its nodes leave to the reader is said, and what a simple engine computes otherwise,
//! or not at all, is put together from what it computes rightly. The outputs are the same by ONNX's definitions.
//!
//! Only the outer graph is looked at, and only where types and shapes follow from what the file declares of its inputs.
//! Nodes that nothing is known of stay as they are.

mod draft;
mod known;
mod narrow;
mod pick;
mod resize;
mod window;

use alloc::vec::Vec;

use crate::model::{Model, field};
use crate::node::Node;
use crate::read::graph;
use crate::wire::{Pieces, Writer};
use draft::{Draft, Names};
use known::Known;

/// A rule for some operators: it changes the draft of a node if it is concerned.
type Rule = fn(&mut Draft<'_>, &Known<'_>, &mut Names<'_>);
const RULES: [Rule; 5] =
    [window::fill_in, pick::first_of_equals, pick::by_a_column, resize::all_axes, narrow::widen];

impl Model {
    /// The file with all of this done; none if there is nothing to do. Weights are shared, not copied.
    pub fn explicit(&self) -> Option<Pieces> {
        if !self.graph.nodes.iter().any(is_concerned) {
            return None;
        }
        let known = Known::of(self);
        let mut names = Names::new(self);
        let mut nodes = Vec::with_capacity(self.graph.nodes.len());
        let mut is_changed = false;
        for node in &self.graph.nodes {
            let mut draft = Draft::new(node);
            if is_concerned(node) {
                RULES.iter().for_each(|rule| rule(&mut draft, &known, &mut names));
            }
            is_changed |= draft.is_changed();
            nodes.push(draft);
        }
        is_changed.then(|| self.with_nodes(nodes, names))
    }

    /// In other words if there is something to say: what engines load, and what their runs take memory for.
    pub fn spelled_out(self) -> Model {
        let again = self.explicit().and_then(|file| Model::read(file.to_bytes()).ok());
        again.unwrap_or(self)
    }

    fn with_nodes(&self, nodes: Vec<Draft<'_>>, names: Names<'_>) -> Pieces {
        let whole = &self.graph;
        let mut writer = Writer::default();
        whole.others.iter().for_each(|other| writer.whole(other));
        nodes.into_iter().for_each(|draft| draft.write(&mut writer));
        for weight in &whole.weights {
            writer.bytes(graph::INITIALIZER, &weight.chunk.bytes);
        }
        names.write(&mut writer);
        whole.sparse.iter().for_each(|one| writer.bytes(graph::SPARSE, &one.bytes));
        for (field, infos) in [
            (graph::INPUT, &whole.inputs),
            (graph::OUTPUT, &whole.outputs),
            (graph::VALUE_INFO, &whole.infos),
        ] {
            infos.iter().for_each(|info| writer.bytes(field, &info.bytes));
        }
        whole.annotations.iter().for_each(|one| writer.bytes(graph::ANNOTATION, &one.bytes));
        let (mut file, mut graph) = (Writer::default(), Some(writer));
        for (number, whole) in &self.fields {
            match (*number == field::GRAPH).then(|| graph.take()).flatten() {
                Some(graph) => file.message(field::GRAPH, graph),
                None => file.whole(whole),
            }
        }
        file.finish()
    }
}

fn is_concerned(node: &Node) -> bool {
    let op = node.op();
    let known = [window::OPERATORS, pick::OPERATORS, resize::OPERATORS, narrow::OPERATORS];
    let makes = node.outputs.first().is_some_and(|output| !output.is_empty());
    makes && node.domain().is_empty() && known.iter().any(|some| some.contains(&op))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, With};
    use alloc::vec;

    /// Its nodes in other words: operator, inputs, outputs.
    pub(super) fn told(model: &Model) -> Vec<Node> {
        let again = Model::read(model.explicit().expect("something to say").to_bytes());
        again.expect("a valid file").nodes().to_vec()
    }

    #[test]
    fn what_says_everything_stays_as_it_is() {
        let model = Build::new()
            .input("x", &[1, 3, 8, 8])
            .weight("w", &[4, 3, 3, 3])
            .node_with("Conv", &["x", "w"], &["y"], vec![With::Ints("kernel_shape", &[3, 3])])
            .node("Add", &["y", "y"], &["z"])
            .output("z")
            .model();
        assert!(model.explicit().is_none());
    }

    #[test]
    fn all_around_a_changed_node_stays() {
        let model = Build::new()
            .input("x", &[1, 3, 8, 8])
            .weight("w", &[4, 3, 3, 3])
            .node("Conv", &["x", "w"], &["y"])
            .info("y", &[1, 4, 6, 6])
            .unknown(77, "kept")
            .output("y")
            .model();
        let again = Model::read(model.explicit().expect("a kernel's shape").to_bytes());
        let again = again.expect("a valid file");
        assert_eq!(again.nodes()[0].ints("kernel_shape"), Some(&[3, 3][..]));
        assert_eq!(again.nodes()[0].name(), "make_y");
        assert_eq!((again.weights().len(), again.graph.infos.len()), (1, 1));
        assert!(again.graph.others.iter().any(|field| field.ends_with(b"kept")));
        assert_eq!(again.opset(""), model.opset(""));
        assert!(again.explicit().is_none(), "once is enough");
    }
}
