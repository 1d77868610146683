//! What a rule is asked with: a node, what is known of its inputs, its attributes.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Fact, Scope};
use crate::dtype::{DType, Dims, TensorType};
use crate::error::{Path, ShapeError, Shown};
use crate::limit::MOST_RANK;
use crate::node::{Attr, Node};
use crate::tensor::{Tensor, Value};

/// Why a rule has no answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The model contradicts itself.
    Wrong(String),
    /// So does a graph inside a node.
    Inside(ShapeError),
    /// Only a run can tell.
    Unknown(String),
}

pub(crate) type Told = Result<Vec<Option<Fact>>, Fault>;

pub(crate) struct Call<'a> {
    pub(crate) node: &'a Node,
    /// The version of the node's operators.
    pub(crate) opset: u64,
    pub(crate) inputs: Vec<Option<&'a Fact>>,
    pub(crate) scope: &'a Scope<'a>,
    pub(crate) path: &'a Path<'a>,
}

/// The answer of a rule with one output.
pub(crate) fn one(fact: impl Into<Fact>) -> Told {
    Ok(Vec::from([Some(fact.into())]))
}

pub(crate) fn wrong<T>(what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Wrong(what.into()))
}

impl<'a> Call<'a> {
    pub(crate) fn has(&self, at: usize) -> bool {
        self.inputs.get(at).is_some_and(Option::is_some)
    }

    pub(crate) fn fact(&self, at: usize) -> Result<&'a Fact, Fault> {
        match self.inputs.get(at).copied().flatten() {
            Some(fact) => Ok(fact),
            None => wrong(format!("its input {at} is left out")),
        }
    }

    pub(crate) fn ty(&self, at: usize) -> Result<&'a TensorType, Fault> {
        self.fact(at).map(|fact| &fact.ty)
    }

    pub(crate) fn dims(&self, at: usize) -> Result<&'a [u64], Fault> {
        self.ty(at).map(|ty| ty.dims.as_slice())
    }

    /// Its dimensions, of which there must be at least so many.
    pub(crate) fn ranked(&self, at: usize, least: usize) -> Result<&'a [u64], Fault> {
        let dims = self.dims(at)?;
        if dims.len() < least {
            return wrong(format!(
                "its input {at} is [{}], which has fewer than {least} dimensions",
                Dims(dims)
            ));
        }
        Ok(dims)
    }

    pub(crate) fn dtype(&self, at: usize) -> Result<DType, Fault> {
        self.ty(at).map(|ty| ty.dtype)
    }

    /// The elements of an input that shapes depend on.
    pub(crate) fn ints(&self, at: usize) -> Result<&'a [i64], Fault> {
        let fact = self.fact(at)?;
        match &fact.value {
            Some(Value::Ints(ints)) => Ok(ints),
            Some(Value::Floats(_)) => {
                wrong(format!("its input {at} has floats, not whole numbers"))
            }
            None => Err(self.depends(at)),
        }
    }

    pub(crate) fn floats(&self, at: usize) -> Result<&'a [f32], Fault> {
        let fact = self.fact(at)?;
        match &fact.value {
            Some(Value::Floats(floats)) => Ok(floats),
            Some(Value::Ints(_)) => wrong(format!("its input {at} has whole numbers, not floats")),
            None => Err(self.depends(at)),
        }
    }

    pub(crate) fn depends(&self, at: usize) -> Fault {
        let name = self.node.inputs.get(at).map_or("", String::as_str);
        Fault::Unknown(format!("its shape depends on what `{}` holds when it runs", Shown(name)))
    }

    pub(crate) fn int(&self, name: &str) -> Result<Option<i64>, Fault> {
        match self.node.attribute(name) {
            None => Ok(None),
            Some(Attr::Int(int)) => Ok(Some(*int)),
            Some(_) => wrong(format!("its attribute `{name}` is not a whole number")),
        }
    }

    pub(crate) fn int_or(&self, name: &str, default: i64) -> Result<i64, Fault> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, Fault> {
        Ok(self.int_or(name, 0)? != 0)
    }

    pub(crate) fn list(&self, name: &str) -> Result<Option<&'a [i64]>, Fault> {
        match self.node.attribute(name) {
            None => Ok(None),
            Some(Attr::Ints(ints)) => Ok(Some(ints)),
            Some(_) => wrong(format!("its attribute `{name}` is not a list of whole numbers")),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, Fault> {
        match self.node.attribute(name) {
            None => Ok(None),
            Some(Attr::Text(text)) => match core::str::from_utf8(text) {
                Ok(text) => Ok(Some(text)),
                Err(_) => wrong(format!("its attribute `{name}` is not text")),
            },
            Some(_) => wrong(format!("its attribute `{name}` is not text")),
        }
    }

    pub(crate) fn tensor(&self, name: &str) -> Result<Option<&'a Tensor>, Fault> {
        match self.node.attribute(name) {
            None => Ok(None),
            Some(Attr::Tensor(tensor)) => Ok(Some(tensor)),
            Some(_) => wrong(format!("its attribute `{name}` is not a tensor")),
        }
    }

    pub(crate) fn dtype_of(&self, name: &str) -> Result<Option<DType>, Fault> {
        let Some(number) = self.int(name)?.filter(|number| *number != 0) else { return Ok(None) };
        match u64::try_from(number).ok().and_then(DType::of) {
            Some(dtype) => Ok(Some(dtype)),
            None => wrong(format!("its attribute `{name}` is {number}, which is no known type")),
        }
    }

    /// A list that an attribute holds in older versions and an input in newer ones. `None` if neither is there.
    pub(crate) fn listed(&self, name: &str, at: usize) -> Result<Option<&'a [i64]>, Fault> {
        if self.has(at) { self.ints(at).map(Some) } else { self.list(name) }
    }

    /// An axis of a tensor of this rank, counted from its end if negative.
    pub(crate) fn axis(&self, axis: i64, rank: usize) -> Result<usize, Fault> {
        let from_end = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
        match usize::try_from(from_end).ok().filter(|axis| *axis < rank) {
            Some(axis) => Ok(axis),
            None => wrong(format!("its axis {axis} is none of {rank} dimensions")),
        }
    }

    /// Different axes of a tensor of this rank.
    pub(crate) fn axes(&self, axes: &[i64], rank: usize) -> Result<Vec<usize>, Fault> {
        let mut found = Vec::new();
        for axis in axes {
            let axis = self.axis(*axis, rank)?;
            if found.contains(&axis) {
                return wrong(format!("its axis {axis} is named twice"));
            }
            found.push(axis);
        }
        Ok(found)
    }
}

