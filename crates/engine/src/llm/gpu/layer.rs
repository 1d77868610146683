//! The kernels of one layer, in order. A few rows take six dispatches where a model has nothing special: queries, keys and
//! values behind a norm; their turn by position, and the caches; attention; its way out, added to what came in; gate and
//! up behind a norm, and the gate's opening; down, added. Many rows are normed in dispatches of their own.

use shoal_gguf::{Activation, Config, Model, Role, RopeStyle, Type};
use wgpu::Buffer;

use super::card::{Card, Dispatch, Layout};
use super::product::{Into, Matrix, Raw, Work};
use super::rooms::{Rooms, filled};
use super::tensors::{Tensor, Tensors};
use crate::llm::error::LoadError;
use crate::llm::lanes::narrow;

const NORM: &str = include_str!("norm.wgsl");
const PLACE: &str = include_str!("place.wgsl");
const ATTEND: &str = include_str!("attend.wgsl");

/// Dispatches for a few rows, and for many.
#[derive(Default)]
pub(super) struct Kernels {
    pub(super) few: Vec<Dispatch>,
    pub(super) many: Vec<Dispatch>,
    /// Of weights.
    pub(super) bytes: u64,
}

/// What a layer is built with.
pub(super) struct Site<'a> {
    pub(super) card: &'a Card,
    pub(super) config: &'a Config,
    pub(super) rooms: &'a Rooms,
    /// Keys and values of this layer.
    pub(super) cache: &'a [Buffer; 2],
    pub(super) context: u32,
    pub(super) is_global: bool,
}

impl Kernels {
    fn both(&mut self, dispatch: impl Fn() -> Dispatch) {
        self.few.push(dispatch());
        self.many.push(dispatch());
    }

    pub(super) fn multiply(&mut self, card: &Card, matrix: &Matrix, work: &Work<'_>) {
        let [few, many] = matrix.dispatches(card, work);
        self.few.extend(few);
        self.many.extend(many);
        self.bytes += matrix.bytes;
    }

    /// Adds a layer, whose tensors are taken.
    pub(super) fn layer(
        &mut self,
        site: &Site<'_>,
        model: &Model,
        tensors: &mut Tensors,
        layer: u32,
    ) -> Result<(), LoadError> {
        let mut take = |role| tensors.take(model.of_layer(layer, role));
        self.attention(site, &mut take)?;
        self.feed(site, &mut take)
    }

    fn attention(
        &mut self,
        site: &Site<'_>,
        take: &mut dyn FnMut(Role) -> Option<Tensor>,
    ) -> Result<(), LoadError> {
        let Site { card, config, rooms, .. } = *site;
        let (head, width) = (config.head_dim, config.width);
        let stride = (config.heads + 2 * config.kv_heads) * head;
        let norm = list(take(Role::AttentionNorm))?;
        let biases = [Role::QueryBias, Role::KeyBias, Role::ValueBias].map(&mut *take);
        let is_biased = biases.iter().any(Option::is_some);
        let lengths = [config.heads, config.kv_heads, config.kv_heads].map(|it| it * head);
        let mut extra = norm.clone();
        for (bias, length) in biases.into_iter().zip(lengths) {
            extra.extend(bias.map_or(Ok(vec![0.0; length as usize]), |bias| bias.numbers())?);
        }
        self.norm_of(card, (config.width, config.norm_eps), &rooms.x, &norm, &rooms.normed, false);
        let extra = card.kept(&bits(&extra));
        let [query, key, value] = [Role::Query, Role::Key, Role::ValueOf].map(&mut *take);
        let three = [needed(query)?, needed(key)?, needed(value)?];
        let mut first = 0;
        // Neighbours of one type are one matrix.
        for some in three.chunk_by(|a, b| a.info.ty == b.info.ty) {
            let mut raw = some[0].raw();
            for other in &some[1..] {
                raw.rows.extend(other.raw().rows);
            }
            let matrix = Matrix::new(card, &raw);
            let (input, out, run, eps) = (&rooms.x, &rooms.heads, &rooms.run, config.norm_eps);
            let normed = Some(&rooms.normed);
            let (extra, into) = (&extra, Into::Stored);
            let work = Work { input, normed, extra, is_biased, eps, out, first, stride, into, run };
            self.multiply(card, &matrix, &work);
            first += raw.rows.len() as u32;
        }
        let norms = [take(Role::QueryNorm), take(Role::KeyNorm)];
        self.heads(site, norms)?;
        let bias = take(Role::OutBias).map(|bias| bias.numbers()).transpose()?;
        let (out, post) = (needed(take(Role::Out))?, take(Role::PostAttentionNorm));
        let columns = filled(config.heads * head);
        self.join(site, &out, &rooms.attended, (bias, columns), post, width)
    }

