//! Queries look at the keys and values of all positions before them. Keys lie sixteen positions side by side, so that
//! sixteen products are added up at once; values lie position by position.

use super::lanes::{LANES, Lanes, Sixteen};
use std::ops::Range;

/// Queries that share the keys that are read.
const AT_ONCE: usize = 4;
/// Sixteens of positions that are looked at side by side where registers allow: a sum waits for its own last step.
const ABREAST: usize = 4;
/// Queries from which on keys and values are widened once for all.
const WORTH_WIDENING: usize = 8;
/// Sixteens of a value that are added up at once.
const WIDE: usize = 4;

/// Some queries of one head of keys and values.
pub(crate) struct Heads<'a, K = u16> {
    /// Sixteen positions side by side: `[position / 16][element][position % 16]`, halves.
    pub(crate) keys: &'a [K],
    /// `[position][element]`, halves.
    pub(crate) values: &'a [K],
    /// Elements of a head, filled up to sixteens.
    pub(crate) elements: usize,
    /// One after another, as many elements each.
    pub(crate) queries: &'a [f32],
    /// The positions that each query looks at.
    pub(crate) sees: &'a [Range<usize>],
    pub(crate) scale: f32,
    pub(crate) cap: Option<f32>,
}

/// How keys and values lie in memory.
pub(crate) trait Kept: Copy {
    fn load<L: Lanes>(from: &[Self; LANES]) -> L;
}

impl Kept for u16 {
    #[inline(always)]
    fn load<L: Lanes>(from: &[u16; LANES]) -> L {
        L::load_half(from)
    }
}

impl Kept for f32 {
    #[inline(always)]
    fn load<L: Lanes>(from: &Sixteen) -> L {
        L::load(from)
    }
}

/// What the queries find: as many elements for each.
#[inline(always)]
pub(crate) fn attend<L: Lanes>(heads: &Heads<'_>, scores: &mut Vec<f32>, out: &mut [f32]) {
    if !L::WIDENS_SLOWLY || heads.sees.len() < WORTH_WIDENING {
        attend_to::<L, u16>(heads, scores, out);
        return;
    }
    let seen = heads.sees.iter().map(|sees| sees.end).max().unwrap_or(0);
    let count = seen.next_multiple_of(LANES) * heads.elements;
    let (keys, values) = (widened::<L>(&heads.keys[..count]), widened::<L>(&heads.values[..count]));
    let Heads { elements, queries, sees, scale, cap, .. } = *heads;
    let heads = Heads { keys: &keys, values: &values, elements, queries, sees, scale, cap };
    attend_to::<L, f32>(&heads, scores, out);
}

#[inline(always)]
fn widened<L: Lanes>(halves: &[u16]) -> Vec<f32> {
    let mut wide = vec![0.0; halves.len()];
    let (to, _) = wide.as_chunks_mut::<LANES>();
    for (to, from) in to.iter_mut().zip(halves.as_chunks::<LANES>().0) {
        L::load_half(from).store(to);
    }
    wide
}

#[inline(always)]
fn attend_to<L: Lanes, K: Kept>(heads: &Heads<'_, K>, scores: &mut Vec<f32>, out: &mut [f32]) {
    let elements = heads.elements;
    let mut at = 0;
    while at < heads.sees.len() {
        let count = (heads.sees.len() - at).min(AT_ONCE).min(L::ROOM / 2);
        let queries = &heads.queries[at * elements..(at + count) * elements];
        let out = &mut out[at * elements..(at + count) * elements];
        let sees = &heads.sees[at..at + count];
        match count {
            AT_ONCE.. => some::<L, K, AT_ONCE>(heads, queries, sees, scores, out),
            3 => some::<L, K, 3>(heads, queries, sees, scores, out),
            2 => some::<L, K, 2>(heads, queries, sees, scores, out),
            _ => some::<L, K, 1>(heads, queries, sees, scores, out),
        }
        at += count;
    }
}

#[inline(always)]
fn some<L: Lanes, K: Kept, const T: usize>(
    heads: &Heads<'_, K>,
    queries: &[f32],
    sees: &[Range<usize>],
    scores: &mut Vec<f32>,
    out: &mut [f32],
) {
    // Whole sixteens of positions, of all queries together.
    let first = sees.iter().map(|sees| sees.start).min().unwrap_or(0) / LANES;
    let last = sees.iter().map(|sees| sees.end).max().unwrap_or(0).div_ceil(LANES);
    let span = (last - first) * LANES;
    scores.clear();
    scores.resize(T * span, 0.0);
    look::<L, K, T>(heads, queries, first..last, scores);
    let mut sums = [0.0; T];
    for t in 0..T {
        let own = sees[t].start - first * LANES..sees[t].end - first * LANES;
        sums[t] = soften::<L>(&mut scores[t * span..(t + 1) * span], own, heads.cap);
    }
    let vectors = heads.elements / LANES;
    // Sums of as many queries, and a value.
    let held = if L::ADDS_FROM_MEMORY { 2 } else { T + 1 };
    let mut vector = 0;
    while vector < vectors {
        if L::ROOM >= WIDE * held && vectors - vector >= WIDE {
            gather::<L, K, T, WIDE>(heads, first * LANES, scores, &sums, vector, out);
            vector += WIDE;
        } else {
            gather::<L, K, T, 1>(heads, first * LANES, scores, &sums, vector, out);
            vector += 1;
        }
    }
}

