//! What a model is, from its metadata. What this crate does not know of is refused by name.

use alloc::format;
use alloc::string::{String, ToString};

use crate::error::ReadError;
use crate::head::Head;
use crate::limit::{MOST_CONTEXT, MOST_HEADS, MOST_LAYERS, MOST_VOCAB, MOST_WIDTH};

/// A family of models that are computed the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// Llama, Mistral, SmolLM, TinyLlama.
    Llama,
    Qwen2,
    Qwen3,
    Gemma3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    Silu,
    /// With the tangent's approximation.
    Gelu,
}

/// Which elements of a head are turned together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeStyle {
    /// Neighbours: 0 and 1, 2 and 3.
    Pairs,
    /// The first half with the second: 0 and n/2, 1 and n/2 + 1.
    Halves,
}

/// How positions turn queries and keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    pub style: RopeStyle,
    /// Elements of a head that are turned; the rest stays.
    pub dims: u32,
    pub base: f32,
    /// Positions are multiplied by it.
    pub scale: f32,
}

/// Layers that look back only so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    pub size: u32,
    /// Every so many layers the last one looks at everything.
    pub pattern: u32,
    pub rope: Rope,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub arch: Arch,
    /// As the file calls itself; may be empty.
    pub name: String,
    pub layers: u32,
    /// Of what goes from layer to layer.
    pub width: u32,
    /// Of the feed-forward part.
    pub ff: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub head_dim: u32,
    /// Rows of the embedding.
    pub vocab: u32,
    /// Positions the model was made for.
    pub context: u32,
    pub norm_eps: f32,
    pub rope: Rope,
    pub window: Option<Window>,
    pub activation: Activation,
    /// Embeddings are multiplied by it.
    pub embedding_scale: f32,
    /// Products of queries and keys are.
    pub attention_scale: f32,
    /// Scores are kept within it by a tangent.
    pub attention_cap: Option<f32>,
    pub logit_cap: Option<f32>,
}

impl Config {
    pub(crate) fn read(head: &Head) -> Result<Config, ReadError> {
        let name = required(head.text("general.architecture")?, "general.architecture")?;
        let arch = match name {
            "llama" => Arch::Llama,
            "qwen2" => Arch::Qwen2,
            "qwen3" => Arch::Qwen3,
            "gemma3" => Arch::Gemma3,
            other => return Err(ReadError::Arch { name: other.chars().take(200).collect() }),
        };
        Keys { head, prefix: name }.config(arch)
    }

    /// Whether a layer looks at everything before it.
    pub fn is_global(&self, layer: u32) -> bool {
        self.window.is_none_or(|window| layer % window.pattern == window.pattern - 1)
    }
}

/// The keys of one architecture.
struct Keys<'a> {
    head: &'a Head,
    prefix: &'a str,
}

