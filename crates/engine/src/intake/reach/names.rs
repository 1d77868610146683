//! Names that belong to what Shoal adds to a text, or that it relies on.

use naga::{Module, Span};

use super::PREFIX;
use super::mark::code;
use crate::intake::IntakeError;
use crate::intake::source::error_at;

/// What the additions call: a function of that name in the kernel would be called instead.
const CALLED: [&str; 13] = [
    "select",
    "atomicAdd",
    "atomicStore",
    "min",
    "max",
    "bitcast",
    "arrayLength",
    "u32",
    "vec2",
    "vec3",
    "vec4",
    "array",
    "atomic",
];

/// Refuses a text whose names get in the way of Shoal's additions.
pub(in crate::intake) fn check(source: &str, module: &Module) -> Result<(), IntakeError> {
    let taken = |span: Option<Span>, name: &str| {
        let what = format!("`{name}` is a name that Shoal adds to this kernel: take another one");
        Err(error_at(source, span, &what, "taken"))
    };
    if let Some(at) = own_name(source) {
        return taken(Some(Span::new(at as u32, (at + PREFIX.len()) as u32)), PREFIX);
    }
    let functions = module
        .functions
        .iter()
        .map(|(handle, it)| (it.name.as_deref(), module.functions.get_span(handle)));
    let types =
        module.types.iter().map(|(handle, it)| (it.name.as_deref(), module.types.get_span(handle)));
    let constants = module
        .constants
        .iter()
        .map(|(handle, it)| (it.name.as_deref(), module.constants.get_span(handle)));
    let variables = module
        .global_variables
        .iter()
        .map(|(handle, it)| (it.name.as_deref(), module.global_variables.get_span(handle)));
    for (name, span) in functions.chain(types).chain(constants).chain(variables) {
        if let Some(name) = name.filter(|name| CALLED.contains(name)) {
            return taken(Some(span), name);
        }
    }
    Ok(())
}

/// Where a name begins, outside of comments, as Shoal's do.
fn own_name(source: &str) -> Option<usize> {
    let mut inside_name = false;
    for (at, c) in code(source, 0, source.len()) {
        if !inside_name && source[at..].starts_with(PREFIX) {
            return Some(at);
        }
        inside_name = c == '_' || c.is_alphanumeric();
    }
    None
}