    /// What is between the matrices.
    fn heads(&mut self, site: &Site<'_>, norms: [Option<Tensor>; 2]) -> Result<(), LoadError> {
        let Site { card, config, rooms, cache: [keys, values], .. } = *site;
        let is_normed = norms.iter().any(Option::is_some);
        let mut weights = Vec::new();
        for norm in norms {
            let plain = || Ok(vec![1.0; config.head_dim as usize]);
            weights.extend(norm.map_or_else(plain, |norm| norm.numbers())?);
        }
        let window = config.window.filter(|_| !site.is_global);
        let rope = window.as_ref().map_or(&config.rope, |window| &window.rope);
        let turns = &rooms.turns[usize::from(window.is_some())];
        let settings = card.settings(&[
            config.heads,
            config.kv_heads,
            site.context,
            window.map_or(0, |window| window.size),
            config.norm_eps.to_bits(),
            config.attention_scale.to_bits(),
            config.attention_cap.unwrap_or(0.0).to_bits(),
            filled(config.heads * config.head_dim),
        ]);
        let (head, pairs, halves) =
            (config.head_dim, rope.dims / 2, rope.style == RopeStyle::Halves);
        let text = format!(
            "const HEAD = {head}u;\nconst PAIRS = {pairs}u;\nconst HALVES = {halves};\nconst NORMED = {is_normed};\n{PLACE}"
        );
        let weights = card.kept(&bits(&weights));
        self.both(|| Dispatch {
            pipeline: card.pipeline(Layout::Place, &text),
            group: card.bind(
                Layout::Place,
                &[&rooms.heads, &rooms.rows, turns, &weights, &settings, keys, values],
            ),
            groups: config.heads + 2 * config.kv_heads,
            rows: 1,
        });
        let text = format!("const HEAD = {head}u;\n{ATTEND}");
        self.both(|| Dispatch {
            pipeline: card.pipeline(Layout::Attend, &text),
            group: card.bind(
                Layout::Attend,
                &[&rooms.heads, &rooms.rows, keys, &rooms.attended, &settings, values],
            ),
            groups: config.heads,
            rows: 1,
        });
        Ok(())
    }

    fn feed(
        &mut self,
        site: &Site<'_>,
        take: &mut dyn FnMut(Role) -> Option<Tensor>,
    ) -> Result<(), LoadError> {
        let Site { card, config, rooms, .. } = *site;
        let norm = list(take(Role::FeedNorm))?;
        self.norm_of(card, (config.width, config.norm_eps), &rooms.x, &norm, &rooms.normed, false);
        let (gate, up) = (needed(take(Role::Gate))?, needed(take(Role::Up))?);
        let (gate, up) = match gate.info.ty == up.info.ty {
            true => (gate, up),
            // Rare: both as halves, so that they are one matrix.
            false => (halved(&gate)?, halved(&up)?),
        };
        let (gate, up) = (gate.raw(), up.raw());
        let rows = gate.rows.iter().zip(&up.rows).flat_map(|(gate, up)| [*gate, *up]);
        let raw = Raw { ty: gate.ty, columns: gate.columns, rows: rows.collect() };
        let into = match config.activation {
            Activation::Silu => Into::Silu,
            Activation::Gelu => Into::Gelu,
        };
        let matrix = Matrix::new(card, &raw);
        self.multiply(
            card,
            &matrix,
            &Work {
                input: &rooms.x,
                normed: Some(&rooms.normed),
                extra: &card.kept(&bits(&norm)),
                is_biased: false,
                eps: config.norm_eps,
                out: &rooms.wide,
                first: 0,
                stride: filled(config.ff),
                into,
                run: &rooms.run,
            },
        );
        let (down, post) = (needed(take(Role::Down))?, take(Role::PostFeedNorm));
        self.join(site, &down, &rooms.wide, (None, filled(config.ff)), post, config.width)
    }

