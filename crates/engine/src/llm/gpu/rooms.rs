//! The GPU's memory between kernels: made once, for as many rows as one submission computes.

use shoal_gguf::Config;
use wgpu::Buffer;

use super::card::Card;
use super::form::BLOCK;

/// Rows of one submission: enough that weights are read once for many, few enough that a browser's GPU answers soon.
pub(super) const ROWS: usize = 128;
/// Of them, those whose logits are read: a vocabulary of a quarter of a million words is a megabyte for each.
pub(super) const LAST_ROWS: usize = 16;

pub(super) struct Rooms {
    /// What crosses from layer to layer, and the same behind a norm.
    pub(super) x: Buffer,
    pub(super) normed: Buffer,
    /// Queries, keys and values of each row.
    pub(super) heads: Buffer,
    pub(super) attended: Buffer,
    pub(super) wide: Buffer,
    /// What is normed before it is added.
    pub(super) added: Buffer,
    /// The rows behind which logits are wanted, and those.
    pub(super) last: Buffer,
    pub(super) last_normed: Buffer,
    pub(super) logits: Buffer,
    /// Slot, position and token of each row.
    pub(super) rows: Buffer,
    /// Sines and cosines of each row, in layers that see all and in those with a window.
    pub(super) turns: [Buffer; 2],
    /// How many rows there are, and how many of them are wanted.
    pub(super) run: Buffer,
    pub(super) last_run: Buffer,
    pub(super) readback: Buffer,
    /// Where a kernel wants a buffer and has no use for it.
    pub(super) nothing: Buffer,
}

impl Rooms {
    pub(super) fn new(card: &Card, config: &Config, is_last: bool) -> Rooms {
        let floats = |rows: usize, each: u32| rows as u64 * u64::from(each) * 4;
        let room = |rows: usize, each: u32| card.room(floats(rows, each));
        let (width, head) = (config.width, config.head_dim);
        let vocab = if is_last { config.vocab } else { 4 };
        let local = config.window.map_or(2, |window| window.rope.dims);
        let read = floats(LAST_ROWS, vocab).max(if is_last { 0 } else { floats(ROWS, width) });
        Rooms {
            x: room(ROWS, width),
            normed: room(ROWS, width),
            heads: room(ROWS, (config.heads + 2 * config.kv_heads) * head),
            attended: room(ROWS, filled(config.heads * head)),
            wide: room(ROWS, filled(config.ff)),
            added: room(ROWS, width),
            last: room(LAST_ROWS, width),
            last_normed: room(LAST_ROWS, width),
            logits: room(LAST_ROWS, vocab),
            rows: room(ROWS, 4),
            turns: [room(ROWS, config.rope.dims), room(ROWS, local)],
            run: card.settings(&[0; 4]),
            last_run: card.settings(&[0; 4]),
            readback: card.readback(read),
            nothing: card.room(16),
        }
    }
}

/// Numbers of a row as kernels read them, in whole blocks: behind the last one are zeros, which nobody writes.
pub(super) fn filled(width: u32) -> u32 {
    width.next_multiple_of(BLOCK as u32)
}
