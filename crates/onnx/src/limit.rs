//! Every bound of this crate, with its reason.

/// What may be made of a file beside its weights, which stay where they are. The largest exports of today (a
/// language model of 80 layers, 20,000 nodes) take about 30 MiB; a file of a few bytes per node could take a hundred
/// times its size.
pub(crate) const MOST_MADE_BYTES: usize = 256 << 20;
/// Graphs in attributes of nodes of graphs. Exports nest two or three (a branch in a loop); each takes stack.
pub(crate) const MOST_NESTED: usize = 8;
/// As many dimensions as NumPy has.
pub(crate) const MOST_RANK: usize = 64;
/// Elements of a tensor: more than any memory holds, little enough that bytes and operations of it fit a number.
pub(crate) const MOST_ELEMENTS: u64 = 1 << 48;
/// Elements of a value that is computed while shapes are inferred. Shapes have a handful; a table of weights is none.
pub(crate) const MOST_FOLDED: usize = 1024;
/// Elements of all such values together.
pub(crate) const MOST_FOLDED_ALL: usize = 1 << 22;
/// Characters of a name in a message: names are strangers' words of any length.
pub(crate) const MOST_SHOWN: usize = 120;
/// Parts of a chain. Placement tries every begin for every end; more parts than members have cores gain nothing.
pub const MOST_PARTS: usize = 64;
/// Bytes that are copied rather than shared when a file is written: a piece of its own costs more.
pub(crate) const COPIED_BYTES: usize = 256;
/// What metadata of ours may take: names of crossing tensors, a few numbers for each part.
pub(crate) const MOST_METADATA_BYTES: usize = 1 << 20;

/// Nodes of a model of which each reads what the one before made. The engine walks them on its stack: a native node's
/// holds some times as many (`crates/host/src/cpu.rs`), a browser's some thousand, and it says so. The largest exports
/// of today, language models of 80 layers, have half as many.
pub const LONGEST_ROW: usize = 10_000;
