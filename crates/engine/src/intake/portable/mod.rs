//! What this validator lets pass and a browser's refuses, so that a kernel is refused once, here,
//! and not node by node.
//!
//! Only what a browser surely refuses is refused here; a kernel in doubt goes through, and the
//! nodes decide.

mod uniform;
mod vary;

use naga::{Block, Expression, Function, Span, Statement};

use super::IntakeError;
use super::kernel::Checked;
use super::source::error_at;

pub(super) fn check(kernel: &Checked<'_>) -> Result<(), IntakeError> {
    overrides(kernel)?;
    let entry = &kernel.entry().function;
    for function in kernel.module.functions.iter().map(|(_, it)| it).chain([entry]) {
        if let Some(span) = endless(&function.body) {
            let what = "this loop has no way out; expected a `break` or `return` in it";
            return Err(error_at(kernel.source, Some(span), what, "never ends"));
        }
    }
    uniform::check(kernel)
}

/// Nobody gives values for overrides, and sizes must be known before a unit is cut.
fn overrides(kernel: &Checked<'_>) -> Result<(), IntakeError> {
    for (handle, it) in kernel.module.overrides.iter() {
        if it.init.is_none() {
            let name = it.name.as_deref().unwrap_or("without name");
            let what = format!("the override `{name}` has no value; make it a `const`");
            let span = kernel.module.overrides.get_span(handle);
            return Err(error_at(kernel.source, Some(span), &what, "expected `= value`"));
        }
    }
    let entry = kernel.entry();
    let sizes = kernel.module.types.iter().any(|(_, ty)| {
        matches!(ty.inner, naga::TypeInner::Array { size: naga::ArraySize::Pending(_), .. })
    });
    if sizes || entry.workgroup_size_overrides.is_some() {
        let what = "a workgroup or array size depends on an `override`; make it a `const`";
        return Err(IntakeError::plain("bad_kernel", what));
    }
    Ok(())
}

/// The first loop nothing leads out of.
fn endless(block: &Block) -> Option<Span> {
    block.span_iter().find_map(|(statement, span)| match statement {
        Statement::Loop { body, continuing, break_if } => {
            let ends = break_if.is_some() || breaks(body) || returns(body);
            if ends { endless(body).or_else(|| endless(continuing)) } else { Some(*span) }
        }
        other => blocks(other).into_iter().find_map(endless),
    })
}

/// Whether a `break` in the block leaves the loop around it.
fn breaks(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Break => true,
        Statement::Loop { .. } | Statement::Switch { .. } => false,
        other => blocks(other).into_iter().any(breaks),
    })
}

/// Whether a `continue` in the block goes on with the loop around it.
fn continues(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Continue => true,
        Statement::Loop { .. } => false,
        other => blocks(other).into_iter().any(continues),
    })
}

fn returns(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Return { .. } => true,
        other => blocks(other).into_iter().any(returns),
    })
}

/// The blocks inside a statement.
fn blocks(statement: &Statement) -> Vec<&Block> {
    match statement {
        Statement::Block(block) => vec![block],
        Statement::If { accept, reject, .. } => vec![accept, reject],
        Statement::Switch { cases, .. } => cases.iter().map(|case| &case.body).collect(),
        Statement::Loop { body, continuing, .. } => vec![body, continuing],
        _ => Vec::new(),
    }
}

/// The expressions an expression is made of, but for pointers' roots.
fn operands(expression: &Expression) -> Vec<naga::Handle<Expression>> {
    match expression {
        Expression::Compose { components, .. } => components.clone(),
        Expression::Access { base, index } => vec![*base, *index],
        Expression::AccessIndex { base, .. } => vec![*base],
        Expression::Splat { value, .. } => vec![*value],
        Expression::Swizzle { vector, .. } => vec![*vector],
        Expression::Load { pointer } => vec![*pointer],
        Expression::Unary { expr, .. } | Expression::As { expr, .. } => vec![*expr],
        Expression::Binary { left, right, .. } => vec![*left, *right],
        Expression::Select { condition, accept, reject } => vec![*condition, *accept, *reject],
        Expression::Relational { argument, .. } => vec![*argument],
        Expression::Math { arg, arg1, arg2, arg3, .. } => {
            [Some(*arg), *arg1, *arg2, *arg3].into_iter().flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// All statements of a function, those inside others too.
fn each_statement<'a>(function: &'a Function, visit: &mut impl FnMut(&'a Statement)) {
    fn walk<'a>(block: &'a Block, visit: &mut impl FnMut(&'a Statement)) {
        for statement in block.iter() {
            visit(statement);
            for block in blocks(statement) {
                walk(block, visit);
            }
        }
    }
    walk(&function.body, visit);
}
