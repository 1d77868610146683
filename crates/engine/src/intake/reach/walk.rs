//! Goes through a kernel as an invocation would, with what is known instead of numbers, and notes where
//! something comes out that depends on how items are put into units. Loops are gone through once, with what
//! holds in every turn; calls are gone through each time.

use naga::{
    AtomicFunction, Block, Expression, Function, GlobalVariable, Handle, LocalVariable, Span,
    Statement,
};
use shoal_kinds::Params;

use super::count::Counter;
use super::value::{Range, Value};
use crate::intake::kernel::Checked;

/// Statements and expressions that are gone through, calls and loops within loops included: far more than
/// any kernel has that people write, and a fraction of a second.
const MOST_STEPS: u32 = 400_000;

/// An array of the kernel.
pub(super) struct Array {
    pub(super) variable: Handle<GlobalVariable>,
    pub(super) is_output: bool,
    /// Elements for each item; none if every unit has all of it.
    pub(super) per_item: Option<i64>,
}

/// Something that is not the same for an item in another unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Note {
    /// A place, or a length, is used as a number.
    Number(Span),
    /// An array (by position) is looked at elsewhere than at the item's own elements.
    Look { array: usize, at: Look, span: Span },
    /// An invocation without an item may write.
    Unguarded(Span),
}

/// Where an index lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// So many elements from the first of the item's own.
    Near(i64, i64),
    /// Around so many times the item's place, which is another count than it has elements.
    Spaced(i64),
    Anywhere,
}

pub(super) struct Walk<'a> {
    pub(super) kernel: &'a Checked<'a>,
    pub(super) arrays: &'a [Array],
    /// The parameter block with its values.
    pub(super) params: Option<(Handle<GlobalVariable>, &'a Params)>,
    pub(super) notes: Vec<Note>,
    /// Whether invocations of a workgroup have to do with each other.
    pub(super) whole_groups: bool,
    /// There is too much of it to go through.
    pub(super) gave_up: bool,
    steps: u32,
}

