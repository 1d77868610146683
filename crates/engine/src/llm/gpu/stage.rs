//! A range of a model's layers on a GPU: the same questions and answers as [`crate::llm::Stage`], within a tolerance.

use std::ops::Range;

use shoal_gguf::{Config, Model, Role};
use wgpu::{Buffer, CommandEncoderDescriptor, ComputePassDescriptor};

use super::card::{Card, Dispatch};
use super::layer::{Kernels, Site, bits};
use super::product::{Into, Matrix, Work};
use super::rooms::{LAST_ROWS, ROWS, Rooms, filled};
use super::slots::Slots;
use super::tensors::Tensors;
use crate::llm::error::{LoadError, RunError};
use crate::llm::rope::Turns;
use crate::llm::stage::{Input, MOST_ROWS, Options, Output, Row};

/// Up to so many rows weights are read again for each; more are computed together, in tiles.
const FEW: usize = 4;

pub struct GpuStage {
    card: Card,
    config: Config,
    layers: Range<u32>,
    rooms: Rooms,
    slots: Slots,
    caches: Vec<[Buffer; 2]>,
    /// Through which positions go from one sequence to another: a buffer cannot be copied into itself.
    between: Buffer,
    context: u32,
    rope_factors: Option<Vec<f32>>,
    embedding: Vec<Dispatch>,
    kernels: Kernels,
    /// In the last stage.
    head: Option<Kernels>,
}

impl GpuStage {
    /// Computes some rows. A refused run changes nothing.
    pub async fn run(&mut self, rows: &[Row], input: Input<'_>) -> Result<Output, RunError> {
        self.check(rows, input)?;
        let follows = || rows.iter().map(|row| row.sequence);
        let before: Vec<(u64, u32)> =
            follows().map(|sequence| (sequence, self.slots.length(sequence))).collect();
        let output = self.run_all(rows, input).await;
        if output.is_err() {
            // What broke must not stay behind.
            for (sequence, length) in before {
                self.slots.truncate(sequence, length)?;
            }
        }
        output
    }

