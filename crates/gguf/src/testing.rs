//! Small files for tests, and numbers that look drawn.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// xorshift, from a seed.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u8
    }
}

/// A file to be written.
#[derive(Clone, Default)]
pub(crate) struct Draft {
    keys: Vec<(String, u32, Vec<u8>)>,
    tensors: Vec<Tensor>,
}

#[derive(Clone)]
struct Tensor {
    name: String,
    dims: Vec<u64>,
    ty: u32,
    place: Option<u64>,
}

impl Draft {
    pub(crate) fn raw(&mut self, key: &str, ty: u32, bytes: &[u8]) {
        self.keys.retain(|(known, ..)| known != key);
        self.keys.push((key.into(), ty, bytes.to_vec()));
    }

    pub(crate) fn text(mut self, key: &str, value: &str) -> Draft {
        let length = (value.len() as u64).to_le_bytes();
        self.raw(key, 8, &[&length[..], value.as_bytes()].concat());
        self
    }

    pub(crate) fn count(mut self, key: &str, value: u64) -> Draft {
        self.raw(key, 10, &value.to_le_bytes());
        self
    }

    pub(crate) fn add(mut self, name: &str, dims: &[u64], ty: u32) -> Draft {
        self.tensors.push(Tensor { name: name.into(), dims: dims.to_vec(), ty, place: None });
        self
    }

    pub(crate) fn retype(mut self, name: &str, ty: u32) -> Draft {
        self.tensors.iter_mut().filter(|it| it.name == name).for_each(|it| it.ty = ty);
        self
    }

    pub(crate) fn place(mut self, name: &str, at: u64) -> Draft {
        self.tensors.iter_mut().filter(|it| it.name == name).for_each(|it| it.place = Some(at));
        self
    }

    /// The file's bytes, with zeros for weights, and its size.
    pub(crate) fn file(&self) -> (Vec<u8>, u64) {
        let mut out = b"GGUF".to_vec();
        out.extend(3u32.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.keys.len() as u64).to_le_bytes());
        let text = |out: &mut Vec<u8>, text: &str| {
            out.extend((text.len() as u64).to_le_bytes());
            out.extend(text.as_bytes());
        };
        for (key, ty, bytes) in &self.keys {
            text(&mut out, key);
            out.extend(ty.to_le_bytes());
            out.extend(bytes);
        }
        let mut place = 0u64;
        for tensor in &self.tensors {
            text(&mut out, &tensor.name);
            out.extend((tensor.dims.len() as u32).to_le_bytes());
            tensor.dims.iter().for_each(|dim| out.extend(dim.to_le_bytes()));
            out.extend(tensor.ty.to_le_bytes());
            out.extend(tensor.place.unwrap_or(place).to_le_bytes());
            // All are F32 or smaller.
            place += (tensor.dims.iter().product::<u64>() * 4).next_multiple_of(32);
        }
        let size = out.len().next_multiple_of(32) as u64 + place;
        out.resize(size as usize, 0);
        (out, size)
    }
}

/// A model of three layers, as small as one gets.
pub(crate) fn tiny(arch: &str) -> Draft {
    let key = |name: &str| format!("{arch}.{name}");
    let mut draft = Draft::default()
        .text("general.architecture", arch)
        .count(&key("block_count"), 3)
        .count(&key("embedding_length"), 64)
        .count(&key("feed_forward_length"), 96)
        .count(&key("attention.head_count"), 4)
        .count(&key("attention.head_count_kv"), 2)
        .add("token_embd.weight", &[64, 40], 8)
        .add("output_norm.weight", &[64], 0);
    if arch == "gemma3" {
        draft = draft
            .count(&key("attention.sliding_window"), 8)
            .count(&key("attention.sliding_window_pattern"), 2);
    }
    for layer in 0..3 {
        for (name, dims, only) in LAYER {
            if only.is_empty() || only.contains(&arch) {
                draft = draft.add(&format!("blk.{layer}.{name}"), dims, 0);
            }
        }
    }
    draft.retype("blk.1.ffn_up.weight", 2)
}

/// Names, dimensions, and which architectures have them if not all.
type Row = (&'static str, &'static [u64], &'static [&'static str]);
const LAYER: &[Row] = &[
    ("attn_norm.weight", &[64], &[]),
    ("attn_q.weight", &[64, 64], &[]),
    ("attn_k.weight", &[64, 32], &[]),
    ("attn_v.weight", &[64, 32], &[]),
    ("attn_q.bias", &[64], &["qwen2"]),
    ("attn_k.bias", &[32], &["qwen2"]),
    ("attn_v.bias", &[32], &["qwen2"]),
    ("attn_q_norm.weight", &[16], &["qwen3", "gemma3"]),
    ("attn_k_norm.weight", &[16], &["qwen3", "gemma3"]),
    ("attn_output.weight", &[64, 64], &[]),
    ("post_attention_norm.weight", &[64], &["gemma3"]),
    ("ffn_norm.weight", &[64], &[]),
    ("ffn_gate.weight", &[64, 96], &[]),
    ("ffn_up.weight", &[64, 96], &[]),
    ("ffn_down.weight", &[96, 64], &[]),
    ("post_ffw_norm.weight", &[64], &["gemma3"]),
];
