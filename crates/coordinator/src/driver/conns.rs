//! The connections of nodes: whose each is, and what goes out by it, gathered during a batch and handed over
//! once after it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shoal_protocol::limit::{MAX_BATCH, MAX_REQUEST_BYTES};
use shoal_protocol::{Identity, NodeId, Refusal, ToNode};
use shoal_scheduler::Conn;
use tokio::sync::{mpsc, oneshot};

/// Hand-overs a socket may be behind before it counts as stuck. Each holds all of one batch, so a
/// healthy socket is seldom behind by more than one or two.
pub(crate) const MAX_BEHIND: usize = 256;

/// Bytes of requests a socket may be behind. Requests that nobody waits for any more count until they are sent: they
/// are in memory.
const MAX_BYTES_BEHIND: usize = 4 * MAX_REQUEST_BYTES;

/// Messages for one socket, in order.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) messages: Vec<ToNode>,
    pub(crate) weight: Weight,
    /// Close the socket after these.
    pub(crate) last: bool,
}

/// Bytes that count as behind until this is dropped.
#[derive(Debug)]
pub(crate) struct Weight {
    bytes: usize,
    behind: Arc<AtomicUsize>,
}

impl Weight {
    fn of(messages: &[ToNode], behind: &Arc<AtomicUsize>) -> Weight {
        let bytes = messages.iter().map(request_bytes).sum();
        behind.fetch_add(bytes, Ordering::Relaxed);
        Weight { bytes, behind: behind.clone() }
    }