    async fn run_all(&mut self, rows: &[Row], input: Input<'_>) -> Result<Output, RunError> {
        let (mut at, mut numbers) = (0, Vec::new());
        let width = self.config.width as usize;
        while at < rows.len() {
            let count = chunk(&rows[at..]);
            let rows = &rows[at..at + count];
            let input = match input {
                Input::Tokens(tokens) => Input::Tokens(&tokens[at..at + count]),
                Input::Hidden(hidden) => Input::Hidden(&hidden[at * width..(at + count) * width]),
            };
            numbers.extend(self.run_chunk(rows, input).await?);
            at += count;
        }
        if let (Some(cap), true) = (self.config.logit_cap, self.is_last()) {
            numbers.iter_mut().for_each(|logit| *logit = cap * (*logit / cap).tanh());
        }
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err(RunError::NotFinite);
        }
        Ok(if self.is_last() { Output::Logits(numbers) } else { Output::Hidden(numbers) })
    }

    /// One submission, and what is read of it.
    async fn run_chunk(&mut self, rows: &[Row], input: Input<'_>) -> Result<Vec<f32>, RunError> {
        let scopes = self.card.scopes();
        self.fill(rows, input);
        let (width, count) = (u64::from(self.config.width) * 4, rows.len() as u32);
        let descriptor = CommandEncoderDescriptor::default();
        let mut encoder = self.card.device().create_command_encoder(&descriptor);
        let list = if rows.len() <= FEW { &self.kernels.few } else { &self.kernels.many };
        let embedding = if self.is_first() { &self.embedding[..] } else { &[] };
        dispatch(&mut encoder, embedding.iter().chain(list), count);
        let mut bytes = u64::from(count) * width;
        if let Some(head) = &self.head {
            let wanted = rows.iter().enumerate().filter(|(_, row)| row.wants_logits);
            let mut wants = 0;
            for (row, _) in wanted {
                let (from, to) = (row as u64 * width, u64::from(wants) * width);
                encoder.copy_buffer_to_buffer(&self.rooms.x, from, &self.rooms.last, to, width);
                wants += 1;
            }
            self.card.write(&self.rooms.last_run, &[wants, 0, 0, 0]);
            let list = if wants as usize <= FEW { &head.few } else { &head.many };
            if wants > 0 {
                dispatch(&mut encoder, list.iter(), wants);
            }
            bytes = u64::from(wants) * u64::from(self.config.vocab) * 4;
        }
        let from = if self.is_last() { &self.rooms.logits } else { &self.rooms.x };
        if bytes > 0 {
            encoder.copy_buffer_to_buffer(from, 0, &self.rooms.readback, 0, bytes);
        }
        let index = self.card.queue().submit([encoder.finish()]);
        let caught = scopes.close();
        let numbers = match bytes {
            // Otherwise all of a prompt would be waited for with its last step, for longer than a step may take.
            0 => self.card.finish(&index).map(|()| Vec::new()),
            _ => self.card.read(&index, &self.rooms.readback, bytes).await,
        };
        caught.await.map_err(|failure| RunError::Device(failure.to_string()))?;
        numbers.map_err(RunError::Device)
    }

    /// Writes what the kernels are told of these rows.
    fn fill(&mut self, rows: &[Row], input: Input<'_>) {
        let mut words = Vec::with_capacity(rows.len() * 4);
        for (at, row) in rows.iter().enumerate() {
            let token = match input {
                Input::Tokens(tokens) => tokens[at],
                Input::Hidden(_) => 0,
            };
            words.extend([self.slots.take(row.sequence, row.position), row.position, token, 0]);
        }
        self.card.write(&self.rooms.rows, &words);
        self.card.write(&self.rooms.run, &[rows.len() as u32, 0, 0, 0]);
        let local = self.config.window.map(|window| window.rope);
        let ropes = [Some(self.config.rope), local];
        for (rope, buffer) in ropes.into_iter().zip(&self.rooms.turns) {
            let Some(rope) = rope else { continue };
            let positions = rows.iter().map(|row| row.position);
            let turns = Turns::new(&rope, self.rope_factors.as_deref(), positions);
            let pairs = turns.table().iter().flat_map(|(cos, sin)| [cos.to_bits(), sin.to_bits()]);
            self.card.write(buffer, &pairs.collect::<Vec<_>>());
        }
        if let Input::Hidden(hidden) = input {
            self.card.write(&self.rooms.x, &bits(hidden));
        }
    }

    fn check(&self, rows: &[Row], input: Input<'_>) -> Result<(), RunError> {
        if rows.is_empty() || rows.len() > MOST_ROWS {
            return Err(RunError::Rows { found: rows.len(), most: MOST_ROWS });
        }
        let (expected, found, what) = match input {
            Input::Tokens(tokens) => (rows.len(), tokens.len(), "tokens"),
            Input::Hidden(hidden) => {
                (rows.len() * self.config.width as usize, hidden.len(), "numbers")
            }
        };
        if expected != found {
            return Err(RunError::Input { rows: rows.len(), expected, found, what });
        }
        self.slots.check(rows.iter().map(|row| (row.sequence, row.position)))?;
        match input {
            Input::Tokens(tokens) if self.is_first() => {
                let vocab = self.config.vocab;
                match tokens.iter().copied().find(|token| *token >= vocab) {
                    Some(token) => Err(RunError::Token { token, vocab }),
                    None => Ok(()),
                }
            }
            Input::Hidden(hidden) if !self.is_first() => {
                let is_finite = hidden.iter().all(|number| number.is_finite());
                if is_finite { Ok(()) } else { Err(RunError::NotFinite) }
            }
            Input::Tokens(_) | Input::Hidden(_) => {
                let expected = if self.is_first() { "tokens" } else { "hidden numbers" };
                Err(RunError::Kind { expected })
            }
        }
    }

    pub fn is_first(&self) -> bool {
        self.layers.start == 0
    }

    pub fn is_last(&self) -> bool {
        self.head.is_some()
    }

    /// Words that the model knows.
    pub fn words(&self) -> usize {
        self.config.vocab as usize
    }

    /// Positions of a sequence that are held here; 0 if it is not known.
    pub fn length(&self, sequence: u64) -> u32 {
        self.slots.length(sequence)
    }

    /// Forgets a sequence's positions from `length` on.
    pub fn truncate(&mut self, sequence: u64, length: u32) -> Result<(), RunError> {
        self.slots.truncate(sequence, length)
    }

    pub fn drop_sequence(&mut self, sequence: u64) {
        self.slots.forget(sequence);
    }

    /// Begins a new sequence with the first positions of another one. A refused copy changes nothing.
    pub async fn copy_prefix(&mut self, from: u64, to: u64, length: u32) -> Result<(), RunError> {
        let slots = self.slots.copy(from, to, length)?;
        let line = line(&self.config);
        let [source, target] = slots.map(|slot| u64::from(slot) * u64::from(self.context) * line);
        let bytes = u64::from(length) * line;
        let scopes = self.card.scopes();
        let descriptor = CommandEncoderDescriptor::default();
        let mut encoder = self.card.device().create_command_encoder(&descriptor);
        for cache in self.caches.iter().flatten() {
            encoder.copy_buffer_to_buffer(cache, source, &self.between, 0, bytes);
            encoder.copy_buffer_to_buffer(&self.between, 0, cache, target, bytes);
        }
        self.card.queue().submit([encoder.finish()]);
        let copied = scopes.close().await;
        if copied.is_err() {
            // In its slot is what another sequence left there: an answer from that would be fluent and wrong.
            self.slots.forget(to);
        }
        copied.map_err(|failure| RunError::Device(failure.to_string()))
    }

    /// Sequences that it holds, at most.
    pub fn sequences(&self) -> usize {
        self.slots.most()
    }

    /// Whether the GPU is gone.
    pub fn is_lost(&self) -> bool {
        self.card.is_lost()
    }

    /// Kernels that are started for one token.
    pub fn dispatches(&self) -> usize {
        let head = self.head.as_ref().map_or(0, |head| head.few.len());
        let embedding = if self.is_first() { self.embedding.len() } else { 0 };
        embedding + self.kernels.few.len() + head
    }

    /// The GPU's memory that the weights take.
    pub fn bytes(&self) -> u64 {
        self.kernels.bytes
    }
}