/// Products of queries and keys.
#[inline(always)]
fn look<L: Lanes, K: Kept, const T: usize>(
    heads: &Heads<'_, K>,
    queries: &[f32],
    blocks: Range<usize>,
    scores: &mut [f32],
) {
    let mut at = 0;
    while at < blocks.len() {
        if L::ROOM > WIDE * AT_ONCE && blocks.len() - at >= ABREAST {
            look_at::<L, K, T, ABREAST>(heads, queries, blocks.clone(), at, scores);
            at += ABREAST;
        } else {
            look_at::<L, K, T, 1>(heads, queries, blocks.clone(), at, scores);
            at += 1;
        }
    }
}

/// Some sixteens of positions.
#[inline(always)]
fn look_at<L: Lanes, K: Kept, const T: usize, const N: usize>(
    heads: &Heads<'_, K>,
    queries: &[f32],
    blocks: Range<usize>,
    at: usize,
    scores: &mut [f32],
) {
    let (elements, span) = (heads.elements, blocks.len() * LANES);
    let queries: [&[f32]; T] = std::array::from_fn(|t| &queries[t * elements..(t + 1) * elements]);
    let keys: [&[[K; LANES]]; N] = std::array::from_fn(|n| {
        let block = blocks.start + at + n;
        let keys = &heads.keys[block * elements * LANES..(block + 1) * elements * LANES];
        keys.as_chunks::<LANES>().0
    });
    let mut sums = [[L::splat(0.0); N]; T];
    for element in 0..elements {
        let mut found = [L::splat(0.0); N];
        for (found, keys) in found.iter_mut().zip(&keys) {
            *found = K::load(&keys[element]);
        }
        for (sums, query) in sums.iter_mut().zip(&queries) {
            let query = L::splat(query[element]);
            for (sum, key) in sums.iter_mut().zip(&found) {
                *sum = sum.add(key.mul(query));
            }
        }
    }
    let scale = L::splat(heads.scale);
    for (t, sums) in sums.into_iter().enumerate() {
        for (n, sum) in sums.into_iter().enumerate() {
            if let Some(to) = scores[t * span + (at + n) * LANES..].first_chunk_mut::<LANES>() {
                sum.mul(scale).store(to);
            }
        }
    }
}

/// Makes shares of scores, in place: those a query does not see are zero. Gives what all add up to.
#[inline(always)]
fn soften<L: Lanes>(scores: &mut [f32], sees: Range<usize>, cap: Option<f32>) -> f32 {
    if let Some(cap) = cap {
        super::math::soft_cap::<L>(scores, cap);
    }
    scores[..sees.start].fill(f32::NEG_INFINITY);
    scores[sees.end..].fill(f32::NEG_INFINITY);
    let (blocks, _) = scores.as_chunks_mut::<LANES>();
    let mut most = L::splat(f32::NEG_INFINITY);
    for block in blocks.iter() {
        most = most.max(L::load(block));
    }
    let most = L::splat(most.largest());
    for block in blocks.iter_mut() {
        L::load(block).sub(most).exp().store(block);
    }
    scores[..sees.start].fill(0.0);
    scores[sees.end..].fill(0.0);
    let (blocks, _) = scores.as_chunks::<LANES>();
    let mut sum = L::splat(0.0);
    for block in blocks {
        sum = sum.add(L::load(block));
    }
    sum.sum()
}

/// Values by their shares, for some sixteens of elements.
#[inline(always)]
fn gather<L: Lanes, K: Kept, const T: usize, const N: usize>(
    heads: &Heads<'_, K>,
    first: usize,
    shares: &[f32],
    sums: &[f32; T],
    vector: usize,
    out: &mut [f32],
) {
    let (elements, span) = (heads.elements, shares.len() / T);
    let shares: [&[f32]; T] = std::array::from_fn(|t| &shares[t * span..(t + 1) * span]);
    let mut found = [[L::splat(0.0); N]; T];
    let values = heads.values[first * elements..].chunks_exact(elements);
    for (at, value) in values.take(span).enumerate() {
        let (value, _) = value[vector * LANES..(vector + N) * LANES].as_chunks::<LANES>();
        let value: [L; N] = std::array::from_fn(|n| K::load(&value[n]));
        for t in 0..T {
            let share = L::splat(shares[t][at]);
            for n in 0..N {
                found[t][n] = found[t][n].add(value[n].mul(share));
            }
        }
    }
    for t in 0..T {
        for n in 0..N {
            let to = &mut out[t * elements + (vector + n) * LANES..];
            if let Some(to) = to.first_chunk_mut::<LANES>() {
                let mut whole: Sixteen = [0.0; LANES];
                found[t][n].div(L::splat(sums[t])).store(&mut whole);
                *to = whole;
            }
        }
    }
}
