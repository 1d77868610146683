//! What a layer does beside its matrices, for sixteen numbers at a time: norms, activations, rotation by position, and
//! the quantisation of what goes into matrices. Generic over how a processor does it; the kernels make copies of these.

use super::lanes::{LANES, Lanes, Sixteen};

/// Elements that share a scale when activations are quantised, as in all quantised weights.
pub(crate) const BLOCK: usize = 32;

/// What goes into a quantised matrix, for 32 elements of a row. All of it is read together, so it lies together.
#[derive(Clone, Copy, Default)]
#[repr(C, align(16))]
pub(crate) struct Quantised {
    pub(crate) quants: [i8; BLOCK],
    pub(crate) scale: f32,
    /// All quants by the scale.
    pub(crate) weighted: f32,
    /// The quants of each half added up: weights with an offset need them.
    pub(crate) sums: [i32; 2],
}

/// Sixteen numbers at a time; what is left over is filled up.
#[inline(always)]
fn chunks(list: &[f32]) -> (&[Sixteen], Option<Sixteen>) {
    let (whole, rest) = list.as_chunks::<LANES>();
    let filled = (!rest.is_empty()).then(|| {
        let mut filled = [0.0; LANES];
        filled[..rest.len()].copy_from_slice(rest);
        filled
    });
    (whole, filled)
}

/// One over the root of the mean square.
#[inline(always)]
pub(crate) fn inverse_rms<L: Lanes>(x: &[f32], eps: f32) -> f32 {
    let mut squares = L::splat(0.0);
    let (whole, rest) = chunks(x);
    for x in whole.iter().chain(rest.iter()) {
        let x = L::load(x);
        squares = squares.add(x.mul(x));
    }
    let mean = squares.sum() / x.len() as f32 + eps;
    // What is too large must be seen and not become zero.
    if mean.is_finite() { 1.0 / mean.sqrt() } else { f32::NAN }
}

/// Root-mean-square norm, times a weight for each element.
#[inline(always)]
pub(crate) fn norm<L: Lanes>(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    each::<L, _>(out, x, weight, Scaled(inverse_rms::<L>(x, eps)));
}

/// The same in place, for a head's queries or keys.
#[inline(always)]
pub(crate) fn norm_in_place<L: Lanes>(x: &mut [f32], weight: &[f32], eps: f32) {
    let factor = inverse_rms::<L>(x, eps);
    in_place::<L, _>(x, weight, Scaled(factor));
}

#[inline(always)]
pub(crate) fn add<L: Lanes>(x: &mut [f32], other: &[f32]) {
    in_place::<L, _>(x, other, Plus);
}

/// `silu(gate) * up`, into the gate.
#[inline(always)]
pub(crate) fn silu_times<L: Lanes>(gate: &mut [f32], up: &[f32]) {
    in_place::<L, _>(gate, up, Silu);
}

/// `gelu(gate) * up` by the tangent's approximation, into the gate.
#[inline(always)]
pub(crate) fn gelu_times<L: Lanes>(gate: &mut [f32], up: &[f32]) {
    in_place::<L, _>(gate, up, Gelu);
}

/// What is done with the elements of two lists. Not a closure: those are not always inlined, and only what is inlined
/// gets the kernel's instructions.
trait Both: Copy {
    fn of<L: Lanes>(self, a: L, b: L) -> L;
}

#[derive(Clone, Copy)]
struct Plus;
/// By a number, and by each other.
#[derive(Clone, Copy)]
struct Scaled(f32);
#[derive(Clone, Copy)]
struct Silu;
#[derive(Clone, Copy)]
struct Gelu;

impl Both for Plus {
    #[inline(always)]
    fn of<L: Lanes>(self, a: L, b: L) -> L {
        a.add(b)
    }
}

impl Both for Scaled {
    #[inline(always)]
    fn of<L: Lanes>(self, x: L, weight: L) -> L {
        x.mul(L::splat(self.0)).mul(weight)
    }
}

impl Both for Silu {
    #[inline(always)]
    fn of<L: Lanes>(self, gate: L, up: L) -> L {
        gate.mul(sigmoid(gate)).mul(up)
    }
}

