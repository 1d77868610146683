//! The check of kernels and programs before anything is stored, and what must be known to run them.
//!
//! A kernel's bindings are all in group 0: `var<storage, read>` arrays are the inputs in binding
//! order, the one `var<storage, read_write>` array is the output, and at most one `var<uniform>`
//! (or read-only storage struct) holds parameters, filled by name. A simulation's are named: `state`, `next`,
//! `picture` and a uniform block. Whatever comes in, the answer is
//! a plan or an [`IntakeError`], never a panic.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "the compilers' own enums grow with every version"
)]

mod asked;
mod batch;
mod bind;
mod component;
mod depth;
mod element;
mod fold;
mod kernel;
mod language;
mod model;
mod module;
mod names;
mod params;
mod parts;
mod pieces;
mod portable;
mod reach;
mod sim;
mod source;
mod words;

use std::thread;

pub use asked::{EngineIntake, values};
pub use batch::batch;
pub use language::language_model;
pub use model::model;
pub use names::input_names;
pub use params::ParamValue;
pub use parts::parts;
use shoal_kinds::SimWork;
use shoal_kinds::map::fold::How;
pub use shoal_kinds::{
    ElementType, InputAsk, IntakeError, MapAsk, MapPlan, MapReading, Reading, RenderPlan,
};
use shoal_kinds::{FoldPlan, ProgramForm};
use shoal_protocol::Needs;
pub use sim::SimAsk;

/// A chain of declarations as long as the longest kernel takes 4 MiB, the deepest expression that
/// [`depth`] lets through 1 MiB; an unoptimised build some times that. Untouched pages cost nothing.
const STACK_BYTES: usize = 64 << 20;

/// Checks a kernel over arrays. `entry` may be left out if there is only one compute entry point.
pub fn map_kernel(
    wgsl: &str,
    entry: Option<&str>,
    params: &[(String, ParamValue)],
) -> Result<MapPlan, IntakeError> {
    contained("bad_kernel", || kernel::map(wgsl, entry, params))
}

/// Reads where a checked kernel's items look in their arrays.
pub fn map_reading(
    wgsl: &str,
    entry: Option<&str>,
    params: &[(String, ParamValue)],
    ask: &MapAsk,
) -> Result<MapReading, IntakeError> {
    contained("bad_kernel", || kernel::map_reading(wgsl, entry, params, ask))
}

/// Checks how the outputs of a map's `items` are brought together: `out_per_item` elements of each.
pub fn fold(
    how: &How,
    output: &ElementType,
    out_per_item: u32,
    items: u64,
) -> Result<FoldPlan, IntakeError> {
    contained("bad_reduce", || fold::check(how, output, out_per_item, items))
}

/// Checks a kernel over the tiles of a picture. It has no inputs, and its output is `array<u32>`
/// (packed by `pack4x8unorm`) or `array<vec4<f32>>` (linear light).
pub fn render_kernel(
    wgsl: &str,
    entry: Option<&str>,
    params: &[(String, ParamValue)],
) -> Result<RenderPlan, IntakeError> {
    contained("bad_kernel", || kernel::render(wgsl, entry, params))
}

/// Checks a simulation. Beside its passes a file may have entry points `init`, which makes the first state,
/// and `show`, which makes a picture.
pub fn sim(ask: &SimAsk<'_>) -> Result<(SimWork, Needs), IntakeError> {
    contained("bad_kernel", || sim::check(ask))
}

/// Checks a WASI program, which may start with `memory_limit` bytes. It stays as it is, because it is
/// signed: whoever runs it keeps it to that limit.
pub fn wasi_program(wasm: &[u8], memory_limit: u64) -> Result<ProgramForm, IntakeError> {
    contained("bad_module", || match component::is_component(wasm) {
        true => component::check(wasm, memory_limit).map(|()| ProgramForm::Component),
        false => module::check(wasm, memory_limit).map(|()| ProgramForm::Module),
    })
}

/// Whether a program that passed the check asks for anything by a path: one that does not makes no files.
pub fn knows_paths(wasm: &[u8]) -> bool {
    module::knows_paths(wasm)
}

/// Compilers are large and input is hostile: a fault of theirs must stay an error of one request. They
/// also descend into what nests and into what declarations refer to, so they get a stack of their own.
fn contained<T: Send>(
    code: &'static str,
    check: impl FnOnce() -> Result<T, IntakeError> + Send,
) -> Result<T, IntakeError> {
    thread::scope(|scope| {
        let started = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, check);
        let ended = started.map(|thread| thread.join());
        match ended {
            Ok(Ok(result)) => result,
            Ok(Err(_panic)) => Err(IntakeError::plain(
                code,
                "the check itself failed on this input; please report it",
            )),
            Err(error) => {
                Err(IntakeError::plain(code, format!("the check could not start: {error}")))
            }
        }
    })
}