/// A function being gone through.
pub(super) struct Frame<'a> {
    pub(super) function: &'a Function,
    pub(super) arguments: Vec<Value>,
    /// Of expressions, by their position.
    pub(super) known: Vec<Option<Value>>,
    pub(super) locals: Vec<Value>,
    /// Whether whoever is here has an item.
    has_item: bool,
    /// What the function gives back.
    result: Option<Value>,
    /// Variables that a loop around changes.
    carried: Vec<bool>,
    /// Of those, the ones found to hold something that depends on the unit.
    tainted: Vec<bool>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        kernel: &'a Checked<'a>,
        arrays: &'a [Array],
        params: Option<(Handle<GlobalVariable>, &'a Params)>,
    ) -> Walk<'a> {
        let (notes, whole_groups) = (Vec::new(), kernel.workgroup_bytes() > 0);
        Walk { kernel, arrays, params, notes, whole_groups, gave_up: false, steps: 0 }
    }

    pub(super) fn run(&mut self) {
        let function = &self.kernel.entry().function;
        let arguments = (0..function.arguments.len()).map(|at| self.given(function, at)).collect();
        self.function(function, arguments, false);
    }

    fn function(&mut self, function: &'a Function, arguments: Vec<Value>, has_item: bool) -> Value {
        let locals = function.local_variables.len();
        let mut frame = Frame {
            function,
            arguments,
            known: vec![None; function.expressions.len()],
            locals: vec![Value::number(0); locals],
            has_item,
            result: None,
            carried: vec![false; locals],
            tainted: vec![false; locals],
        };
        for (handle, local) in function.local_variables.iter() {
            if let Some(init) = local.init {
                frame.locals[handle.index()] = self.value(&mut frame, init);
            }
        }
        self.block(&mut frame, &function.body);
        frame.result.unwrap_or(Value::SAME)
    }

    /// Whether the way ends in it.
    fn block(&mut self, frame: &mut Frame<'a>, block: &'a Block) -> bool {
        block.span_iter().any(|(statement, span)| self.statement(frame, statement, *span))
    }

    fn statement(&mut self, frame: &mut Frame<'a>, statement: &'a Statement, span: Span) -> bool {
        if !self.goes_on() {
            return true;
        }
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    let value = self.compute(frame, handle);
                    frame.known[handle.index()] = Some(value);
                }
            }
            Statement::Block(block) => return self.block(frame, block),
            Statement::If { condition, accept, reject } => {
                return self.branch(frame, *condition, accept, reject);
            }
            Statement::Switch { selector, cases } => {
                let of = self.value(frame, *selector);
                self.number(&of, span);
                let bodies: Vec<_> = cases.iter().map(|case| &case.body).collect();
                self.turns(frame, &bodies, |walk, frame| {
                    let had = frame.has_item;
                    let before = frame.locals.clone();
                    for body in &bodies {
                        frame.locals.clone_from(&before);
                        frame.has_item = had;
                        walk.block(frame, body);
                    }
                });
            }
            Statement::Loop { body, continuing, break_if } => {
                self.looped(frame, body, continuing, *break_if, span);
            }
            Statement::Break | Statement::Continue | Statement::Kill => return true,
            Statement::Return { value } => {
                if let Some(value) = value {
                    let value = self.value(frame, *value);
                    frame.result = Some(match &frame.result {
                        Some(before) => before.join(&value),
                        None => value,
                    });
                }
                return true;
            }
            Statement::Store { pointer, value } => {
                let value = self.value(frame, *value);
                self.store(frame, *pointer, value, span);
            }
            Statement::Call { function, arguments, result } => {
                self.call(frame, &self.kernel.module.functions[*function], arguments, *result);
            }
            Statement::ControlBarrier(_) | Statement::MemoryBarrier(_) => self.whole_groups = true,
            Statement::WorkGroupUniformLoad { .. } => self.whole_groups = true,
            Statement::Atomic { pointer, fun, value, .. } => {
                if let AtomicFunction::Exchange { compare: Some(compare) } = fun {
                    let compare = self.value(frame, *compare);
                    self.number(&compare, span);
                }
                let value = self.value(frame, *value);
                self.store(frame, *pointer, value, span);
            }
            // Nothing else can be in a kernel over arrays.
            _ => self.notes.push(Note::Number(span)),
        }
        false
    }

    fn branch(
        &mut self,
        frame: &mut Frame<'a>,
        condition: Handle<Expression>,
        accept: &'a Block,
        reject: &'a Block,
    ) -> bool {
        let (if_true, if_false) = match self.value(frame, condition) {
            Value::HasItem(has) => (has, !has),
            other => {
                self.number(&other, frame.function.expressions.get_span(condition));
                (false, false)
            }
        };
        let (before, had) = (frame.locals.clone(), frame.has_item);
        frame.has_item = had || if_true;
        let accept_ends = self.block(frame, accept);
        let accepted = (std::mem::replace(&mut frame.locals, before), frame.has_item);
        frame.has_item = had || if_false;
        let reject_ends = self.block(frame, reject);
        match (accept_ends, reject_ends) {
            (_, true) => (frame.locals, frame.has_item) = accepted,
            (true, false) => {}
            (false, false) => {
                for (now, other) in frame.locals.iter_mut().zip(&accepted.0) {
                    *now = now.join(other);
                }
                frame.has_item &= accepted.1;
            }
        }
        accept_ends && reject_ends
    }

    fn looped(
        &mut self,
        frame: &mut Frame<'a>,
        body: &'a Block,
        continuing: &'a Block,
        break_if: Option<Handle<Expression>>,
        span: Span,
    ) {
        let counter = Counter::find(frame.function, body, continuing);
        let counter = counter.and_then(|counter| match frame.locals[counter.local.index()] {
            Value::Same(start) if start.is_plain() => Some((counter, start)),
            _ => None,
        });
        self.turns(frame, &[body, continuing], |walk, frame| {
            let (had, start) = (frame.has_item, frame.locals.clone());
            for (at, (statement, span)) in body.span_iter().enumerate() {
                if walk.statement(frame, statement, *span) {
                    break;
                }
                if let Some((counter, first)) = &counter
                    && counter.check == at
                {
                    walk.counted(frame, counter, *first);
                }
            }
            // Some come here from anywhere in the body: what is known is what holds in every turn.
            frame.has_item = had;
            frame.locals = start;
            walk.block(frame, continuing);
            if let Some(condition) = break_if {
                let value = walk.value(frame, condition);
                walk.number(&value, span);
            }
        });
    }

    /// Behind its check a counter is below its bound.
    fn counted(&mut self, frame: &mut Frame<'a>, counter: &Counter, start: Range) {
        let Value::Same(bound) = self.value(frame, counter.bound) else { return };
        let most = bound.hi - i64::from(!counter.inclusive);
        let last = match start.exact() {
            Some(first) if most >= first => first + (most - first) / counter.step * counter.step,
            _ => most,
        };
        let wraps = last + counter.step > i64::from(i32::MAX);
        if bound.is_plain() && !wraps && last >= start.lo {
            frame.locals[counter.local.index()] = Value::Same(Range::new(start.lo, last));
        }
    }

    /// Goes through what may be done any number of times, or not at all. A variable it changes is whatever is
    /// ever put into it.
    fn turns(
        &mut self,
        frame: &mut Frame<'a>,
        blocks: &[&'a Block],
        turn: impl Fn(&mut Self, &mut Frame<'a>),
    ) {
        let mut changed = vec![false; frame.locals.len()];
        for block in blocks {
            changes(frame.function, block, &mut changed);
        }
        let (outer, before) = (frame.carried.clone(), frame.locals.clone());
        let had = frame.has_item;
        loop {
            let (notes, tainted) = (self.notes.len(), frame.tainted.clone());
            for (at, local) in frame.locals.iter_mut().enumerate() {
                if changed[at] {
                    let stays = before[at].is_same() && !frame.tainted[at];
                    *local = if stays { Value::SAME } else { Value::Unit };
                    frame.carried[at] = true;
                } else {
                    local.clone_from(&before[at]);
                }
            }
            let start = frame.locals.clone();
            turn(self, frame);
            frame.locals = start;
            frame.has_item = had;
            if frame.tainted == tainted {
                break;
            }
            // Once more, with what is known now.
            self.notes.truncate(notes);
        }
        frame.carried = outer;
    }

    fn store(
        &mut self,
        frame: &mut Frame<'a>,
        pointer: Handle<Expression>,
        value: Value,
        span: Span,
    ) {
        let (root, is_part) = root(frame.function, pointer);
        match frame.function.expressions[root] {
            Expression::LocalVariable(local) => self.assign(frame, local, value, is_part),
            Expression::GlobalVariable(variable) => {
                self.number(&value, span);
                let output = self.arrays.iter().any(|it| it.is_output && it.variable == variable);
                if output && !frame.has_item {
                    self.notes.push(Note::Unguarded(span));
                }
            }
            // Through a pointer somebody passed.
            _ => self.number(&value, span),
        }
    }

    fn assign(
        &mut self,
        frame: &mut Frame<'a>,
        local: Handle<LocalVariable>,
        value: Value,
        is_part: bool,
    ) {
        let at = local.index();
        let value = match is_part {
            false => value,
            true if value.is_same() && frame.locals[at].is_same() => Value::SAME,
            true => Value::Unit,
        };
        if frame.carried[at] && !value.is_same() {
            frame.tainted[at] = true;
        }
        frame.locals[at] = value;
    }

    fn call(
        &mut self,
        frame: &mut Frame<'a>,
        function: &'a Function,
        arguments: &'a [Handle<Expression>],
        result: Option<Handle<Expression>>,
    ) {
        let mut given = Vec::with_capacity(arguments.len());
        let mut lent = Vec::new();
        for argument in arguments {
            let (root, _) = root(frame.function, *argument);
            given.push(match frame.function.expressions[root] {
                // A pointer to a variable, which the function may change.
                Expression::LocalVariable(local) if frame.is_pointer(*argument) => {
                    lent.push(local);
                    if frame.locals[local.index()].is_same() { Value::SAME } else { Value::Unit }
                }
                _ => self.value(frame, *argument),
            });
        }
        let value = self.function(function, given, frame.has_item);
        for local in lent {
            let is_same = frame.locals[local.index()].is_same();
            let value = if is_same { Value::SAME } else { Value::Unit };
            self.assign(frame, local, value, false);
        }
        if let Some(result) = result {
            frame.known[result.index()] = Some(value);
        }
    }

    /// Notes a number that depends on the unit and comes out.
    pub(super) fn number(&mut self, value: &Value, span: Span) {
        match value {
            Value::Same(_) | Value::HasItem(_) => {}
            // Asked for by name: whoever does so knows of units.
            Value::Offset | Value::Length { named: true, plus: 0, .. } if self.asks_by_name() => {}
            Value::Block(..) if self.params.is_none_or(|(_, it)| it.places.is_empty()) => {}
            _ => self.notes.push(Note::Number(span)),
        }
    }

    /// Whether the kernel has Shoal fill in where a unit begins.
    fn asks_by_name(&self) -> bool {
        use shoal_kinds::Field;
        let places = self.params.iter().flat_map(|(_, params)| &params.places);
        places.into_iter().any(|(field, _)| *field == Field::Offset)
    }

    pub(super) fn goes_on(&mut self) -> bool {
        self.steps = self.steps.saturating_add(1);
        self.gave_up |= self.steps >= MOST_STEPS;
        !self.gave_up
    }
}

impl Frame<'_> {
    fn is_pointer(&self, expression: Handle<Expression>) -> bool {
        matches!(
            self.function.expressions[expression],
            Expression::LocalVariable(_)
                | Expression::Access { .. }
                | Expression::AccessIndex { .. }
        )
    }
}

