//! Why a model is refused, and where: every message names the node and its operator where there is one.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use thiserror::Error;

use crate::limit::MOST_SHOWN;

/// A file that is not an ONNX model, or a graph that cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    #[error("this is not an ONNX file: {what} (byte {at})")]
    Wire { at: usize, what: &'static str },
    #[error("this is not an ONNX file: field {field} {what} (byte {at})")]
    Field { at: usize, field: u32, what: &'static str },
    #[error("the file has no graph")]
    NoGraph,
    #[error("the file has two graphs (the second is at byte {at})")]
    TwoGraphs { at: usize },
    #[error("the file does not say which version of ONNX's operators it uses")]
    NoOpset,
    #[error("the file is too large to look at: it has more nodes and names than {most} bytes hold")]
    TooMuch { most: usize },
    #[error("{place}: graphs are nested deeper than {most}")]
    TooDeep { place: Place, most: usize },
    #[error("tensor `{}`: {what}", Shown(.name))]
    Tensor { name: String, what: String },
    #[error("{place}: {what}")]
    Node { place: Place, what: String },
    #[error("no node makes the output `{}`", Shown(.name))]
    Output { name: String },
}

/// Why shapes cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ShapeError {
    #[error("input `{}` is not given: the model expects {expected}", Shown(.name))]
    NotGiven { name: String, expected: String },
    #[error("the model has no input `{}`: its inputs are {inputs}", Shown(.name))]
    NoSuchInput { name: String, inputs: String },
    #[error("input `{}` is {given}: the model expects {expected}", Shown(.name))]
    Unfit { name: String, given: String, expected: String },
    #[error("{place}: {what}")]
    Node { place: Place, what: String },
}

/// Why a graph is not cut there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CutError {
    #[error("the model cannot be cut from {from} to {to}: it has the positions 0 to {last}")]
    NoSuchRange { from: usize, to: usize, last: usize },
    #[error("the model cannot be cut at {at}: {why}")]
    NotThere { at: usize, why: String },
    #[error("a part would be empty: its inputs and outputs are the same")]
    Empty,
}

/// Metadata of Shoal's in a file that does not say what it should.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the file's `{key}` is not what Shoal wrote: {why}")]
pub struct MetadataError {
    pub key: &'static str,
    pub why: String,
}

/// Which node of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Counted from 0 in the order of the file.
    pub index: usize,
    /// May be empty.
    pub name: String,
    pub op: String,
    /// The node whose attribute has the graph that this one is in.
    pub within: Option<Box<Place>>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.index)?;
        if !self.name.is_empty() {
            write!(f, " `{}`", Shown(&self.name))?;
        }
        write!(f, " ({})", Shown(&self.op))?;
        match &self.within {
            Some(outer) => write!(f, " in a graph of {outer}"),
            None => Ok(()),
        }
    }
}

/// A place while it is looked at: nothing is copied before something is wrong.
pub(crate) struct Path<'a> {
    pub(crate) index: usize,
    pub(crate) name: &'a str,
    pub(crate) op: &'a str,
    pub(crate) within: Option<&'a Path<'a>>,
}

impl Path<'_> {
    pub(crate) fn place(&self) -> Place {
        let within = self.within.map(|outer| Box::new(outer.place()));
        // Short, because a hostile file could have many places in one long name.
        let short = |name: &str| name.chars().take(MOST_SHOWN).collect();
        Place { index: self.index, name: short(self.name), op: short(self.op), within }
    }
}

/// A stranger's name: shortened, without characters that change what is around it.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for (at, letter) in self.0.chars().enumerate() {
            if at == MOST_SHOWN {
                return f.write_str("...");
            }
            f.write_char(if letter.is_control() { ' ' } else { letter })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;

    #[test]
    fn a_place_names_node_and_operator() {
        let outer = Place { index: 3, name: String::new(), op: "If".into(), within: None };
        let place = Place {
            index: 0,
            name: "a\nb".into(),
            op: "Conv".into(),
            within: Some(Box::new(outer)),
        };
        assert_eq!(place.to_string(), "node 0 `a b` (Conv) in a graph of node 3 (If)");
        let long = "x".repeat(500);
        assert_eq!(format!("{}", Shown(&long)).len(), MOST_SHOWN + 3);
    }
}
