//! A range of a model's layers, ready to compute: with the first layer the embedding, with the last one the final norm
//! and the head. All layers in one stage and the same layers in several give the same bits.

use std::ops::Range;

use shoal_gguf::{Config, Model, Piece, Role, Share, TensorInfo};

use super::cache::{Cache, Shape};
use super::compute::{Compute, Rows};
use super::error::{LoadError, RunError};
use super::kernel::{Kernel, Seen};
use super::lanes::LANES;
use super::layer::{Layer, Scratch, Step};
use super::matrix::Matrix;
use super::pool::Pool;
use super::rope::Turns;

/// Rows of one run: enough that weights are read once for many, few enough that what is between layers fits a cache.
pub const MOST_ROWS: usize = 512;

#[derive(Clone, Debug)]
pub struct Options {
    /// That compute, with the one that asks.
    pub threads: usize,
    /// Positions of a sequence, at most.
    pub context: u32,
    /// Sequences at a time, at most.
    pub sequences: usize,
    /// None: the fastest this processor has.
    pub kernel: Option<Kernel>,
}

pub struct Stage {
    pub(super) config: Config,
    layers: Range<u32>,
    pub(super) weights: Weights,
    pub(super) cache: Cache,
    pub(super) compute: Compute,
    pub(super) scratch: Scratch,
}

pub(super) struct Weights {
    pub(super) embedding: Option<Matrix>,
    /// Divide the frequencies of positions.
    rope_factors: Option<Vec<f32>>,
    pub(super) layers: Vec<Layer>,
    pub(super) last: Option<Last>,
}

pub(super) struct Last {
    pub(super) norm: Vec<f32>,
    /// None: the embedding, which is here too.
    head: Option<Matrix>,
}

impl Weights {
    /// The matrix that gives a number for each word.
    fn head(&self) -> Option<&Matrix> {
        let last = self.last.as_ref()?;
        last.head.as_ref().or(self.embedding.as_ref())
    }

    /// How these positions are turned, in layers that see all and in those that see a window.
    pub(super) fn turns(&self, config: &Config, positions: &[u32]) -> (Turns, Option<Turns>) {
        let factors = self.rope_factors.as_deref();
        let turns = |rope| Turns::new(rope, factors, positions.iter().copied());
        (turns(&config.rope), config.window.as_ref().map(|window| turns(&window.rope)))
    }
}

/// A position of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub sequence: u64,
    pub position: u32,
    /// Of use in the last stage: what follows this row is asked for.
    pub wants_logits: bool,
}

