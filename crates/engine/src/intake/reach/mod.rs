//! Where the items of a map look. Units are cut anywhere, so an item must come out the same in every unit. A
//! kernel that surely keeps to its own item is run as it is. Any other one is given windows: it counts over
//! whole arrays, and a look outside its window is reported when it happens. What can be no map is refused.

mod count;
mod eval;
mod mark;
mod names;
mod value;
mod walk;

use std::collections::BTreeSet;

use naga::{
    ArraySize, Binding, BuiltIn, Expression, Function, GlobalVariable, Handle, Module, TypeInner,
};
use shoal_kinds::{
    InputAsk, IntakeError, Kernel, MapAsk, MapReading, Params, Reading, Slot, Window, Windows,
};

use super::bind::{self, Bound};
use super::kernel::{Checked, validated};
use super::source::error_at;
use crate::window::{self, PREFIX};
pub(super) use names::check as check_names;
use walk::{Array, Look, Note, Walk};

#[cfg(test)]
mod tests;

/// Reads where items look. `kernel` is what the same source was found to be.
pub(super) fn read(
    checked: &Checked<'_>,
    bound: &Bound,
    kernel: &Kernel,
    ask: &MapAsk,
) -> Result<MapReading, IntakeError> {
    let file = File { checked, bound, kernel, ask };
    file.no_atomics()?;
    let arrays = file.arrays();
    let params = file.params();
    let mut walk = Walk::new(checked, &arrays, params);
    walk.run();
    let gave_up = walk.gave_up;
    let whole_groups = walk.whole_groups || file.counts_in_groups() || gave_up;
    let notes = walk.notes;
    file.refuse(&notes)?;
    let mut inputs: Vec<_> = (0..ask.inputs.len()).map(|at| file.reading(at, &notes)).collect();
    if gave_up {
        // What was not gone through may read anything.
        inputs.fill(Reading::Anywhere { line: 1 });
    }
    let asked = ask.inputs.iter().any(|input| input.overlap.is_some());
    if notes.is_empty() && !asked && !gave_up {
        return Ok(MapReading { windows: None, inputs, whole_groups });
    }
    for (input, reading) in ask.inputs.iter().zip(&mut inputs) {
        if let Some(elements) = input.overlap {
            *reading = Reading::Near { elements };
        }
    }
    let windows = file.windows(!whole_groups)?;
    Ok(MapReading { windows: Some(windows), inputs, whole_groups })
}

struct File<'a> {
    checked: &'a Checked<'a>,
    bound: &'a Bound,
    kernel: &'a Kernel,
    ask: &'a MapAsk,
}

impl<'a> File<'a> {
    /// The inputs, then the output.
    fn arrays(&self) -> Vec<Array> {
        let inputs = self.bound.input_variables.iter().zip(&self.ask.inputs);
        let inputs = inputs.map(|(&variable, input)| Array {
            variable,
            is_output: false,
            per_item: (!self.is_whole(variable, input)).then_some(input.per_item.into()),
        });
        let output = self.bound.output.iter().map(|&(_, variable)| Array {
            variable,
            is_output: true,
            per_item: Some(self.ask.out_per_item.into()),
        });
        inputs.chain(output).collect()
    }

    /// An array with a size of its own cannot be a part.
    fn is_whole(&self, variable: Handle<GlobalVariable>, input: &InputAsk) -> bool {
        input.whole || self.is_sized(variable)
    }

    fn is_sized(&self, variable: Handle<GlobalVariable>) -> bool {
        let module = self.checked.module;
        let ty = module.global_variables[variable].ty;
        matches!(module.types[ty].inner, TypeInner::Array { size, .. } if size != ArraySize::Dynamic)
    }

    fn params(&self) -> Option<(Handle<GlobalVariable>, &'a Params)> {
        let (_, variable) = self.bound.params?;
        Some((variable, self.kernel.params.as_ref()?))
    }

    fn no_atomics(&self) -> Result<(), IntakeError> {
        let Some((_, variable)) = self.bound.output else { return Ok(()) };
        let module = self.checked.module;
        if !has_atomics(module, module.global_variables[variable].ty) {
            return Ok(());
        }
        let name = self.name(variable);
        let what = format!(
            "`{name}` is counted up by many items, but each item of a map has an output of its own: \
             items run on different devices, which share nothing. Let each item write its own numbers \
             (`--out-per N` for N of them) and add them up with `--reduce sum`"
        );
        Err(self.checked.error(variable, &what, "atomics cannot be the output"))
    }