    fn is_too_much(&self) -> bool {
        self.behind.load(Ordering::Relaxed) > MAX_BYTES_BEHIND
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.behind.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Everything else is small.
fn request_bytes(message: &ToNode) -> usize {
    if let ToNode::Ask { body, .. } | ToNode::AskMore { body, .. } = message {
        body.len()
    } else {
        0
    }
}

/// Numbers of nodes that left, before they are cleared away.
const SLACK: usize = 64;

#[derive(Default)]
pub(super) struct Conns {
    lines: BTreeMap<Conn, Line>,
    /// The numbers the scheduler knows nodes by. Some of those that left are cleared away later.
    nodes: HashMap<NodeId, Conn>,
    /// Connections with something to hand over.
    dirty: Vec<Conn>,
}

struct Line {
    identity: Identity,
    /// None once the socket is told to close: it is still connected until it reports that it is gone.
    socket: Option<Socket>,
    messages: Vec<ToNode>,
    last: bool,
}

struct Socket {
    outgoing: mpsc::Sender<Outgoing>,
    behind: Arc<AtomicUsize>,
    kill: oneshot::Sender<()>,
}

impl Conns {
    pub(super) fn open(
        &mut self,
        conn: Conn,
        identity: Identity,
        outgoing: mpsc::Sender<Outgoing>,
        kill: oneshot::Sender<()>,
    ) {
        let socket = Some(Socket { outgoing, behind: Arc::default(), kill });
        self.lines.insert(conn, Line { identity, socket, messages: Vec::new(), last: false });
    }

    pub(super) fn close(&mut self, conn: Conn) {
        self.lines.remove(&conn);
    }

    /// Those that can be spoken to.
    pub(super) fn count(&self) -> usize {
        self.lines.values().filter(|line| line.socket.is_some()).count()
    }

    /// Which key a connected node has.
    pub(super) fn identity(&self, node: NodeId) -> Option<&Identity> {
        self.nodes.get(&node).and_then(|conn| self.lines.get(conn)).map(|line| &line.identity)
    }

    pub(super) fn send(&mut self, conn: Conn, message: ToNode) {
        if let ToNode::Welcome { node, .. } = &message {
            self.welcomed(conn, *node);
        }
        let Some(line) = self.lines.get_mut(&conn) else { return };
        if line.last || line.socket.is_none() {
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

    pub(super) fn refuse(&mut self, conn: Conn, refusal: Refusal) {
        self.send(conn, ToNode::Refused(refusal));
        if let Some(line) = self.lines.get_mut(&conn) {
            line.last = true;
        }
    }

    pub(super) fn refuse_all(&mut self, refusal: &Refusal) {
        let conns: Vec<Conn> = self.lines.keys().copied().collect();
        conns.into_iter().for_each(|conn| self.refuse(conn, refusal.clone()));
    }

    /// Hands everything over. Sockets that are too far behind are ended; they will report so themselves.
    pub(super) fn flush(&mut self) {
        for conn in self.dirty.drain(..) {
            let Some(line) = self.lines.get_mut(&conn) else { continue };
            let Some(socket) = &line.socket else { continue };
            let (messages, last) = (std::mem::take(&mut line.messages), line.last);
            let weight = Weight::of(&messages, &socket.behind);
            let stuck = weight.is_too_much();
            let sent = socket.outgoing.try_send(Outgoing { messages, weight, last });
            let stuck = stuck || sent.is_err();
            if (stuck || last)
                && let Some(socket) = line.socket.take()
                && stuck
            {
                tracing::warn!(
                    conn = conn.0,
                    "a node does not take what it is sent: closing its socket"
                );
                let _ = socket.kill.send(());
            }
        }
        self.check();
    }

    /// The scheduler knows it by this number.
    fn welcomed(&mut self, conn: Conn, node: NodeId) {
        self.nodes.insert(node, conn);
        if self.nodes.len() > 2 * self.lines.len() + SLACK {
            let lines = &self.lines;
            self.nodes.retain(|_, conn| lines.contains_key(conn));
        }
    }

    /// After a batch nothing waits.
    fn check(&self) {
        debug_assert!(self.dirty.is_empty());
        debug_assert!(self.lines.values().all(|line| line.messages.is_empty()));
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

    fn line(conns: &mut Conns, most: usize) -> (mpsc::Receiver<Outgoing>, oneshot::Receiver<()>) {
        let (outgoing, received) = mpsc::channel(most);
        let (kill, killed) = oneshot::channel();
        conns.open(Conn(1), Identity([7; 32]), outgoing, kill);
        (received, killed)
    }

    #[test]
    fn loans_of_one_batch_travel_in_one_message() {
        let mut conns = Conns::default();
        let (mut received, _killed) = line(&mut conns, 4);
        conns.send(Conn(1), lend(2));
        conns.send(Conn(1), lend(3));
        conns.send(Conn(1), ToNode::Forget(JobId(1)));
        conns.send(Conn(1), lend(1));
        conns.flush();
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
        let mut conns = Conns::default();
        let (_received, mut killed) = line(&mut conns, 1);
        conns.send(Conn(1), lend(1));
        conns.flush();
        assert!(killed.try_recv().is_err());
        conns.send(Conn(1), lend(1));
        conns.flush();
        assert!(killed.try_recv().is_ok());
        assert_eq!(conns.count(), 0);
    }

    #[test]
    fn nothing_follows_a_refusal() {
        let mut conns = Conns::default();
        let (mut received, mut killed) = line(&mut conns, 4);
        conns.refuse(Conn(1), Refusal::Full);
        conns.send(Conn(1), lend(1));
        conns.flush();
        let outgoing = received.try_recv().unwrap();
        assert!(outgoing.last && outgoing.messages == [ToNode::Refused(Refusal::Full)]);
        assert!(killed.try_recv().is_err());
    }

    #[test]
    fn a_node_has_its_key_until_its_socket_reports_that_it_is_gone() {
        let (mut conns, node) = (Conns::default(), NodeId(3));
        let (_received, _killed) = line(&mut conns, 4);
        assert_eq!(conns.identity(node), None);
        conns.send(Conn(1), ToNode::Welcome { node, session: "session".into() });
        conns.refuse(Conn(1), Refusal::Closing);
        conns.flush();
        assert_eq!((conns.identity(node), conns.count()), (Some(&Identity([7; 32])), 0));
        conns.close(Conn(1));
        assert_eq!(conns.identity(node), None);
    }

    #[test]
    fn numbers_of_nodes_that_left_are_cleared_away() {
        let mut conns = Conns::default();
        let (_received, _killed) = line(&mut conns, 4);
        for number in 0..1000 {
            conns.send(Conn(2), ToNode::Welcome { node: NodeId(number), session: String::new() });
        }
        assert!(conns.nodes.len() <= 2 + SLACK);
    }
}
