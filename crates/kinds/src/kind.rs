//! The list of kinds, and what all of them say of themselves.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shoal_protocol::{Engine, Failure, Hash, Lane, Work};

use crate::crew::CrewPlan;
use crate::feed::Feed;
use crate::form::Form;
use crate::llm::LlmWork;
use crate::onnx::OnnxWork;
use crate::plain::Plain;
use crate::sim::SimWork;

/// The kinds, each in one line: its name as it travels and as its folder is called, its arm, what a node is told
/// and what a client asks. Whoever needs all of them passes a macro that takes the list.
macro_rules! kinds {
    ($make:ident) => {
        $make! {
            /// Units without content, to measure the pool itself.
            noop: Noop(NoopWork, NoopRequest);
            /// A WGSL kernel over the elements of arrays.
            map: Map(MapWork, MapRequest);
            /// A WGSL kernel over the tiles of a picture.
            render: Render(RenderWork, RenderRequest);
            /// A WASI program, run once for each line or file.
            exec: Exec(ExecWork, ExecRequest);
            /// A WGSL kernel over a grid, step by step, computed by a crew of nodes together.
            sim: Sim(SimWork, SimRequest);
            /// An ONNX model that answers requests, or runs over many inputs.
            onnx: Onnx(OnnxWork, OnnxRequest);
            /// A language model that continues texts.
            llm: Llm(LlmWork, LlmRequest);
            /// How often a value is among numbers.
            #[cfg(feature = "count")]
            count: Count(CountWork, CountRequest);
        }
    };
}
#[cfg(feature = "plan")]
pub(crate) use kinds;

