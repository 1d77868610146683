//! One layer: attention and the feed-forward part, each added to what came in.

use shoal_gguf::{Activation, Config, Role};

use super::cache::{Cache, Shape};
use super::compute::{Compute, Look, Rows};
use super::error::LoadError;
use super::lanes::LANES;
use super::matrix::Matrix;
use super::rope::Turns;
use super::stage::Loaded;

pub(crate) struct Layer {
    attention_norm: Vec<f32>,
    query: Projection,
    key: Projection,
    value: Projection,
    out: Projection,
    post_attention_norm: Option<Vec<f32>>,
    feed_norm: Vec<f32>,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
    post_feed_norm: Option<Vec<f32>>,
}

/// A matrix, and what some models do after it.
struct Projection {
    matrix: Matrix,
    bias: Option<Vec<f32>>,
    /// For each head.
    norm: Option<Vec<f32>>,
}

/// What a layer is told of a run.
pub(crate) struct Step<'a> {
    pub(crate) config: &'a Config,
    /// Counted from the stage's first.
    pub(crate) layer: usize,
    pub(crate) sequences: &'a [u64],
    pub(crate) positions: &'a [u32],
    pub(crate) turns: &'a Turns,
    pub(crate) window: Option<u32>,
}

/// Room that all layers use one after another.
#[derive(Default)]
pub(crate) struct Scratch {
    rows: Rows,
    pub(crate) wide: Rows,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    up: Vec<f32>,
    pub(crate) added: Vec<f32>,
}

