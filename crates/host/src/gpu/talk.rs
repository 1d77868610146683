//! The words between a node and its GPU process, over the child's stdin and stdout.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use shoal_kinds::Kind;
use shoal_node::{SimAnswer, SimCommand};
use shoal_protocol::limit::MAX_UNIT_BYTES;
use shoal_protocol::{Attempt, CrewId, Failure, GpuCaps, JobId, Lease, Micros, UnitOutput};

use super::super::beside::Neighbour;
use super::sim_talk;

/// Longest message: two of the largest halos, or a job with the largest kernel, and room for more.
const MAX_MESSAGE: u32 = 2 * MAX_UNIT_BYTES as u32 + (8 << 20);

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToWorker {
    /// Where bytes come from and go to, and the key to it; again whenever the connection is a new
    /// one.
    Session {
        base: String,
        token: String,
        /// The coordinator's certificate as this node accepted it, for https.
        pin: Option<String>,
        /// The folder with blobs that came from other nodes.
        shelf: Option<String>,
        /// The coordinator's data folder, where this node shares it.
        beside: Option<Neighbour>,
    },
    Job {
        job: JobId,
        items: u64,
        /// Boxed, because the other messages are small and many.
        work: Box<Kind>,
    },
    Run(Lease),
    /// Not wanted any more: skip it if it has not begun to compute.
    Cancel(Attempt),
    Forget(JobId),
    /// Time a step of this job.
    Audition {
        crew: CrewId,
        job: JobId,
    },
    /// A crew's member asks.
    Crew {
        crew: CrewId,
        #[serde(with = "sim_talk::Command")]
        command: SimCommand,
    },
    /// Drop the crew's band.
    Leave(CrewId),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromWorker {
    /// First: what the device offers, or why there is none.
    Ready(Result<Opened, String>),
    /// The kernel starts: from here the time limit counts.
    Computing(Attempt),
    Computed(Attempt),
    Ended {
        attempt: Attempt,
        took: Micros,
        result: Result<UnitOutput, Failure>,
    },
    Auditioned {
        crew: CrewId,
        result: Result<(u64, Micros), Failure>,
    },
    Answer {
        crew: CrewId,
        #[serde(with = "sim_talk::Answer")]
        answer: SimAnswer,
    },
}

/// An open device: what it offers, and its numeric class (0 if its probe failed).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) caps: GpuCaps,
    pub(crate) class: u64,
}

pub(super) fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_allocvec(message).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&bytes)?;
    to.flush()
}

pub(super) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MAX_MESSAGE {
        return Err(io::Error::other(format!("a message of {length} bytes")));
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_pipe_and_garbage_is_an_error() {
        let mut pipe = Vec::new();
        write(&mut pipe, &ToWorker::Cancel(Attempt(7))).expect("memory is writable");
        write(&mut pipe, &ToWorker::Forget(JobId(3))).expect("memory is writable");
        let mut from = &pipe[..];
        assert!(matches!(read(&mut from), Ok(ToWorker::Cancel(Attempt(7)))));
        assert!(matches!(read(&mut from), Ok(ToWorker::Forget(JobId(3)))));
        assert!(read::<ToWorker>(&mut from).is_err());
        assert!(read::<ToWorker>(&mut &[255, 255, 255, 255, 0][..]).is_err());
        assert!(read::<ToWorker>(&mut &[1, 0, 0, 0, 99][..]).is_err());
    }
}
