//! Loops that count: `for (var k = 0u; k < 8u; k++)`.

use naga::{
    BinaryOperator, Block, Expression, Function, Handle, Literal, LocalVariable, Statement,
};

/// The variable a loop counts with.
pub(super) struct Counter {
    pub(super) local: Handle<LocalVariable>,
    /// Position, in the loop's body, of the statement that ends it.
    pub(super) check: usize,
    /// What it stays below, or (`inclusive`) does not pass.
    pub(super) bound: Handle<Expression>,
    pub(super) inclusive: bool,
    pub(super) step: i64,
}

impl Counter {
    /// Its only change is a step up at the end of each turn, and the body begins with its check.
    pub(super) fn find(function: &Function, body: &Block, continuing: &Block) -> Option<Counter> {
        let (check, condition) = body.iter().enumerate().find_map(|(at, it)| match it {
            Statement::Emit(_) => None,
            Statement::If { condition, accept, reject } => {
                let breaks = matches!(reject[..], [Statement::Break]) && accept.is_empty();
                Some(breaks.then_some((at, *condition)))
            }
            _ => Some(None),
        })??;
        let Expression::Binary { op, left, right } = function.expressions[condition] else {
            return None;
        };
        let (counter, bound, inclusive) = match op {
            BinaryOperator::Less => (left, right, false),
            BinaryOperator::LessEqual => (left, right, true),
            BinaryOperator::Greater => (right, left, false),
            BinaryOperator::GreaterEqual => (right, left, true),
            _ => return None,
        };
        // Both are read where they are used, not before the loop.
        let local = loaded(function, counter).filter(|_| is_emitted(&body[..check], counter))?;
        let step = step(function, continuing, local)?;
        let is_only =
            stores(function, body, local) == 0 && stores(function, continuing, local) == 1;
        is_only.then_some(Counter { local, check, bound, inclusive, step })
    }
}

/// The variable whose value this is.
fn loaded(function: &Function, value: Handle<Expression>) -> Option<Handle<LocalVariable>> {
    let Expression::Load { pointer } = function.expressions[value] else { return None };
    match function.expressions[pointer] {
        Expression::LocalVariable(local) => Some(local),
        _ => None,
    }
}

fn is_emitted(block: &[Statement], value: Handle<Expression>) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Emit(range) => range.clone().any(|handle| handle == value),
        _ => false,
    })
}

/// What is added to it at the end of a turn.
fn step(function: &Function, continuing: &Block, local: Handle<LocalVariable>) -> Option<i64> {
    continuing.iter().find_map(|statement| {
        let Statement::Store { pointer, value } = statement else { return None };
        let Expression::LocalVariable(stored) = function.expressions[*pointer] else { return None };
        let Expression::Binary { op: BinaryOperator::Add, left, right } =
            function.expressions[*value]
        else {
            return None;
        };
        let by = match function.expressions[right] {
            Expression::Literal(Literal::U32(by)) => i64::from(by),
            Expression::Literal(Literal::I32(by)) => i64::from(by),
            _ => return None,
        };
        let is_now = is_emitted(continuing, left);
        (stored == local && loaded(function, left) == Some(local) && is_now && by > 0).then_some(by)
    })
}

/// How often it is changed, or lent to somebody who may.
fn stores(function: &Function, block: &Block, local: Handle<LocalVariable>) -> usize {
    let is_it = |pointer: &Handle<Expression>| {
        let root = super::walk::root(function, *pointer).0;
        matches!(function.expressions[root], Expression::LocalVariable(it) if it == local)
    };
    let of = |block: &Block| stores(function, block, local);
    let count = |statement: &Statement| match statement {
        Statement::Store { pointer, .. } | Statement::Atomic { pointer, .. } => {
            usize::from(is_it(pointer))
        }
        Statement::Call { arguments, .. } => arguments.iter().filter(|it| is_it(it)).count(),
        Statement::Block(inner) => of(inner),
        Statement::If { accept, reject, .. } => of(accept) + of(reject),
        Statement::Switch { cases, .. } => cases.iter().map(|case| of(&case.body)).sum(),
        Statement::Loop { body, continuing, .. } => of(body) + of(continuing),
        _ => 0,
    };
    block.iter().map(count).sum()
}
