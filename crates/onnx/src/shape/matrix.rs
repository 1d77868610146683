//! Products of matrices.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::Fact;
use super::call::{Call, Fault, Told, broadcast, one, wrong};
use crate::dtype::{DType, Dims};

pub(super) fn matmul(call: &Call<'_>) -> Told {
    one(Fact::new(call.dtype(0)?, product(call.dims(0)?, call.dims(1)?)?))
}

pub(super) fn matmul_integer(call: &Call<'_>) -> Told {
    one(Fact::new(DType::Int32, product(call.dims(0)?, call.dims(1)?)?))
}

pub(super) fn quantized_matmul(call: &Call<'_>) -> Told {
    one(Fact::new(call.dtype(7)?, product(call.dims(0)?, call.dims(3)?)?))
}

/// As NumPy multiplies: rows and columns are matrices with one dimension that goes away again.
fn product(a: &[u64], b: &[u64]) -> Result<Vec<u64>, Fault> {
    let unfit = || wrong(format!("[{}] cannot be multiplied by [{}]", Dims(a), Dims(b)));
    if a.is_empty() || b.is_empty() {
        return unfit();
    }
    let rows = if a.len() == 1 { vec![1, a[0]] } else { a.to_vec() };
    let columns = if b.len() == 1 { vec![b[0], 1] } else { b.to_vec() };
    let ((before_a, [m, inner_a]), (before_b, [inner_b, n])) =
        (last_two(&rows), last_two(&columns));
    if inner_a != inner_b {
        return unfit();
    }
    let mut dims = broadcast(before_a, before_b)?;
    if a.len() > 1 {
        dims.push(m);
    }
    if b.len() > 1 {
        dims.push(n);
    }
    Ok(dims)
}

fn last_two(dims: &[u64]) -> (&[u64], [u64; 2]) {
    let (before, last) = dims.split_at(dims.len().saturating_sub(2));
    (before, [last[0], last[1]])
}

pub(super) fn gemm(call: &Call<'_>) -> Told {
    let (a, b) = (call.dims(0)?, call.dims(1)?);
    let ([m, inner_a], [inner_b, n]) = (a, b) else {
        return wrong(format!("its inputs [{}] and [{}] are no matrices", Dims(a), Dims(b)));
    };
    let (m, inner_a) = if call.flag("transA")? { (inner_a, m) } else { (m, inner_a) };
    let (inner_b, n) = if call.flag("transB")? { (n, inner_b) } else { (inner_b, n) };
    if inner_a != inner_b {
        return wrong(format!("[{}] cannot be multiplied by [{}]", Dims(a), Dims(b)));
    }
    one(Fact::new(call.dtype(0)?, [*m, *n]))
}

pub(super) fn einsum(call: &Call<'_>) -> Told {
    let Some(equation) = call.text("equation")? else { return wrong("it has no equation") };
    let equation: String = equation.chars().filter(|letter| !letter.is_whitespace()).collect();
    let (terms, output) = match equation.split_once("->") {
        Some((terms, output)) => (terms, Some(output)),
        None => (equation.as_str(), None),
    };
    let unfit =
        |why: &str| wrong(format!("its equation `{}` {why}", crate::error::Shown(&equation)));
    let mut letters: BTreeMap<char, (u64, usize)> = BTreeMap::new();
    let mut rest: Vec<u64> = Vec::new();
    let terms: Vec<&str> = terms.split(',').collect();
    if terms.len() != call.inputs.len() {
        return unfit("is for another number of inputs");
    }
    for (at, term) in terms.iter().enumerate() {
        let dims = call.dims(at)?;
        let (before, behind) = term.split_once("...").unwrap_or((term, ""));
        let (first, last) = (before.chars().count(), behind.chars().count());
        let has_rest = term.contains("...");
        let fits = if has_rest { first + last <= dims.len() } else { first == dims.len() };
        if !fits {
            return unfit("does not fit its inputs");
        }
        let named = before.chars().zip(dims);
        for (letter, dim) in named.chain(behind.chars().zip(&dims[dims.len() - last..])) {
            let known = letters.entry(letter).or_insert((*dim, 0));
            known.1 += 1;
            if known.0 == 1 {
                known.0 = *dim;
            } else if known.0 != *dim && *dim != 1 {
                return unfit("does not fit its inputs");
            }
        }
        if has_rest {
            rest = broadcast(&rest, &dims[first..dims.len() - last])?;
        }
    }
    let dims = match output {
        Some(output) => {
            let (before, behind) = output.split_once("...").unwrap_or((output, ""));
            let rest = if output.contains("...") { rest } else { Vec::new() };
            let dim = |letter: char| letters.get(&letter).map(|(dim, _)| *dim);
            let all = before.chars().map(dim).chain(rest.into_iter().map(Some));
            all.chain(behind.chars().map(dim)).collect::<Option<Vec<_>>>()
        }
        // What is named once, in the order of the alphabet.
        None => {
            let once = letters.values().filter(|(_, count)| *count == 1).map(|(dim, _)| *dim);
            Some(rest.into_iter().chain(once).collect())
        }
    };
    match dims {
        Some(dims) => one(Fact::new(call.dtype(0)?, dims)),
        None => unfit("makes a dimension that no input has"),
    }
}

/// With keys and values of before, which come out longer.
pub(super) fn attention(call: &Call<'_>) -> Told {
    let (q, k, v) = (call.ranked(0, 3)?, call.ranked(1, 3)?, call.ranked(2, 3)?);
    let dtype = call.dtype(0)?;
    let heads = |name: &str| -> Result<u64, Fault> {
        let count = call.int_or(name, 0)?;
        u64::try_from(count)
            .ok()
            .filter(|count| *count > 0)
            .map_or_else(|| wrong(format!("its attribute `{name}` is missing")), Ok)
    };
    // Three dimensions have all heads in the last one.
    let apart = |dims: &[u64], name: &str| -> Result<[u64; 4], Fault> {
        match dims {
            [batch, heads, len, size] => Ok([*batch, *heads, *len, *size]),
            [batch, len, all] => {
                let heads = heads(name)?;
                Ok([*batch, heads, *len, all / heads])
            }
            _ => wrong(format!("its input is [{}]", Dims(dims))),
        }
    };
    let [batch, q_heads, q_len, _] = apart(q, "q_num_heads")?;
    let [_, kv_heads, k_len, k_size] = apart(k, "kv_num_heads")?;
    let [_, _, _, v_size] = apart(v, "kv_num_heads")?;
    let past = if call.has(4) { call.ranked(4, 4)?[2] } else { 0 };
    let all = past.saturating_add(k_len);
    let made = match q.len() {
        3 => vec![batch, q_len, q_heads.saturating_mul(v_size)],
        _ => vec![batch, q_heads, q_len, v_size],
    };
    let dims = [
        made,
        vec![batch, kv_heads, all, k_size],
        vec![batch, kv_heads, all, v_size],
        vec![batch, q_heads, q_len, all],
    ];
    Ok(dims.into_iter().map(|dims| Some(Fact::new(dtype, dims))).collect())
}
