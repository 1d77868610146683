//! The type and shape of every value, for given inputs. Values that shapes depend on (what `Shape`, `Gather` and
//! `Concat` make of each other before a `Reshape`) are computed on the way.
//!
//! A model that contradicts itself is an error. What only a run can tell (how many boxes are left), and operators
//! without a rule, are [`Missing`]: all that does not depend on them is known.

mod arrange;
mod call;
mod control;
mod fold;
mod generate;
mod matrix;
mod pick;
mod plain;
mod recurrent;
mod rules;
#[cfg(test)]
mod tests;
mod window;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::dtype::{Dim, TensorType, elements};
use crate::error::{Path, Place, ShapeError, Shown};
use crate::limit::{MOST_ELEMENTS, MOST_FOLDED, MOST_FOLDED_ALL};
use crate::model::{Made, Model};
use crate::read::{Declared, Graph, ValueInfo};
use crate::tensor::Value;
use call::{Call, Fault};

/// An input: its type and shape, and its elements where shapes depend on them.
#[derive(Clone, Debug)]
pub struct Given {
    pub name: String,
    pub ty: TensorType,
    pub value: Option<Value>,
}

impl Given {
    pub fn new(name: impl Into<String>, ty: TensorType) -> Given {
        Given { name: name.into(), ty, value: None }
    }
}

/// What is known of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fact {
    pub(crate) ty: TensorType,
    pub(crate) value: Option<Value>,
}

impl From<TensorType> for Fact {
    fn from(ty: TensorType) -> Fact {
        Fact { ty, value: None }
    }
}

/// A node whose outputs are not known before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub place: Place,
    pub why: String,
}

/// The types of a model's values for given inputs.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    pub(crate) facts: BTreeMap<String, Fact>,
    missing: Vec<Missing>,
}

impl Shapes {
    /// `None` for what only a run can tell, and for what is no value of the model.
    pub fn of(&self, value: &str) -> Option<&TensorType> {
        self.facts.get(value).map(|fact| &fact.ty)
    }

    /// The elements of a value, if they follow from the inputs' shapes.
    pub fn value(&self, value: &str) -> Option<&Value> {
        self.facts.get(value).and_then(|fact| fact.value.as_ref())
    }

    /// Nodes whose outputs are not known. What depends on them is not known either, and not listed.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }
}

impl Model {
    /// Tells the type and shape of every value. Inputs that the model declares in full need not be given.
    pub fn shapes(&self, given: &[Given]) -> Result<Shapes, ShapeError> {
        let mut facts = self.given(given)?;
        let mut folded = 0;
        for weight in &self.graph.weights {
            if matches!(self.made.get(&weight.name), Some(Made::Weight(_))) {
                let fact = Fact { ty: weight.ty.clone(), value: weight.value() };
                facts.insert(weight.name.clone(), kept(fact, &mut folded));
            }
        }
        let scope = Scope { model: self, facts, outer: None, folded };
        let (scope, missing) = scope.run(&self.graph, None)?;
        Ok(Shapes { facts: scope.facts, missing })
    }

    fn given(&self, given: &[Given]) -> Result<BTreeMap<String, Fact>, ShapeError> {
        let mut facts = BTreeMap::new();
        for one in given {
            let input = self.inputs().find(|input| input.name == one.name);
            let Some(input) = input else {
                let mut inputs = String::new();
                for input in self.inputs() {
                    let comma = if inputs.is_empty() { "" } else { ", " };
                    let _ = write!(inputs, "{comma}`{}`", Shown(&input.name));
                }
                return Err(ShapeError::NoSuchInput { name: one.name.clone(), inputs });
            };
            if !input.allows(&one.ty) || elements(&one.ty.dims).is_none() {
                return Err(ShapeError::Unfit {
                    name: one.name.clone(),
                    given: one.ty.to_string(),
                    expected: input.expects(),
                });
            }
            let count = one.ty.elements();
            let value = one.value.clone().filter(|value| value.len() as u64 == count);
            facts.insert(one.name.clone(), Fact { ty: one.ty.clone(), value });
        }
        for input in
            self.inputs().filter(|input| !facts.contains_key(&input.name)).collect::<Vec<_>>()
        {
            let Some(ty) = input.declared.as_ref().and_then(Declared::whole) else {
                let (name, expected) = (input.name.clone(), input.expects());
                return Err(ShapeError::NotGiven { name, expected });
            };
            facts.insert(input.name.clone(), ty.into());
        }
        Ok(facts)
    }
}

impl Declared {
    /// The type, if nothing of it is left open.
    pub fn whole(&self) -> Option<TensorType> {
        let dims = self.dims.as_ref()?.iter().map(|dim| match dim {
            Dim::Known(dim) => Some(*dim),
            Dim::Open(_) => None,
        });
        let dims = dims.collect::<Option<Vec<_>>>()?;
        elements(&dims)?;
        Some(TensorType { dtype: self.dtype?, dims })
    }
}