/// What a pointer points into, and whether only to a part of it.
pub(super) fn root(function: &Function, pointer: Handle<Expression>) -> (Handle<Expression>, bool) {
    let (mut at, mut is_part) = (pointer, false);
    while let Expression::Access { base, .. } | Expression::AccessIndex { base, .. } =
        function.expressions[at]
    {
        (at, is_part) = (base, true);
    }
    (at, is_part)
}

/// The variables a block may change.
fn changes(function: &Function, block: &Block, changed: &mut [bool]) {
    for statement in block.iter() {
        let (pointers, blocks): (&[_], Vec<&Block>) = match statement {
            Statement::Store { pointer, .. } | Statement::Atomic { pointer, .. } => {
                (std::slice::from_ref(pointer), Vec::new())
            }
            Statement::Call { arguments, .. } => (arguments, Vec::new()),
            Statement::Block(inner) => (&[], vec![inner]),
            Statement::If { accept, reject, .. } => (&[], vec![accept, reject]),
            Statement::Switch { cases, .. } => (&[], cases.iter().map(|case| &case.body).collect()),
            Statement::Loop { body, continuing, .. } => (&[], vec![body, continuing]),
            _ => continue,
        };
        for pointer in pointers {
            let root = root(function, *pointer).0;
            if let Expression::LocalVariable(local) = function.expressions[root] {
                changed[local.index()] = true;
            }
        }
        for block in blocks {
            changes(function, block, changed);
        }
    }
}
