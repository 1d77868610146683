//! What is known of a number in a kernel: whether it depends on how items are put into units, and if so, how.

use naga::{BinaryOperator as Op, Handle, Type};

/// Numbers beyond this are not followed: every index is smaller.
const FAR: i64 = 1 << 40;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// The same whatever the unit is, for a given item.
    Same(Range),
    /// `per` times the item's place in its unit, and something around it; `cut` if where exactly may follow from
    /// where the unit begins or ends.
    Near { per: i64, by: Range, cut: bool },
    /// `per` times the items of the unit, and something; `named` if Shoal fills it in for `length`.
    Length { per: i64, plus: i64, named: bool },
    /// What Shoal fills in for `offset`.
    Offset,
    /// True where the invocation has an item (or, if `false`, where it has none).
    HasItem(bool),
    /// `global_invocation_id`.
    Ids,
    /// A struct of built-in values.
    Given(Vec<Value>),
    /// Part of the parameter block, from this byte on.
    Block(u32, Handle<Type>),
    /// It depends on the unit in a way that is not followed.
    Unit,
}

/// Bounds, both of them possible; see [`Range::ANY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) lo: i64,
    pub(super) hi: i64,
}

impl Range {
    /// Nothing is known.
    pub(super) const ANY: Range = Range { lo: -FAR, hi: FAR };

    pub(super) fn new(lo: i64, hi: i64) -> Range {
        if lo <= -FAR || hi >= FAR { Range::ANY } else { Range { lo, hi } }
    }

    pub(super) fn exactly(value: i64) -> Range {
        Range::new(value, value)
    }

    pub(super) fn is_known(self) -> bool {
        self != Range::ANY
    }

    /// Its only value.
    pub(super) fn exact(self) -> Option<i64> {
        (self.is_known() && self.lo == self.hi).then_some(self.lo)
    }

    /// Without any wrapping around, whether the number has a sign or not.
    pub(super) fn is_plain(self) -> bool {
        self.is_known() && self.lo >= 0 && self.hi <= i64::from(i32::MAX)
    }

    fn plus(self, other: Range) -> Range {
        if !self.is_known() || !other.is_known() {
            return Range::ANY;
        }
        Range::new(self.lo + other.lo, self.hi + other.hi)
    }

    fn negative(self) -> Range {
        Range::new(-self.hi, -self.lo)
    }

    fn times(self, other: Range) -> Range {
        if !self.is_known() || !other.is_known() {
            return Range::ANY;
        }
        let ends = [self.lo, self.hi].map(|a| [other.lo, other.hi].map(|b| a.saturating_mul(b)));
        let ends = ends.as_flattened();
        let (lo, hi) = (ends.iter().min(), ends.iter().max());
        lo.zip(hi).map_or(Range::ANY, |(lo, hi)| Range::new(*lo, *hi))
    }

    fn hull(self, other: Range) -> Range {
        Range::new(self.lo.min(other.lo), self.hi.max(other.hi))
    }
}

impl Value {
    pub(super) const SAME: Value = Value::Same(Range::ANY);

    pub(super) fn number(value: i64) -> Value {
        Value::Same(Range::exactly(value))
    }

    pub(super) fn is_same(&self) -> bool {
        matches!(self, Value::Same(_))
    }

    /// What a variable may be that holds one or the other.
    pub(super) fn join(&self, other: &Value) -> Value {
        match (self, other) {
            (a, b) if a == b => a.clone(),
            (Value::Same(a), Value::Same(b)) => Value::Same(a.hull(*b)),
            // For whoever has an item it is a constant.
            (Value::HasItem(_), Value::Same(_) | Value::HasItem(_))
            | (Value::Same(_), Value::HasItem(_)) => Value::SAME,
            (
                Value::Near { per, by, cut },
                Value::Near { per: other, by: by_other, cut: cut_other },
            ) if per == other => {
                Value::Near { per: *per, by: by.hull(*by_other), cut: *cut || *cut_other }
            }
            _ => Value::Unit,
        }
    }