impl Both for Gelu {
    #[inline(always)]
    fn of<L: Lanes>(self, x: L, up: L) -> L {
        let cube = x.mul(x).mul(x).mul(L::splat(0.044_715));
        // 0.5 * (1 + tanh(t)) is the sigmoid of 2 t.
        let twice = x.add(cube).mul(L::splat(2.0 * 0.797_884_6));
        x.mul(sigmoid(twice)).mul(up)
    }
}

#[inline(always)]
fn sigmoid<L: Lanes>(x: L) -> L {
    let one = L::splat(1.0);
    one.div(one.add(L::splat(0.0).sub(x).exp()))
}

/// Keeps numbers within a cap: `cap * tanh(x / cap)`.
#[inline(always)]
pub(crate) fn soft_cap<L: Lanes>(x: &mut [f32], cap: f32) {
    let (whole, rest) = x.as_chunks_mut::<LANES>();
    for x in whole {
        capped(L::load(x), cap).store(x);
    }
    let mut filled = [0.0; LANES];
    filled[..rest.len()].copy_from_slice(rest);
    capped(L::load(&filled), cap).store(&mut filled);
    rest.copy_from_slice(&filled[..rest.len()]);
}

#[inline(always)]
fn capped<L: Lanes>(x: L, cap: f32) -> L {
    let (one, two) = (L::splat(1.0), L::splat(2.0));
    let power = x.mul(L::splat(2.0 / cap)).exp();
    L::splat(cap).mul(one.sub(two.div(power.add(one))))
}

#[inline(always)]
fn each<L: Lanes, B: Both>(out: &mut [f32], a: &[f32], b: &[f32], both: B) {
    let (out_whole, out_rest) = out.as_chunks_mut::<LANES>();
    let ((a_whole, a_rest), (b_whole, b_rest)) = (chunks(a), chunks(b));
    for ((out, a), b) in out_whole.iter_mut().zip(a_whole).zip(b_whole) {
        both.of(L::load(a), L::load(b)).store(out);
    }
    if let (Some(a), Some(b)) = (a_rest, b_rest) {
        let mut filled = [0.0; LANES];
        both.of(L::load(&a), L::load(&b)).store(&mut filled);
        out_rest.copy_from_slice(&filled[..out_rest.len()]);
    }
}

#[inline(always)]
fn in_place<L: Lanes, B: Both>(a: &mut [f32], b: &[f32], both: B) {
    let (a_whole, a_rest) = a.as_chunks_mut::<LANES>();
    let (b_whole, b_rest) = chunks(b);
    for (a, b) in a_whole.iter_mut().zip(b_whole) {
        both.of(L::load(a), L::load(b)).store(a);
    }
    if let Some(b) = b_rest {
        let mut filled = [0.0; LANES];
        filled[..a_rest.len()].copy_from_slice(a_rest);
        both.of(L::load(&filled), L::load(&b)).store(&mut filled);
        a_rest.copy_from_slice(&filled[..a_rest.len()]);
    }
}

/// A row of activations as eight bits for each; what is left of the last block is zero.
#[inline(always)]
pub(crate) fn quantise<L: Lanes>(x: &[f32], into: &mut [Quantised]) {
    let mut filled;
    for (block, into) in x.chunks(BLOCK).zip(into) {
        let block: &[f32; BLOCK] = match block.try_into() {
            Ok(whole) => whole,
            Err(_) => {
                filled = [0.0; BLOCK];
                filled[..block.len()].copy_from_slice(block);
                &filled
            }
        };
        let (halves, _) = block.as_chunks::<LANES>();
        let (a, b) = (L::load(&halves[0]), L::load(&halves[1]));
        let zero = L::splat(0.0);
        let most = a.max(zero.sub(a)).max(b.max(zero.sub(b))).largest();
        // One over the smallest numbers is none: with it quants would be -128, which some products do not fit.
        let inverse = if most > 0.0 { (127.0 / most).min(f32::MAX) } else { 0.0 };
        let scale = if most > 0.0 { most / 127.0 } else { most };
        let (quants, _) = into.quants.as_chunks_mut::<LANES>();
        let inverse = L::splat(inverse);
        into.sums = [
            a.mul(inverse).round().bytes(&mut quants[0]),
            b.mul(inverse).round().bytes(&mut quants[1]),
        ];
        into.scale = scale;
        into.weighted = (into.sums[0] + into.sums[1]) as f32 * scale;
    }
}