impl ValueInfo {
    /// Whether a tensor is what the file declares.
    fn allows(&self, ty: &TensorType) -> bool {
        let Some(declared) = &self.declared else { return true };
        let fits = |(wanted, dim): (&Dim, &u64)| match wanted {
            Dim::Known(wanted) => wanted == dim,
            Dim::Open(_) => true,
        };
        declared.dtype == Some(ty.dtype)
            && declared.dims.as_ref().is_none_or(|dims| {
                dims.len() == ty.dims.len() && dims.iter().zip(&ty.dims).all(fits)
            })
    }

    /// `float32[batch x 3 x 640 x 640]`.
    pub fn expects(&self) -> String {
        let Some(declared) = &self.declared else { return "a tensor".to_string() };
        let Some(dtype) = declared.dtype else { return "something that is no tensor".to_string() };
        let Some(dims) = &declared.dims else { return format!("{dtype} of any shape") };
        let mut text = format!("{dtype}[");
        for (at, dim) in dims.iter().enumerate() {
            let _ = write!(text, "{}{dim}", if at == 0 { "" } else { " x " });
        }
        text.push(']');
        text
    }
}

/// The values of a graph while it is walked, and those around it.
pub(crate) struct Scope<'a> {
    model: &'a Model,
    facts: BTreeMap<String, Fact>,
    outer: Option<&'a Scope<'a>>,
    /// Elements of all values that were computed.
    folded: usize,
}

impl<'a> Scope<'a> {
    fn fact(&self, name: &str) -> Option<&Fact> {
        self.facts.get(name).or_else(|| self.outer?.fact(name))
    }

    /// Walks a graph inside one of this graph's nodes.
    pub(crate) fn inside(
        &self,
        graph: &Graph,
        within: &Path<'_>,
    ) -> Result<(BTreeMap<String, Fact>, Vec<Missing>), ShapeError> {
        let mut facts = BTreeMap::new();
        let mut folded = self.folded;
        for weight in &graph.weights {
            let fact = Fact { ty: weight.ty.clone(), value: weight.value() };
            facts.insert(weight.name.clone(), kept(fact, &mut folded));
        }
        let scope = Scope { model: self.model, facts, outer: Some(self), folded };
        let (scope, missing) = scope.run(graph, Some(within))?;
        let mut outputs = BTreeMap::new();
        for output in &graph.outputs {
            if let Some(fact) = scope.fact(&output.name) {
                outputs.insert(output.name.clone(), fact.clone());
            }
        }
        Ok((outputs, missing))
    }

    fn run(
        mut self,
        graph: &Graph,
        within: Option<&Path<'_>>,
    ) -> Result<(Scope<'a>, Vec<Missing>), ShapeError> {
        let mut missing = Vec::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            let path = Path { index, name: &node.name, op: &node.op, within };
            let facts: Vec<_> = node.inputs.iter().map(|name| self.fact(name)).collect();
            let lacks =
                |(name, fact): (&String, &Option<&Fact>)| !name.is_empty() && fact.is_none();
            let is_blind = node.inputs.iter().zip(&facts).any(lacks);
            let opset = self.model.opset(&node.domain).unwrap_or(0);
            let call = Call { node, opset, inputs: facts, scope: &self, path: &path };
            // Said where it began.
            if is_blind {
                continue;
            }
            match rules::rule(node, self.model).and_then(|rule| rule(&call)).and_then(bounded) {
                Ok(made) => {
                    for (name, fact) in node.outputs.iter().zip(made) {
                        if let Some(fact) = fact.filter(|_| !name.is_empty()) {
                            self.facts.insert(name.clone(), kept(fact, &mut self.folded));
                        }
                    }
                }
                Err(Fault::Wrong(what)) => {
                    return Err(ShapeError::Node { place: path.place(), what });
                }
                Err(Fault::Inside(error)) => return Err(error),
                Err(Fault::Unknown(why)) => {
                    missing.push(Missing { place: path.place(), why });
                }
            }
        }
        Ok((self, missing))
    }
}

/// Nothing is larger than a machine could hold, whatever a file says.
fn bounded(made: Vec<Option<Fact>>) -> Result<Vec<Option<Fact>>, Fault> {
    match made.iter().flatten().all(|fact| elements(&fact.ty.dims).is_some()) {
        true => Ok(made),
        false => Err(Fault::Wrong(format!("its output has more than {MOST_ELEMENTS} elements"))),
    }
}

/// With its elements, if they are few.
fn kept(mut fact: Fact, folded: &mut usize) -> Fact {
    let len = fact.value.as_ref().map_or(0, Value::len);
    let fits = len <= MOST_FOLDED && *folded + len <= MOST_FOLDED_ALL;
    if fits && len as u64 == fact.ty.elements() {
        *folded += len;
    } else {
        fact.value = None;
    }
    fact
}
