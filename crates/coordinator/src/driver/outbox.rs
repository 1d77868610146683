//! What goes out to nodes: gathered for each connection during a batch, handed over once after it.

use std::collections::BTreeMap;

use shoal_protocol::limit::MAX_BATCH;
use shoal_protocol::{Refusal, ToNode};
use shoal_scheduler::Conn;
use tokio::sync::{mpsc, oneshot};

/// Hand-overs a socket may be behind before it counts as stuck. Each holds all of one batch, so a
/// healthy socket is seldom behind by more than one or two.
pub(crate) const MAX_BEHIND: usize = 256;

/// Messages for one socket, in order.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) messages: Vec<ToNode>,
    /// Close the socket after these.
    pub(crate) last: bool,
}

#[derive(Default)]
pub(crate) struct Outbox {
    conns: BTreeMap<Conn, Line>,
    /// Connections with something to hand over.
    dirty: Vec<Conn>,
}

struct Line {
    outgoing: mpsc::Sender<Outgoing>,
    kill: oneshot::Sender<()>,
    messages: Vec<ToNode>,
    last: bool,
}

impl Outbox {
    pub(crate) fn open(
        &mut self,
        conn: Conn,
        outgoing: mpsc::Sender<Outgoing>,
        kill: oneshot::Sender<()>,
    ) {
        self.conns.insert(conn, Line { outgoing, kill, messages: Vec::new(), last: false });
    }

    pub(crate) fn close(&mut self, conn: Conn) {
        self.conns.remove(&conn);
    }

    pub(crate) fn len(&self) -> usize {
        self.conns.len()
    }

    pub(crate) fn send(&mut self, conn: Conn, message: ToNode) {
        let Some(line) = self.conns.get_mut(&conn) else { return };
        if line.last {
            return;
        }
        if line.messages.is_empty() {
            self.dirty.push(conn);
        }
        let message = match line.messages.last_mut() {
            Some(before) => match joined(before, message) {
                Some(message) => message,
                None => return,
            },
            None => message,
        };
        line.messages.push(message);
    }

    pub(crate) fn refuse(&mut self, conn: Conn, refusal: Refusal) {
        self.send(conn, ToNode::Refused(refusal));
        if let Some(line) = self.conns.get_mut(&conn) {
            line.last = true;
        }
    }

    pub(crate) fn refuse_all(&mut self, refusal: &Refusal) {
        let conns: Vec<Conn> = self.conns.keys().copied().collect();
        conns.into_iter().for_each(|conn| self.refuse(conn, refusal.clone()));
    }

    /// Hands everything over. Sockets that are too far behind are ended; they will report so themselves.
    pub(crate) fn flush(&mut self) {
        for conn in self.dirty.drain(..) {
            let Some(line) = self.conns.get_mut(&conn) else { continue };
            let messages = std::mem::take(&mut line.messages);
            let last = line.last;
            let sent = line.outgoing.try_send(Outgoing { messages, last });
            if (sent.is_err() || last)
                && let Some(line) = self.conns.remove(&conn)
                && sent.is_err()
            {
                tracing::warn!(
                    conn = conn.0,
                    "a node does not take what it is sent: closing its socket"
                );
                let _ = line.kill.send(());
            }
        }
    }
}

/// Joins two messages of one kind; gives the second back if it must stand alone.
fn joined(before: &mut ToNode, message: ToNode) -> Option<ToNode> {
    match (before, message) {
        (ToNode::Lend(before), ToNode::Lend(more)) if before.len() + more.len() <= MAX_BATCH => {
            before.extend(more);
            None
        }
        (ToNode::Revoke(before), ToNode::Revoke(more))
            if before.len() + more.len() <= MAX_BATCH =>
        {
            before.extend(more);
            None
        }
        (_, message) => Some(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_protocol::{Attempt, JobId, Lease, Span};

    fn lend(count: u32) -> ToNode {
        let lease = |i| Lease { attempt: Attempt::new(1, i), job: JobId(1), span: Span::new(0, 1) };
        ToNode::Lend((0..count).map(lease).collect())
    }

    fn line(outbox: &mut Outbox, most: usize) -> (mpsc::Receiver<Outgoing>, oneshot::Receiver<()>) {
        let (outgoing, received) = mpsc::channel(most);
        let (kill, killed) = oneshot::channel();
        outbox.open(Conn(1), outgoing, kill);
        (received, killed)
    }

    #[test]
    fn loans_of_one_batch_travel_in_one_message() {
        let mut outbox = Outbox::default();
        let (mut received, _killed) = line(&mut outbox, 4);
        outbox.send(Conn(1), lend(2));
        outbox.send(Conn(1), lend(3));
        outbox.send(Conn(1), ToNode::Forget(JobId(1)));
        outbox.send(Conn(1), lend(1));
        outbox.flush();
        let messages = received.try_recv().unwrap().messages;
        assert_eq!(messages, [lend_joined(), ToNode::Forget(JobId(1)), lend(1)]);
        assert!(received.try_recv().is_err());
    }

    fn lend_joined() -> ToNode {
        let mut first = lend(2);
        assert!(joined(&mut first, lend(3)).is_none());
        first
    }

    #[test]
    fn a_socket_too_far_behind_is_ended() {
        let mut outbox = Outbox::default();
        let (_received, mut killed) = line(&mut outbox, 1);
        outbox.send(Conn(1), lend(1));
        outbox.flush();
        assert!(killed.try_recv().is_err());
        outbox.send(Conn(1), lend(1));
        outbox.flush();
        assert!(killed.try_recv().is_ok());
        assert_eq!(outbox.len(), 0);
    }

    #[test]
    fn nothing_follows_a_refusal() {
        let mut outbox = Outbox::default();
        let (mut received, mut killed) = line(&mut outbox, 4);
        outbox.refuse(Conn(1), Refusal::Full);
        outbox.send(Conn(1), lend(1));
        outbox.flush();
        let outgoing = received.try_recv().unwrap();
        assert!(outgoing.last && outgoing.messages == [ToNode::Refused(Refusal::Full)]);
        assert!(killed.try_recv().is_err());
    }
}
