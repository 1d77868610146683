//! How fast this node would be in a crew: the GPU process times a step.

use shoal_node::Input;
use shoal_protocol::{CrewId, CrewSay, Epoch, Failure, JobId, Micros};

use super::Host;

impl Host<'_> {
    pub(super) fn audition(&mut self, crew: CrewId, job: JobId) {
        let info = self.info(job);
        match (&mut self.gpu, info) {
            (Some(gpu), Some(info)) => gpu.audition(crew, job, &info),
            (None, _) | (_, None) => self.auditioned(crew, Err(no_gpu())),
        }
    }

    pub(super) fn auditioned(&mut self, crew: CrewId, result: Result<(u64, Micros), Failure>) {
        let say = match result {
            Ok((cells, took)) => CrewSay::Auditioned { cells, took },
            Err(failure) => CrewSay::Failed { failure },
        };
        self.replies.push_back(Input::CrewSays { crew, epoch: Epoch(0), say });
    }
}

pub(super) fn no_gpu() -> Failure {
    Failure::DeviceLost { message: "this node lends no GPU any more".into() }
}
