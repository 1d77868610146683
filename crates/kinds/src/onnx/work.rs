//! What serving a model is.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};
use shoal_protocol::BlobRef;

use super::batch::Batch;
use super::split::Part;
use super::tensor::{Element, Head};
use super::wire::Wire;

/// An engine holds the file, the weights as they are in it and as it likes them best.
pub const COPIES: u64 = 3;

/// An ONNX model that answers requests: tensors in, tensors out, as [`super::tensor::pack`] writes them. Or the same
/// over many inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnnxWork {
    /// The file, with its weights.
    pub model: BlobRef,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    /// A row of files that are the model together, for devices that each hold some of them. Empty if it runs whole.
    pub parts: Vec<Part>,
    /// How tensors travel between those devices.
    pub wire: Wire,
    /// What it runs over; none if it answers requests.
    pub batch: Option<Batch>,
}

/// What a model takes or gives under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    pub name: String,
    pub element: Element,
    /// None if the file does not say how many.
    pub dims: Option<Vec<Side>>,
}

/// A dimension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    Fixed(u64),
    /// Whatever a request brings; those with the same name are the same.
    Open(String),
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.element)?;
        let Some(dims) = &self.dims else { return f.write_str("...]") };
        for (at, side) in dims.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "x" })?;
            match side {
                Side::Fixed(number) => write!(f, "{number}")?,
                Side::Open(name) if name.is_empty() => f.write_str("?")?,
                Side::Open(name) => f.write_str(name)?,
            }
        }
        f.write_str("]")
    }
}

/// Why tensors are not what a model takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    Missing {
        name: String,
        expected: String,
    },
    Unknown {
        name: String,
        known: Vec<String>,
    },
    Twice {
        name: String,
    },
    Type {
        name: String,
        found: Element,
        expected: Element,
    },
    Shape {
        name: String,
        found: Vec<u64>,
        expected: String,
    },
    /// Two dimensions have one name and differ.
    Differ {
        name: String,
        dim: String,
        found: u64,
        before: u64,
    },
    /// Pixels are given for an input that has no colours.
    NoPicture {
        name: String,
        expected: String,
    },
    BoxesOfWhat {
        pictures: usize,
    },
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::Missing { name, expected } => {
                write!(f, "the input {name:?} is missing: expected {expected}")
            }
            Misfit::Unknown { name, known } => {
                write!(f, "the model has no input {name:?}, only {}", known.join(", "))
            }
            Misfit::Twice { name } => write!(f, "the input {name:?} is given twice"),
            Misfit::Type { name, found, expected } => {
                write!(f, "the input {name:?} is {found}: expected {expected}")
            }
            Misfit::Shape { name, found, expected } => {
                write!(f, "the input {name:?} has the shape {found:?}: expected {expected}")
            }
            Misfit::Differ { name, dim, found, before } => write!(
                f,
                "the input {name:?} has {found} for the dimension {dim}, which was {before} before"
            ),
            Misfit::NoPicture { name, expected } => {
                write!(f, "the input {name:?} takes no picture: it is {expected}")
            }
            Misfit::BoxesOfWhat { pictures } => write!(
                f,
                "boxes are found in one picture: the request has {pictures} inputs with \"pixels\""
            ),
        }
    }
}

impl core::error::Error for Misfit {}

impl OnnxWork {
    /// Whether the model takes these tensors: all of its inputs, each once, of the right type and shape.
    pub fn takes(&self, heads: &[Head]) -> Result<(), Misfit> {
        for (at, head) in heads.iter().enumerate() {
            if heads[..at].iter().any(|other| other.name == head.name) {
                return Err(Misfit::Twice { name: head.name.clone() });
            }
            if !self.inputs.iter().any(|port| port.name == head.name) {
                let known = self.inputs.iter().map(|port| port.name.clone()).collect();
                return Err(Misfit::Unknown { name: head.name.clone(), known });
            }
        }
        let mut open: Vec<(&str, u64)> = Vec::new();
        for port in &self.inputs {
            let head = heads.iter().find(|head| head.name == port.name);
            let missing =
                || Misfit::Missing { name: port.name.clone(), expected: alloc::format!("{port}") };
            port.takes(head.ok_or_else(missing)?, &mut open)?;
        }
        Ok(())
    }
}

impl Port {
    /// Whether a tensor of this shape is what the model declares.
    pub fn allows(&self, found: &[u64]) -> bool {
        let Some(dims) = &self.dims else { return true };
        let fits = |(side, found): (&Side, &u64)| match side {
            Side::Fixed(number) => number == found,
            Side::Open(_) => true,
        };
        dims.len() == found.len() && dims.iter().zip(found).all(fits)
    }

    fn takes<'a>(&'a self, head: &Head, open: &mut Vec<(&'a str, u64)>) -> Result<(), Misfit> {
        let name = || self.name.clone();
        if head.element != self.element {
            let (found, expected) = (head.element, self.element);
            return Err(Misfit::Type { name: name(), found, expected });
        }
        if !self.allows(&head.dims) {
            let (found, expected) = (head.dims.clone(), alloc::format!("{self}"));
            return Err(Misfit::Shape { name: name(), found, expected });
        }
        let Some(dims) = &self.dims else { return Ok(()) };
        for (side, found) in dims.iter().zip(&head.dims) {
            let Side::Open(dim) = side else { continue };
            match open.iter().find(|(known, _)| known == dim) {
                _ if dim.is_empty() => {}
                Some((_, before)) if before != found => {
                    let (dim, found, before) = (dim.clone(), *found, *before);
                    return Err(Misfit::Differ { name: name(), dim, found, before });
                }
                Some(_) => {}
                None => open.push((dim, *found)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;
    use shoal_protocol::Hash;

    fn port(name: &str, dims: Vec<Side>) -> Port {
        Port { name: name.into(), element: Element::F32, dims: Some(dims) }
    }

    fn head(name: &str, dims: &[u64]) -> Head {
        Head { name: name.into(), element: Element::F32, dims: dims.into() }
    }

    #[test]
    fn wrong_inputs_are_named_with_what_was_expected() {
        let open = || Side::Open("n".into());
        let work = OnnxWork {
            model: BlobRef { hash: Hash([0; 32]), size: 1 },
            inputs: vec![port("a", vec![open(), Side::Fixed(3)]), port("b", vec![open()])],
            outputs: Vec::new(),
            parts: Vec::new(),
            wire: Wire::F32,
            batch: None,
        };
        let says = |heads: &[Head]| work.takes(heads).map_err(|misfit| misfit.to_string());
        assert_eq!(says(&[head("b", &[2]), head("a", &[2, 3])]), Ok(()));
        let check = |heads: &[Head], words: &str| assert_eq!(says(heads), Err(words.into()));
        check(&[head("a", &[2, 3])], "the input \"b\" is missing: expected float32[n]");
        check(&[head("c", &[])], "the model has no input \"c\", only a, b");
        check(&[head("a", &[2, 3]), head("a", &[2, 3])], "the input \"a\" is given twice");
        check(
            &[head("a", &[2, 4]), head("b", &[2])],
            "the input \"a\" has the shape [2, 4]: expected float32[nx3]",
        );
        check(
            &[head("a", &[2, 3]), head("b", &[5])],
            "the input \"b\" has 5 for the dimension n, which was 2 before",
        );
        let whole = Head { element: Element::I64, ..head("a", &[2, 3]) };
        check(&[whole, head("b", &[2])], "the input \"a\" is int64: expected float32");
    }
}
