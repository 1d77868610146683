//! A model: the head of its file, what it is, and which tensor is what. Shapes are checked here once, so that an engine
//! may rely on them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

use crate::config::{Arch, Config};
use crate::error::{PartError, ReadError};
use crate::head::{Head, TensorInfo};
use crate::types::Type;

/// Everything of a file but its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    head: Head,
    config: Config,
}

/// What some layers need of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub layers: Range<u32>,
    /// Indices into [`Head::tensors`], in the order of the file.
    pub tensors: Vec<usize>,
    /// Bytes of the file, in its order; neighbours are one range.
    pub ranges: Vec<Range<u64>>,
    /// Of all ranges together.
    pub bytes: u64,
}

/// What a tensor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Embedding,
    RopeFactors,
    OutputNorm,
    Head,
    AttentionNorm,
    Query,
    QueryBias,
    QueryNorm,
    Key,
    KeyBias,
    KeyNorm,
    ValueOf,
    ValueBias,
    Out,
    OutBias,
    PostAttentionNorm,
    FeedNorm,
    Gate,
    Up,
    Down,
    PostFeedNorm,
}

/// Whether an architecture has it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    Always,
    Perhaps,
    Never,
}

const OF_ALL: [Role; 4] = [Role::Embedding, Role::RopeFactors, Role::OutputNorm, Role::Head];
const OF_LAYER: [Role; 17] = [
    Role::AttentionNorm,
    Role::Query,
    Role::QueryBias,
    Role::QueryNorm,
    Role::Key,
    Role::KeyBias,
    Role::KeyNorm,
    Role::ValueOf,
    Role::ValueBias,
    Role::Out,
    Role::OutBias,
    Role::PostAttentionNorm,
    Role::FeedNorm,
    Role::Gate,
    Role::Up,
    Role::Down,
    Role::PostFeedNorm,
];

impl Role {
    /// In files; of a layer's, what follows the layer's number.
    fn name(self) -> &'static str {
        match self {
            Role::Embedding => "token_embd.weight",
            Role::RopeFactors => "rope_freqs.weight",
            Role::OutputNorm => "output_norm.weight",
            Role::Head => "output.weight",
            Role::AttentionNorm => "attn_norm.weight",
            Role::Query => "attn_q.weight",
            Role::QueryBias => "attn_q.bias",
            Role::QueryNorm => "attn_q_norm.weight",
            Role::Key => "attn_k.weight",
            Role::KeyBias => "attn_k.bias",
            Role::KeyNorm => "attn_k_norm.weight",
            Role::ValueOf => "attn_v.weight",
            Role::ValueBias => "attn_v.bias",
            Role::Out => "attn_output.weight",
            Role::OutBias => "attn_output.bias",
            Role::PostAttentionNorm => "post_attention_norm.weight",
            Role::FeedNorm => "ffn_norm.weight",
            Role::Gate => "ffn_gate.weight",
            Role::Up => "ffn_up.weight",
            Role::Down => "ffn_down.weight",
            Role::PostFeedNorm => "post_ffw_norm.weight",
        }
    }

    fn has(self, arch: Arch) -> Has {
        let only = |is_so| if is_so { Has::Always } else { Has::Never };
        match self {
            Role::Embedding
            | Role::OutputNorm
            | Role::AttentionNorm
            | Role::Query
            | Role::Key
            | Role::ValueOf
            | Role::Out
            | Role::FeedNorm
            | Role::Gate
            | Role::Up
            | Role::Down => Has::Always,
            Role::RopeFactors if arch == Arch::Llama => Has::Perhaps,
            Role::RopeFactors => Has::Never,
            Role::Head => Has::Perhaps,
            Role::QueryBias | Role::KeyBias | Role::ValueBias => match arch {
                Arch::Llama => Has::Perhaps,
                Arch::Qwen2 => Has::Always,
                Arch::Qwen3 | Arch::Gemma3 => Has::Never,
            },
            Role::OutBias if arch == Arch::Llama => Has::Perhaps,
            Role::OutBias => Has::Never,
            Role::QueryNorm | Role::KeyNorm => only(matches!(arch, Arch::Qwen3 | Arch::Gemma3)),
            Role::PostAttentionNorm | Role::PostFeedNorm => only(arch == Arch::Gemma3),
        }
    }

    /// The others are lists of numbers.
    pub(crate) fn is_matrix(self) -> bool {
        match self {
            Role::Embedding
            | Role::Head
            | Role::Query
            | Role::Key
            | Role::ValueOf
            | Role::Out
            | Role::Gate
            | Role::Up
            | Role::Down => true,
            Role::RopeFactors
            | Role::OutputNorm
            | Role::AttentionNorm
            | Role::QueryBias
            | Role::QueryNorm
            | Role::KeyBias
            | Role::KeyNorm
            | Role::ValueBias
            | Role::OutBias
            | Role::PostAttentionNorm
            | Role::FeedNorm
            | Role::PostFeedNorm => false,
        }
    }

    /// What its dimensions must be.
    fn dims(self, config: &Config) -> Vec<u64> {
        let [width, ff, vocab] = [config.width, config.ff, config.vocab].map(u64::from);
        let head = u64::from(config.head_dim);
        let (queries, keys) = (head * u64::from(config.heads), head * u64::from(config.kv_heads));
        match self {
            Role::Embedding | Role::Head => [width, vocab].into(),
            Role::RopeFactors => [u64::from(config.rope.dims) / 2].into(),
            Role::OutputNorm
            | Role::AttentionNorm
            | Role::PostAttentionNorm
            | Role::FeedNorm
            | Role::PostFeedNorm
            | Role::OutBias => [width].into(),
            Role::Query => [width, queries].into(),
            Role::QueryBias => [queries].into(),
            Role::Key | Role::ValueOf => [width, keys].into(),
            Role::KeyBias | Role::ValueBias => [keys].into(),
            Role::QueryNorm | Role::KeyNorm => [head].into(),
            Role::Out => [queries, width].into(),
            Role::Gate | Role::Up => [width, ff].into(),
            Role::Down => [ff, width].into(),
        }
    }
}

