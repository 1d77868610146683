//! Models of the tests, and how they are run.

use std::ops::Range;
use std::path::{Path, PathBuf};

use shoal_engine::llm::{Input, Kernel, Options, Output, Row, Shard, Stage};
use shoal_gguf::{Model, Share};

/// A model and its file.
pub(crate) struct File {
    pub(crate) model: Model,
    bytes: Vec<u8>,
}

impl File {
    pub(crate) fn open(path: &Path) -> File {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let model = Model::read(bytes.clone(), bytes.len() as u64);
        let model = model.unwrap_or_else(|error| panic!("{path:?}: {error}"));
        File { model, bytes }
    }

    #[cfg(feature = "gpu")]
    pub(crate) fn range(&self, at: Range<u64>) -> &[u8] {
        &self.bytes[at.start as usize..at.end as usize]
    }

    pub(crate) fn stage(&self, layers: Range<u32>, options: &Options) -> Stage {
        let mut read = |at: Range<u64>| Ok(self.bytes[at.start as usize..at.end as usize].to_vec());
        Stage::load(&self.model, layers, options, &mut read).expect("the layers load")
    }

    /// Parts of every matrix, of so many.
    pub(crate) fn shard(&self, parts: Range<u64>, of: u64, options: &Options) -> Shard {
        let share = Share::new(parts, of).expect("a share");
        let slice = self.model.slice(&share);
        // Nothing is read beside what is said to be needed.
        let needed = |at: &Range<u64>| {
            slice.ranges.iter().any(|range| range.start <= at.start && at.end <= range.end)
        };
        let mut read = |at: Range<u64>| {
            assert!(needed(&at), "{at:?} is not needed");
            Ok(self.bytes[at.start as usize..at.end as usize].to_vec())
        };
        Shard::load(&self.model, &share, options, &mut read).expect("the share loads")
    }

    /// The whole model, or cut before this layer.
    pub(crate) fn stages(&self, cut: Option<u32>, options: &Options) -> Vec<Stage> {
        let whole = self.model.whole();
        match cut {
            Some(cut) => {
                vec![self.stage(0..cut, options), self.stage(cut..whole.end, options)]
            }
            None => vec![self.stage(whole, options)],
        }
    }
}

pub(crate) fn options() -> Options {
    Options { threads: 1, context: 1024, sequences: 4, kernel: None }
}

pub(crate) fn with(kernel: Kernel, threads: usize) -> Options {
    Options { kernel: Some(kernel), threads, ..options() }
}

/// Rows through all stages; what follows those that are wanted.
pub(crate) fn run(stages: &mut [Stage], rows: &[Row], tokens: &[u32]) -> Vec<f32> {
    let mut hidden = Vec::new();
    for (at, stage) in stages.iter_mut().enumerate() {
        let input = if at == 0 { Input::Tokens(tokens) } else { Input::Hidden(&hidden) };
        match stage.run(rows, input).expect("runs") {
            Output::Hidden(next) => hidden = next,
            Output::Logits(logits) => return logits,
        }
    }
    panic!("no stage was the last");
}

/// A sequence's next rows.
pub(crate) fn rows(sequence: u64, from: usize, count: usize, wants_logits: bool) -> Vec<Row> {
    let row = |at| Row { sequence, position: (from + at) as u32, wants_logits };
    (0..count).map(row).collect()
}

/// What follows every token, in one run or with so many tokens at a time.
pub(crate) fn all_logits(stages: &mut [Stage], tokens: &[u32], at_once: usize) -> Vec<f32> {
    let mut logits = Vec::new();
    for (at, tokens) in tokens.chunks(at_once).enumerate() {
        logits.extend(run(stages, &rows(1, at * at_once, tokens.len(), true), tokens));
    }
    stages.iter_mut().for_each(|stage| stage.drop_sequence(1));
    logits
}

pub(crate) fn likeliest(logits: &[f32]) -> u32 {
    let most = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    most.map_or(0, |(token, _)| token as u32)
}

/// The folder of what others published, or `None` if there is none and none is required.
pub(crate) fn outside() -> Option<PathBuf> {
    let folder = std::env::var_os("SHOAL_OUTSIDE").map(PathBuf::from).filter(|it| it.is_dir());
    let is_required = std::env::var("SHOAL_REQUIRE_ALL").is_ok_and(|it| it == "1");
    assert!(folder.is_some() || !is_required, "SHOAL_OUTSIDE names no folder");
    folder
}

/// Where the cases lie.
pub(crate) fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/llm")
}

pub(crate) fn case(name: &str) -> serde_json::Value {
    let path = cases().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

pub(crate) fn numbers(list: &serde_json::Value) -> Vec<f64> {
    let list = list.as_array().expect("a list");
    list.iter().map(|number| number.as_f64().expect("a number")).collect()
}

pub(crate) fn tokens(list: &serde_json::Value) -> Vec<u32> {
    numbers(list).into_iter().map(|token| token as u32).collect()
}

/// The same bits.
pub(crate) fn assert_same(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    let other = a.iter().zip(b).position(|(a, b)| a.to_bits() != b.to_bits());
    if let Some(at) = other {
        panic!("{what}: {} and {} at {at}", a[at], b[at]);
    }
}
