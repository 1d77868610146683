//! What is known of an expression.

use naga::{
    BuiltIn, Expression, Function, Handle, Literal, MathFunction, ScalarKind, Type, TypeInner,
    UnaryOperator,
};
use shoal_kinds::{Field, Params};

use super::value::{Range, Value};
use super::walk::{Frame, Look, Note, Walk, root};

impl<'a> Walk<'a> {
    /// An argument of the entry point.
    pub(super) fn given(&mut self, function: &'a Function, at: usize) -> Value {
        let argument = &function.arguments[at];
        if let Some(binding) = &argument.binding {
            return builtin(binding);
        }
        match &self.kernel.module.types[argument.ty].inner {
            TypeInner::Struct { members, .. } => {
                let given =
                    |it: &naga::StructMember| it.binding.as_ref().map_or(Value::Unit, builtin);
                Value::Given(members.iter().map(given).collect())
            }
            _ => Value::Unit,
        }
    }

    /// Of an expression that was computed before, or need not be.
    pub(super) fn value(&mut self, frame: &mut Frame<'a>, handle: Handle<Expression>) -> Value {
        if let Some(value) = &frame.known[handle.index()] {
            return value.clone();
        }
        self.compute(frame, handle)
    }

    pub(super) fn compute(&mut self, frame: &mut Frame<'a>, handle: Handle<Expression>) -> Value {
        let span = frame.function.expressions.get_span(handle);
        if !self.goes_on() {
            return Value::Unit;
        }
        match &frame.function.expressions[handle] {
            Expression::FunctionArgument(at) => {
                let value = frame.arguments.get(*at as usize).cloned();
                value.unwrap_or(Value::Unit)
            }
            Expression::LocalVariable(_) | Expression::GlobalVariable(_) => {
                self.pointer(frame, handle)
            }
            Expression::Access { base, index } => {
                let index = self.value(frame, *index);
                self.access(frame, *base, &index, span)
            }
            Expression::AccessIndex { base, index } => self.member(frame, *base, *index, span),
            Expression::Load { pointer } => self.load(frame, *pointer, span),
            Expression::ArrayLength(array) => self.length(frame.function, *array),
            Expression::Unary { op, expr } => {
                let value = self.value(frame, *expr);
                match (op, value) {
                    (UnaryOperator::LogicalNot, Value::HasItem(has)) => Value::HasItem(!has),
                    (_, value) => self.generic(&[value], span),
                }
            }
            Expression::Binary { op, left, right } => {
                let (left, right) = (self.value(frame, *left), self.value(frame, *right));
                let known = Value::binary(*op, &left, &right);
                let known = known.filter(|it| self.is_sound(it, &left, &right));
                known.unwrap_or_else(|| self.generic(&[left, right], span))
            }
            Expression::Select { condition, accept, reject } => {
                let condition = self.value(frame, *condition);
                self.number(&condition, span);
                let (accept, reject) = (self.value(frame, *accept), self.value(frame, *reject));
                match accept.join(&reject) {
                    Value::Unit => self.generic(&[accept, reject], span),
                    both => both,
                }
            }
            Expression::As { expr, kind, .. } => {
                let value = self.value(frame, *expr);
                match (kind, &value) {
                    (
                        ScalarKind::Sint | ScalarKind::Uint,
                        Value::Near { .. } | Value::Length { .. } | Value::Offset,
                    ) => value,
                    (ScalarKind::Sint | ScalarKind::Uint, Value::Same(range))
                        if range.is_plain() =>
                    {
                        value
                    }
                    _ => self.generic(&[value], span),
                }
            }
            _ => self.others(frame, handle, span),
        }
    }

    /// A place and a length that are multiplied by what no array has may both wrap around.
    fn is_sound(&self, result: &Value, left: &Value, right: &Value) -> bool {
        let per = match (result, left, right) {
            (Value::HasItem(_), Value::Near { per, .. }, _)
            | (Value::HasItem(_), _, Value::Near { per, .. }) => *per,
            _ => return true,
        };
        per == 1 || self.arrays.iter().any(|array| array.per_item == Some(per))
    }

