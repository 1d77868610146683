//! A model as a row of parts: small enough that a scheduler can give each device as many as fit it, cut where little
//! crosses.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::cut::{Crossing, Cut, Cuts};
use crate::dtype::TensorType;
use crate::limit::MOST_PARTS;
use crate::slice::Needs;

/// How a model is cut into parts, for inputs of these types.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    pub inputs: BTreeMap<String, TensorType>,
    /// In order. Any of them that stand side by side can be one slice: from the first one's begin to the last one's
    /// end.
    pub parts: Vec<Part>,
}

/// One part, in the numbers that placement takes: a chain's part has its work, its weights' bytes and what it hands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Positions of [`Cuts`].
    pub from: usize,
    pub to: usize,
    /// Operations as estimated: parts of one model are comparable, no more.
    pub work: u64,
    /// Memory that its weights take as long as it is loaded. Parts on one device add up, but for weights they share.
    pub weight_bytes: u64,
    /// Memory that values take while it runs. Parts on one device run one after another: the largest counts.
    pub peak_bytes: u64,
    /// What crosses its end.
    pub out_bytes: u64,
    pub out_tensors: usize,
}

impl Parts {
    /// Memory that values take on whoever runs any of these parts.
    pub fn peak_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.peak_bytes).max().unwrap_or(0)
    }
}

