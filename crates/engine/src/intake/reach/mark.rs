//! Where in a kernel's text something is added, so that it counts over whole arrays. The compiler says which
//! part of the text an expression is; brackets and names are looked for in that.

use naga::{Binding, BuiltIn, Expression, Function, GlobalVariable, Handle, TypeInner};
use shoal_kinds::kernel::{Addition, Argument, Builtin, Given, Mark};

use crate::intake::kernel::Checked;

/// None where the text is not as expected.
pub(super) fn marks(kernel: &Checked<'_>, arrays: &[Handle<GlobalVariable>]) -> Option<Vec<Mark>> {
    let mut found = Found::default();
    let functions = kernel.module.functions.iter().map(|(_, function)| function);
    let entries = kernel.module.entry_points.iter().map(|entry| &entry.function);
    for function in functions.chain(entries) {
        found.function(kernel.source, function, arrays)?;
    }
    found.entry(kernel)?;
    // An outer addition comes first where one begins, and last where one ends.
    found.all.sort_by_key(|(at, rank, _)| (*at, *rank));
    Some(found.all.into_iter().map(|(at, _, add)| Mark { at, add }).collect())
}

#[derive(Default)]
struct Found {
    /// With the place and, among those of one place, the rank.
    all: Vec<(u32, i64, Addition)>,
}

impl Found {
    fn function(
        &mut self,
        source: &str,
        function: &Function,
        arrays: &[Handle<GlobalVariable>],
    ) -> Option<()> {
        let array = |pointer: Handle<Expression>| match function.expressions[pointer] {
            Expression::GlobalVariable(variable) => arrays.iter().position(|it| *it == variable),
            _ => None,
        };
        for (handle, expression) in function.expressions.iter() {
            let range = || function.expressions.get_span(handle).to_range();
            match expression {
                Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                    if let Some(array) = array(*base) {
                        let (start, end) = brackets(source, range()?)?;
                        let array = Addition::Index(array as u32);
                        self.pair(start, end, array, Addition::IndexEnd);
                    }
                }
                Expression::ArrayLength(pointer) => {
                    if let Some(array) = array(*pointer) {
                        let start = range()?.start;
                        let end = call_end(source, start)?;
                        let array = Addition::Length(array as u32);
                        self.pair(start, end, array, Addition::LengthEnd);
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    fn pair(&mut self, start: usize, end: usize, open: Addition, close: Addition) {
        let length = (end - start) as i64;
        self.all.push((start as u32, -length, open));
        // Whatever ends here does so before anything begins.
        self.all.push((end as u32, length - (1 << 32), close));
    }

    fn entry(&mut self, kernel: &Checked<'_>) -> Option<()> {
        let function = &kernel.entry().function;
        let mut arguments = Vec::new();
        let mut last = None;
        for (handle, expression) in function.expressions.iter() {
            let Expression::FunctionArgument(at) = expression else { continue };
            let argument = &function.arguments[*at as usize];
            let place = function.expressions.get_span(handle).to_range()?;
            last = last.max(Some(place.end));
            let Some(given) = given(kernel, argument) else { continue };
            let name = argument.name.clone()?;
            self.all.push((place.start as u32, 0, Addition::Argument));
            arguments.push(Argument { name, given });
        }
        if !arguments.is_empty() {
            let body = body(kernel.source, last?)?;
            self.all.push((body as u32, 0, Addition::Body(arguments)));
        }
        Some(())
    }
}

/// What counts within the unit in an argument, if anything does.
fn given(kernel: &Checked<'_>, argument: &naga::FunctionArgument) -> Option<Given> {
    if let Some(binding) = &argument.binding {
        return builtin(binding).map(Given::Builtin);
    }
    let TypeInner::Struct { members, .. } = &kernel.module.types[argument.ty].inner else {
        return None;
    };
    let members: Vec<_> = members
        .iter()
        .filter_map(|it| Some((it.name.clone()?, builtin(it.binding.as_ref()?)?)))
        .collect();
    (!members.is_empty()).then_some(Given::Members(members))
}

fn builtin(binding: &Binding) -> Option<Builtin> {
    match binding {
        Binding::BuiltIn(BuiltIn::GlobalInvocationId) => Some(Builtin::GlobalInvocationId),
        Binding::BuiltIn(BuiltIn::WorkGroupId) => Some(Builtin::WorkgroupId),
        Binding::BuiltIn(BuiltIn::NumWorkGroups) => Some(Builtin::NumWorkgroups),
        _ => None,
    }
}

/// What stands in the last brackets of an expression such as `input[i]`.
fn brackets(source: &str, range: std::ops::Range<usize>) -> Option<(usize, usize)> {
    let (mut depth, mut open, mut inside) = (0, 0, None);
    for (at, c) in code(source, range.start, range.end) {
        match c {
            '[' | '(' => {
                if depth == 0 {
                    open = at + 1;
                }
                depth += 1;
            }
            ']' | ')' => {
                depth -= 1;
                if depth == 0 {
                    inside = (c == ']' && at + 1 == range.end).then_some((open, at));
                }
            }
            _ => {}
        }
    }
    inside
}

/// Behind a call that begins at `from`.
fn call_end(source: &str, from: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in code(source, from, source.len()) {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at + 1),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Behind the brace that opens a function, from somewhere among its arguments on.
fn body(source: &str, from: usize) -> Option<usize> {
    let mut code = code(source, from, source.len());
    code.find(|(_, c)| *c == '{').map(|(at, _)| at + 1)
}

/// A text's characters without comments.
pub(super) fn code(source: &str, from: usize, to: usize) -> impl Iterator<Item = (usize, char)> {
    let text = source.get(from..to).unwrap_or("");
    let mut skip_to = 0;
    text.char_indices().filter_map(move |(at, c)| {
        if at < skip_to {
            return None;
        }
        let rest = &text[at..];
        if rest.starts_with("//") {
            skip_to = rest.find('\n').map_or(text.len(), |end| at + end);
            return None;
        }
        if rest.starts_with("/*") {
            skip_to = at + comment(rest);
            return None;
        }
        Some((from + at, c))
    })
}

/// The length of the comment, in which others may be, that a text begins with.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}