impl Layer {
    pub(crate) fn new(
        loaded: &mut Loaded<'_>,
        config: &Config,
        layer: u32,
    ) -> Result<Layer, LoadError> {
        let _ = config;
        let model = loaded.model;
        let of = |role| model.of_layer(layer, role);
        let mut projection = |weight, bias, norm: Option<Role>| {
            Ok::<_, LoadError>(Projection {
                matrix: loaded.matrix(of(weight))?,
                bias: loaded.optional(of(bias))?,
                norm: loaded.optional(norm.and_then(of))?,
            })
        };
        Ok(Layer {
            query: projection(Role::Query, Role::QueryBias, Some(Role::QueryNorm))?,
            key: projection(Role::Key, Role::KeyBias, Some(Role::KeyNorm))?,
            value: projection(Role::ValueOf, Role::ValueBias, None)?,
            out: projection(Role::Out, Role::OutBias, None)?,
            attention_norm: loaded.list(of(Role::AttentionNorm))?,
            post_attention_norm: loaded.optional(of(Role::PostAttentionNorm))?,
            feed_norm: loaded.list(of(Role::FeedNorm))?,
            gate: loaded.matrix(of(Role::Gate))?,
            up: loaded.matrix(of(Role::Up))?,
            down: loaded.matrix(of(Role::Down))?,
            post_feed_norm: loaded.optional(of(Role::PostFeedNorm))?,
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        let projections = [&self.query, &self.key, &self.value, &self.out];
        let projections = projections.iter().map(|it| it.matrix.bytes()).sum::<u64>();
        projections + self.gate.bytes() + self.up.bytes() + self.down.bytes()
    }

    /// Changes `x`, and writes keys and values of its rows into the cache.
    pub(crate) fn run(
        &self,
        step: &Step<'_>,
        cache: &mut Cache,
        compute: &mut Compute,
        scratch: &mut Scratch,
        x: &mut [f32],
    ) {
        self.attention(step, cache, compute, scratch, x);
        self.feed(step, compute, scratch, x);
    }

    fn attention(
        &self,
        step: &Step<'_>,
        cache: &mut Cache,
        compute: &mut Compute,
        scratch: &mut Scratch,
        x: &mut [f32],
    ) {
        self.look(step, cache, compute, scratch, x);
        self.mix(step.positions.len(), compute, scratch);
        self.join_attention(step.config, step.positions.len(), compute, scratch, x);
    }

    fn feed(&self, step: &Step<'_>, compute: &mut Compute, scratch: &mut Scratch, x: &mut [f32]) {
        let count = step.positions.len();
        self.gate(step.config, count, compute, scratch, x);
        self.down(count, compute, scratch);
        self.join_feed(step.config, count, compute, scratch, x);
    }

    /// Writes keys and values into the cache; what the queries find becomes `wide`. Of all heads, or of those that are
    /// here.
    pub(crate) fn look(
        &self,
        step: &Step<'_>,
        cache: &mut Cache,
        compute: &mut Compute,
        scratch: &mut Scratch,
        x: &[f32],
    ) {
        let Step { config, positions, .. } = step;
        let (count, head) = (positions.len(), config.head_dim as usize);
        let Scratch { rows, wide, query, key, value, .. } = scratch;
        normed(compute, x, &self.attention_norm, config.norm_eps, count, rows);
        let (q, k, v) = (&self.query, &self.key, &self.value);
        compute.prepare(rows, count, &[&q.matrix, &k.matrix, &v.matrix]);
        let work =
            &mut [(&q.matrix, &mut *query), (&k.matrix, &mut *key), (&v.matrix, &mut *value)];
        compute.multiply(rows, work);
        for (projection, list, turned) in
            [(q, &mut *query, true), (k, key, true), (v, value, false)]
        {
            compute.for_rows(list, count, &|kernel, row, list| {
                if let Some(bias) = &projection.bias {
                    kernel.add(list, bias);
                }
                if let Some(norm) = &projection.norm {
                    for list in list.chunks_exact_mut(head) {
                        kernel.norm_in_place(list, norm, config.norm_eps);
                    }
                }
                if turned {
                    step.turns.turn(row, list, head);
                }
            });
        }
        let shape = Shape {
            layers: 0,
            kv_heads: self.kv_heads(config),
            head,
            filled: head.next_multiple_of(LANES),
        };
        let width = shape.kv_heads * head;
        for (row, at) in step.sequences.iter().copied().zip(positions.iter().copied()).enumerate() {
            let (key, value) = (&key[row * width..], &value[row * width..]);
            cache.write(step.layer, at, &key[..width], &value[..width]);
        }
        let look = Look {
            cache,
            shape,
            layer: step.layer,
            sequences: step.sequences,
            positions,
            window: step.window,
            scale: config.attention_scale,
            cap: config.attention_cap,
        };
        compute.attend(&look, query, &mut wide.numbers);
    }

    /// Makes `added` of `wide`, which is what all heads found.
    pub(crate) fn mix(&self, count: usize, compute: &mut Compute, scratch: &mut Scratch) {
        let Scratch { wide, added, .. } = scratch;
        compute.prepare(wide, count, &[&self.out.matrix]);
        compute.multiply(wide, &mut [(&self.out.matrix, added)]);
    }

    /// Adds all of `added` to what came in.
    pub(crate) fn join_attention(
        &self,
        config: &Config,
        count: usize,
        compute: &mut Compute,
        scratch: &mut Scratch,
        x: &mut [f32],
    ) {
        let (bias, norm) = (self.out.bias.as_deref(), self.post_attention_norm.as_deref());
        join(compute, x, &mut scratch.added, bias, norm, config, count);
    }

    /// What opens the way to the last matrix becomes `wide`: of all columns, or of those that are here.
    pub(crate) fn gate(
        &self,
        config: &Config,
        count: usize,
        compute: &mut Compute,
        scratch: &mut Scratch,
        x: &[f32],
    ) {
        let Scratch { rows, wide, up, .. } = scratch;
        normed(compute, x, &self.feed_norm, config.norm_eps, count, rows);
        compute.prepare(rows, count, &[&self.gate, &self.up]);
        compute.multiply(rows, &mut [(&self.gate, &mut wide.numbers), (&self.up, &mut *up)]);
        let (width, is_silu) = (self.gate.rows, config.activation == Activation::Silu);
        compute.for_rows(&mut wide.numbers, count, &|kernel, row, gate| {
            let up = &up[row * width..(row + 1) * width];
            if is_silu { kernel.silu_times(gate, up) } else { kernel.gelu_times(gate, up) }
        });
    }

    /// Makes `added` of all of `wide`.
    pub(crate) fn down(&self, count: usize, compute: &mut Compute, scratch: &mut Scratch) {
        let Scratch { wide, added, .. } = scratch;
        compute.prepare(wide, count, &[&self.down]);
        compute.multiply(wide, &mut [(&self.down, &mut *added)]);
    }

    pub(crate) fn join_feed(
        &self,
        config: &Config,
        count: usize,
        compute: &mut Compute,
        scratch: &mut Scratch,
        x: &mut [f32],
    ) {
        let norm = self.post_feed_norm.as_deref();
        join(compute, x, &mut scratch.added, None, norm, config, count);
    }

    /// Heads of keys and values that are here.
    pub(crate) fn kv_heads(&self, config: &Config) -> usize {
        self.key.matrix.rows / config.head_dim as usize
    }
}

fn normed(
    compute: &mut Compute,
    x: &[f32],
    weight: &[f32],
    eps: f32,
    count: usize,
    into: &mut Rows,
) {
    into.numbers.resize(x.len(), 0.0);
    let width = x.len() / count;
    compute.for_rows(&mut into.numbers, count, &|kernel, row, out| {
        kernel.norm(&x[row * width..(row + 1) * width], weight, eps, out);
    });
}

/// Adds what a part of the layer found to what came in.
fn join(
    compute: &mut Compute,
    x: &mut [f32],
    added: &mut [f32],
    bias: Option<&[f32]>,
    norm: Option<&[f32]>,
    config: &Config,
    count: usize,
) {
    let width = x.len() / count;
    compute.for_rows(added, count, &|kernel, _, row| {
        if let Some(bias) = bias {
            kernel.add(row, bias);
        }
        if let Some(norm) = norm {
            kernel.norm_in_place(row, norm, config.norm_eps);
        }
    });
    let added: &[f32] = added;
    compute.for_rows(x, count, &|kernel, row, x| {
        kernel.add(x, &added[row * width..(row + 1) * width]);
    });
}
