//! The parameter block of a simulation's passes.

use shoal_kinds::{SimField, SimWork};
use shoal_protocol::{Failure, Poke};

use crate::wgsl::gpu::Core;
use crate::wgsl::gpu::aligned;
use crate::wgsl::map::{block_size, padded};

/// What is true in one step for the rows of one buffer.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    /// Grid row of the buffer's first one; may lie before 0.
    pub(super) first: i64,
    /// Rows of the buffer.
    pub(super) rows: u64,
    pub(super) step: u64,
    pub(super) poke: Option<Poke>,
}

impl Moment {
    /// The user's values with this moment's written in.
    pub(super) fn block(&self, work: &SimWork) -> Result<Vec<u8>, Failure> {
        let mut bytes = work.params.clone();
        let [mut poke, mut brush] = [[0.0f32; 4], [0.0; 4]];
        if let Some(Poke { at, by, radius, strength }) = self.poke {
            poke = [at[0], at[1], by[0], by[1]];
            brush = [radius, strength, 0.0, 0.0];
        }
        for &(field, at) in &work.fields {
            let words: Vec<[u8; 4]> = match field {
                SimField::Width => vec![work.width.to_le_bytes()],
                SimField::Height => vec![work.height.to_le_bytes()],
                SimField::FirstRow => {
                    let row = self.first.rem_euclid(i64::from(work.height.max(1)));
                    vec![(row as u32).to_le_bytes()]
                }
                SimField::Rows => vec![(self.rows as u32).to_le_bytes()],
                // The intake has seen to it that the last step fits.
                SimField::Step => vec![(self.step as u32).to_le_bytes()],
                SimField::Poke => poke.map(f32::to_le_bytes).to_vec(),
                SimField::Brush => brush[..2].iter().map(|it| it.to_le_bytes()).collect(),
            };
            let value = words.concat();
            let at = at as usize;
            let place = bytes.get_mut(at..at + value.len()).ok_or_else(|| Failure::Kernel {
                message: format!("{field:?} lies at byte {at}, outside the parameter block"),
            })?;
            place.copy_from_slice(&value);
        }
        Ok(bytes)
    }
}

/// Where blocks lie in one buffer: devices want them at multiples of some power of two.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    pub(super) size: u64,
    step: u64,
}

impl Blocks {
    pub(super) fn new(core: &Core, work: &SimWork) -> Blocks {
        let limits = &core.limits;
        let align = limits
            .min_uniform_buffer_offset_alignment
            .max(limits.min_storage_buffer_offset_alignment);
        let size = block_size(&work.params);
        Blocks { size, step: aligned(size, u64::from(align)) }
    }

    pub(super) fn at(&self, index: u64) -> u64 {
        index * self.step
    }

    /// The blocks of some moments, one after the other.
    pub(super) fn fill(&self, work: &SimWork, moments: &[Moment]) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::with_capacity(moments.len() * self.step as usize);
        for (index, moment) in moments.iter().enumerate() {
            bytes.resize(self.at(index as u64) as usize, 0);
            bytes.extend(padded(&moment.block(work)?));
        }
        Ok(bytes)
    }
}
