//! Which binding is what: inputs, the output, the parameter block.

use naga::{
    AddressSpace, ArraySize, GlobalVariable, Handle, Module, StorageAccess, Type, TypeInner,
};
use shoal_kinds::{Binding, Slot, Space};

use super::kernel::Checked;
use super::source::error_at;
use super::{ElementType, IntakeError, element};

/// The bindings of one entry point.
#[derive(Default)]
pub(super) struct Bound {
    pub(super) bindings: Vec<Binding>,
    pub(super) inputs: Vec<ElementType>,
    /// Where they are declared.
    pub(super) input_variables: Vec<Handle<GlobalVariable>>,
    /// The output's element and where it is declared.
    pub(super) output: Option<(ElementType, Handle<GlobalVariable>)>,
    /// The parameter block's type and variable.
    pub(super) params: Option<(Handle<Type>, Handle<GlobalVariable>)>,
}

pub(super) fn bind(kernel: &Checked<'_>) -> Result<Bound, IntakeError> {
    let mut found = Vec::new();
    for (handle, variable) in kernel.module.global_variables.iter() {
        let Some(place) = &variable.binding else {
            continue;
        };
        // What another entry point uses is none of this one's business.
        if !kernel.uses(handle) && kernel.module.entry_points.len() > 1 {
            continue;
        }
        if place.group != 0 {
            let what = format!(
                "`{}` is in group {}; put all bindings in group 0",
                name(variable),
                place.group
            );
            return Err(kernel.error(handle, &what, "in another group"));
        }
        found.push((place.binding, handle));
    }
    found.sort_by_key(|(index, _)| *index);
    if let Some(pair) = found.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let what = format!("two variables have @binding({})", pair[0].0);
        return Err(kernel.error(pair[1].1, &what, "the second one"));
    }
    let mut bound = Bound::default();
    for (index, handle) in found {
        let (space, slot) = bound.add(kernel, handle)?;
        bound.bindings.push(Binding { index, space, slot });
    }
    Ok(bound)
}

impl Bound {
    fn add(
        &mut self,
        kernel: &Checked<'_>,
        handle: Handle<GlobalVariable>,
    ) -> Result<(Space, Slot), IntakeError> {
        let variable = &kernel.module.global_variables[handle];
        match variable.space {
            AddressSpace::Uniform => self.add_params(kernel, handle, Space::Uniform),
            AddressSpace::Storage { access } if !access.contains(StorageAccess::STORE) => {
                match array(kernel.module, variable.ty) {
                    Some((element, _)) => {
                        self.inputs.push(element);
                        self.input_variables.push(handle);
                        Ok((Space::StorageRead, Slot::Input(self.inputs.len() as u32 - 1)))
                    }
                    None => self.add_params(kernel, handle, Space::StorageRead),
                }
            }
            AddressSpace::Storage { .. } => self.add_output(kernel, handle),
            _ => {
                let ty = element::name(kernel.module, variable.ty);
                let what = format!(
                    "`{}` is {ty}; a kernel binds storage arrays and one uniform block only",
                    name(variable)
                );
                Err(kernel.error(handle, &what, "cannot be bound"))
            }
        }
    }

    fn add_output(
        &mut self,
        kernel: &Checked<'_>,
        handle: Handle<GlobalVariable>,
    ) -> Result<(Space, Slot), IntakeError> {
        let variable = &kernel.module.global_variables[handle];
        if let Some((_, first)) = &self.output {
            let first = name(&kernel.module.global_variables[*first]);
            let what = format!(
                "`{first}` and `{}` are both read_write; a kernel has exactly one output",
                name(variable)
            );
            return Err(kernel.error(handle, &what, "a second output"));
        }
        let Some((element, ArraySize::Dynamic)) = array(kernel.module, variable.ty) else {
            let ty = element::name(kernel.module, variable.ty);
            let what = format!(
                "the output `{}` is {ty}; expected an array such as array<f32>",
                name(variable)
            );
            return Err(kernel.error(handle, &what, "not a runtime-sized array"));
        };
        self.output = Some((element, handle));
        Ok((Space::StorageReadWrite, Slot::Output))
    }

    fn add_params(
        &mut self,
        kernel: &Checked<'_>,
        handle: Handle<GlobalVariable>,
        space: Space,
    ) -> Result<(Space, Slot), IntakeError> {
        let variable = &kernel.module.global_variables[handle];
        if let Some((_, first)) = &self.params {
            let first = name(&kernel.module.global_variables[*first]);
            let what = format!(
                "`{first}` and `{}` both hold parameters; a kernel has at most one parameter block",
                name(variable)
            );
            return Err(kernel.error(handle, &what, "a second parameter block"));
        }
        if !is_sized(kernel.module, variable.ty) {
            let what =
                format!("the parameter block `{}` ends in an array without a size", name(variable));
            return Err(kernel.error(handle, &what, "expected a struct of known size"));
        }
        self.params = Some((variable.ty, handle));
        Ok((space, Slot::Params))
    }
}

impl Checked<'_> {
    /// An error at a global variable.
    pub(super) fn error(&self, at: Handle<GlobalVariable>, what: &str, label: &str) -> IntakeError {
        error_at(self.source, Some(self.module.global_variables.get_span(at)), what, label)
    }
}

pub(super) fn name(variable: &GlobalVariable) -> &str {
    variable.name.as_deref().unwrap_or("a variable without name")
}

fn array(module: &Module, ty: Handle<Type>) -> Option<(ElementType, ArraySize)> {
    match module.types[ty].inner {
        TypeInner::Array { base, size, stride } => {
            Some((element::element(module, base, stride), size))
        }
        _ => None,
    }
}

fn is_sized(module: &Module, ty: Handle<Type>) -> bool {
    match &module.types[ty].inner {
        TypeInner::Array { size, .. } => matches!(size, ArraySize::Constant(_)),
        // Only the last member may lack a size.
        TypeInner::Struct { members, .. } => {
            members.last().is_none_or(|member| is_sized(module, member.ty))
        }
        _ => true,
    }
}
