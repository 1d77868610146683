//! Which binding is what: the parameter block, the state, the next state, the picture.

use naga::valid::GlobalUse;
use naga::{
    AddressSpace, ArraySize, GlobalVariable, Handle, Module, StorageAccess, Type, TypeInner,
};
use shoal_kinds::SimSlots;

use super::{Entry, File, bad};
use crate::intake::bind::name;
use crate::intake::source::error_at;
use crate::intake::{ElementType, IntakeError, element};

pub(super) struct Slots {
    pub(super) slots: SimSlots,
    pub(super) cell: ElementType,
    /// The parameter block's type and variable.
    pub(super) params: (Handle<Type>, Handle<GlobalVariable>),
}

type Variable = Handle<GlobalVariable>;

/// The variables by role.
#[derive(Default)]
struct Found {
    params: Option<Variable>,
    state: Option<Variable>,
    next: Option<Variable>,
    picture: Option<Variable>,
}

pub(super) fn bind(
    file: &File<'_>,
    passes: &[Entry<'_>],
    init: Option<&Entry<'_>>,
    show: Option<&Entry<'_>>,
) -> Result<Slots, IntakeError> {
    let mut found = Found::default();
    for (handle, variable) in file.module.global_variables.iter() {
        if variable.binding.is_some() {
            found.add(file, handle, variable)?;
        }
    }
    let missing = |what: &str| bad(format!("the simulation has no {what}"));
    let params = found.params.ok_or_else(|| {
        missing(
            "parameter block; expected `@group(0) @binding(0) var<uniform> params: Params` with \
             members such as `width` and `rows`",
        )
    })?;
    let state = found.state.ok_or_else(|| {
        missing("`state`; expected `@group(0) @binding(1) var<storage, read> state: array<f32>`")
    })?;
    let next = found.next.ok_or_else(|| {
        missing(
            "`next`; expected `@group(0) @binding(2) var<storage, read_write> next: array<f32>`",
        )
    })?;
    let cell = cell(file, state, next)?;
    let roles = Roles { file, state, next, picture: found.picture };
    roles.check(passes, init, show)?;
    let index = |handle: Variable| {
        file.module.global_variables[handle].binding.as_ref().map_or(0, |place| place.binding)
    };
    let picture = show.and(found.picture);
    let bound = [Some(params), Some(state), Some(next), picture];
    let mut indices: Vec<_> = bound.into_iter().flatten().map(index).collect();
    indices.sort_unstable();
    if let Some(pair) = indices.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(bad(format!("two variables have @binding({})", pair[0])));
    }
    let slots = SimSlots {
        params: index(params),
        state: index(state),
        next: index(next),
        picture: picture.map(index),
    };
    Ok(Slots { slots, cell, params: (file.module.global_variables[params].ty, params) })
}

impl Found {
    fn add(
        &mut self,
        file: &File<'_>,
        handle: Variable,
        variable: &GlobalVariable,
    ) -> Result<(), IntakeError> {
        let called = name(variable);
        if let Some(place) = variable.binding.as_ref().filter(|place| place.group != 0) {
            let what =
                format!("`{called}` is in group {}; put all bindings in group 0", place.group);
            return Err(file.error(handle, &what, "in another group"));
        }
        let place = match (variable.space, called) {
            (AddressSpace::Uniform, _) => &mut self.params,
            (AddressSpace::Storage { access }, "state") => {
                if access.contains(StorageAccess::STORE) {
                    let what = "`state` is what a pass reads: it must be `var<storage, read>`";
                    return Err(file.error(handle, what, "writable"));
                }
                &mut self.state
            }
            (AddressSpace::Storage { access }, "next" | "picture") => {
                if !access.contains(StorageAccess::STORE) {
                    let what =
                        format!("`{called}` is written: it must be `var<storage, read_write>`");
                    return Err(file.error(handle, &what, "read only"));
                }
                if called == "next" { &mut self.next } else { &mut self.picture }
            }
            _ => {
                let what = format!(
                    "`{called}` is none of a simulation's bindings: a uniform block, `state`, `next` and \
                     `picture`"
                );
                return Err(file.error(handle, &what, "cannot be bound"));
            }
        };
        match place.replace(handle) {
            None => Ok(()),
            Some(first) => {
                let first = name(&file.module.global_variables[first]);
                let what =
                    format!("`{first}` and `{called}` are the same kind of binding; expected one");
                Err(file.error(handle, &what, "a second one"))
            }
        }
    }
}