impl Keys<'_> {
    fn config(&self, arch: Arch) -> Result<Config, ReadError> {
        self.refuse_experts()?;
        let width = self.count("embedding_length", 1, MOST_WIDTH)?;
        let heads = self.count("attention.head_count", 1, MOST_HEADS)?;
        let kv_heads = self.or("attention.head_count_kv", heads, 1, MOST_HEADS)?;
        if !heads.is_multiple_of(kv_heads) {
            let words = format!("is {kv_heads}: it does not divide the {heads} heads");
            return Err(self.wrong("attention.head_count_kv", words));
        }
        let head_dim = self.or("attention.key_length", width / heads, 2, MOST_WIDTH)?;
        let values = self.or("attention.value_length", head_dim, 2, MOST_WIDTH)?;
        if values != head_dim || !head_dim.is_multiple_of(2) {
            let words =
                format!("is {values}, the keys' is {head_dim}: an equal, even number is supported");
            return Err(self.wrong("attention.value_length", words));
        }
        let layers = self.count("block_count", 1, MOST_LAYERS)?;
        let rope = self.rope(arch, head_dim)?;
        let is_gemma = arch == Arch::Gemma3;
        // The largest of its family scales by another width.
        let scaled_by = if is_gemma && layers == 62 { width / heads } else { head_dim };
        Ok(Config {
            arch,
            name: self.head.text("general.name")?.unwrap_or_default().to_string(),
            layers,
            width,
            ff: self.count("feed_forward_length", 1, MOST_WIDTH)?,
            heads,
            kv_heads,
            head_dim,
            vocab: self.vocab()?,
            context: self.or("context_length", 2048, 1, MOST_CONTEXT)?,
            norm_eps: self.positive("attention.layer_norm_rms_epsilon")?.unwrap_or(1e-5),
            rope,
            window: if is_gemma { self.window(rope)? } else { None },
            activation: if is_gemma { Activation::Gelu } else { Activation::Silu },
            embedding_scale: if is_gemma { root(width as f32) } else { 1.0 },
            attention_scale: 1.0 / root(scaled_by as f32),
            attention_cap: self.positive("attn_logit_softcapping")?,
            logit_cap: self.positive("final_logit_softcapping")?,
        })
    }

    fn refuse_experts(&self) -> Result<(), ReadError> {
        match self.head.count(&self.key("expert_count"))? {
            None | Some(0) => Ok(()),
            Some(n) => {
                let words = format!("is {n}: mixtures of experts are not supported");
                Err(self.wrong("expert_count", words))
            }
        }
    }

    fn rope(&self, arch: Arch, head_dim: u32) -> Result<Rope, ReadError> {
        let style = if arch == Arch::Llama { RopeStyle::Pairs } else { RopeStyle::Halves };
        let dims = self.or("rope.dimension_count", head_dim, 2, head_dim.into())?;
        if !dims.is_multiple_of(2) {
            return Err(self.wrong("rope.dimension_count", format!("is {dims}, an odd number")));
        }
        let default = if arch == Arch::Gemma3 { 1_000_000.0 } else { 10_000.0 };
        let base = self.positive("rope.freq_base")?.unwrap_or(default);
        let key = self.key("rope.scaling.type");
        let scale = match self.head.text(&key)? {
            None | Some("linear") => {
                let factor = self.positive("rope.scaling.factor")?;
                let factor = factor.or(self.positive("rope.scale_linear")?);
                1.0 / factor.unwrap_or(1.0)
            }
            Some("none") => 1.0,
            Some(other) => {
                let other = crate::error::Shown(other);
                let words = format!("is `{other}`: only `none` and `linear` are supported");
                return Err(ReadError::key(&key, words));
            }
        };
        Ok(Rope { style, dims, base, scale })
    }

    fn window(&self, rope: Rope) -> Result<Option<Window>, ReadError> {
        let Some(size) = self.head.count(&self.key("attention.sliding_window"))? else {
            return Ok(None);
        };
        if size == 0 {
            return Ok(None);
        }
        let size = self.within("attention.sliding_window", size, 1, MOST_CONTEXT)?;
        let pattern = self.or("attention.sliding_window_pattern", 6, 1, MOST_LAYERS)?;
        let base = self.positive("rope.freq_base_swa")?.unwrap_or(10_000.0);
        Ok(Some(Window { size, pattern, rope: Rope { base, scale: 1.0, ..rope } }))
    }

    fn vocab(&self) -> Result<u32, ReadError> {
        let Some(embedding) = self.head.tensor("token_embd.weight") else {
            return Err(ReadError::tensor("token_embd.weight", "is missing"));
        };
        let rows = embedding.dims.get(1).copied().unwrap_or(1);
        if rows > MOST_VOCAB {
            let words = format!("has {rows} rows, at most {MOST_VOCAB} are supported");
            return Err(ReadError::tensor(&embedding.name, words));
        }
        Ok(rows as u32)
    }

    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    fn wrong(&self, name: &str, words: String) -> ReadError {
        ReadError::key(&self.key(name), words)
    }

    fn count(&self, name: &str, least: u64, most: u64) -> Result<u32, ReadError> {
        let key = self.key(name);
        // Some files have a list, one for each layer.
        if let Some(crate::Value::List(list)) = self.head.get(&key) {
            let mut all = list.ints().into_iter().flatten();
            let first = all.next().and_then(|first| u64::try_from(first).ok());
            return match first {
                Some(first) if all.all(|other| other.cast_unsigned() == first) => {
                    self.within(name, first, least, most)
                }
                _ => Err(self.wrong(name, "differs from layer to layer".into())),
            };
        }
        let value = required(self.head.count(&key)?, &key)?;
        self.within(name, value, least, most)
    }

    fn or(&self, name: &str, default: u32, least: u64, most: u64) -> Result<u32, ReadError> {
        if self.head.get(&self.key(name)).is_none() {
            return self.within(name, default.into(), least, most);
        }
        self.count(name, least, most)
    }

    fn within(&self, name: &str, value: u64, least: u64, most: u64) -> Result<u32, ReadError> {
        if (least..=most).contains(&value) {
            return Ok(value as u32);
        }
        Err(self.wrong(name, format!("is {value}: {least} to {most} is supported")))
    }

    /// A number above zero that a float holds; zero says that there is none.
    fn positive(&self, name: &str) -> Result<Option<f32>, ReadError> {
        let Some(value) = self.head.real(&self.key(name))? else { return Ok(None) };
        let float = value as f32;
        if value == 0.0 {
            return Ok(None);
        }
        if float.is_finite() && float > 0.0 {
            return Ok(Some(float));
        }
        Err(self.wrong(name, format!("is {value}: a number above zero is expected")))
    }
}

fn required<T>(found: Option<T>, key: &str) -> Result<T, ReadError> {
    found.ok_or_else(|| ReadError::key(key, "is missing"))
}

/// The square root, which `core` does not have. Newton's way ends at the nearest float or beside it; the widths of
/// models end exactly where a processor's instruction ends.
fn root(of: f32) -> f32 {
    let of = f64::from(of);
    let mut guess = of.max(1.0);
    for _ in 0..64 {
        guess = 0.5 * (guess + of / guess);
    }
    guess as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_those_of_a_processor() {
        extern crate std;
        for of in 1..20_000u16 {
            let of = f32::from(of);
            assert_eq!(root(of), of.sqrt(), "{of}");
        }
    }
}
