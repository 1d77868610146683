//! What serving a language model is.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Deserializer, Serialize};
use shoal_protocol::{BlobRef, Footprint};

use crate::wire::Wire;

/// A language model that continues texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LlmWork {
    /// The GGUF file, with its weights.
    pub model: BlobRef,
    pub about: Summary,
    /// Tokens of a conversation at most, question and answer together.
    pub context: u32,
    /// Conversations that a node holds at a time.
    pub conversations: u16,
    /// Several devices may keep it together, each some of its layers.
    pub split: bool,
    /// How the numbers between the layers travel from one device to the next.
    pub wire: Wire,
    /// What each of them has.
    pub by: By,
    /// What computes it. Appended: whoever wrote it before this field was there meant the processor.
    #[serde(deserialize_with = "read_on")]
    pub on: On,
}

/// Work that older coordinators wrote ends before it.
fn read_on<'de, D: Deserializer<'de>>(from: D) -> Result<On, D::Error> {
    Ok(On::deserialize(from).unwrap_or_default())
}

/// What computes a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum On {
    /// With the same bits everywhere.
    #[default]
    Processor,
    /// Within a tolerance: other GPUs may choose other words.
    Gpu,
}

impl On {
    pub const ALL: [On; 2] = [On::Processor, On::Gpu];

    pub fn name(self) -> &'static str {
        match self {
            On::Processor => "processor",
            On::Gpu => "gpu",
        }
    }

    pub fn of(name: &str) -> Option<On> {
        On::ALL.into_iter().find(|on| on.name() == name)
    }
}

/// How devices share a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// Each has some layers: a token goes through one device after another.
    #[default]
    Layers,
    /// Each has some rows of every matrix: all compute every layer of a token together.
    Tensors,
}

impl By {
    pub const ALL: [By; 2] = [By::Layers, By::Tensors];

    pub fn name(self) -> &'static str {
        match self {
            By::Layers => "layers",
            By::Tensors => "tensors",
        }
    }

    pub fn of(name: &str) -> Option<By> {
        By::ALL.into_iter().find(|by| by.name() == name)
    }
}

/// What is in a file, for people and for placing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// As the file calls itself.
    pub title: String,
    pub architecture: String,
    pub layers: u32,
    pub parameters: u64,
    /// How most of its weights are written.
    pub quantisation: String,
    /// Tokens of a conversation that it was made for.
    pub context: u32,
    /// Words it knows.
    pub words: u32,
    /// Bytes of its weights.
    pub weights: u64,
    /// Bytes that a node keeps for each token of a conversation.
    pub cache: u64,
    /// Whether it was made for conversations, not only to continue texts.
    pub chats: bool,
    /// Bytes of each layer's weights.
    pub layer_weights: Vec<u64>,
    /// Bytes of what stands before the first layer, and behind the last one.
    pub first_weights: u64,
    pub last_weights: u64,
    /// Numbers that cross from one layer to the next, for each token.
    pub width: u32,
    /// Numbers that a layer's matrices make on the way, for each token.
    pub made: u32,
    /// Heads of keys and values.
    pub heads: u32,
}

/// What an engine holds beside weights and conversations: values between the layers, and the words.
pub(super) const BESIDE: u64 = 64 << 20;
/// Weights as they are in the file and as an engine likes them best are not both there at a time, but for a layer's. What
/// is rearranged may be an eighth larger.
const LARGER: u64 = 8;
/// Rows that a GPU computes at once, and those of them that words are chosen from.
const ROWS: u64 = 128;
const WORD_ROWS: u64 = 16;

impl LlmWork {
    /// What a node needs for it. A request runs beside units, so that nobody waits for them: it takes memory, but no
    /// thread of theirs.
    pub fn footprint(&self) -> Footprint {
        match self.on {
            On::Processor => Footprint { memory: self.memory(), ..Footprint::NOTHING },
            // The weights go to the GPU a tensor at a time.
            On::Gpu => {
                let gpu_memory = self.memory().saturating_sub(BESIDE).saturating_add(self.rooms());
                Footprint { memory: BESIDE, gpu_memory, ..Footprint::NOTHING }
            }
        }
    }