/// Numbers of a file as dimensions.
pub(crate) fn whole_dims(numbers: &[i64]) -> Result<Vec<u64>, Fault> {
    if numbers.len() > MOST_RANK {
        return wrong(format!("its output would have {} dimensions", numbers.len()));
    }
    let dims = numbers.iter().map(|number| u64::try_from(*number).ok());
    dims.collect::<Option<Vec<_>>>()
        .ok_or_else(|| Fault::Wrong("its output would have a negative dimension".to_string()))
}

/// The shape that two shapes have together, dimension by dimension from the last.
pub(crate) fn broadcast(a: &[u64], b: &[u64]) -> Result<Vec<u64>, Fault> {
    let rank = a.len().max(b.len());
    let dim = |dims: &[u64], at: usize| match at.checked_sub(rank - dims.len()) {
        Some(at) => dims[at],
        None => 1,
    };
    let dims = (0..rank).map(|at| match (dim(a, at), dim(b, at)) {
        (a, b) if a == b => Some(a),
        (1, b) => Some(b),
        (a, 1) => Some(a),
        _ => None,
    });
    match dims.collect::<Option<Vec<_>>>() {
        Some(dims) => Ok(dims),
        None => wrong(format!("its inputs [{}] and [{}] do not fit together", Dims(a), Dims(b))),
    }
}

impl Fact {
    pub(crate) fn new(dtype: DType, dims: impl Into<Vec<u64>>) -> Fact {
        TensorType::new(dtype, dims).into()
    }

    pub(crate) fn with(mut self, value: Option<Value>) -> Fact {
        self.value = value;
        self
    }
}