impl Cuts<'_> {
    /// Parts of about equal work, as many as asked for or fewer, each ending where least crosses thereabouts.
    pub fn parts(&self, most: usize) -> Parts {
        self.parts_where(most, |_| true)
    }

    /// The same, cut only where everything that crosses may.
    pub fn parts_where(&self, most: usize, may_cross: impl Fn(&Crossing<'_>) -> bool) -> Parts {
        let work: Vec<u64> = self.costs.iter().map(Cost::work).collect();
        let may_cut = |at| self.crossing(at).iter().all(&may_cross);
        let bounds = self.bounds(most.clamp(1, MOST_PARTS), &work, may_cut);
        let parts = bounds.windows(2).map(|bound| self.part(bound[0], bound[1], &work));
        let inputs = self
            .model
            .inputs()
            .filter_map(|input| Some((input.name.clone(), self.shapes.of(&input.name)?.clone())));
        Parts { inputs: inputs.collect(), parts: parts.collect() }
    }

    /// Begins and ends. Of the cuts nearest to each of the places that would make parts equal, the cheapest.
    fn bounds(&self, most: usize, work: &[u64], may_cut: impl Fn(usize) -> bool) -> Vec<usize> {
        // A step without work takes a little, so that every place has its own.
        let weigh = |work: &u64| u128::from(*work).saturating_mul(1_000).saturating_add(1);
        let all: u128 = work.iter().map(weigh).sum();
        let most = most as u128;
        let mut best: Vec<Option<(Cut, u128)>> = vec![None; most as usize + 1];
        let mut before = 0u128;
        for at in 1..self.steps.len() {
            before += weigh(&work[at - 1]);
            let nearest = (before * most + all / 2) / all;
            let Some(cut) = self.cut(at) else { continue };
            let off = (before * most).abs_diff(nearest * all);
            let slot = &mut best[nearest as usize];
            let key = |(cut, off): &(Cut, u128)| (cut.bytes, cut.tensors, *off);
            if slot.as_ref().is_none_or(|old| key(&(cut, off)) < key(old)) && may_cut(at) {
                *slot = Some((cut, off));
            }
        }
        let inner = best.iter().skip(1).take(most as usize - 1).flatten().map(|(cut, _)| cut.at);
        let mut bounds = vec![0];
        bounds.extend(inner);
        if !self.steps.is_empty() {
            bounds.push(self.steps.len());
        }
        bounds
    }

    fn part(&self, from: usize, to: usize, work: &[u64]) -> Part {
        let needs = Needs::of(self, from, to);
        let model = self.model;
        let bytes = |name: &str| self.shapes.of(name).map_or(0, TensorType::bytes);
        let weights = model.graph.weights.iter().filter(|one| needs.values.contains(one.name()));
        let weights = weights.map(|weight| weight.ty.bytes());
        // Nodes that always make the same, made once.
        let fixed = needs.nodes.iter().filter(|at| self.constant[**at]);
        let fixed = fixed.flat_map(|at| model.graph.nodes[*at].makes()).map(bytes);
        let live = (from..to).map(|step| {
            let Cost { made_bytes, .. } = self.costs[step];
            self.tolls[step].bytes.saturating_add(made_bytes)
        });
        Part {
            from,
            to,
            work: work[from..to].iter().fold(0, |sum: u64, work| sum.saturating_add(*work)),
            weight_bytes: weights.chain(fixed).fold(0, u64::saturating_add),
            peak_bytes: live.max().unwrap_or(0),
            out_bytes: self.tolls[to].bytes,
            out_tensors: self.tolls[to].tensors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::testing::Build;

    /// Eight layers; between them little crosses, inside them much.
    fn layers() -> Model {
        let mut build = Build::new().input("v0", &[1, 8]);
        for layer in 0..8 {
            let name = |what: &str| alloc::format!("{what}{layer}");
            let (up, down) = (name("up"), name("down"));
            let (wide, active) = (name("wide"), name("active"));
            let next = alloc::format!("v{}", layer + 1);
            let before = alloc::format!("v{layer}");
            build = build
                .weight(&up, &[8, 64])
                .weight(&down, &[64, 8])
                .node("MatMul", &[&before, &up], &[&wide])
                .node("Relu", &[&wide], &[&active])
                .node("MatMul", &[&active, &down], &[&next]);
        }
        build.output("v8").model()
    }

    #[test]
    fn parts_end_where_little_crosses() {
        let model = layers();
        let shapes = model.shapes(&[]).expect("shapes");
        let cuts = model.cuts(&shapes);
        assert_eq!(cuts.steps(), 24);
        let parts = cuts.parts(4);
        assert_eq!(parts.parts.len(), 4);
        for part in &parts.parts {
            assert_eq!((part.from % 3, part.to % 3), (0, 0), "{part:?}");
            assert_eq!((part.out_bytes, part.out_tensors), (32, 1));
            let layers = (part.to - part.from) as u64 / 3;
            assert_eq!(part.weight_bytes, layers * 2 * 8 * 64 * 4);
            assert_eq!(part.peak_bytes, 512);
        }
        let bounds: Vec<_> = parts.parts.iter().map(|part| part.to).collect();
        assert_eq!(bounds, [6, 12, 18, 24]);
        assert_eq!(parts.peak_bytes(), 512);
    }

    #[test]
    fn nothing_is_cut_where_a_value_may_not_cross() {
        let model = layers();
        let shapes = model.shapes(&[]).expect("shapes");
        let cuts = model.cuts(&shapes);
        let may = |one: &Crossing<'_>| one.name != "v4";
        let parts = cuts.parts_where(2, may);
        assert!(parts.parts.iter().all(|part| part.to != 12), "{parts:?}");
        assert_eq!(parts.parts.len(), 2);
        assert_eq!(cuts.parts_where(4, |_| false).parts.len(), 1);
    }

    #[test]
    fn small_models_have_few_parts() {
        let model = Build::new().input("x", &[1]).node("Relu", &["x"], &["y"]).output("y").model();
        let shapes = model.shapes(&[]).expect("shapes");
        let cuts = model.cuts(&shapes);
        assert_eq!(cuts.parts(64).parts.len(), 1);
        let nothing = Build::new().input("x", &[1]).output("x").model();
        let shapes = nothing.shapes(&[]).expect("shapes");
        assert!(nothing.cuts(&shapes).parts(3).parts.is_empty());
    }
}
