//! Elements computed while shapes are inferred: small tensors of whole numbers and floats, nothing else.

use alloc::vec::Vec;

use super::Fact;
use crate::dtype::{DType, Family, elements};
use crate::limit::MOST_FOLDED;
use crate::tensor::Value;

pub(super) fn unary(op: &str, dtype: DType, value: &Value) -> Option<Value> {
    match value {
        Value::Ints(ints) => {
            let of: fn(i64) -> i64 = match op {
                "Identity" => |x| x,
                "Neg" => i64::wrapping_neg,
                "Abs" => i64::wrapping_abs,
                "Relu" => |x| x.max(0),
                "Sign" => i64::signum,
                "Not" => |x| i64::from(x == 0),
                _ => return None,
            };
            let made: Vec<i64> = ints.iter().map(|int| of(*int)).collect();
            made.iter().all(|int| dtype.holds(*int)).then_some(Value::Ints(made))
        }
        Value::Floats(floats) => {
            let of: fn(f32) -> f32 = match op {
                "Identity" => |x| x,
                "Neg" => |x| -x,
                "Abs" => f32::abs,
                "Relu" => |x| x.max(0.0),
                "Floor" => floor,
                "Ceil" => |x| -floor(-x),
                "Reciprocal" => |x| 1.0 / x,
                _ => return None,
            };
            Some(Value::Floats(floats.iter().map(|float| of(*float)).collect()))
        }
    }
}

/// Without `std` there is none.
pub(super) fn floor(x: f32) -> f32 {
    // Larger floats have no fraction, and not-a-number stays what it is.
    if x.is_nan() || x.abs() >= 8_388_608.0 {
        return x;
    }
    let cut = x as i32 as f32;
    if cut > x { cut - 1.0 } else { cut }
}

/// Of two values, spread over these dimensions.
pub(super) fn binary(op: &str, a: &Fact, b: &Fact, dims: &[u64]) -> Option<Value> {
    // What would wrap around is no shape; truths are in every type.
    let (pairs, made_type) = (pairs(&a.ty.dims, &b.ty.dims, dims)?, a.ty.dtype);
    match (a.value.as_ref()?, b.value.as_ref()?) {
        (Value::Ints(a), Value::Ints(b)) => {
            let each = pairs.map(|(x, y)| ints(op, *a.get(x)?, *b.get(y)?));
            let made = each.collect::<Option<Vec<_>>>()?;
            made.iter().all(|int| made_type.holds(*int)).then_some(Value::Ints(made))
        }
        (Value::Floats(a), Value::Floats(b)) => {
            let truths = ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"];
            if truths.contains(&op) {
                let each = pairs.map(|(x, y)| truth(op, *a.get(x)?, *b.get(y)?).map(i64::from));
                return each.collect::<Option<_>>().map(Value::Ints);
            }
            let each = pairs.map(|(x, y)| floats(op, *a.get(x)?, *b.get(y)?));
            each.collect::<Option<_>>().map(Value::Floats)
        }
        _ => None,
    }
}

pub(super) fn choose(which: &Fact, a: &Fact, b: &Fact, dims: &[u64]) -> Option<Value> {
    let Some(Value::Ints(truths)) = &which.value else { return None };
    let places = indices(dims)?;
    let pick = |at: &Vec<u64>| {
        let chosen = *truths.get(spread(&which.ty.dims, at))? != 0;
        Some((chosen, spread(&a.ty.dims, at), spread(&b.ty.dims, at)))
    };
    let picks = places.iter().map(pick).collect::<Option<Vec<_>>>()?;
    match (a.value.as_ref()?, b.value.as_ref()?) {
        (Value::Ints(a), Value::Ints(b)) => {
            let each = picks.iter().map(|(first, x, y)| if *first { a.get(*x) } else { b.get(*y) });
            each.map(Option::<&i64>::copied).collect::<Option<_>>().map(Value::Ints)
        }
        (Value::Floats(a), Value::Floats(b)) => {
            let each = picks.iter().map(|(first, x, y)| if *first { a.get(*x) } else { b.get(*y) });
            each.map(Option::<&f32>::copied).collect::<Option<_>>().map(Value::Floats)
        }
        _ => None,
    }
}

fn ints(op: &str, a: i64, b: i64) -> Option<i64> {
    let truth = |truth: bool| Some(i64::from(truth));
    match op {
        "Add" | "Sum" => Some(a.wrapping_add(b)),
        "Sub" => Some(a.wrapping_sub(b)),
        "Mul" => Some(a.wrapping_mul(b)),
        "Div" => a.checked_div(b),
        // The sign is the divisor's, as in Python.
        "Mod" => a.checked_rem(b).map(|rest| {
            if rest != 0 && (rest < 0) != (b < 0) { rest.wrapping_add(b) } else { rest }
        }),
        "Max" => Some(a.max(b)),
        "Min" => Some(a.min(b)),
        "Equal" => truth(a == b),
        "Greater" => truth(a > b),
        "GreaterOrEqual" => truth(a >= b),
        "Less" => truth(a < b),
        "LessOrEqual" => truth(a <= b),
        "And" => truth(a != 0 && b != 0),
        "Or" => truth(a != 0 || b != 0),
        "Xor" => truth((a != 0) != (b != 0)),
        _ => None,
    }
}

