//! How the parts of a layer are computed on all threads: matrices by rows of activations, norms, attention.

#![allow(unsafe_code)]

use std::ops::Range;

use super::attention::Heads;
use super::cache::{Cache, Shape, runs};
use super::kernel::{Number, Seen, Work};
use super::math::{BLOCK, Quantised};
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
    /// `[row][block]`
    quantised: Vec<Quantised>,
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
        let blocks = width.div_ceil(BLOCK);
        rows.quantised.resize(count * blocks, Quantised::default());
        let (kernel, numbers) = (self.kernel, &rows.numbers);
        let parts = (self.pool.threads() * PARTS_PER_THREAD).min(count);
        let quantised = Apart::new(&mut rows.quantised);
        self.pool.run(parts, &|part| {
            for row in part * count / parts..(part + 1) * count / parts {
                // SAFETY: every row belongs to one part.
                let into = unsafe { quantised.slice(row * blocks, blocks) };
                kernel.quantise(&numbers[row * width..(row + 1) * width], into);
            }
        });
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
                if !own.is_empty() {
                    let groups = own.start - before..own.end - before;
                    // SAFETY: every group belongs to one part, and writes only its own outputs.
                    unsafe { multiply_groups(kernel, rows, matrix, groups, out) };
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
        if kv_heads == 0 {
            return;
        }
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

/// Some sixteens of a matrix's outputs, for all rows.
///
/// # Safety
/// Nobody else may write these outputs.
unsafe fn multiply_groups(
    kernel: Seen,
    rows: &Rows,
    matrix: &Matrix,
    groups: Range<usize>,
    to: &Apart<'_>,
) {
    let work = Work {
        first: groups.start,
        data: matrix.groups_at(groups),
        group_bytes: matrix.group_bytes(),
        outputs: matrix.rows,
        rows: rows.count,
        to,
    };
    let number = match matrix.form {
        Form::Quants(quants) => {
            // SAFETY: by the caller's promise; so below.
            unsafe { kernel.quants(&work, quants, &rows.quantised) }
            return;
        }
        Form::F32 => Number::F32,
        Form::F16 => Number::F16,
        Form::BF16 => Number::BF16,
    };
    // SAFETY: see above.
    unsafe { kernel.numbers(&work, number, &rows.numbers) }
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
    use crate::llm::testing::{Draw, tensor};
    use shoal_gguf::{TensorInfo, Type};

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
                    let block = &rows.quantised[at / BLOCK];
                    f64::from(block.quants[at % BLOCK]) * f64::from(block.scale)
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
                let Quantised { quants, scale, sums, .. } = &rows.quantised[block];
                for (x, quant) in x.iter().zip(quants) {
                    assert!((f32::from(*quant) * scale - x).abs() <= most / 253.0);
                }
                let sum: i32 = quants.iter().map(|quant| i32::from(*quant)).sum();
                assert_eq!(sums.iter().sum::<i32>(), sum);
            }
        }
    }

    #[test]
    fn the_smallest_activations_by_the_largest_weights_are_the_same_by_all_kernels() {
        // Bytes of -128, and scales of 1.
        let block: Vec<u8> = [0, 0x3c].into_iter().chain([0x80; BLOCK]).collect();
        let (columns, outputs) = (BLOCK * 3, 21);
        let bytes = block.repeat(outputs * columns / BLOCK);
        let dims = vec![columns as u64, outputs as u64];
        let at = 0..bytes.len() as u64;
        let info = TensorInfo { name: "lowest".into(), dims, ty: Type::Q8_0, at };
        let matrix = Matrix::pack(&info, &bytes).expect("packs");
        // One over these is more than a number holds.
        let x = vec![-1e-39; columns];
        let bits = |kernel| {
            let (found, rows) = product(&mut compute(kernel, 1), &matrix, &x);
            let least = rows.quantised.iter().flat_map(|block| block.quants).min();
            assert!(least >= Some(-127), "{least:?} by {kernel:?}");
            found.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        };
        for kernel in Kernel::all() {
            assert_eq!(bits(kernel), bits(Kernel::Plain), "{kernel:?}");
        }
    }

    #[test]
    fn the_smallest_and_the_largest_are_quantised_alike_by_all_kernels() {
        let mut draw = Draw::new(11);
        let mut x = draw.numbers(BLOCK * 5 + 7);
        x[3] = f32::INFINITY;
        x[BLOCK..BLOCK * 2].iter_mut().for_each(|x| *x *= 1e-39);
        x[BLOCK * 2..BLOCK * 3].iter_mut().for_each(|x| *x *= f32::MAX);
        x[BLOCK * 3..BLOCK * 4].fill(0.0);
        let quantised = |kernel| {
            let mut into = [Quantised::default(); 6];
            Seen::new(kernel).expect("this processor has it").quantise(&x, &mut into);
            into.map(|it| (it.quants, it.scale.to_bits(), it.weighted.to_bits(), it.sums))
        };
        for kernel in Kernel::all() {
            assert_eq!(quantised(kernel), quantised(Kernel::Plain), "{kernel:?}");
        }
    }
}
