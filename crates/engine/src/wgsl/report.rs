//! A unit's place among all items, told to a kernel with windows, and the kernel's report of a look outside.

use std::sync::Arc;

use shoal_kinds::{MapWork, Slot, Windows};
use shoal_protocol::{Failure, Span};
use wgpu::{BufferBinding, CommandEncoder};

use super::fault::{internal, text};
use super::gpu::Core;
use super::map::padded;
use super::memory::Route;
use super::pool::{Lease, Role};
use crate::window::REPORT_WORDS;

const REPORT_BYTES: u64 = REPORT_WORDS as u64 * 4;
/// Elements of an array that can be told from places before its start. A mirrored array counts to twice that.
const MOST_ELEMENTS: u64 = 1 << 31;

/// For one unit.
pub(super) struct Report {
    windows: Arc<Windows>,
    span: Span,
    /// One entry for the items, then one for each array: see [`crate::window`].
    place: Vec<[u32; 4]>,
    block: Lease,
    words: Lease,
    /// Where they are read, if not in `words`.
    readback: Option<Lease>,
}

impl Report {
    /// None if the kernel has no windows.
    pub(super) async fn of(
        core: &Core,
        windows: Option<&Arc<Windows>>,
        work: &MapWork,
        (items, blocks): (u64, Span),
    ) -> Result<Option<Report>, Failure> {
        let Some(windows) = windows else { return Ok(None) };
        let place = place(windows, work, items, blocks)?;
        let span = work.fold.as_ref().map_or(blocks, |fold| fold.items_of(blocks));
        let block = core.pool.take(Role::Params, place.len() as u64 * 16).await?;
        let words = core.output(REPORT_BYTES).await?;
        let readback = match core.route {
            Route::InPlace => None,
            Route::Copied | Route::Queued => {
                Some(core.pool.take(Role::Readback, REPORT_BYTES).await?)
            }
        };
        let windows = windows.clone();
        Ok(Some(Report { windows, span, place, block, words, readback }))
    }

    /// Before the kernel runs.
    pub(super) fn ready(&self, core: &Core, encoder: &mut CommandEncoder) {
        let block: Vec<u8> =
            self.place.as_flattened().iter().flat_map(|it| it.to_le_bytes()).collect();
        core.queue.write_buffer(&self.block.buffer, 0, &padded(&block));
        encoder.clear_buffer(&self.words.buffer, 0, Some(REPORT_BYTES));
    }

    pub(super) fn place(&self) -> BufferBinding<'_> {
        self.block.binding(self.place.len() as u64 * 16)
    }

    pub(super) fn words(&self) -> BufferBinding<'_> {
        self.words.binding(REPORT_BYTES)
    }

    /// After the kernel ran: brings the words to where they are read.
    pub(super) fn gather(self, encoder: &mut CommandEncoder) -> (Lease, Said) {
        let Report { windows, span, place, block: _, words, readback } = self;
        let lease = match readback {
            None => words,
            Some(readback) => {
                encoder.copy_buffer_to_buffer(&words.buffer, 0, &readback.buffer, 0, REPORT_BYTES);
                readback
            }
        };
        (lease, Said { windows, span, place })
    }
}

/// What a report means.
pub(super) struct Said {
    windows: Arc<Windows>,
    span: Span,
    place: Vec<[u32; 4]>,
}

impl Said {
    pub(super) const BYTES: u64 = REPORT_BYTES;

    /// None if nothing was looked at that the unit was not given.
    pub(super) fn failure(&self, report: &[u8]) -> Option<Failure> {
        let word = |at: usize| {
            let bytes = report.get(at * 4..).and_then(|rest| rest.first_chunk());
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        if word(0) == 0 {
            return None;
        }
        let (array, index) = (word(1) as usize, word(2));
        let (Some(window), Some(&[first, count, ..])) =
            (self.windows.arrays.get(array), self.place.get(array + 1))
        else {
            return Some(internal("a kernel's report names no array"));
        };
        let name = &window.name;
        // From 2^31 on it lies before the start.
        let index = index.cast_signed();
        let items = self.place.first().map_or(0, |entry| entry[2]);
        let (from, to) = (self.span.start, self.span.end() - 1);
        let message = match window.slot {
            Slot::Output => format!(
                "one of the items {from} to {to} uses `{name}[{index}]`, which is another item's: items run on \
                 different devices, and each writes only its own elements. Write `{name}[i]`, or N elements from \
                 `{name}[i * N]` on with `--out-per N`; to bring items together use `--reduce`"
            ),
            Slot::Input(_) | Slot::Params | Slot::Place | Slot::Report => {
                let last = first.wrapping_add(count).wrapping_sub(1);
                format!(
                    "one of the items {from} to {to} reads `{name}[{index}]`, but their unit was given elements \
                     {first} to {last} only. Say how far items look: `--overlap {name}=N` for N elements to either \
                     side, or `--whole {name}` for all of them (with `--items {items}` if no other input is split)"
                )
            }
        };
        Some(Failure::Outside { message: text(message) })
    }
}

fn place(
    windows: &Windows,
    work: &MapWork,
    items: u64,
    blocks: Span,
) -> Result<Vec<[u32; 4]>, Failure> {
    let span = work.fold.as_ref().map_or(blocks, |fold| fold.items_of(blocks));
    let each = work.fold.as_ref().map_or(work.output_bytes, |fold| fold.item_bytes);
    let number = |value: u64| {
        let fits = u32::try_from(value).ok().filter(|_| value < MOST_ELEMENTS);
        fits.ok_or_else(|| {
            internal(format!("{value} elements are too many for a kernel with windows"))
        })
    };
    let mut place = vec![[number(span.start)?, number(span.len)?, number(items)?, 0]];
    for window in &windows.arrays {
        let stride = u64::from(window.stride.max(1));
        let (start, end, size) = match window.slot {
            Slot::Input(at) => {
                let input = work.inputs.get(at as usize);
                let input = input.ok_or_else(|| internal("a window on no input"))?;
                let (start, end) = input.range(blocks);
                (start, end, input.blob.size)
            }
            Slot::Output => {
                let each = u64::from(each);
                (span.start * each, span.end() * each, items * each)
            }
            Slot::Params | Slot::Place | Slot::Report => {
                return Err(internal("a window on no array"));
            }
        };
        let entry =
            [number(start / stride)?, number((end - start) / stride)?, number(size / stride)?, 0];
        place.push(entry);
    }
    Ok(place)
}
