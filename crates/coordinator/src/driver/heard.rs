//! What the driver does about nodes' words before the scheduler hears them.

use shoal_protocol::limit::MAX_SHARED_BLOBS;
use shoal_protocol::share::is_shared;
use shoal_protocol::{FromNode, Time};
use shoal_scheduler::Input;

use super::Driver;

impl Driver {
    /// Tells the scheduler which of the blobs a node speaks of are stored here. It believes nothing about others.
    pub(super) fn vouch(&mut self, now: Time, message: &FromNode) {
        let FromNode::Share(say) = message else { return };
        for blob in say.claimed().iter().take(MAX_SHARED_BLOBS) {
            if !is_shared(blob) || self.scheduler.knows_blob(blob) {
                continue;
            }
            match self.blobs.find(blob.hash) {
                Ok(Some(found)) if found == *blob => {
                    self.handle(now, Input::Stored { blob: found })
                }
                Ok(_) => {}
                Err(error) => tracing::warn!("blob {} cannot be looked up: {error}", blob.hash),
            }
        }
    }

    /// What of it changes what people see.
    pub(super) fn note_said(&mut self, message: &FromNode) {
        match message {
            FromNode::Failed { .. } => {
                self.counts.units_failed += 1;
                self.known.stir_running();
            }
            FromNode::Caps(_)
            | FromNode::Returned(_)
            | FromNode::Pause(_)
            | FromNode::Condition(_)
            | FromNode::Declined { .. }
            | FromNode::Links { .. }
            | FromNode::Crew { .. } => {
                self.known.stir_running();
            }
            FromNode::Hello(_)
            | FromNode::Done(_)
            | FromNode::Alive { .. }
            | FromNode::Warm { .. }
            | FromNode::Answer { .. }
            | FromNode::Share(_) => {}
        }
    }
}
