//! Requests that go through a crew.

use alloc::vec::Vec;
use shoal_protocol::{Attempt, CrewTold, JobId, ToNode};

use crate::state::Scheduler;

impl Scheduler {
    /// Requests go through a crew in the order they were asked, unless they go round and round: one that came before
    /// and has no answer got lost.
    pub(in crate::service) fn crew_answered(&mut self, service: JobId, attempt: Attempt) {
        let now = self.now;
        if let Some(crew) = self.crew_mut(service) {
            crew.moves(now);
            crew.went_well();
        }
        let of = self.services.services.get(&service);
        if of.is_some_and(|of| of.rounds().is_some()) {
            return;
        }
        let before = self.services.calls.iter().filter(|(_, call)| {
            let asked = call.at.is_some_and(|at| at.attempt < attempt);
            asked && call.service == service && call.is_in_crew()
        });
        let before = before.filter_map(|(id, call)| Some((*id, call.at?.attempt)));
        let before: Vec<_> = before.collect();
        for (id, attempt) in before.into_iter().rev() {
            self.ask_again_if(id, attempt, "it was lost on its way");
        }
    }

    /// Whoever of the crew has it stops and forgets it; the first may have only a part of what was asked.
    pub(in crate::service) fn drop_in_crew(&mut self, service: JobId, call: Attempt) {
        let of = self.services.services.get(&service);
        let Some(known) = of.and_then(|of| of.crew.as_ref()) else { return };
        let Some(crew) = known.id() else { return };
        let conns: Vec<_> = known.conns().collect();
        for (rank, conn) in conns.into_iter().enumerate() {
            if rank == 0 {
                self.send(conn, ToNode::Revoke([call].into()));
            }
            self.send(conn, ToNode::ToCrew { crew, say: CrewTold::Drop { call } });
        }
    }
}