    /// Whether the kernel asks where in its workgroup it is, or which.
    fn counts_in_groups(&self) -> bool {
        let function = &self.checked.entry().function;
        let asks = |binding: Option<&Binding>| match binding {
            Some(Binding::BuiltIn(builtin)) => *builtin != BuiltIn::GlobalInvocationId,
            _ => false,
        };
        function.arguments.iter().any(|argument| {
            let ty = &self.checked.module.types[argument.ty].inner;
            let in_struct = match ty {
                TypeInner::Struct { members, .. } => {
                    members.iter().any(|member| asks(member.binding.as_ref()))
                }
                _ => false,
            };
            asks(argument.binding.as_ref()) || in_struct
        })
    }

    /// What is wrong wherever units are cut.
    fn refuse(&self, notes: &[Note]) -> Result<(), IntakeError> {
        for note in notes {
            let Note::Look { array, at, span } = *note else { continue };
            let source = self.checked.source;
            let inputs = &self.bound.input_variables;
            let problem = match (inputs.get(array), at) {
                (Some(input), Look::Spaced(per)) => {
                    let name = self.name(*input);
                    let own = self.ask.inputs[array].per_item;
                    let what = format!(
                        "each item reads `{name}` from {per} times its place on, but has {own} of its \
                         elements: say `--in-per {name}={per}` if each item has {per}, or `--whole {name}` \
                         if items share them"
                    );
                    (what, format!("expected a place around {own} times the item's"))
                }
                (None, Look::Spaced(per)) => {
                    let own = self.ask.out_per_item;
                    let what = format!(
                        "each item writes from {per} times its place on, but has {own} elements of the \
                         output: say `--out-per {per}` if each item writes {per}"
                    );
                    (what, format!("expected a place around {own} times the item's"))
                }
                (None, Look::Near(..)) => {
                    let what = "an item writes where another item's output is: items run on different \
                                devices, and each writes only its own. Turn it around, so that an item \
                                reads elsewhere: `output[i] = input[i - 1u]` instead of \
                                `output[i + 1u] = input[i]`";
                    (what.to_owned(), "not this item's own place".to_owned())
                }
                (Some(_), Look::Near(..) | Look::Anywhere) | (None, Look::Anywhere) => continue,
            };
            return Err(error_at(source, Some(span), &problem.0, &problem.1));
        }
        Ok(())
    }

    fn reading(&self, input: usize, notes: &[Note]) -> Reading {
        let (variable, ask) = (self.bound.input_variables[input], self.ask.inputs[input]);
        if !ask.whole && self.is_sized(variable) {
            let span = self.checked.module.global_variables.get_span(variable);
            return Reading::Anywhere { line: self.line(span) };
        }
        let own = i64::from(ask.per_item);
        let mut reading = Reading::Own;
        for note in notes {
            let Note::Look { array, at, span } = *note else { continue };
            if array != input {
                continue;
            }
            match at {
                Look::Near(lo, hi) => {
                    let far = (-lo).max(hi - own + 1).clamp(0, u32::MAX.into()) as u32;
                    let before = match reading {
                        Reading::Near { elements } => elements,
                        Reading::Own | Reading::Anywhere { .. } => 0,
                    };
                    reading = Reading::Near { elements: far.max(before) };
                }
                // Whoever says how many elements an item has is believed until one looks elsewhere.
                Look::Spaced(_) | Look::Anywhere if own > 1 => {}
                Look::Spaced(_) | Look::Anywhere => {
                    return Reading::Anywhere { line: self.line(span) };
                }
            }
        }
        reading
    }

