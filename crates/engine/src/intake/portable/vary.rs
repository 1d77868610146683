//! Which values surely differ between the invocations of a workgroup.

use std::collections::BTreeSet;

use naga::{
    AddressSpace, Binding, BuiltIn, EntryPoint, Expression, Function, Handle, LocalVariable,
    Module, Statement, StorageAccess, TypeInner,
};

use super::{each_statement, operands};

/// One function, looked at.
pub(super) struct Varying<'a> {
    module: &'a Module,
    function: &'a Function,
    /// Given for the entry point, whose arguments are built-in values.
    entry: Option<&'a EntryPoint>,
    locals: BTreeSet<Handle<LocalVariable>>,
}

impl<'a> Varying<'a> {
    pub(super) fn new(
        module: &'a Module,
        function: &'a Function,
        entry: Option<&'a EntryPoint>,
    ) -> Varying<'a> {
        let mut varying = Varying { module, function, entry, locals: BTreeSet::new() };
        varying.find_locals();
        varying
    }

    /// Whether the value of an expression differs.
    pub(super) fn is(&self, handle: Handle<Expression>) -> bool {
        match &self.function.expressions[handle] {
            Expression::FunctionArgument(index) => self.argument(*index, None),
            Expression::AccessIndex { base, index } => match self.function.expressions[*base] {
                Expression::FunctionArgument(at) => self.argument(at, Some(*index)),
                _ => self.is(*base),
            },
            Expression::LocalVariable(local) => self.locals.contains(local),
            // What others may write meanwhile counts as different even where it is not.
            Expression::GlobalVariable(global) => {
                match self.module.global_variables[*global].space {
                    AddressSpace::WorkGroup => true,
                    AddressSpace::Storage { access } => access.contains(StorageAccess::STORE),
                    _ => false,
                }
            }
            Expression::AtomicResult { .. } => true,
            other => operands(other).into_iter().any(|operand| self.is(operand)),
        }
    }

    /// A built-in argument, or a member of a struct of them.
    fn argument(&self, index: u32, member: Option<u32>) -> bool {
        let Some(argument) =
            self.entry.and_then(|entry| entry.function.arguments.get(index as usize))
        else {
            return false;
        };
        if let Some(binding) = &argument.binding {
            return is_per_invocation(binding);
        }
        let TypeInner::Struct { members, .. } = &self.module.types[argument.ty].inner else {
            return false;
        };
        let member = member.and_then(|at| members.get(at as usize));
        member.and_then(|member| member.binding.as_ref()).is_some_and(is_per_invocation)
    }

    /// A variable differs if every value it is ever given does: first all are supposed to, then
    /// those that do not are taken out until nothing changes. A variable of the compiler's own
    /// holds the outcome of `&&` or `||`: there one differing value is enough.
    fn find_locals(&mut self) {
        let stores = self.stores();
        self.locals = stores.iter().map(|(local, _)| *local).collect();
        loop {
            let differs = |local: &Handle<LocalVariable>| {
                let mut values = stores.iter().filter(|(to, _)| to == local).map(|(_, it)| *it);
                match self.function.local_variables[*local].name {
                    Some(_) => values.all(|value| self.is(value)),
                    None => values.any(|value| self.is(value)),
                }
            };
            let left: BTreeSet<_> = self.locals.iter().copied().filter(differs).collect();
            if left.len() == self.locals.len() {
                return;
            }
            self.locals = left;
        }
    }

    fn stores(&self) -> Vec<(Handle<LocalVariable>, Handle<Expression>)> {
        let inits = self.function.local_variables.iter();
        let mut stores: Vec<_> = inits.filter_map(|(local, it)| Some((local, it.init?))).collect();
        each_statement(self.function, &mut |statement| {
            if let Statement::Store { pointer, value } = statement
                && let Some(local) = self.root(*pointer)
            {
                stores.push((local, *value));
            }
        });
        stores
    }

    /// The variable a pointer points into.
    fn root(&self, pointer: Handle<Expression>) -> Option<Handle<LocalVariable>> {
        match self.function.expressions[pointer] {
            Expression::LocalVariable(local) => Some(local),
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                self.root(base)
            }
            _ => None,
        }
    }
}

fn is_per_invocation(binding: &Binding) -> bool {
    matches!(
        binding,
        Binding::BuiltIn(
            BuiltIn::GlobalInvocationId
                | BuiltIn::LocalInvocationId
                | BuiltIn::LocalInvocationIndex
        )
    )
}
