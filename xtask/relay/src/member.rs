//! A member of a crew in a thread of its own: the real one, with the relay for its only way.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use shoal_node::collective::Op;
use shoal_node::{Member, MemberInput, MemberOutput};
use shoal_protocol::frame::is_frame;
use shoal_protocol::{NodeId, Time};

use crate::Outcome;
use crate::wire::Wire;

/// Nothing to wait for: looked at again after that.
const IDLE: Duration = Duration::from_millis(500);

/// What a member is told.
pub(crate) enum Told {
    Frame(Vec<u8>),
    Together(Op, Arc<Vec<u8>>),
    Say(NodeId, Arc<Vec<u8>>),
    End,
}

/// What became of it, and when.
pub(crate) struct Came {
    pub(crate) at: Instant,
    pub(crate) rank: usize,
    pub(crate) bytes: Vec<u8>,
}

/// Reads frames for a member until the connection ends.
pub(crate) fn read(mut wire: Wire, tell: Sender<Told>) {
    thread::spawn(move || {
        while let Ok(message) = wire.message() {
            // The coordinator's own words are about work, of which there is none.
            if is_frame(&message) && tell.send(Told::Frame(message)).is_err() {
                return;
            }
        }
    });
}

/// Works for a member that was enlisted, until it is told to end.
pub(crate) fn work(
    rank: usize,
    mut member: Member,
    start: Instant,
    mut writer: TcpStream,
    told: &Receiver<Told>,
    came: &Sender<Came>,
) -> Outcome {
    let now = || Time(start.elapsed().as_micros() as u64);
    loop {
        while let Some(output) = member.poll_output() {
            let bytes = match output {
                MemberOutput::Frame(frame) => {
                    send(&mut writer, &frame)?;
                    continue;
                }
                MemberOutput::App { bytes, .. } | MemberOutput::Done { data: bytes, .. } => bytes,
                wrong @ (MemberOutput::Refused { .. } | MemberOutput::NotBegun(_)) => {
                    return Err(format!("rank {rank}: {wrong:?}").into());
                }
                MemberOutput::Direct(..)
                | MemberOutput::Radio(..)
                | MemberOutput::Engine(_)
                | MemberOutput::Stage(_)
                | MemberOutput::Answer { .. }
                | MemberOutput::Part { .. }
                | MemberOutput::Says { .. }
                | MemberOutput::Deliver { .. }
                | MemberOutput::Using(..) => continue,
            };
            came.send(Came { at: Instant::now(), rank, bytes })?;
        }
        let due =
            member.next_timeout().map(|at| Duration::from_micros(at.0.saturating_sub(now().0)));
        match told.recv_timeout(due.unwrap_or(IDLE).min(IDLE)) {
            Ok(Told::Frame(frame)) => member.handle(now(), MemberInput::Frame(&frame)),
            Ok(Told::Together(op, data)) => {
                member.handle(now(), MemberInput::Collective { op, data });
            }
            Ok(Told::Say(to, message)) => {
                member.handle(now(), MemberInput::App { to, channel: 1, message });
            }
            Err(RecvTimeoutError::Timeout) => member.handle(now(), MemberInput::Tick),
            Ok(Told::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// A frame as a WebSocket client sends it, with a mask of nothing.
fn send(writer: &mut TcpStream, frame: &[u8]) -> Outcome {
    let mut bytes = Vec::with_capacity(frame.len() + 14);
    bytes.push(0x82);
    match frame.len() {
        short @ ..126 => bytes.push(0x80 | short as u8),
        middling @ ..0x1_0000 => {
            bytes.push(0x80 | 126);
            bytes.extend((middling as u16).to_be_bytes());
        }
        long => {
            bytes.push(0x80 | 127);
            bytes.extend((long as u64).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(frame);
    Ok(writer.write_all(&bytes)?)
}