/// A cell that is the same bytes wherever it was computed.
fn cell(file: &File<'_>, state: Variable, next: Variable) -> Result<ElementType, IntakeError> {
    let types = [state, next].map(|it| (it, array(file.module, it)));
    for (handle, found) in &types {
        if found.is_none() {
            let variable = &file.module.global_variables[*handle];
            let what = format!(
                "`{}` is {}; expected an array of cells without a size, such as array<vec2<f32>>",
                name(variable),
                element::name(file.module, variable.ty)
            );
            return Err(file.error(*handle, &what, "no array of cells"));
        }
    }
    let [(_, Some((base, stride))), (_, Some((other, _)))] = types else {
        return Err(bad("`state` and `next` must be arrays of cells"));
    };
    let cell = element::element(file.module, base, stride);
    if base != other {
        let other = element::name(file.module, other);
        let what = format!("`next` is an array of {other}, but `state` one of {}", cell.name);
        return Err(file.error(next, &what, "another cell"));
    }
    if !["f32", "i32", "u32"].contains(&cell.scalar.as_str()) {
        let what = format!(
            "a cell is made of {} numbers; expected only f32, only i32 or only u32",
            cell.scalar
        );
        return Err(file.error(state, &what, "of several kinds"));
    }
    let used = element::scalars(file.module, base);
    if used != u64::from(cell.lanes) {
        let what = format!(
            "a cell, {}, holds {used} numbers but takes the room of {}: nobody writes the rest, so that \
             results would differ; use it all, as a vec4 does",
            cell.name, cell.lanes
        );
        return Err(file.error(state, &what, "has gaps"));
    }
    Ok(cell)
}

fn array(module: &Module, variable: Variable) -> Option<(Handle<Type>, u32)> {
    match module.types[module.global_variables[variable].ty].inner {
        TypeInner::Array { base, size: ArraySize::Dynamic, stride } => Some((base, stride)),
        _ => None,
    }
}

/// Who may touch what. A member keeps the state before a step in the buffer that is not its state: a
/// picture must not write there.
struct Roles<'a> {
    file: &'a File<'a>,
    state: Variable,
    next: Variable,
    picture: Option<Variable>,
}

impl Roles<'_> {
    fn check(
        &self,
        passes: &[Entry<'_>],
        init: Option<&Entry<'_>>,
        show: Option<&Entry<'_>>,
    ) -> Result<(), IntakeError> {
        for entry in passes.iter().chain(init) {
            let called = &entry.1.entry;
            if !entry.0.usage(self.next).contains(GlobalUse::WRITE) {
                return Err(bad(format!("`{called}` does not write `next`")));
            }
            if self.picture.is_some_and(|picture| entry.0.uses(picture)) {
                return Err(bad(format!("`{called}` uses `picture`, which is for `show` only")));
            }
        }
        if init.is_some_and(|(kernel, _)| kernel.uses(self.state)) {
            return Err(bad("`init` makes the first state: there is no `state` it could read"));
        }
        let Some((kernel, _)) = show else {
            return Ok(());
        };
        if kernel.uses(self.next) {
            return Err(bad("`show` uses `next`; it reads `state` and writes `picture`"));
        }
        let pixel = self.picture.and_then(|it| Some((it, array(self.file.module, it)?.0)));
        match pixel {
            Some((it, base)) if kernel.usage(it).contains(GlobalUse::WRITE) => {
                let ty = element::name(self.file.module, base);
                if ty == "u32" {
                    return Ok(());
                }
                let what =
                    format!("a picture is array<u32>, as pack4x8unorm makes it; not array<{ty}>");
                Err(self.file.error(it, &what, "not pixels"))
            }
            _ => Err(bad("`show` writes no `picture`; expected `@group(0) @binding(3) \
                 var<storage, read_write> picture: array<u32>`")),
        }
    }
}

impl File<'_> {
    /// An error at a global variable.
    fn error(&self, at: Variable, what: &str, label: &str) -> IntakeError {
        error_at(self.source, Some(self.module.global_variables.get_span(at)), what, label)
    }
}