/// Bytes of a position's keys in a layer, and of its values: a half for each number.
fn line(config: &Config) -> u64 {
    u64::from(config.kv_heads) * u64::from(config.head_dim) * 2
}

/// Rows of one submission.
fn chunk(rows: &[Row]) -> usize {
    let mut wants = 0;
    let fits = |row: &&Row| {
        wants += usize::from(row.wants_logits);
        wants <= LAST_ROWS
    };
    rows.iter().take(ROWS).take_while(fits).count()
}

pub(super) fn dispatch<'a>(
    encoder: &mut wgpu::CommandEncoder,
    list: impl Iterator<Item = &'a Dispatch>,
    count: u32,
) {
    let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
    for dispatch in list {
        pass.set_pipeline(&dispatch.pipeline);
        pass.set_bind_group(0, &dispatch.group, &[]);
        pass.dispatch_workgroups(dispatch.groups, count.div_ceil(dispatch.rows), 1);
    }
}

/// Some layers that are being loaded, a tensor at a time: it says which bytes it wants, and is given them. A layer goes to
/// the GPU as soon as all of it is here.
pub struct GpuLoading {
    card: Card,
    model: Model,
    layers: Range<u32>,
    options: Options,
    left: Vec<usize>,
    tensors: Tensors,
    rooms: Rooms,
    caches: Vec<[Buffer; 2]>,
    between: Buffer,
    /// By layer, those that are ready.
    ready: Vec<Option<Kernels>>,
}