impl Model {
    /// From a file's first bytes, or all of them; `size` is the whole file's. [`ReadError::Short`] asks for more.
    pub fn read(bytes: impl Into<Bytes>, size: u64) -> Result<Model, ReadError> {
        let head = Head::read(bytes, size)?;
        let config = Config::read(&head)?;
        let model = Model { head, config };
        model.check()?;
        Ok(model)
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// From the file's begin to that of the weights: reading them again gives the same model.
    pub fn head_bytes(&self) -> &Bytes {
        self.head.bytes()
    }

    /// All layers.
    pub fn whole(&self) -> Range<u32> {
        0..self.config.layers
    }

    /// Whether the embedding is the head as well.
    pub fn is_tied(&self) -> bool {
        self.head.tensor(Role::Head.name()).is_none()
    }

    /// A tensor that is no layer's. The head of a model without one of its own is its embedding.
    pub fn common(&self, role: Role) -> Option<&TensorInfo> {
        let role = if role == Role::Head && self.is_tied() { Role::Embedding } else { role };
        self.head.tensor(role.name())
    }

    pub fn of_layer(&self, layer: u32, role: Role) -> Option<&TensorInfo> {
        self.head.tensor(&of_layer(layer, role))
    }

    /// What these layers need: with the first one the embedding, with the last one the final norm and the head.
    pub fn part(&self, layers: Range<u32>) -> Result<Part, PartError> {
        let all = self.config.layers;
        if layers.is_empty() || layers.end > all {
            return Err(PartError { from: layers.start, to: layers.end, layers: all });
        }
        let mut names: Vec<String> = alloc::vec![Role::RopeFactors.name().into()];
        if layers.start == 0 {
            names.push(Role::Embedding.name().into());
        }
        if layers.end == all {
            let head = if self.is_tied() { Role::Embedding } else { Role::Head };
            names.extend([Role::OutputNorm, head].map(|role| role.name().into()));
        }
        for layer in layers.clone() {
            names.extend(OF_LAYER.map(|role| of_layer(layer, role)));
        }
        let mut tensors: Vec<usize> = names.iter().filter_map(|it| self.head.index(it)).collect();
        let place = |index: &usize| self.head.tensors()[*index].at.clone();
        tensors.sort_by_key(|index| place(index).start);
        tensors.dedup();
        let ranges = joined(tensors.iter().map(place));
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        Ok(Part { layers, tensors, ranges, bytes })
    }

    /// All tensors that are there, in no order.
    pub(crate) fn roles(&self) -> impl Iterator<Item = (Role, &TensorInfo)> {
        let common = OF_ALL.into_iter().map(|role| (role, self.head.tensor(role.name())));
        let layers = self.whole().flat_map(move |layer| {
            OF_LAYER.into_iter().map(move |role| (role, self.of_layer(layer, role)))
        });
        common.chain(layers).filter_map(|(role, tensor)| Some((role, tensor?)))
    }

    /// All tensors are there, have the shapes that the metadata says, and are known.
    fn check(&self) -> Result<(), ReadError> {
        let mut known = 0;
        for role in OF_ALL {
            known += self.check_one(role, role.name().into())?;
        }
        for layer in 0..self.config.layers {
            for role in OF_LAYER {
                known += self.check_one(role, of_layer(layer, role))?;
            }
        }
        if known == self.head.tensors().len() {
            return Ok(());
        }
        let is_known = |tensor: &&TensorInfo| self.knows(&tensor.name);
        match self.head.tensors().iter().find(|tensor| !is_known(tensor)) {
            Some(tensor) => {
                let words = "is not known in models of this architecture";
                Err(ReadError::tensor(&tensor.name, words))
            }
            None => Ok(()),
        }
    }

    fn knows(&self, name: &str) -> bool {
        let within = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
        let has = |role: &Role| role.has(self.config.arch) != Has::Never;
        match within {
            Some((layer, rest)) => {
                let is_layer = layer.parse().is_ok_and(|layer: u32| layer < self.config.layers);
                is_layer && OF_LAYER.iter().any(|role| role.name() == rest && has(role))
            }
            None => OF_ALL.iter().any(|role| role.name() == name && has(role)),
        }
    }

    /// How many there are of it: one or none.
    fn check_one(&self, role: Role, name: String) -> Result<usize, ReadError> {
        let has = role.has(self.config.arch);
        let Some(tensor) = self.head.tensor(&name) else {
            let missing = has == Has::Always;
            return if missing { Err(ReadError::tensor(&name, "is missing")) } else { Ok(0) };
        };
        if has == Has::Never {
            return Err(ReadError::tensor(&name, "is not known in models of this architecture"));
        }
        let mut found = tensor.dims.clone();
        let expected = role.dims(&self.config);
        while found.len() > expected.len() && found.last() == Some(&1) {
            found.pop();
        }
        if found != expected {
            let words = format!("has the dimensions {found:?}, expected are {expected:?}");
            return Err(ReadError::tensor(&name, words));
        }
        if expected.len() == 1 && !matches!(tensor.ty, Type::F32 | Type::F16 | Type::BF16) {
            let words = format!("is of the type {}: numbers are expected", tensor.ty.name());
            return Err(ReadError::tensor(&name, words));
        }
        Ok(1)
    }
}

/// What may lie between two tensors for a range to go on: less than a request costs.
const MOST_GAP: u64 = 4_096;

/// Places in the order of the file, as ranges to fetch.
pub(crate) fn joined(places: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for at in places {
        match ranges.last_mut() {
            // Between neighbours there are only bytes that fill up.
            Some(last) if at.start - last.end < MOST_GAP => last.end = at.end,
            _ => ranges.push(at),
        }
    }
    ranges
}

fn of_layer(layer: u32, role: Role) -> String {
    format!("blk.{layer}.{}", role.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::FIRST_BYTES;
    use crate::testing::{Draft, tiny};
    use alloc::string::ToString;
    use alloc::vec;

    fn refusal(draft: &Draft) -> String {
        let (bytes, size) = draft.file();
        Model::read(bytes, size).expect_err("a refusal").to_string()
    }

    #[test]
    fn a_model_tells_what_it_is() {
        let (bytes, size) = tiny("llama").file();
        let model = Model::read(bytes.clone(), size).expect("a model");
        let config = model.config();
        assert_eq!((config.layers, config.width, config.vocab), (3, 64, 40));
        assert_eq!((config.heads, config.kv_heads, config.head_dim), (4, 2, 16));
        assert!(model.is_tied());
        // Its head is enough, and is the same.
        let head = model.head_bytes().clone();
        assert!(head.len() < bytes.len());
        assert_eq!(Model::read(head, size), Ok(model));
    }

    #[test]
    fn every_shorter_head_asks_for_more() {
        let (bytes, size) = tiny("qwen3").file();
        let whole = Model::read(bytes.clone(), size).expect("a model");
        let head = whole.head_bytes().len();
        for length in 0..head {
            match Model::read(bytes[..length].to_vec(), size) {
                Err(ReadError::Short { needed }) => assert!(needed > length as u64),
                other => panic!("{length} bytes: {other:?}"),
            }
            // The same as a whole file is cut off.
            let cut = Model::read(bytes[..length].to_vec(), length as u64).expect_err("cut off");
            assert!(matches!(cut, ReadError::CutOff { .. } | ReadError::NotGguf), "{cut}");
        }
        assert!(Model::read(bytes[..head].to_vec(), size).is_ok());
        assert!(head as u64 <= FIRST_BYTES);
    }

    #[test]
    fn layers_need_only_their_bytes() {
        let (bytes, size) = tiny("llama").file();
        let model = Model::read(bytes, size).expect("a model");
        let whole = model.part(model.whole()).expect("all");
        let parts: Vec<Part> =
            [0..1, 1..2, 2..3].into_iter().map(|it| model.part(it).expect("a part")).collect();
        let embedding = model.common(Role::Head).expect("the embedding").at.clone();
        let embedding = embedding.end - embedding.start;
        let sum: u64 = parts.iter().map(|part| part.bytes).sum();
        // The embedding is needed at both ends.
        assert!(sum <= whole.bytes + embedding, "{sum} and {}", whole.bytes);
        assert!(parts[1].bytes < parts[0].bytes);
        for part in &parts {
            for index in &part.tensors {
                let at = &model.head().tensors()[*index].at;
                let holds = |range: &Range<u64>| range.start <= at.start && at.end <= range.end;
                assert!(part.ranges.iter().any(holds));
            }
        }
        let error = model.part(2..4).expect_err("no layer 3").to_string();
        assert_eq!(error, "the model has the layers 0 to 3, not 2 to 4");
        assert!(model.part(1..1).is_err());
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let said = refusal(&tiny("llama").text("general.architecture", "mamba"));
        assert!(said.contains("`mamba` are not supported"), "{said}");
        let said = refusal(&tiny("llama").count("llama.expert_count", 8));
        assert!(said.contains("mixtures of experts"), "{said}");
        let said = refusal(&tiny("qwen2").text("qwen2.rope.scaling.type", "yarn"));
        assert_eq!(
            said,
            "the file's `qwen2.rope.scaling.type` is `yarn`: only `none` and `linear` are supported"
        );
        let said = refusal(&tiny("llama").retype("blk.1.attn_q.weight", 20));
        assert!(said.starts_with("tensor `blk.1.attn_q.weight` is of the type IQ4_NL"), "{said}");
        let said = refusal(&tiny("llama").add("blk.1.ffn_gate_inp.weight", &[64, 8], 0));
        assert!(said.contains("`blk.1.ffn_gate_inp.weight` is not known"), "{said}");
        let said = refusal(&tiny("llama").add("blk.0.attn_q_norm.weight", &[16], 0));
        assert!(said.contains("is not known"), "{said}");
    }

    #[test]
    fn counts_and_shapes_that_do_not_fit_are_refused() {
        let said = refusal(&tiny("llama").count("llama.block_count", 4));
        assert_eq!(said, "tensor `blk.3.attn_norm.weight` is missing");
        let said = refusal(&tiny("llama").count("llama.block_count", 2));
        assert!(said.contains("`blk.2.") && said.contains("is not known"), "{said}");
        let said = refusal(&tiny("llama").count("llama.block_count", u64::from(u32::MAX)));
        assert!(said.contains("1 to 1024 is supported"), "{said}");
        let said = refusal(&tiny("llama").count("llama.embedding_length", 128));
        assert!(said.contains("expected are [128, 40]"), "{said}");
        let said = refusal(&tiny("llama").count("llama.attention.head_count_kv", 3));
        assert!(said.contains("does not divide the 4 heads"), "{said}");
        let said = refusal(&tiny("llama").count("general.alignment", 3));
        assert!(said.contains("a power of two"), "{said}");
        let said = refusal(&tiny("llama").text("llama.block_count", "many"));
        assert_eq!(said, "the file's `llama.block_count` is a text, not a count");
    }

    #[test]
    fn places_outside_the_file_or_in_others_are_refused() {
        let said = refusal(&tiny("llama").place("blk.2.ffn_up.weight", 1 << 40));
        assert!(said.starts_with("the file is cut off: tensor `blk.2.ffn_up.weight`"), "{said}");
        let said = refusal(&tiny("llama").place("blk.2.ffn_up.weight", u64::MAX - 31));
        assert!(said.contains("`blk.2.ffn_up.weight` lies at"), "{said}");
        let said = refusal(&tiny("llama").place("blk.2.ffn_up.weight", 0));
        assert!(said.contains("lies over the bytes of"), "{said}");
        let said = refusal(&tiny("llama").place("blk.2.ffn_up.weight", 7));
        assert!(said.contains("no multiple of 32"), "{said}");
    }

    #[test]
    fn absurd_counts_end_at_once() {
        let (mut bytes, _) = tiny("llama").file();
        for at in [8, 16] {
            let old = bytes[at..at + 8].to_vec();
            bytes[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            let error = Model::read(bytes.clone(), u64::MAX).expect_err("too many");
            assert!(matches!(error, ReadError::TooMany { .. }), "{error}");
            bytes[at..at + 8].copy_from_slice(&old);
        }
        let mut draft = tiny("llama");
        draft.raw("tokens", 9, &[&8u32.to_le_bytes()[..], &u64::MAX.to_le_bytes()].concat());
        let said = refusal(&draft);
        assert!(said.contains("`tokens`"), "{said}");
        let mut draft = tiny("llama");
        draft.raw("scores", 9, &[&6u32.to_le_bytes()[..], &u64::MAX.to_le_bytes()].concat());
        let said = refusal(&draft);
        assert!(said.starts_with("the file is cut off: the value of `scores`"), "{said}");
        let mut nested = vec![];
        for _ in 0..10 {
            nested.extend([&9u32.to_le_bytes()[..], &1u64.to_le_bytes()].concat());
        }
        let mut draft = tiny("llama");
        draft.raw("nested", 9, &nested);
        assert!(refusal(&draft).contains("nested deeper than 4"));
        let mut draft = tiny("llama");
        draft.raw("bad", 8, &[&2u64.to_le_bytes()[..], &[0xff, 0xfe]].concat());
        let said = refusal(&draft);
        assert!(said.contains("`bad` is broken") && said.contains("not UTF-8"), "{said}");
    }

    #[test]
    fn families_differ_as_they_should() {
        for arch in ["llama", "qwen2", "qwen3", "gemma3"] {
            let (bytes, size) = tiny(arch).file();
            let model = Model::read(bytes, size).unwrap_or_else(|error| panic!("{arch}: {error}"));
            let config = model.config();
            let is_gemma = arch == "gemma3";
            assert_eq!(config.window.is_some(), is_gemma);
            assert_eq!(config.embedding_scale, if is_gemma { 8.0 } else { 1.0 });
            assert_eq!(model.of_layer(0, Role::KeyBias).is_some(), arch == "qwen2");
            assert_eq!(model.of_layer(0, Role::KeyNorm).is_some(), is_gemma || arch == "qwen3");
            let global: Vec<u32> = (0..3).filter(|layer| config.is_global(*layer)).collect();
            assert_eq!(global, if is_gemma { vec![1] } else { vec![0, 1, 2] });
        }
    }

    #[test]
    fn old_and_foreign_files_are_told_apart() {
        let (bytes, size) = tiny("llama").file();
        let with_version = |version: u32| {
            let mut bytes = bytes.clone();
            bytes[4..8].copy_from_slice(&version.to_le_bytes());
            Model::read(bytes, size).expect_err("a refusal")
        };
        assert_eq!(with_version(1), ReadError::Version { version: 1 });
        assert_eq!(with_version(3u32.swap_bytes()), ReadError::BigEndian);
        assert_eq!(Model::read(&b"GGML...."[..], 8), Err(ReadError::NotGguf));
        assert_eq!(Model::read(Bytes::new(), 0), Err(ReadError::NotGguf));
    }
}
