//! Matrices on a GPU, and what multiplies by them. A matrix that is larger than what a kernel may see is in several
//! buffers, one dispatch each.

use shoal_gguf::Type;
use wgpu::Buffer;

use super::card::{Card, Dispatch, Layout};
use super::form::{BLOCK, Form, pack};

const WEIGHTS: &str = include_str!("weights.wgsl");
const FINISH: &str = include_str!("finish.wgsl");
const VECTOR: &str = include_str!("vector.wgsl");
const MATRIX: &str = include_str!("matrix.wgsl");
const EMBED: &str = include_str!("embed.wgsl");

/// Results of a workgroup that multiplies by one row, and results and rows of one that does by many.
const RESULTS: u32 = 4;
const TILE: u32 = 32;

/// Rows of weights of one type, as a file has them.
pub(super) struct Raw<'a> {
    pub(super) ty: Type,
    pub(super) columns: usize,
    pub(super) rows: Vec<&'a [u8]>,
}

/// Weights on the GPU.
pub(super) struct Matrix {
    form: Form,
    columns: usize,
    pieces: Vec<Piece>,
    pub(super) bytes: u64,
}

struct Piece {
    buffer: Buffer,
    first: u32,
    rows: u32,
    upper: u32,
    scales: u32,
}

/// What becomes of results; in the order of the kernels' own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Into {
    Stored,
    Added,
    /// Rows of a gate and of what it lets through take turns.
    Silu,
    Gelu,
}

/// A multiplication: which numbers go in, and where results go.
pub(super) struct Work<'a> {
    pub(super) input: &'a Buffer,
    /// Rows that go through a norm first: its weights are the first of `extra`, and where many rows were normed before
    /// stands here.
    pub(super) normed: Option<&'a Buffer>,
    /// The norm's weights, then a bias.
    pub(super) extra: &'a Buffer,
    pub(super) is_biased: bool,
    pub(super) eps: f32,
    pub(super) out: &'a Buffer,
    /// Where the results of the matrix begin in a row, and how long a row is.
    pub(super) first: u32,
    pub(super) stride: u32,
    pub(super) into: Into,
    /// How many rows there are.
    pub(super) run: &'a Buffer,
}

impl Matrix {
    pub(super) fn new(card: &Card, raw: &Raw<'_>) -> Matrix {
        let form = Form::of(raw.ty);
        let fit = card.most_bytes() / form.row_bytes(raw.columns).max(1);
        // Whole tiles, so that pairs of rows stay together; no more than a device starts at once.
        let fit = fit.min(u64::from(card.most_groups() * RESULTS)) / 32 * 32;
        let mut matrix = Matrix { form, columns: raw.columns, pieces: Vec::new(), bytes: 0 };
        for (at, rows) in raw.rows.chunks(fit.max(32) as usize).enumerate() {
            let packed = pack(raw.ty, raw.columns, rows);
            matrix.bytes += packed.words.len() as u64 * 4;
            matrix.pieces.push(Piece {
                buffer: card.kept(&packed.words),
                first: (at as u64 * fit.max(32)) as u32,
                rows: rows.len() as u32,
                upper: packed.upper,
                scales: packed.scales,
            });
        }
        matrix
    }

    /// Kernels for a few rows, and for many.
    pub(super) fn dispatches(&self, card: &Card, work: &Work<'_>) -> [Vec<Dispatch>; 2] {
        let is_normed = work.normed.is_some();
        let few = self.pipeline_text(work, is_normed, VECTOR);
        let many = self.pipeline_text(work, false, MATRIX);
        let (few, many) =
            (card.pipeline(Layout::Matrix, &few), card.pipeline(Layout::Matrix, &many));
        let mut both = [Vec::new(), Vec::new()];
        for piece in &self.pieces {
            let settings = card.settings(&self.settings(piece, work));
            let group = |input| {
                let Work { extra, out, run, .. } = work;
                card.bind(Layout::Matrix, &[&piece.buffer, input, extra, out, &settings, run])
            };
            let groups = |size: u32| piece.rows.div_ceil(size);
            both[0].push(Dispatch {
                pipeline: few.clone(),
                group: group(work.input),
                groups: groups(RESULTS),
                rows: 1,
            });
            both[1].push(Dispatch {
                pipeline: many.clone(),
                group: group(work.normed.unwrap_or(work.input)),
                groups: groups(TILE),
                rows: TILE,
            });
        }
        both
    }

    /// Rows of this matrix by token, as many numbers each.
    pub(super) fn embedding(
        &self,
        card: &Card,
        rows: &Buffer,
        scale: f32,
        out: &Buffer,
        run: &Buffer,
    ) -> Vec<Dispatch> {
        let text = format!("{}{WEIGHTS}{EMBED}", self.form.text());
        let pipeline = card.pipeline(Layout::Matrix, &text);
        let nothing = card.room(16);
        let each = |piece: &Piece| {
            let mut words = self.words(piece, 0.0);
            words[2] = 0;
            words[4] = self.columns as u32;
            words[9] = scale.to_bits();
            words[10] = piece.first;
            let settings = card.settings(&words);
            let buffers = [&piece.buffer, rows, &nothing, out, &settings, run];
            let group = card.bind(Layout::Matrix, &buffers);
            Dispatch { pipeline: pipeline.clone(), group, groups: 1, rows: 1 }
        };
        self.pieces.iter().map(each).collect()
    }

    fn pipeline_text(&self, work: &Work<'_>, is_normed: bool, kernel: &str) -> String {
        let (form, is_biased, into) = (self.form.text(), work.is_biased, work.into as u32);
        format!(
            "{form}const NORMED = {is_normed};\nconst BIASED = {is_biased};\nconst INTO = {into}u;\n{WEIGHTS}{FINISH}{kernel}"
        )
    }

    fn settings(&self, piece: &Piece, work: &Work<'_>) -> [u32; 12] {
        let mut words = self.words(piece, work.eps);
        words[2] += work.first;
        words[4] = work.stride;
        words
    }

    fn words(&self, piece: &Piece, eps: f32) -> [u32; 12] {
        let Piece { rows, first, upper, scales, .. } = *piece;
        let columns = self.columns as u32;
        let blocks = columns / BLOCK as u32;
        let eps = eps.to_bits();
        [blocks, rows, first, columns / 4, 0, upper, scales, columns, eps, 0, 0, 0]
    }
}
