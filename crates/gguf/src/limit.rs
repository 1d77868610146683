//! Every bound of this crate, with its reason.

/// What to fetch first: holds the head of a model with a small vocabulary; a larger one says how much it takes.
pub const FIRST_BYTES: u64 = 1 << 20;
/// A head: its largest part is the tokenizer. The largest vocabularies of today (262,144 pieces with merges) take 16 MiB.
pub const MOST_HEAD_BYTES: u64 = 64 << 20;
/// Keys of metadata. Files have 20 to 60; each takes some hundred bytes here, so a hostile head is bounded by this.
pub(crate) const MOST_KEYS: u64 = 4_096;
/// Tensors. A model of 126 layers has 1,140; mixtures of experts had a tensor for each expert, some ten thousand.
pub(crate) const MOST_TENSORS: u64 = 65_536;
/// As many dimensions as ggml has.
pub(crate) const MOST_DIMS: u32 = 4;
/// Elements of a tensor: more than any memory holds, little enough that bytes of it fit a number.
pub(crate) const MOST_ELEMENTS: u64 = 1 << 48;
/// Bytes of a key or of a tensor's name, as the format's description has it.
pub(crate) const MOST_NAME_BYTES: u64 = 65_535;
/// Lists in lists: nobody writes them, the format allows them, and each takes stack.
pub(crate) const MOST_NESTED: u32 = 4;
/// The weights begin at a multiple of it; files say 32, and some 64 to 4,096.
pub(crate) const MOST_ALIGNMENT: u64 = 1 << 20;
/// Layers. The largest open models have 126.
pub(crate) const MOST_LAYERS: u64 = 1_024;
/// Width of a layer, of its feed-forward part and of a head. The largest have 16,384 and 53,248.
pub(crate) const MOST_WIDTH: u64 = 1 << 18;
/// Heads of attention. The largest have 128.
pub(crate) const MOST_HEADS: u64 = 1_024;
/// Pieces of a vocabulary. The largest have 262,144.
pub(crate) const MOST_VOCAB: u64 = 1 << 22;
/// Positions. The longest contexts of today are ten million.
pub(crate) const MOST_CONTEXT: u64 = 1 << 28;
/// Characters of a name in a message: names are strangers' words of any length.
pub(crate) const MOST_SHOWN: usize = 120;
