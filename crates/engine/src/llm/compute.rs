//! How the parts of a layer are computed on all threads: matrices by rows of activations, norms, attention.

#![allow(unsafe_code)]

use std::ops::Range;

use super::attention::Heads;
use super::cache::{Cache, Shape, runs};
use super::kernel::{MOST_AT_ONCE, Number, Seen};
use super::lanes::LANES;
use super::math::{Quantised, rows_of};
use super::matrix::{Form, Matrix};
use super::pool::{Apart, Pool};

/// Parts for each thread: a thread that is held up leaves the others little to wait for.
const PARTS_PER_THREAD: usize = 4;
/// Queries of a head that one part computes: their keys are read from the cache's memory once.
const QUERIES: usize = 64;

/// Kernel and threads.
pub(crate) struct Compute {
    pub(crate) kernel: Seen,
    pub(crate) pool: Pool,
}

/// Rows of numbers on their way into matrices.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) numbers: Vec<f32>,
    quantised: Quantised,
    count: usize,
}

/// What attention looks at in one layer.
pub(crate) struct Look<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) shape: Shape,
    pub(crate) layer: usize,
    /// For each row.
    pub(crate) sequences: &'a [u64],
    pub(crate) positions: &'a [u32],
    pub(crate) window: Option<u32>,
    pub(crate) scale: f32,
    pub(crate) cap: Option<f32>,
}

impl Compute {
    /// Quantises rows for matrices that take them so.
    pub(crate) fn prepare(&mut self, rows: &mut Rows, count: usize, into: &[&Matrix]) {
        rows.count = count;
        if !into.iter().any(|matrix| matches!(matrix.form, Form::Quants(_))) {
            return;
        }
        let width = rows.numbers.len() / count.max(1);
        rows.quantised.reset(count, width);
        let kernel = self.kernel;
        for (row, mut into) in rows.numbers.chunks_exact(width).zip(rows_of(&mut rows.quantised)) {
            kernel.quantise(row, &mut into);
        }
    }

    /// Several matrices by the same rows: `outs` are `[row][output]`.
    pub(crate) fn multiply(&mut self, rows: &Rows, work: &mut [(&Matrix, &mut Vec<f32>)]) {
        for (matrix, out) in work.iter_mut() {
            out.resize(rows.count * matrix.rows, 0.0);
        }
        let matrices: Vec<&Matrix> = work.iter().map(|(matrix, _)| *matrix).collect();
        let outs: Vec<Apart<'_>> = work.iter_mut().map(|(_, out)| Apart::new(out)).collect();
        let groups: usize = matrices.iter().map(|matrix| matrix.groups()).sum();
        let parts = (self.pool.threads() * PARTS_PER_THREAD).min(groups);
        let kernel = self.kernel;
        self.pool.run(parts, &|part| {
            let (mut from, to) = (part * groups / parts, (part + 1) * groups / parts);
            let mut before = 0;
            for (matrix, out) in matrices.iter().zip(&outs) {
                let own = from.max(before)..to.min(before + matrix.groups());
                for group in own.clone() {
                    // SAFETY: every group belongs to one part, and writes only its own rows of the output.
                    unsafe { multiply_group(kernel, rows, matrix, group - before, out) };
                }
                from = from.max(own.end);
                before += matrix.groups();
            }
        });
    }

    /// For all rows, on all threads: `each` gets a row's number and its place in the list.
    pub(crate) fn for_rows(
        &mut self,
        list: &mut [f32],
        count: usize,
        each: &(dyn Fn(Seen, usize, &mut [f32]) + Sync),
    ) {
        let (width, kernel) = (list.len() / count.max(1), self.kernel);
        let parts = (self.pool.threads() * PARTS_PER_THREAD).min(count);
        let list = Apart::new(list);
        self.pool.run(parts, &|part| {
            for row in part * count / parts..(part + 1) * count / parts {
                // SAFETY: every row belongs to one part.
                each(kernel, row, unsafe { list.slice(row * width, width) });
            }
        });
    }