/// What goes into a stage, for each row.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Into the first stage.
    Tokens(&'a [u32]),
    /// Into a later one: as many numbers for each row as the model is wide.
    Hidden(&'a [f32]),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// For the next stage.
    Hidden(Vec<f32>),
    /// For each row that wants them, a number for each token.
    Logits(Vec<f32>),
}

impl Stage {
    /// Loads some layers. `read` gives the bytes of a range of the file; it is asked for one tensor at a time, in the
    /// order of the file. Where nobody can wait for bytes, [`Loading`] does the same.
    pub fn load(
        model: &Model,
        layers: Range<u32>,
        options: &Options,
        read: &mut dyn FnMut(Range<u64>) -> Result<Vec<u8>, String>,
    ) -> Result<Stage, LoadError> {
        let mut loading = Loading::new(model, layers, options)?;
        while let Some(range) = loading.wants() {
            let bytes = read(range).map_err(LoadError::Read)?;
            loading.give(&bytes)?;
        }
        loading.finish()
    }

    /// Computes some rows. A refused run changes nothing.
    pub fn run(&mut self, rows: &[Row], input: Input<'_>) -> Result<Output, RunError> {
        self.through(rows, input, Stage::finished)
    }

    /// The same in the last stage for what stands behind each row before words are chosen from it: what the row means.
    pub fn read(&mut self, rows: &[Row], input: Input<'_>) -> Result<Vec<f32>, RunError> {
        self.through(rows, input, Stage::normed)
    }

    fn through<T>(
        &mut self,
        rows: &[Row],
        input: Input<'_>,
        finish: impl FnOnce(&mut Stage, &[Row], Vec<f32>) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let mut x = self.checked(rows, input)?;
        let follows = || rows.iter().map(|row| (row.sequence, row.position));
        let before: Vec<(u64, u32)> =
            follows().map(|(sequence, _)| (sequence, self.cache.length(sequence))).collect();
        self.cache.grow(follows());
        let sequences: Vec<u64> = rows.iter().map(|row| row.sequence).collect();
        let positions: Vec<u32> = rows.iter().map(|row| row.position).collect();
        let (global, local) = self.weights.turns(&self.config, &positions);
        for (at, layer) in self.weights.layers.iter().enumerate() {
            let is_global = self.config.is_global(self.layers.start + at as u32);
            let step = Step {
                config: &self.config,
                layer: at,
                sequences: &sequences,
                positions: &positions,
                turns: local.as_ref().filter(|_| !is_global).unwrap_or(&global),
                window: self.config.window.filter(|_| !is_global).map(|window| window.size),
            };
            layer.run(&step, &mut self.cache, &mut self.compute, &mut self.scratch, &mut x);
        }
        let output = finish(self, rows, x);
        if output.is_err() {
            // What broke must not stay behind.
            for (sequence, length) in before {
                self.cache.truncate(sequence, length)?;
            }
        }
        output
    }

    /// What goes into the first layer, if all is as it should be.
    fn checked(&self, rows: &[Row], input: Input<'_>) -> Result<Vec<f32>, RunError> {
        if rows.is_empty() || rows.len() > MOST_ROWS {
            return Err(RunError::Rows { found: rows.len(), most: MOST_ROWS });
        }
        let width = self.config.width as usize;
        let (expected, found, what) = match input {
            Input::Tokens(tokens) => (rows.len(), tokens.len(), "tokens"),
            Input::Hidden(hidden) => (rows.len() * width, hidden.len(), "numbers"),
        };
        if expected != found {
            return Err(RunError::Input { rows: rows.len(), expected, found, what });
        }
        self.cache.check(rows.iter().map(|row| (row.sequence, row.position)))?;
        match (input, &self.weights.embedding) {
            (Input::Tokens(tokens), Some(embedding)) if self.is_first() => {
                let vocab = self.config.vocab;
                if let Some(token) = tokens.iter().copied().find(|token| *token >= vocab) {
                    return Err(RunError::Token { token, vocab });
                }
                let mut x = vec![0.0; rows.len() * width];
                for (token, x) in tokens.iter().zip(x.chunks_exact_mut(width)) {
                    embedding.row(*token as usize, x);
                    x.iter_mut().for_each(|x| *x *= self.config.embedding_scale);
                }
                Ok(x)
            }
            (Input::Hidden(hidden), _) if !self.is_first() => {
                let is_finite = hidden.iter().all(|number| number.is_finite());
                if is_finite { Ok(hidden.to_vec()) } else { Err(RunError::NotFinite) }
            }
            (Input::Tokens(_) | Input::Hidden(_), _) => {
                let expected = if self.is_first() { "tokens" } else { "hidden numbers" };
                Err(RunError::Kind { expected })
            }
        }
    }

    fn finished(&mut self, rows: &[Row], x: Vec<f32>) -> Result<Output, RunError> {
        if !x.iter().all(|number| number.is_finite()) {
            return Err(RunError::NotFinite);
        }
        if self.weights.last.is_none() {
            return Ok(Output::Hidden(x));
        }
        self.logits(rows, &x).map(Output::Logits)
    }

    /// For each row that wants them; where only some words are here, for those.
    pub(super) fn logits(&mut self, rows: &[Row], x: &[f32]) -> Result<Vec<f32>, RunError> {
        let width = self.config.width as usize;
        let (Some(last), Some(head)) = (&self.weights.last, self.weights.head()) else {
            return Ok(Vec::new());
        };
        let wanted = rows.iter().zip(x.chunks_exact(width)).filter(|(row, _)| row.wants_logits);
        let mut normed = Rows::default();
        for (_, x) in wanted.clone() {
            let mut row = vec![0.0; width];
            self.compute.kernel.norm(x, &last.norm, self.config.norm_eps, &mut row);
            normed.numbers.extend(row);
        }
        let mut logits = Vec::new();
        if !normed.numbers.is_empty() {
            self.compute.prepare(&mut normed, wanted.count(), &[head]);
            self.compute.multiply(&normed, &mut [(head, &mut logits)]);
        }
        if let Some(cap) = self.config.logit_cap {
            self.compute.kernel.soft_cap(&mut logits, cap);
        }
        if logits.iter().all(|number| number.is_finite()) {
            Ok(logits)
        } else {
            Err(RunError::NotFinite)
        }
    }

    fn normed(&mut self, _: &[Row], x: Vec<f32>) -> Result<Vec<f32>, RunError> {
        let Some(last) = &self.weights.last else {
            return Err(RunError::Kind { expected: "the model's last layer here" });
        };
        let (width, eps) = (self.config.width as usize, self.config.norm_eps);
        let mut normed = vec![0.0; x.len()];
        for (x, row) in x.chunks_exact(width).zip(normed.chunks_exact_mut(width)) {
            self.compute.kernel.norm(x, &last.norm, eps, row);
        }
        let is_finite = normed.iter().all(|number| number.is_finite());
        if is_finite { Ok(normed) } else { Err(RunError::NotFinite) }
    }

    pub fn layers(&self) -> Range<u32> {
        self.layers.clone()
    }

    pub fn is_first(&self) -> bool {
        self.layers.start == 0
    }

    pub fn is_last(&self) -> bool {
        self.weights.last.is_some()
    }

    /// Words that the model knows.
    pub fn words(&self) -> usize {
        self.config.vocab as usize
    }

    /// Numbers that cross from layer to layer, for each row.
    pub fn width(&self) -> usize {
        self.config.width as usize
    }

    pub fn kernel(&self) -> Kernel {
        self.compute.kernel.kernel()
    }

    /// Sequences that may be held here at a time.
    pub fn most_sequences(&self) -> usize {
        self.cache.most_sequences()
    }

    /// Positions of a sequence that are held here; 0 if it is not known.
    pub fn length(&self, sequence: u64) -> u32 {
        self.cache.length(sequence)
    }

    /// Forgets a sequence's positions from `length` on.
    pub fn truncate(&mut self, sequence: u64, length: u32) -> Result<(), RunError> {
        self.cache.truncate(sequence, length)
    }

    pub fn drop_sequence(&mut self, sequence: u64) {
        self.cache.forget(sequence);
    }

    /// Begins a new sequence with the first positions of another one.
    pub fn copy_prefix(&mut self, from: u64, to: u64, length: u32) -> Result<(), RunError> {
        self.cache.copy(from, to, length)
    }

    /// Memory that the weights take.
    pub fn bytes(&self) -> u64 {
        let layers = self.weights.layers.iter().map(Layer::bytes).sum::<u64>();
        let embedding = self.weights.embedding.as_ref().map_or(0, Matrix::bytes);
        let head = self.weights.last.as_ref().and_then(|last| last.head.as_ref());
        layers + embedding + head.map_or(0, Matrix::bytes)
    }

    /// Memory that the sequences take now.
    pub fn cache_bytes(&self) -> u64 {
        self.cache.bytes()
    }
}

/// Some layers that are being loaded, a tensor at a time: it says which bytes it wants, and is given them.
pub struct Loading {
    model: Model,
    layers: Range<u32>,
    options: Options,
    kernel: Seen,
    /// Those that are still to come, the next one last.
    left: Vec<Piece>,
    tensors: Vec<(String, Tensor)>,
}

impl Loading {
    pub fn new(model: &Model, layers: Range<u32>, options: &Options) -> Result<Loading, LoadError> {
        let piece = |index: &usize| {
            let tensor = model.head().tensors()[*index].clone();
            let is_matrix = tensor.dims[1..].iter().any(|dim| *dim > 1);
            Piece { tensor, is_matrix }
        };
        let pieces = model.part(layers.clone())?.tensors.iter().map(piece).collect();
        Loading::of(model, layers, options, pieces)
    }

    /// A share of all layers.
    pub(super) fn of_share(
        model: &Model,
        share: &Share,
        options: &Options,
    ) -> Result<Loading, LoadError> {
        Loading::of(model, model.whole(), options, model.slice(share).pieces)
    }

    fn of(
        model: &Model,
        layers: Range<u32>,
        options: &Options,
        mut left: Vec<Piece>,
    ) -> Result<Loading, LoadError> {
        let kernel = options.kernel.unwrap_or_else(Kernel::best);
        let kernel = Seen::new(kernel).ok_or(LoadError::Kernel { name: kernel.name() })?;
        // What a share has nothing of need not be given; a list of nothing is as if there were none.
        let empty: Vec<Piece> = left.extract_if(.., |piece| piece.tensor.at.is_empty()).collect();
        let tensors = empty.iter().filter(|piece| piece.is_matrix);
        let tensors = tensors.map(|piece| Tensor::of(piece, &[])).collect::<Result<_, _>>()?;
        left.reverse();
        let (model, options) = (model.clone(), options.clone());
        Ok(Loading { model, layers, options, kernel, left, tensors })
    }

    /// The bytes of the file that are to be given next; nothing when all were. They follow the order of the file.
    pub fn wants(&self) -> Option<Range<u64>> {
        self.left.last().map(|piece| piece.tensor.at.clone())
    }

    /// The bytes that it wants.
    pub fn give(&mut self, bytes: &[u8]) -> Result<(), LoadError> {
        if let Some(piece) = self.left.last() {
            let tensor = Tensor::of(piece, bytes)?;
            self.tensors.push(tensor);
            self.left.pop();
        }
        Ok(())
    }

    pub fn finish(self) -> Result<Stage, LoadError> {
        let Loading { model, layers, options, kernel, tensors, .. } = self;
        let mut loaded = Loaded { model: &model, tensors };
        let config = model.config().clone();
        let (is_first, is_last) = (layers.start == 0, layers.end == config.layers);
        let embedding = if is_first || (is_last && model.is_tied()) {
            Some(loaded.matrix(model.common(Role::Embedding))?)
        } else {
            None
        };
        let last = if is_last {
            let norm = loaded.list(model.common(Role::OutputNorm))?;
            let head = model.common(Role::Head).filter(|_| !model.is_tied());
            let head = head.map(|head| loaded.matrix(Some(head))).transpose()?;
            Some(Last { norm, head })
        } else {
            None
        };
        let rope_factors = loaded.optional(model.common(Role::RopeFactors))?;
        let own = layers.clone().map(|layer| Layer::new(&mut loaded, &config, layer));
        let own = own.collect::<Result<Vec<_>, _>>()?;
        let head = config.head_dim as usize;
        let shape = Shape {
            layers: own.len(),
            kv_heads: own.first().map_or(0, |layer| layer.kv_heads(&config)),
            head,
            filled: head.next_multiple_of(LANES),
        };
        Ok(Stage {
            cache: Cache::new(shape, options.sequences, options.context),
            weights: Weights { embedding, rope_factors, layers: own, last },
            compute: Compute { kernel, pool: Pool::new(options.threads) },
            scratch: Scratch::default(),
            config,
            layers,
        })
    }
}

/// A part's tensors, each taken once by who needs it.
pub(crate) struct Loaded<'a> {
    pub(crate) model: &'a Model,
    tensors: Vec<(String, Tensor)>,
}

