//! What stands between two clients: nothing, a bare TCP relay, one in Python, or the coordinator.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;
use shoal_protocol::frame::{FrameKind, HEADER_BYTES, Header};
use shoal_protocol::{CrewId, Epoch, NodeId};

use crate::Outcome;
use crate::wire::Wire;

pub(crate) const CREW: CrewId = CrewId(1);

/// A process, and the line it printed when it was ready.
pub(crate) struct Middle {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub(crate) place: String,
    token: String,
    /// Connections so far: the coordinator numbers them.
    conns: u64,
    epoch: u32,
}

/// One of two that talk.
pub(crate) struct Client {
    pub(crate) wire: Wire,
    pub(crate) node: NodeId,
    pub(crate) epoch: Epoch,
    pub(crate) session: String,
}

impl Middle {
    pub(crate) fn copy() -> Outcome<Middle> {
        Middle::start(Command::new(std::env::current_exe()?).arg("copy"))
    }

    pub(crate) fn python(python: &str, script: &str) -> Outcome<Middle> {
        Middle::start(Command::new(python).arg(script))
    }

    pub(crate) fn coordinator(folder: &Path) -> Outcome<Middle> {
        Middle::coordinator_with(folder, &[])
    }

    /// One that takes frames by QUIC, and tells its nodes so.
    pub(crate) fn coordinator_quic(folder: &Path) -> Outcome<Middle> {
        Middle::coordinator_with(folder, &["quic"])
    }

    fn coordinator_with(folder: &Path, more: &[&str]) -> Outcome<Middle> {
        let _ = std::fs::remove_dir_all(folder);
        let mut command = Command::new(std::env::current_exe()?);
        let mut middle = Middle::start(command.arg("serve").arg(folder).args(more))?;
        let said: Value = serde_json::from_str(&middle.place)?;
        let text = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        middle.place = text("url").trim_start_matches("http://").into();
        middle.token = text("token");
        Ok(middle)
    }

    fn start(command: &mut Command) -> Outcome<Middle> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("no output")?;
        let mut output = BufReader::new(output);
        let mut place = String::new();
        output.read_line(&mut place)?;
        let (place, token) = (place.trim().to_owned(), String::new());
        Ok(Middle { child, input, output, place, token, conns: 0, epoch: 0 })
    }

    /// Two ends of nothing between.
    pub(crate) fn none() -> Outcome<(Wire, Wire)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let one = TcpStream::connect(listener.local_addr()?)?;
        Ok((Wire::bare(one)?, Wire::bare(listener.accept()?.0)?))
    }

    pub(crate) fn bare_pair(&self) -> Outcome<(Wire, Wire)> {
        let connect = || Wire::bare(TcpStream::connect(&self.place)?);
        Ok((connect()?, connect()?))
    }

    pub(crate) fn socket_pair(&self, mask: [u8; 4]) -> Outcome<(Wire, Wire)> {
        let connect = || Wire::socket(&self.place, "/", mask);
        Ok((connect()?, connect()?))
    }

    /// Nodes in one crew.
    pub(crate) fn crew(&mut self, size: u64, mask: [u8; 4]) -> Outcome<Vec<Client>> {
        self.epoch += 1;
        let epoch = Epoch(self.epoch);
        let mut order = format!("{} {}", CREW.0, epoch.0);
        let mut clients = Vec::new();
        for _ in 0..size {
            self.conns += 1;
            let (wire, node, session) = Wire::join(&self.place, &self.token, self.conns, mask)?;
            order.push_str(&format!(" {}:{}", node.0, self.conns));
            clients.push(Client { wire, node, epoch, session });
        }
        self.order(&order)?;
        Ok(clients)
    }

    /// Gives an order; what was dropped so far.
    pub(crate) fn order(&mut self, order: &str) -> Outcome<String> {
        let input = self.input.as_mut().ok_or("no input")?;
        writeln!(input, "{order}")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        Ok(answer.trim().into())
    }

    /// Seconds of processor time it has taken so far.
    pub(crate) fn cpu(&self) -> Outcome<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name in brackets may hold blanks; user and system time are the 12th and 13th after it.
        let fields = stat.rsplit_once(')').ok_or("no name")?.1.split_whitespace().skip(11).take(2);
        let ticks: u64 = fields.map(str::parse::<u64>).sum::<Result<_, _>>()?;
        Ok(ticks as f64 / 100.0)
    }

    /// The same to the nanosecond, and of this process too. Threads that ended are not in it.
    pub(crate) fn cpu_of_both(&self) -> Outcome<f64> {
        Ok(cpu_of_threads(self.child.id())? + cpu_of_threads(std::process::id())?)
    }

    /// Bytes of memory it has now, and at most had.
    pub(crate) fn memory(&self) -> Outcome<(f64, f64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes =
                line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
            kilobytes.map(|kilobytes: f64| kilobytes * 1024.0).ok_or(format!("no {name}"))
        };
        Ok((line("VmRSS:")?, line("VmHWM:")?))
    }
}

impl Drop for Middle {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    /// A frame to another, of this size in all, as it is sent on a socket.
    pub(crate) fn frame_to(&self, to: &Client, size: usize) -> Vec<u8> {
        self.wire.framed(&self.bare_frame_to(to, size))
    }

    /// The same without a socket's head.
    pub(crate) fn bare_frame_to(&self, to: &Client, size: usize) -> Vec<u8> {
        let header = Header {
            kind: FrameKind::Plain,
            channel: 1,
            length: (size - HEADER_BYTES) as u32,
            source: self.node,
            destination: to.node,
            crew: CREW,
            epoch: self.epoch,
            sequence: 1,
        };
        let mut frame = header.encode().to_vec();
        frame.resize(size, 0x5a);
        frame
    }
}

fn cpu_of_threads(process: u32) -> Outcome<f64> {
    let mut nanos = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        // One that ends at this moment has nothing to say.
        let stat = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanos += stat.split_whitespace().next().map_or(Ok(0), str::parse::<u64>)?;
    }
    Ok(nanos as f64 / 1e9)
}