    /// What queries find: `[row][head][element]`, in and out.
    pub(crate) fn attend(&mut self, look: &Look<'_>, queries: &[f32], out: &mut Vec<f32>) {
        out.resize(queries.len(), 0.0);
        let Shape { kv_heads, head, .. } = look.shape;
        let heads = queries.len() / look.positions.len().max(1) / head;
        let group = heads / kv_heads;
        // Rows of a sequence, cut so that a part has enough queries and not too many.
        let rows_each = (QUERIES / group).max(1);
        let mut parts: Vec<(Range<usize>, usize)> = Vec::new();
        for run in runs(look.sequences) {
            for from in run.clone().step_by(rows_each) {
                let rows = from..(from + rows_each).min(run.end);
                parts.extend((0..kv_heads).map(|kv| (rows.clone(), kv)));
            }
        }
        let (kernel, out) = (self.kernel, Apart::new(out));
        self.pool.run(parts.len(), &|part| {
            let (rows, kv) = &parts[part];
            attend_part(kernel, look, queries, &out, rows.clone(), *kv, group);
        });
    }
}

/// Sixteen outputs of a matrix, for all rows.
///
/// # Safety
/// Nobody else may write these outputs.
unsafe fn multiply_group(
    kernel: Seen,
    rows: &Rows,
    matrix: &Matrix,
    group: usize,
    out: &Apart<'_>,
) {
    let data = matrix.group(group);
    let from = group * LANES;
    let width = LANES.min(matrix.rows - from);
    let mut tile = [[0.0; LANES]; MOST_AT_ONCE];
    for row in (0..rows.count).step_by(MOST_AT_ONCE) {
        let tile = &mut tile[..MOST_AT_ONCE.min(rows.count - row)];
        match matrix.form {
            Form::Quants(quants) => kernel.quants(data, quants, &rows.quantised, row, tile),
            Form::F32 => {
                kernel.numbers(data, Number::F32, &rows.numbers, matrix.columns, row, tile)
            }
            Form::F16 => {
                kernel.numbers(data, Number::F16, &rows.numbers, matrix.columns, row, tile)
            }
            Form::BF16 => {
                kernel.numbers(data, Number::BF16, &rows.numbers, matrix.columns, row, tile);
            }
        }
        for (at, tile) in tile.iter().enumerate() {
            // SAFETY: by the caller's promise.
            let to = unsafe { out.slice((row + at) * matrix.rows + from, width) };
            to.copy_from_slice(&tile[..width]);
        }
    }
}