macro_rules! kind {
    ($($(#[doc = $doc:literal])* $(#[cfg($cfg:meta)])?
        $name:ident: $Kind:ident($Work:ident, $Request:ident);)*) => {
        /// Work of a known kind. Ask it by [`About`].
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(into = "Work", try_from = "Work")]
        pub enum Kind {
            $($(#[doc = $doc])* $(#[cfg($cfg)])? $Kind(crate::$name::$Work),)*
        }

        impl Kind {
            /// All that this build knows.
            pub const NAMES: &[&str] = &[$($(#[cfg($cfg)])? stringify!($name),)*];

            /// What people are told of each kind that this build knows, by its name.
            pub fn told() -> Vec<(&'static str, Told)> {
                Vec::from([$($(#[cfg($cfg)])?
                    (stringify!($name), <crate::$name::$Work as About>::told())),*])
            }

            /// Whether work of the kind with this name is code that somebody brings, if this build knows it.
            pub fn brings_code(name: &str) -> Option<bool> {
                match name {
                    $($(#[cfg($cfg)])? stringify!($name) => {
                        Some(<crate::$name::$Work as About>::brings_code())
                    })*
                    _ => None,
                }
            }

            /// None if this build does not know the kind, or the bytes are none of it.
            pub fn read(work: &Work) -> Option<Kind> {
                let body = work.body.as_slice();
                match work.kind.as_str() {
                    $($(#[cfg($cfg)])? stringify!($name) => read(body).map(Kind::$Kind),)*
                    _ => None,
                }
            }
        }

        impl Deref for Kind {
            type Target = dyn About;

            fn deref(&self) -> &Self::Target {
                match self {
                    $($(#[cfg($cfg)])? Kind::$Kind(work) => work,)*
                }
            }
        }

        $($(#[cfg($cfg)])? impl From<crate::$name::$Work> for Kind {
            fn from(work: crate::$name::$Work) -> Kind {
                Kind::$Kind(work)
            }
        })*
    };
}

kinds!(kind);

/// What a kind says of its work.
pub trait About {
    /// As it travels, and as people write it.
    fn name(&self) -> &'static str;

    /// What people are told of the kind, whatever the work.
    fn told() -> Told
    where
        Self: Sized;

    /// Which part of a node computes it.
    fn lane(&self) -> Lane;

    /// Which engine of that part, by name; none if it takes none.
    fn engine(&self) -> Option<&'static str> {
        match self.lane() {
            Lane::Inline => None,
            Lane::Gpu => Some(Engine::WGSL),
            Lane::Cpu => Some(Engine::WASI),
        }
    }

    /// Whether such work is code that somebody brings.
    fn brings_code() -> bool
    where
        Self: Sized,
    {
        true
    }

    /// What somebody stands for; none if there is nothing that could do harm.
    fn code(&self) -> Option<Code> {
        None
    }

    /// What its result is made of.
    fn form(&self) -> Form<'_>;

    /// Whether answers that differ in bits may still be the same within the job's tolerance.
    fn is_rounded(&self) -> bool {
        true
    }

    /// Whether devices that agree on the probe kernel agree on this bit for bit.
    fn has_class(&self) -> bool {
        true
    }

    /// The result of a unit of one item that fails like this on as many devices as it takes to believe it. None: there is
    /// none, and its job fails.
    fn failed(&self, _failure: &Failure) -> Option<Vec<u8>> {
        None
    }

    /// What units read, in the order of the kernel's bindings.
    fn feeds(&self) -> &[Feed] {
        &[]
    }

    /// Whether the same input always gives the same answer, so that a half-given one can be taken up elsewhere.
    fn repeats(&self) -> bool {
        true
    }

    /// A request whose answer was given in part and then lost, so that whoever is asked next goes on from there: what
    /// to ask, and how many bytes of the answer it goes on behind. None: it is asked from the start.
    fn resumed(&self, _request: &[u8], _answer: &[u8]) -> Option<(Vec<u8>, u64)> {
        None
    }

    /// How many steps an answer, or what there is of one, was made in: a text's words. None: it is made at once.
    fn steps(&self, _answer: &[u8]) -> Option<u64> {
        None
    }

    /// Where the steps of an answer end, if each of them follows from the request and the steps before it, with the same
    /// bits on every device: then any device can be asked for one of them again, behind those before it
    /// ([`About::resumed`]). `together`: several devices gave it, each with some parts. None: nobody can tell.
    fn steps_again(&self, _answer: &[u8], _together: bool) -> Option<Vec<usize>> {
        None
    }

    /// Whether a step of an answer is the one that another device says in its place. None: not all of that has come yet.
    fn same_step(&self, _step: &[u8], _again: &[u8]) -> Option<bool> {
        None
    }

    /// Requests that a node which keeps it ready answers side by side, if the room for them is part of what keeping it
    /// takes: they share one engine, so they need no slots. None: each takes a slot, and what the work takes.
    fn at_once(&self) -> Option<u16> {
        None
    }

    /// Whether its items depend on each other, so that a crew computes them together.
    fn takes_crew(&self) -> bool {
        self.crew().is_some()
    }

    /// What that crew has to do.
    fn crew(&self) -> Option<CrewPlan> {
        None
    }

    /// For a shell whose language does not read it from bytes.
    fn plain(&self) -> Plain;

    /// Its bytes.
    fn body(&self) -> Vec<u8>;

    #[cfg(feature = "plan")]
    fn shown(&self) -> crate::plan::Shown {
        crate::plan::Shown::default()
    }

    /// What it was asked to compute, beside its code and inputs, for its receipt.
    #[cfg(feature = "plan")]
    fn settings(&self) -> crate::plan::Settings {
        crate::plan::Settings::new()
    }

    /// What it computes from, for its receipt.
    #[cfg(feature = "plan")]
    fn inputs(&self, _store: &dyn crate::plan::Store) -> Vec<crate::plan::NamedInput> {
        Vec::new()
    }

    /// What the user calls an item: a file's name, a line.
    #[cfg(feature = "plan")]
    fn item_name(
        &self,
        _item: u64,
        _note: &crate::plan::Note,
        _store: &dyn crate::plan::Store,
    ) -> Option<String> {
        None
    }

    /// The sides of its result as an array, if it is one; an item has `per_item` numbers.
    #[cfg(feature = "plan")]
    fn sides(&self, _items: u64, _per_item: u64) -> Option<Vec<u64>> {
        None
    }
}

/// What people are told of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// What a device computes, for its donor.
    pub donor: &'static str,
    /// What one of its items is called, and what several are.
    pub item: &'static str,
    pub items: &'static str,
}

impl Told {
    /// Its items have no name of their own.
    pub(crate) const fn of(donor: &'static str) -> Told {
        Told { donor, item: "item", items: "items" }
    }
}

/// Code that somebody signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// What people call it: `kernel`, `program`.
    pub what: &'static str,
    pub hash: Hash,
}

impl Code {
    pub(crate) fn kernel(text: &str) -> Code {
        Code { what: "kernel", hash: shoal_protocol::hash(text.as_bytes()) }
    }
}

impl Kind {
    /// As it travels.
    pub fn work(&self) -> Work {
        Work { kind: self.name().into(), body: self.body() }
    }

    /// Of a simulation.
    pub fn sim(&self) -> Option<&SimWork> {
        if let Kind::Sim(sim) = self { Some(sim) } else { None }
    }

    /// Of a model.
    pub fn model(&self) -> Option<&OnnxWork> {
        if let Kind::Onnx(model) = self { Some(model) } else { None }
    }

    /// Of a language model that is served.
    pub fn language(&self) -> Option<&LlmWork> {
        if let Kind::Llm(model) = self { Some(model) } else { None }
    }
}

impl From<Kind> for Work {
    fn from(kind: Kind) -> Work {
        kind.work()
    }
}

/// Work of a kind that this build does not know, or bytes that are none of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown(pub String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "work of the kind {:?}, which this build does not know or cannot read", self.0)
    }
}

impl core::error::Error for Unknown {}

impl TryFrom<Work> for Kind {
    type Error = Unknown;

    fn try_from(work: Work) -> Result<Kind, Unknown> {
        Kind::read(&work).ok_or(Unknown(work.kind))
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    postcard::from_bytes(body).ok()
}

/// The bytes of plain data, which can always be written.
pub(crate) fn body(work: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(work).unwrap_or_default()
}

/// As it travels, in bytes: for an engine in another memory.
pub(crate) fn packed(work: &dyn About) -> Vec<u8> {
    body(&Work { kind: work.name().into(), body: work.body() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noop::NoopWork;

    #[test]
    fn work_is_read_as_it_was_written_and_not_as_another_kind() {
        let kind = Kind::Noop(NoopWork);
        assert_eq!(Kind::read(&kind.work()), Some(kind.clone()));
        let other = Work { kind: "dance".into(), ..kind.work() };
        assert_eq!(Kind::read(&other), None);
        let torn = Work { kind: "map".into(), body: [1, 2, 3].into() };
        assert_eq!(Kind::read(&torn), None);
    }
}