    fn windows(&self, may_return: bool) -> Result<Windows, IntakeError> {
        names::check(self.checked.source, self.checked.module)?;
        let variables: Vec<_> = self.arrays().iter().map(|array| array.variable).collect();
        let marks = mark::marks(self.checked, &variables).ok_or_else(|| self.unfollowed())?;
        let inputs = self.bound.inputs.iter().enumerate();
        let inputs = inputs.map(|(at, element)| (element, Slot::Input(at as u32)));
        let output = self.bound.output.iter().map(|(element, _)| (element, Slot::Output));
        let arrays = inputs.chain(output).zip(&variables).map(|((element, slot), variable)| {
            Window { name: self.name(*variable).to_owned(), slot, stride: element.stride }
        });
        let taken = |index: &u32| self.kernel.bindings.iter().any(|it| it.index == *index);
        let mut free = (0..).filter(|index| !taken(index));
        let (block, report) = (free.next().unwrap_or(0), free.next().unwrap_or(0));
        let windows = Windows {
            marks,
            arrays: arrays.collect(),
            block,
            report,
            edge: self.ask.edge,
            may_return,
        };
        self.check(windows)
    }

    /// Sees that the text with additions is a kernel that looks through its windows only.
    fn check(&self, windows: Windows) -> Result<Windows, IntakeError> {
        let kernel = Kernel { windows: Some(windows), ..self.kernel.clone() };
        let text = window::text(&kernel).map_err(|_| self.unfollowed())?;
        let (module, _) = validated(&text).map_err(|_| self.unfollowed())?;
        if !looks_through(&module, kernel.windows.as_ref()) {
            return Err(self.unfollowed());
        }
        kernel.windows.ok_or_else(|| self.unfollowed())
    }

    fn unfollowed(&self) -> IntakeError {
        let what = "the kernel looks beyond its own item in a way that Shoal cannot follow: index the arrays \
                    by name, as in `input[i + 1u]`";
        IntakeError::plain("bad_kernel", what)
    }

    fn name(&self, variable: Handle<GlobalVariable>) -> &'a str {
        bind::name(&self.checked.module.global_variables[variable])
    }

    fn line(&self, span: naga::Span) -> u32 {
        span.location(self.checked.source).line_number
    }
}

/// Each type is looked at once: structs of structs may name the same one a billion times.
fn has_atomics(module: &Module, ty: Handle<naga::Type>) -> bool {
    let (mut open, mut seen) = (vec![ty], BTreeSet::new());
    while let Some(ty) = open.pop() {
        if !seen.insert(ty) {
            continue;
        }
        match &module.types[ty].inner {
            TypeInner::Atomic(_) => return true,
            TypeInner::Array { base, .. } => open.push(*base),
            TypeInner::Struct { members, .. } => open.extend(members.iter().map(|it| it.ty)),
            _ => {}
        }
    }
    false
}

/// Whether every index of the arrays, and every length, comes from a function of Shoal's.
fn looks_through(module: &Module, windows: Option<&Windows>) -> bool {
    let Some(windows) = windows else { return false };
    let number =
        |function: &Function, pointer: Handle<Expression>| match function.expressions[pointer] {
            Expression::GlobalVariable(variable) => {
                let name = module.global_variables[variable].name.as_deref();
                windows.arrays.iter().position(|window| name == Some(&window.name))
            }
            _ => None,
        };
    let is_call = |function: &Function, index: Handle<Expression>, wanted: &str| match function
        .expressions[index]
    {
        Expression::CallResult(called) => module.functions[called].name.as_deref() == Some(wanted),
        _ => false,
    };
    let own =
        |function: &Function| function.name.as_deref().is_some_and(|name| name.starts_with(PREFIX));
    let functions = module.functions.iter().map(|(_, function)| function);
    let entries = module.entry_points.iter().map(|entry| &entry.function);
    functions.chain(entries).filter(|function| !own(function)).all(|function| {
        let lengths = function.expressions.iter().filter(|(_, it)| {
            matches!(it, Expression::ArrayLength(array) if number(function, *array).is_some())
        });
        let calls = function.expressions.iter().filter(|(_, it)| {
            let Expression::CallResult(called) = it else { return false };
            let name = module.functions[*called].name.as_deref().unwrap_or("");
            name.starts_with("shoal_length_")
        });
        let indices = function.expressions.iter().all(|(_, it)| match it {
            Expression::Access { base, index } => match number(function, *base) {
                Some(array) => is_call(function, *index, &format!("shoal_at_{array}")),
                None => true,
            },
            Expression::AccessIndex { base, .. } => number(function, *base).is_none(),
            _ => true,
        });
        indices && lengths.count() == calls.count()
    })
}