enum Tensor {
    Matrix(Matrix),
    List(Vec<f32>),
}

impl Tensor {
    fn of(piece: &Piece, bytes: &[u8]) -> Result<(String, Tensor), LoadError> {
        let info = &piece.tensor;
        let name = info.name.clone();
        if piece.is_matrix {
            return Ok((name, Tensor::Matrix(Matrix::pack(info, bytes)?)));
        }
        let expected = info.at.end - info.at.start;
        let list = info.ty.numbers(bytes).filter(|_| bytes.len() as u64 == expected);
        let Some(list) = list else {
            return Err(LoadError::Length { name, expected, found: bytes.len() as u64 });
        };
        if !list.iter().all(|number| number.is_finite()) {
            return Err(LoadError::NotFinite { name });
        }
        Ok((name, Tensor::List(list)))
    }
}

impl Loaded<'_> {
    fn take(&mut self, info: Option<&TensorInfo>) -> Option<Tensor> {
        let name = &info?.name;
        let at = self.tensors.iter().position(|(known, _)| known == name)?;
        Some(self.tensors.swap_remove(at).1)
    }

    pub(crate) fn matrix(&mut self, info: Option<&TensorInfo>) -> Result<Matrix, LoadError> {
        match self.take(info) {
            Some(Tensor::Matrix(matrix)) => Ok(matrix),
            Some(Tensor::List(_)) | None => Err(missing(info)),
        }
    }

    pub(crate) fn list(&mut self, info: Option<&TensorInfo>) -> Result<Vec<f32>, LoadError> {
        self.optional(info)?.ok_or_else(|| missing(info))
    }

    pub(crate) fn optional(
        &mut self,
        info: Option<&TensorInfo>,
    ) -> Result<Option<Vec<f32>>, LoadError> {
        match self.take(info) {
            Some(Tensor::List(list)) => Ok(Some(list)),
            Some(Tensor::Matrix(_)) => Err(missing(info)),
            None => Ok(None),
        }
    }
}

fn missing(info: Option<&TensorInfo>) -> LoadError {
    LoadError::Missing { name: info.map_or_else(String::new, |info| info.name.clone()) }
}