    /// None where the result is not followed and an operand depends on the unit.
    pub(super) fn binary(op: Op, a: &Value, b: &Value) -> Option<Value> {
        match (a, b) {
            (Value::Same(a), Value::Same(b)) => Some(Value::Same(numbers(op, *a, *b))),
            (Value::Near { .. } | Value::Length { .. } | Value::Offset, _)
            | (_, Value::Near { .. } | Value::Length { .. } | Value::Offset) => match op {
                Op::Add => added(a, b),
                Op::Subtract => subtracted(a, b),
                Op::Multiply => scaled(a, b).or_else(|| scaled(b, a)),
                Op::ShiftLeft => match b {
                    Value::Same(by) => {
                        let by = by.exact().filter(|by| (0..32).contains(by))?;
                        scaled(a, &Value::number(1 << by))
                    }
                    _ => None,
                },
                Op::Less => has_item(a, b).map(Value::HasItem),
                Op::GreaterEqual => has_item(a, b).map(|has| Value::HasItem(!has)),
                Op::Greater => has_item(b, a).map(Value::HasItem),
                Op::LessEqual => has_item(b, a).map(|has| Value::HasItem(!has)),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn smaller(a: &Value, b: &Value) -> Option<Value> {
        match (a, b) {
            (Value::Same(a), Value::Same(b)) => {
                Some(Value::Same(if a.is_plain() && b.is_plain() {
                    Range::new(a.lo.min(b.lo), a.hi.min(b.hi))
                } else {
                    Range::ANY
                }))
            }
            // Whoever has an item is before the end.
            (Value::Near { per, by, cut }, Value::Length { per: all, plus, .. })
            | (Value::Length { per: all, plus, .. }, Value::Near { per, by, cut })
                if per == all && by.is_plain() && -plus <= *per =>
            {
                let least = per + plus;
                let cut = *cut || by.hi > least;
                Some(Value::Near { per: *per, by: Range::new(by.lo.min(least), by.hi), cut })
            }
            _ => None,
        }
    }

    pub(super) fn larger(a: &Value, b: &Value) -> Option<Value> {
        match (a, b) {
            (Value::Same(a), Value::Same(b)) => {
                Some(Value::Same(if a.is_plain() && b.is_plain() {
                    Range::new(a.lo.max(b.lo), a.hi.max(b.hi))
                } else {
                    Range::ANY
                }))
            }
            (Value::Near { per, by, cut }, Value::Same(least))
            | (Value::Same(least), Value::Near { per, by, cut })
                if by.is_plain() && least.is_plain() =>
            {
                let cut = *cut || least.hi > by.lo;
                Some(Value::Near { per: *per, by: Range::new(by.lo, by.hi.max(least.hi)), cut })
            }
            _ => None,
        }
    }
}

fn numbers(op: Op, a: Range, b: Range) -> Range {
    match op {
        Op::Add => a.plus(b),
        Op::Subtract => a.plus(b.negative()),
        Op::Multiply => a.times(b),
        Op::Divide if a.is_plain() => match b.exact() {
            Some(by) if by > 0 => Range::new(a.lo / by, a.hi / by),
            _ => Range::ANY,
        },
        // Also of what is not known: only the sign must be.
        Op::Modulo if b.exact().is_some_and(|by| by > 0) && a.is_plain() => {
            Range::new(0, a.hi.min(b.hi - 1))
        }
        Op::And if b.is_plain() && b.exact().is_some() => Range::new(0, b.hi),
        Op::And if a.is_plain() && a.exact().is_some() => Range::new(0, a.hi),
        Op::ShiftRight if a.is_plain() => match b.exact() {
            Some(by) if (0..32).contains(&by) => Range::new(a.lo >> by, a.hi >> by),
            _ => Range::ANY,
        },
        Op::ShiftLeft if a.is_plain() => match b.exact() {
            Some(by) if (0..31).contains(&by) => a.times(Range::exactly(1 << by)),
            _ => Range::ANY,
        },
        _ => Range::ANY,
    }
}

fn added(a: &Value, b: &Value) -> Option<Value> {
    match (a, b) {
        (Value::Near { per, by, cut }, Value::Same(more))
        | (Value::Same(more), Value::Near { per, by, cut }) => {
            let by = by.plus(*more);
            by.is_known().then_some(Value::Near { per: *per, by, cut: *cut })
        }
        (Value::Near { per, by, cut }, Value::Near { per: also, by: more, cut: cut_too }) => {
            let by = by.plus(*more);
            let cut = *cut || *cut_too;
            by.is_known().then_some(Value::Near { per: per + also, by, cut })
        }
        // The item's place in the whole.
        (Value::Near { per: 1, by, cut: false }, Value::Offset)
        | (Value::Offset, Value::Near { per: 1, by, cut: false })
            if by.exact().is_some() =>
        {
            Some(Value::SAME)
        }
        (Value::Length { per, plus, .. }, Value::Same(more))
        | (Value::Same(more), Value::Length { per, plus, .. }) => {
            Some(Value::Length { per: *per, plus: plus + more.exact()?, named: false })
        }
        _ => None,
    }
}

fn subtracted(a: &Value, b: &Value) -> Option<Value> {
    match (a, b) {
        (Value::Near { .. } | Value::Length { .. }, Value::Same(less)) if less.is_known() => {
            added(a, &Value::Same(less.negative()))
        }
        (Value::Near { per, by, cut: false }, Value::Near { per: also, by: less, cut: false })
            if per == also =>
        {
            Some(Value::Same(by.plus(less.negative())))
        }
        _ => None,
    }
}

fn scaled(a: &Value, b: &Value) -> Option<Value> {
    let Value::Same(factor) = b else { return None };
    let factor = factor.exact().filter(|factor| *factor > 0)?;
    match a {
        Value::Near { per, by, cut } => {
            let by = by.times(Range::exactly(factor));
            let per = per.checked_mul(factor).filter(|per| *per < FAR)?;
            by.is_known().then_some(Value::Near { per, by, cut: *cut })
        }
        Value::Length { per, plus: 0, .. } => {
            Some(Value::Length { per: per.checked_mul(factor)?, plus: 0, named: false })
        }
        _ => None,
    }
}

/// Whether `a < b` asks if the invocation has an item.
fn has_item(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::Near { per, by, cut: false }, Value::Length { per: all, plus: 0, .. })
            if per == all && by.lo >= 0 && by.hi < *per =>
        {
            Some(true)
        }
        _ => None,
    }
}
