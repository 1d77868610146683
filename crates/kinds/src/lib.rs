//! What is particular to each kind of work, a folder each: `map`, `render`, `exec`, `sim`, `onnx`, `llm`, `noop`. Pure: it reads
//! requests, makes plans and answers questions; engines compute, shells fetch and store.
//!
//! A kind's folder holds its work (what a node is told), its request and plan (feature `plan`), and in [`About`]
//! what others ask of it: where it runs, what its code is, what its results are made of, what is shown of it. Other
//! crates ask; they do not look which kind it is. One kind never knows another.
//!
//! - [`kind`]: the list of kinds
//! - [`job`]: a job, its work and all that was agreed about it
//! - [`feed`]: which bytes a unit is given
//! - [`form`]: what results are made of
//! - [`crew`]: what a crew has to do, as placement sees it
//! - [`kernel`]: what kinds with WGSL kernels share, [`intake`]: why user code is refused
//! - [`plan`]: from a client's request to a job
//! - [`npy`]: the head of files that results are handed out as
//! - [`wire`]: how numbers travel between devices that compute together
//! - [`plain`]: work in plain values, for JavaScript
// What describes the requests needs std; nothing else here may.
#![cfg_attr(not(feature = "schema"), no_std)]

extern crate alloc;

#[cfg(feature = "count")]
pub mod count;
pub mod crew;
pub mod exec;
pub mod feed;
pub mod form;
pub mod intake;
pub mod job;
pub mod kernel;
pub mod kind;
pub mod llm;
pub mod map;
pub mod noop;
pub mod npy;
pub mod onnx;
pub mod plain;
#[cfg(feature = "plan")]
pub mod plan;
pub mod render;
pub mod sim;
pub mod wire;

pub use crew::{Chain, ChainPart, CrewPlan, CrewProblem, Group, Recovery, Ring, Totals};
pub use exec::{ExecItems, ExecWork, Failing, ProgramForm};
pub use feed::{Feed, InputSplit};
pub use form::{Form, Shape};
pub use intake::IntakeError;
pub use job::{JobSpec, ServiceSpec, Split};
pub use kernel::{Binding, Edge, ElementType, Field, Kernel, Params, Slot, Space, Window, Windows};
pub use kind::{About, Code, Kind, Told};
pub use llm::LlmWork;
pub use map::{Fold, FoldPlan, InputAsk, MapAsk, MapPlan, MapReading, MapWork, Reading, TooFar};
pub use noop::NoopWork;
pub use onnx::OnnxWork;
pub use plain::Plain;
pub use render::{Pixel, RenderPlan, RenderWork};
pub use sim::{Figures, MAX_REDUCED, Pass, Reduce, SimField, SimSlots, SimWork, TRIAL_STEPS};
pub use wire::Wire;