impl GpuLoading {
    pub fn new(
        card: &Card,
        model: &Model,
        layers: Range<u32>,
        options: &Options,
    ) -> Result<GpuLoading, LoadError> {
        let config = model.config();
        let mut left = model.part(layers.clone())?.tensors;
        left.reverse();
        let each = line(config) * u64::from(options.context);
        let bytes = each * options.sequences as u64;
        if bytes > card.most_bytes() {
            let most = card.most_bytes();
            return Err(LoadError::Device(format!(
                "the conversations of a layer take {bytes} bytes; a buffer has {most}"
            )));
        }
        let (width, head) = (config.width, config.head_dim);
        if filled(width) != width || !head.is_multiple_of(2) {
            return Err(LoadError::Device(format!(
                "it is {width} wide and its heads {head}: not whole 32s, and pairs"
            )));
        }
        let rooms = Rooms::new(card, config, layers.end == config.layers);
        let caches = layers.clone().map(|_| [card.room(bytes), card.room(bytes)]).collect();
        Ok(GpuLoading {
            card: card.clone(),
            model: model.clone(),
            options: options.clone(),
            left,
            tensors: Tensors::default(),
            rooms,
            caches,
            between: card.room(each),
            ready: layers.clone().map(|_| None).collect(),
            layers,
        })
    }

    /// The bytes of the file that are to be given next; nothing when all were. They follow the order of the file.
    pub fn wants(&self) -> Option<Range<u64>> {
        self.left.last().map(|index| self.model.head().tensors()[*index].at.clone())
    }

    /// The bytes that it wants.
    pub fn give(&mut self, bytes: &[u8]) -> Result<(), LoadError> {
        let Some(index) = self.left.last() else { return Ok(()) };
        self.tensors.put(&self.model.head().tensors()[*index], bytes)?;
        self.left.pop();
        for (at, layer) in self.layers.clone().enumerate() {
            if self.ready[at].is_some() || !self.tensors.has_layer(&self.model, layer) {
                continue;
            }
            let config = self.model.config();
            let site = Site {
                card: &self.card,
                config,
                rooms: &self.rooms,
                cache: &self.caches[at],
                context: self.options.context,
                is_global: config.is_global(layer),
            };
            let mut kernels = Kernels::default();
            kernels.layer(&site, &self.model, &mut self.tensors, layer)?;
            self.ready[at] = Some(kernels);
        }
        Ok(())
    }

    /// An error of the device since the beginning turns up here, or with the first run.
    pub fn finish(mut self) -> Result<GpuStage, LoadError> {
        let config = self.model.config().clone();
        let (is_first, is_last) = (self.layers.start == 0, self.layers.end == config.layers);
        let mut kernels = Kernels::default();
        for (layer, ready) in self.layers.clone().zip(std::mem::take(&mut self.ready)) {
            let name = format!("some of layer {layer}");
            let ready = ready.ok_or(LoadError::Missing { name })?;
            kernels.few.extend(ready.few);
            kernels.many.extend(ready.many);
            kernels.bytes += ready.bytes;
        }
        let embedding = match is_first || (is_last && self.model.is_tied()) {
            true => Some(self.matrix(Role::Embedding)?),
            false => None,
        };
        let head = match is_last {
            true => Some(self.head(&config, embedding.as_ref())?),
            false => None,
        };
        kernels.bytes += head.as_ref().map_or(0, |head| head.bytes);
        let (card, rooms) = (&self.card, &self.rooms);
        let scale = config.embedding_scale;
        let embed =
            |matrix: &Matrix| matrix.embedding(card, &rooms.rows, scale, &rooms.x, &rooms.run);
        let dispatches = embedding.as_ref().filter(|_| is_first).map(embed).unwrap_or_default();
        let is_counted = is_last && self.model.is_tied();
        kernels.bytes += embedding.filter(|_| !is_counted).map_or(0, |matrix| matrix.bytes);
        let factors = self.tensors.take(self.model.common(Role::RopeFactors));
        let rope_factors = factors.map(|factors| factors.numbers()).transpose()?;
        Ok(GpuStage {
            slots: Slots::new(self.options.sequences, self.options.context),
            context: self.options.context,
            card: self.card,
            config,
            layers: self.layers,
            rooms: self.rooms,
            caches: self.caches,
            between: self.between,
            rope_factors,
            embedding: dispatches,
            kernels,
            head,
        })
    }

