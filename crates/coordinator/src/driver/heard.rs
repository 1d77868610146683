//! What of nodes' words changes what people see.

use shoal_protocol::FromNode;

use super::Driver;

impl Driver {
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
            | FromNode::Share(_) => {}
        }
    }
}
