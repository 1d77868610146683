//! What a node and its child talk over: the child's stdin and stdout. Where there are such, both are the ends of a socket: a
//! pipe holds 64 KiB, so that a picture of 4.9 MB would put either side to sleep 75 times.

use std::io;
use std::process::{Child, Command};

pub(super) use sort::Pair;

/// Starts a process whose stdin and stdout are the other ends.
pub(super) fn spawn(command: Command) -> io::Result<(Child, Pair)> {
    sort::spawn(command)
}

#[cfg(unix)]
mod sort {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::process::{Child, Command};

    use socket2::SockRef;

    /// What may be under way to either side: a large part of a picture. Systems allow less, and then it is less.
    const UNDER_WAY: usize = 1 << 20;

    pub(crate) struct Pair {
        pub(crate) to: UnixStream,
        pub(crate) from: UnixStream,
    }

    pub(super) fn spawn(mut command: Command) -> io::Result<(Child, Pair)> {
        let (own, other) = UnixStream::pair()?;
        for end in [&own, &other] {
            let _ = SockRef::from(end).set_send_buffer_size(UNDER_WAY);
        }
        command.stdin(OwnedFd::from(other.try_clone()?)).stdout(OwnedFd::from(other));
        let child = command.spawn()?;
        // The other ends that are still here. Only the child's keep this one open.
        drop(command);
        Ok((child, Pair { to: own.try_clone()?, from: own }))
    }
}

#[cfg(not(unix))]
mod sort {
    use std::io;
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

    pub(crate) struct Pair {
        pub(crate) to: ChildStdin,
        pub(crate) from: ChildStdout,
    }

    pub(super) fn spawn(mut command: Command) -> io::Result<(Child, Pair)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (to, from) = pipes.ok_or_else(|| io::Error::other("the process has no pipes"))?;
        Ok((child, Pair { to, from }))
    }
}