    fn matrix(&mut self, role: Role) -> Result<Matrix, LoadError> {
        let name = format!("{role:?}");
        let tensor = self.tensors.take(self.model.common(role));
        let tensor = tensor.ok_or(LoadError::Missing { name })?;
        Ok(Matrix::new(&self.card, &tensor.raw()))
    }

    /// The last norm, and what gives a number for each token.
    fn head(&mut self, config: &Config, tied: Option<&Matrix>) -> Result<Kernels, LoadError> {
        let norm = self.tensors.take(self.model.common(Role::OutputNorm));
        let missing = || LoadError::Missing { name: "the last norm".into() };
        let norm = norm.ok_or_else(missing)?.numbers()?;
        let own = if self.model.is_tied() { None } else { Some(self.matrix(Role::Head)?) };
        let no_head = || LoadError::Missing { name: "the head".into() };
        let matrix = own.as_ref().or(tied).ok_or_else(no_head)?;
        let (card, rooms) = (&self.card, &self.rooms);
        let mut head = Kernels::default();
        head.norm_of(
            card,
            (config.width, config.norm_eps),
            &rooms.last,
            &norm,
            &rooms.last_normed,
            false,
        );
        let work = Work {
            input: &rooms.last,
            normed: Some(&rooms.last_normed),
            extra: &card.kept(&bits(&norm)),
            is_biased: false,
            eps: config.norm_eps,
            out: &rooms.logits,
            first: 0,
            stride: config.vocab,
            into: Into::Stored,
            run: &rooms.last_run,
        };
        head.multiply(card, matrix, &work);
        Ok(head)
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::llm::gpu::waited;

    fn stage() -> GpuStage {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/llm");
        let bytes = std::fs::read(format!("{folder}/llama.gguf")).expect("a model");
        let model = Model::read(bytes.clone(), bytes.len() as u64).expect("a model");
        let card = waited(Card::open()).expect("a GPU, if only of software");
        let options = Options { threads: 1, context: 256, sequences: 2, kernel: None };
        let mut loading = GpuLoading::new(&card, &model, model.whole(), &options).expect("it fits");
        while let Some(at) = loading.wants() {
            loading.give(&bytes[at.start as usize..at.end as usize]).expect("a tensor");
        }
        loading.finish().expect("all of it")
    }

    fn row(sequence: u64, position: u32, wants_logits: bool) -> Row {
        Row { sequence, position, wants_logits }
    }

    #[test]
    fn a_step_whose_numbers_nobody_wants_is_over_when_it_is_answered() {
        let mut stage = stage();
        let rows: Vec<Row> = (0..200).map(|at| row(1, at, false)).collect();
        waited(stage.run(&rows, Input::Tokens(&[3; 200]))).expect("runs");
        let status = stage.card.device().poll(wgpu::PollType::Poll).expect("a GPU");
        assert!(status.is_queue_empty(), "{status:?}");
    }

    #[test]
    fn a_copy_that_fails_is_an_error_and_leaves_no_sequence() {
        let mut stage = stage();
        let rows: Vec<Row> = (0..9).map(|at| row(1, at, false)).collect();
        waited(stage.run(&rows, Input::Tokens(&[3; 9]))).expect("runs");
        // Too small, as one that there was no memory for is none.
        let between = std::mem::replace(&mut stage.between, stage.card.room(16));
        let failed = waited(stage.copy_prefix(1, 2, 8));
        assert!(matches!(failed, Err(RunError::Device(_))), "{failed:?}");
        assert_eq!((stage.length(1), stage.length(2), stage.is_lost()), (9, 0, false));
        let next = waited(stage.run(&[row(2, 8, true)], Input::Tokens(&[3])));
        assert_eq!(next, Err(RunError::Hole { sequence: 2, length: 0, position: 8 }));
        // Its place is free again.
        stage.between = between;
        waited(stage.copy_prefix(1, 2, 8)).expect("a copy");
        let both = [row(1, 9, true), row(2, 8, true)];
        waited(stage.run(&both, Input::Tokens(&[3, 3]))).expect("runs");
    }
}