    /// Bytes of a GPU for what stands between kernels, for words to choose from, and for a conversation's keys or values of
    /// one layer, on their way to another conversation.
    fn rooms(&self) -> u64 {
        let about = &self.about;
        let row = u64::from(about.width) * 6 + u64::from(about.made) * 2;
        let words = u64::from(about.words) * WORD_ROWS * 2;
        let line = (about.cache / 2).div_ceil(u64::from(about.layers.max(1)));
        let between = line.saturating_mul(self.context.into());
        (row * ROWS).saturating_add(words).saturating_mul(4).saturating_add(between)
    }

    /// Bytes a node needs to hold the model and its conversations.
    pub fn memory(&self) -> u64 {
        let weights = self.packed(self.about.weights);
        let caches = self.about.cache.saturating_mul(self.context.into());
        let caches = caches.saturating_mul(self.conversations.into());
        weights.saturating_add(caches).saturating_add(BESIDE)
    }

    /// So many bytes of weights as an engine holds them.
    pub(super) fn packed(&self, weights: u64) -> u64 {
        weights.saturating_add(weights / LARGER)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { architecture, layers, quantisation, context, .. } = self;
        let millions = self.parameters / 1_000_000;
        write!(
            f,
            "{architecture}, {layers} layers, {millions} million parameters in {quantisation}, made for {context} tokens"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use shoal_protocol::Hash;

    #[test]
    fn memory_is_weights_and_conversations() {
        let about = Summary {
            architecture: "llama".into(),
            layers: 30,
            parameters: 134_515_008,
            quantisation: "Q4_1".into(),
            context: 8192,
            weights: 80 << 20,
            cache: 1 << 10,
            ..Summary::default()
        };
        let told = "llama, 30 layers, 134 million parameters in Q4_1, made for 8192 tokens";
        assert_eq!(about.to_string(), told);
        let model = BlobRef { hash: Hash([0; 32]), size: 81 << 20 };
        let (wire, split, by, on) = (Wire::F32, false, By::Layers, On::Processor);
        let (context, conversations) = (1024, 4);
        let mut work = LlmWork { model, about, context, conversations, split, wire, by, on };
        assert_eq!(work.memory(), (90 << 20) + (4 << 20) + BESIDE);
        assert_eq!(work.footprint().threads, 0);
        assert_eq!(work.footprint().gpu_memory, 0);
        // On a GPU the same lies there, and little is left beside it.
        work.on = On::Gpu;
        assert_eq!(work.footprint().memory, BESIDE);
        let between = 18 << 10;
        assert_eq!(work.footprint().gpu_memory, (94 << 20) + between);
        work.about.words = 1 << 10;
        assert_eq!(work.footprint().gpu_memory, (94 << 20) + between + (128 << 10));
        // Nothing a file says overflows.
        work.about.weights = u64::MAX;
        work.about.cache = u64::MAX;
        assert_eq!(work.memory(), u64::MAX);
    }
    #[test]
    fn work_of_before_there_was_a_choice_is_for_the_processor() {
        let model = BlobRef { hash: Hash([0; 32]), size: 9 };
        let (about, wire, by, on) = (Summary::default(), Wire::F16, By::Layers, On::Gpu);
        let (context, conversations, split) = (64, 2, true);
        let work = LlmWork { model, about, context, conversations, split, wire, by, on };
        let bytes = postcard::to_allocvec(&work).expect("plain data");
        assert_eq!(postcard::from_bytes(&bytes), Ok(work.clone()));
        let old = postcard::from_bytes(&bytes[..bytes.len() - 1]);
        assert_eq!(old, Ok(LlmWork { on: On::Processor, ..work }));
    }
}