    /// A matrix whose results are added to what came in, behind a norm where a model has one.
    fn join(
        &mut self,
        site: &Site<'_>,
        matrix: &Tensor,
        input: &Buffer,
        (bias, columns): (Option<Vec<f32>>, u32),
        post: Option<Tensor>,
        width: u32,
    ) -> Result<(), LoadError> {
        let Site { card, config, rooms, .. } = *site;
        let matrix = Matrix::new(card, &matrix.raw());
        let (out, into) = match post {
            Some(_) => (&rooms.added, Into::Stored),
            None => (&rooms.x, Into::Added),
        };
        let is_biased = bias.is_some();
        let mut extra = vec![0.0; columns as usize];
        extra.extend(bias.into_iter().flatten());
        let extra = if is_biased { card.kept(&bits(&extra)) } else { rooms.nothing.clone() };
        let work = Work {
            input,
            normed: None,
            extra: &extra,
            is_biased,
            eps: config.norm_eps,
            out,
            first: 0,
            stride: width,
            into,
            run: &rooms.run,
        };
        self.multiply(card, &matrix, &work);
        if let Some(post) = post {
            let (size, weights) = ((config.width, config.norm_eps), post.numbers()?);
            self.both(|| norm(card, size, &rooms.added, &weights, &rooms.x, true));
        }
        Ok(())
    }

    /// Many rows are normed once, before all that read them.
    pub(super) fn norm_of(
        &mut self,
        card: &Card,
        size: (u32, f32),
        input: &Buffer,
        weights: &[f32],
        out: &Buffer,
        is_joined: bool,
    ) {
        self.many.push(norm(card, size, input, weights, out, is_joined));
    }
}

/// `size` is a row's width, and what keeps a norm of nothing from being infinite.
fn norm(
    card: &Card,
    size: (u32, f32),
    input: &Buffer,
    weights: &[f32],
    out: &Buffer,
    is_joined: bool,
) -> Dispatch {
    let settings = card.settings(&[size.0, size.1.to_bits(), 0, 0]);
    let (weights, nothing) = (card.kept(&bits(weights)), card.room(16));
    let text = format!("const JOINED = {is_joined};\n{NORM}");
    Dispatch {
        pipeline: card.pipeline(Layout::Matrix, &text),
        group: card.bind(
            Layout::Matrix,
            &[input, &nothing, &weights, out, &settings, &card.settings(&[0; 4])],
        ),
        groups: 1,
        rows: 1,
    }
}

pub(super) fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// The numbers as halves.
fn halved(tensor: &Tensor) -> Result<Tensor, LoadError> {
    let numbers = tensor.numbers()?;
    let mut info = tensor.info.clone();
    info.ty = Type::F16;
    let bytes: Vec<u8> = numbers.iter().flat_map(|it| narrow(*it).to_le_bytes()).collect();
    info.at = 0..bytes.len() as u64;
    Ok(Tensor { info, bytes })
}

fn needed(tensor: Option<Tensor>) -> Result<Tensor, LoadError> {
    tensor.ok_or_else(|| LoadError::Missing { name: "of a layer".into() })
}

fn list(tensor: Option<Tensor>) -> Result<Vec<f32>, LoadError> {
    needed(tensor)?.numbers()
}
