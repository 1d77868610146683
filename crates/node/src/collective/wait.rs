//! What waits: messages before their time are bounded, and members that let others wait are named.

use shoal_protocol::Time;

use super::topology::Rank;
use super::{Fault, Group, GroupOutput};

/// Bytes of one rank kept for what this rank has not begun: beyond this the session is asked to hold it back.
pub const HOLD_BYTES: usize = 64 << 20;
/// Beyond this nothing is kept: the sender was held back and went on. What was on the way then is far less.
pub const MAX_EARLY_BYTES: usize = 2 * HOLD_BYTES;
/// What a message costs beside its bytes: an entry of a map.
pub(super) const MESSAGE_COST: usize = 64;

impl Group {
    /// Counts bytes that wait for their time. Each message counts a little more, so that empty ones are
    /// bounded too.
    pub(super) fn keep(&mut self, from: Rank, bytes: usize) -> Result<(), Fault> {
        let (kept, held) = self.kept.entry(from).or_default();
        if *kept + bytes > MAX_EARLY_BYTES {
            return Err(Fault::Flood);
        }
        *kept += bytes + MESSAGE_COST;
        if *kept > HOLD_BYTES && !*held {
            *held = true;
            self.outputs.push_back(GroupOutput::Hold { rank: from, hold: true });
        }
        Ok(())
    }

    pub(super) fn forget(&mut self, from: Rank, bytes: usize) {
        let (kept, held) = self.kept.entry(from).or_default();
        *kept = kept.saturating_sub(bytes + MESSAGE_COST);
        if *kept <= HOLD_BYTES / 2 && *held {
            *held = false;
            self.outputs.push_back(GroupOutput::Hold { rank: from, hold: false });
        }
    }

    pub(super) fn name_slow(&mut self, now: Time) {
        let running = self.running.values_mut().flat_map(|running| &mut running.patience);
        let waits = running.map(|(rank, awaited)| (*rank, awaited.since, &mut awaited.told));
        for (rank, since, told) in waits.chain(self.points.waits_mut()) {
            if !*told && now - since >= self.patience {
                *told = true;
                self.outputs.push_back(GroupOutput::Slow { rank, since });
            }
        }
    }
}