fn floats(op: &str, a: f32, b: f32) -> Option<f32> {
    match op {
        "Add" | "Sum" => Some(a + b),
        "Sub" => Some(a - b),
        "Mul" => Some(a * b),
        "Div" => Some(a / b),
        "Max" => Some(a.max(b)),
        "Min" => Some(a.min(b)),
        _ => None,
    }
}

fn truth(op: &str, a: f32, b: f32) -> Option<bool> {
    match op {
        "Equal" => Some(a == b),
        "Greater" => Some(a > b),
        "GreaterOrEqual" => Some(a >= b),
        "Less" => Some(a < b),
        "LessOrEqual" => Some(a <= b),
        _ => None,
    }
}

pub(super) fn converted(value: &Value, to: DType) -> Option<Value> {
    let narrow = |int: i64| match to.family() {
        Family::Bool => Some(i64::from(int != 0)),
        Family::Signed | Family::Unsigned => to.holds(int).then_some(int),
        Family::Float | Family::Other => None,
    };
    match value {
        Value::Ints(ints) if to == DType::Float32 => {
            Some(Value::Floats(ints.iter().map(|int| *int as f32).collect()))
        }
        Value::Ints(ints) => {
            ints.iter().map(|int| narrow(*int)).collect::<Option<_>>().map(Value::Ints)
        }
        Value::Floats(_) if to == DType::Float32 => Some(value.clone()),
        Value::Floats(floats) => {
            // Towards zero, but for truths.
            let each = floats.iter().map(|float| match to.family() == Family::Bool {
                true => Some(i64::from(*float != 0.0)),
                false => narrow(*float as i64),
            });
            each.collect::<Option<_>>().map(Value::Ints)
        }
    }
}

impl Value {
    /// Elements by their places.
    pub(super) fn at(&self, places: &[usize]) -> Option<Value> {
        match self {
            Value::Ints(ints) => {
                let each = places.iter().map(|at| ints.get(*at).copied());
                each.collect::<Option<_>>().map(Value::Ints)
            }
            Value::Floats(floats) => {
                let each = places.iter().map(|at| floats.get(*at).copied());
                each.collect::<Option<_>>().map(Value::Floats)
            }
        }
    }
}

/// Every place of a small tensor, in the order of its elements. `None` if it is not small.
pub(super) fn indices(dims: &[u64]) -> Option<Vec<Vec<u64>>> {
    let count = elements(dims).filter(|count| *count <= MOST_FOLDED as u64)?;
    let place = |mut number: u64| {
        let mut place = Vec::from(dims);
        for at in (0..dims.len()).rev() {
            place[at] = number % dims[at];
            number /= dims[at];
        }
        place
    };
    Some((0..count).map(place).collect())
}

/// The number of the element at this place of a tensor of these dimensions, counted from their end.
pub(super) fn spread(dims: &[u64], place: &[u64]) -> usize {
    let skipped = place.len().saturating_sub(dims.len());
    let number = dims.iter().zip(&place[skipped..]).fold(0u64, |number, (dim, at)| {
        // A dimension of one is everywhere the same.
        number * dim + if *dim == 1 { 0 } else { *at }
    });
    number as usize
}

fn pairs(a: &[u64], b: &[u64], dims: &[u64]) -> Option<impl Iterator<Item = (usize, usize)>> {
    let places = indices(dims)?;
    let (a, b) = (Vec::from(a), Vec::from(b));
    Some(places.into_iter().map(move |place| (spread(&a, &place), spread(&b, &place))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn floors_are_whole() {
        let floats = [0.0, 0.9, -0.1, -1.0, -1.5, 7.99, 1e20, f32::INFINITY];
        assert_eq!(floats.map(floor), floats.map(f32::floor));
        assert!(floor(f32::NAN).is_nan());
    }

    #[test]
    fn values_are_spread() {
        let fact = |dims: &[u64], ints: &[i64]| {
            Fact::new(DType::Int64, dims).with(Some(Value::Ints(ints.into())))
        };
        let (a, b) = (fact(&[2, 1], &[10, 20]), fact(&[3], &[1, 2, 3]));
        let sum = binary("Add", &a, &b, &[2, 3]);
        assert_eq!(sum, Some(Value::Ints(vec![11, 12, 13, 21, 22, 23])));
        assert_eq!(ints("Mod", -7, 3), Some(2));
        assert_eq!(ints("Div", 1, 0), None);
        assert_eq!(indices(&[1025]), None);
    }
}