    fn others(
        &mut self,
        frame: &mut Frame<'a>,
        handle: Handle<Expression>,
        span: naga::Span,
    ) -> Value {
        let operands: Vec<Handle<Expression>> = match &frame.function.expressions[handle] {
            Expression::Literal(literal) => return number(*literal),
            Expression::Constant(constant) => {
                let module = self.kernel.module;
                let init = module.constants[*constant].init;
                return match module.global_expressions[init] {
                    Expression::Literal(literal) => number(literal),
                    _ => Value::SAME,
                };
            }
            Expression::ZeroValue(_) => return Value::number(0),
            Expression::Override(_)
            | Expression::CallResult(_)
            | Expression::AtomicResult { .. }
            | Expression::WorkGroupUniformLoadResult { .. } => return Value::SAME,
            Expression::Math { fun, arg, arg1, arg2, arg3 } => {
                let known = self.math(frame, *fun, [Some(*arg), *arg1, *arg2]);
                if let Some(known) = known {
                    return known;
                }
                [Some(*arg), *arg1, *arg2, *arg3].into_iter().flatten().collect()
            }
            Expression::Compose { components, .. } => components.clone(),
            Expression::Splat { value, .. } => vec![*value],
            Expression::Swizzle { vector, .. } => vec![*vector],
            Expression::Relational { argument, .. } => vec![*argument],
            // Nothing else can be in a kernel over arrays.
            _ => {
                self.notes.push(Note::Number(span));
                return Value::Unit;
            }
        };
        let values: Vec<_> = operands.into_iter().map(|it| self.value(frame, it)).collect();
        self.generic(&values, span)
    }

    fn math(
        &mut self,
        frame: &mut Frame<'a>,
        fun: MathFunction,
        [a, b, c]: [Option<Handle<Expression>>; 3],
    ) -> Option<Value> {
        let a = self.value(frame, a?);
        let b = self.value(frame, b?);
        match fun {
            MathFunction::Min => Value::smaller(&a, &b),
            MathFunction::Max => Value::larger(&a, &b),
            MathFunction::Clamp => {
                let c = self.value(frame, c?);
                Value::smaller(&Value::larger(&a, &b)?, &c)
            }
            _ => None,
        }
    }

    /// Of something made of these.
    fn generic(&mut self, operands: &[Value], span: naga::Span) -> Value {
        let before = self.notes.len();
        for operand in operands {
            self.number(operand, span);
        }
        if self.notes.len() == before { Value::SAME } else { Value::Unit }
    }

    fn pointer(&mut self, frame: &Frame<'a>, handle: Handle<Expression>) -> Value {
        match (&frame.function.expressions[handle], self.params) {
            (Expression::GlobalVariable(variable), Some((params, _))) if *variable == params => {
                Value::Block(0, self.kernel.module.global_variables[params].ty)
            }
            _ => Value::SAME,
        }
    }

    fn access(
        &mut self,
        frame: &mut Frame<'a>,
        base: Handle<Expression>,
        index: &Value,
        span: naga::Span,
    ) -> Value {
        if let Some(array) = self.array(frame.function, base) {
            self.look(array, index, span);
            return Value::SAME;
        }
        let base = self.value(frame, base);
        self.generic(&[base, index.clone()], span)
    }

    fn member(
        &mut self,
        frame: &mut Frame<'a>,
        base: Handle<Expression>,
        index: u32,
        span: naga::Span,
    ) -> Value {
        if self.array(frame.function, base).is_some() {
            return self.access(frame, base, &Value::number(index.into()), span);
        }
        let base = self.value(frame, base);
        self.part(&base, index)
    }

    /// A member of a struct, or a component of a vector.
    fn part(&self, whole: &Value, index: u32) -> Value {
        match whole {
            Value::Ids if index == 0 => Value::Near { per: 1, by: Range::exactly(0), cut: false },
            Value::Ids => Value::number(0),
            Value::Given(members) => members.get(index as usize).cloned().unwrap_or(Value::Unit),
            Value::Block(at, ty) => match &self.kernel.module.types[*ty].inner {
                TypeInner::Struct { members, .. } => match members.get(index as usize) {
                    Some(member) => Value::Block(at + member.offset, member.ty),
                    None => Value::Unit,
                },
                // Members that Shoal fills in are plain numbers.
                _ => Value::SAME,
            },
            Value::Same(_) => Value::SAME,
            Value::Near { .. }
            | Value::Length { .. }
            | Value::Offset
            | Value::HasItem(_)
            | Value::Unit => Value::Unit,
        }
    }

