//! Reads what a language model is, before it is stored.

use std::collections::BTreeMap;

use shoal_gguf::{Arch, Config, Model, ReadError, Role, TensorInfo};
use shoal_kinds::IntakeError;
use shoal_kinds::llm::{LlmPlan, Summary};
use shoal_text::Texts;

/// Bytes of a number in a conversation's cache, of which heads have whole sixteens.
const CACHE_NUMBER: u64 = 2;

/// What a language model is, or which part of it nobody here can run. `head` are the first bytes of a file that has
/// `size`.
pub fn language_model(head: Vec<u8>, size: u64) -> Result<LlmPlan, IntakeError> {
    let model = match Model::read(head, size) {
        Ok(model) => model,
        Err(ReadError::Short { needed }) if needed <= size => return Ok(LlmPlan::More(needed)),
        Err(error) => return Err(bad(error)),
    };
    let texts = Texts::read(model.head()).map_err(bad)?;
    let Config { layers, kv_heads, head_dim, vocab, context, width, ff, heads, .. } =
        *model.config();
    let words = texts.tokenizer.words().len();
    if words > vocab as usize {
        return Err(bad(format!(
            "the file lists {words} tokens, but the model knows only {vocab}"
        )));
    }
    let tensors = model.head().tensors();
    let weights = tensors.iter().map(|tensor| tensor.at.end - tensor.at.start).sum();
    // A key and a value for each layer.
    let head = u64::from(head_dim).next_multiple_of(16);
    let cache = 2 * u64::from(layers) * u64::from(kv_heads) * head * CACHE_NUMBER;
    Ok(LlmPlan::Model(Summary {
        title: model.config().name.clone(),
        architecture: architecture(model.config().arch).into(),
        layers,
        parameters: tensors.iter().map(numbers).sum(),
        quantisation: quantisation(tensors),
        context,
        words: words as u32,
        weights,
        cache,
        chats: texts.template.is_some(),
        layer_weights: (0..layers).map(|layer| layer_bytes(&model, layer)).collect(),
        first_weights: bytes(&model, Role::Embedding),
        last_weights: bytes(&model, if model.is_tied() { Role::Embedding } else { Role::Head }),
        width,
        // What heads find, what both halves of a layer add, and what is between the matrices of the second.
        made: (u64::from(heads) * u64::from(head_dim) + 2 * u64::from(width) + u64::from(ff))
            as u32,
        heads: kv_heads,
    }))
}

fn bytes(model: &Model, role: Role) -> u64 {
    model.common(role).map_or(0, |tensor| tensor.at.end - tensor.at.start)
}

/// Of a layer alone: parts that are not at an end have nothing else but what all layers share.
fn layer_bytes(model: &Model, layer: u32) -> u64 {
    let of_it = format!("blk.{layer}.");
    let own = model.head().tensors().iter().filter(|tensor| tensor.name.starts_with(&of_it));
    own.map(|tensor| tensor.at.end - tensor.at.start).sum()
}

fn numbers(tensor: &TensorInfo) -> u64 {
    tensor.dims.iter().product()
}

fn architecture(arch: Arch) -> &'static str {
    match arch {
        Arch::Llama => "llama",
        Arch::Qwen2 => "qwen2",
        Arch::Qwen3 => "qwen3",
        Arch::Gemma3 => "gemma3",
    }
}

/// How most numbers are written.
fn quantisation(tensors: &[TensorInfo]) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for tensor in tensors {
        *counts.entry(tensor.ty.name()).or_default() += numbers(tensor);
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(name, _)| name.into()).unwrap_or_default()
}

fn bad(words: impl ToString) -> IntakeError {
    IntakeError::plain("bad_model", words.to_string())
}