/// The queries of some rows that one head of keys and values answers.
fn attend_part(
    kernel: Seen,
    look: &Look<'_>,
    queries: &[f32],
    out: &Apart<'_>,
    rows: Range<usize>,
    kv: usize,
    group: usize,
) {
    let Shape { kv_heads, head, filled, .. } = look.shape;
    let Some(cached) = look.cache.heads(look.layer, look.sequences[rows.start]).get(kv) else {
        return;
    };
    let count = rows.len() * group;
    let (mut own, mut found) = (vec![0.0; count * filled], vec![0.0; count * filled]);
    let mut sees = Vec::with_capacity(count);
    // Where a query lies among all.
    let place = |row: usize, at: usize| ((row * kv_heads + kv) * group + at) * head;
    for (index, row) in rows.clone().enumerate() {
        let end = look.positions[row] as usize + 1;
        let start = look.window.map_or(0, |window| end.saturating_sub(window as usize));
        for at in 0..group {
            let from = place(row, at);
            own[(index * group + at) * filled..][..head].copy_from_slice(&queries[from..][..head]);
            sees.push(start..end);
        }
    }
    let heads = Heads {
        keys: &cached.keys,
        values: &cached.values,
        elements: filled,
        queries: &own,
        sees: &sees,
        scale: look.scale,
        cap: look.cap,
    };
    kernel.attend(&heads, &mut Vec::new(), &mut found);
    for (index, row) in rows.enumerate() {
        for at in 0..group {
            // SAFETY: every row's queries of a head belong to one part.
            let to = unsafe { out.slice(place(row, at), head) };
            to.copy_from_slice(&found[(index * group + at) * filled..][..head]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::kernel::Kernel;
    use crate::llm::math::BLOCK;
    use crate::llm::testing::{Draw, tensor};
    use shoal_gguf::Type;

    fn compute(kernel: Kernel, threads: usize) -> Compute {
        let kernel = Seen::new(kernel).expect("this processor has it");
        Compute { kernel, pool: Pool::new(threads) }
    }

    /// What comes out, and the rows as they went in.
    fn product(compute: &mut Compute, matrix: &Matrix, x: &[f32]) -> (Vec<f32>, Rows) {
        let (mut rows, mut out) = (Rows::default(), Vec::new());
        rows.numbers = x.to_vec();
        compute.prepare(&mut rows, x.len() / matrix.columns, &[matrix]);
        compute.multiply(&rows, &mut [(matrix, &mut out)]);
        (out, rows)
    }

    #[test]
    fn matrices_of_all_types_are_multiplied_right_by_all_kernels() {
        let mut draw = Draw::new(5);
        for ty in Type::ALL {
            let (columns, outputs, count) = (512, 37, 13);
            let (info, bytes) = tensor(&mut draw, ty, columns, outputs);
            let matrix = Matrix::pack(&info, &bytes).expect("packs");
            let weights = ty.numbers(&bytes).expect("numbers");
            let x = draw.numbers(columns * count);
            let (plain, rows) = product(&mut compute(Kernel::Plain, 1), &matrix, &x);
            // In double precision, of what the activations became.
            let is_quantised = matches!(matrix.form, Form::Quants(_));
            let x = |row: usize, column: usize| match is_quantised {
                true => {
                    let at = row * columns + column;
                    let scale = rows.quantised.scales[at / BLOCK];
                    f64::from(rows.quantised.quants[at]) * f64::from(scale)
                }
                false => f64::from(rows.numbers[row * columns + column]),
            };
            for row in 0..count {
                for output in 0..outputs {
                    let weights = &weights[output * columns..][..columns];
                    let products = |column: usize| x(row, column) * f64::from(weights[column]);
                    let wanted: f64 = (0..columns).map(products).sum();
                    let size: f64 = (0..columns).map(|column| products(column).abs()).sum();
                    let found = f64::from(plain[row * outputs + output]);
                    let off = (found - wanted).abs() / size;
                    assert!(off < 1e-5, "{} {row} {output}: {found}, not {wanted}", ty.name());
                }
            }
            for kernel in Kernel::all() {
                for threads in [1, 3] {
                    let (found, _) = product(&mut compute(kernel, threads), &matrix, &rows.numbers);
                    let same = found.iter().zip(&plain).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "{} by {kernel:?}", ty.name());
                }
            }
        }
    }

    #[test]
    fn quantised_rows_are_near_what_they_were() {
        let mut draw = Draw::new(9);
        for kernel in Kernel::all() {
            let x = draw.numbers(96 * 3);
            let (info, bytes) = tensor(&mut draw, Type::Q8_0, 96, 16);
            let matrix = Matrix::pack(&info, &bytes).expect("packs");
            let (_, rows) = product(&mut compute(kernel, 1), &matrix, &x);
            for (block, x) in x.chunks_exact(BLOCK).enumerate() {
                let most = x.iter().fold(0.0f32, |most, x| most.max(x.abs()));
                let quants = &rows.quantised.quants[block * BLOCK..][..BLOCK];
                let scale = rows.quantised.scales[block];
                for (x, quant) in x.iter().zip(quants) {
                    assert!((f32::from(*quant) * scale - x).abs() <= most / 253.0);
                }
                let sum: i32 = quants.iter().map(|quant| i32::from(*quant)).sum();
                assert_eq!(rows.quantised.sums[block].iter().sum::<i32>(), sum);
            }
        }
    }
}