    fn load(
        &mut self,
        frame: &mut Frame<'a>,
        pointer: Handle<Expression>,
        span: naga::Span,
    ) -> Value {
        let (root, is_part) = root(frame.function, pointer);
        match frame.function.expressions[root] {
            Expression::LocalVariable(local) => {
                let whole = frame.locals[local.index()].clone();
                match &frame.function.expressions[pointer] {
                    _ if !is_part => whole,
                    Expression::AccessIndex { base, index } if *base == root => {
                        self.part(&whole, *index)
                    }
                    // Indices on the way were noted when they were computed.
                    _ if whole.is_same() => Value::SAME,
                    _ => Value::Unit,
                }
            }
            Expression::GlobalVariable(_) => match self.value(frame, pointer) {
                Value::Block(at, ty) => self.filled(at, ty),
                other => self.generic(&[other], span),
            },
            // Through a pointer somebody passed.
            _ => match self.value(frame, root) {
                value if value.is_same() => Value::SAME,
                _ => Value::Unit,
            },
        }
    }

    /// A member of the parameter block.
    fn filled(&self, at: u32, ty: Handle<Type>) -> Value {
        let Some((_, Params { bytes, places })) = self.params else { return Value::SAME };
        if matches!(self.kernel.module.types[ty].inner, TypeInner::Struct { .. }) {
            return Value::Block(at, ty);
        }
        match places.iter().find(|(_, place)| *place == at) {
            Some((Field::Offset, _)) => return Value::Offset,
            Some((Field::Length, _)) => return Value::Length { per: 1, plus: 0, named: true },
            Some(_) => return Value::SAME,
            None => {}
        }
        match &self.kernel.module.types[ty].inner {
            TypeInner::Scalar(scalar) if scalar.width == 4 => {
                let bytes = bytes.get(at as usize..).and_then(|rest| rest.first_chunk());
                let value = bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes));
                match scalar.kind {
                    ScalarKind::Uint => Value::number(value.into()),
                    ScalarKind::Sint => Value::number((value as i32).into()),
                    _ => Value::SAME,
                }
            }
            _ => Value::SAME,
        }
    }

    fn length(&self, function: &Function, pointer: Handle<Expression>) -> Value {
        let array = self.array(function, pointer);
        match array.and_then(|at| self.arrays[at].per_item) {
            Some(per) => Value::Length { per, plus: 0, named: false },
            None => Value::SAME,
        }
    }

    /// The position of the array this points to.
    fn array(&self, function: &Function, pointer: Handle<Expression>) -> Option<usize> {
        let Expression::GlobalVariable(variable) = function.expressions[pointer] else {
            return None;
        };
        self.arrays.iter().position(|array| array.variable == variable)
    }

    fn look(&mut self, array: usize, index: &Value, span: naga::Span) {
        let Some(own) = self.arrays[array].per_item else {
            // Devices differ in what they read outside of an array: only windows make it the same.
            match index {
                Value::Same(range) if range.is_plain() => {}
                _ => self.notes.push(Note::Look { array, at: Look::Anywhere, span }),
            }
            return;
        };
        let at = match index {
            Value::Near { per, by, cut: false } if *per == own && by.lo >= 0 && by.hi < own => {
                return;
            }
            Value::Near { per, by, .. } if *per == own => Look::Near(by.lo, by.hi),
            Value::Near { per, .. } => Look::Spaced(*per),
            _ => Look::Anywhere,
        };
        self.notes.push(Note::Look { array, at, span });
    }
}

fn builtin(binding: &naga::Binding) -> Value {
    match binding {
        naga::Binding::BuiltIn(BuiltIn::GlobalInvocationId) => Value::Ids,
        // Units are whole workgroups for a kernel that uses these.
        naga::Binding::BuiltIn(BuiltIn::LocalInvocationId | BuiltIn::LocalInvocationIndex) => {
            Value::SAME
        }
        _ => Value::Unit,
    }
}

fn number(literal: Literal) -> Value {
    match literal {
        Literal::U32(value) => Value::number(value.into()),
        Literal::I32(value) => Value::number(value.into()),
        Literal::AbstractInt(value) => Value::number(value),
        _ => Value::SAME,
    }
}
