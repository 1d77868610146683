//! How a kernel that looks beyond its own item is shown whole arrays, although its unit has only a part of
//! each: a window. The kernel counts over the whole array; what Shoal adds to its text turns such a place into
//! one inside the window, and reports a place that is in the array but not in the window.
//!
//! The text that was signed stays as it is. Nodes are told where in it something of a fixed kind is added, and
//! make the additions themselves: a coordinator can put a call of Shoal's functions at a wrong place, and so spoil
//! a result, but it cannot bring in code of its own.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::Slot;

/// What a node adds to a kernel's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// In the order of their places.
    pub marks: Vec<Mark>,
    /// Marks name them by their position here.
    pub arrays: Vec<Window>,
    /// `@binding` of the uniform block with the unit's place, and of the report; the kernel uses neither.
    pub block: u32,
    pub report: u32,
    pub edge: Edge,
    /// Whether an invocation without an item may return at once: nobody waits for it at a barrier.
    pub may_return: bool,
}

/// One array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// As the kernel calls it.
    pub name: String,
    /// An input or the output.
    pub slot: Slot,
    /// Bytes from one element to the next.
    pub stride: u32,
}

/// What an index before the first or behind the last element of the whole array means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edge {
    /// The first or the last element.
    #[default]
    Clamp,
    /// The array goes round: behind the last element comes the first.
    Wrap,
    /// The array is reflected: behind the last element comes the last, then the one before it.
    Mirror,
}

/// An addition at a byte of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub at: u32,
    pub add: Addition,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Addition {
    /// An index of this array begins here.
    Index(u32),
    IndexEnd,
    /// An `arrayLength` of this array begins here.
    Length(u32),
    LengthEnd,
    /// The name of an argument of the entry point begins here: it gets another one.
    Argument,
    /// The body of the entry point begins here: arguments get their names back, with other values.
    Body(Vec<Argument>),
}

/// An argument of the entry point that counts within the unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    pub name: String,
    pub given: Given,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Given {
    Builtin(Builtin),
    /// A struct with such members.
    Members(Vec<(String, Builtin)>),
}

/// A built-in value that is another one in the whole job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Builtin {
    GlobalInvocationId,
    WorkgroupId,
    NumWorkgroups,
}
