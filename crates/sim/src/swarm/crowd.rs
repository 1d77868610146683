//! What the exchange of one large blob costs the coordinator: the real scheduler and nodes that do at once what they
//! are told, so that nothing but the scheduler takes time.

use std::time::{Duration, Instant};

use shoal_protocol::limit::{PIECE_BYTES, PROTOCOL_VERSION};
use shoal_protocol::{
    BlobRef, Caps, FromNode, Hash, Hello, Identity, LinkKey, Micros, NodeKind, PieceSet, Signature,
    SwarmSay, SwarmTold, Time, ToNode,
};
use shoal_scheduler::{Conn, Input, Output, Scheduler};

const NO_PROOF: Signature = Signature([0; 32], [0; 32]);

/// What the scheduler did for everybody to have what it needs.
#[derive(Clone, Copy, Debug)]
pub struct SwarmCost {
    pub scheduler: Duration,
    /// Words of nodes that it heard.
    pub words: u64,
    pub pieces: u64,
    /// Those of them that went from node to node.
    pub between: u64,
}

/// So many nodes need a blob of so many pieces; each all of it, or one of so many equal parts.
pub fn swarm_cost(nodes: u64, pieces: u32, parts: u32) -> SwarmCost {
    let blob = BlobRef { hash: Hash([9; 32]), size: u64::from(pieces) * PIECE_BYTES };
    let mut crowd = Crowd {
        scheduler: Scheduler::new(),
        now: Time(1_000_000_000),
        told: Vec::new(),
        spent: Duration::ZERO,
        words: 0,
    };
    crowd.give(Input::Start { seed: 7 });
    crowd.give(Input::Stored { blob });
    let mut needed = 0;
    for n in 1..=nodes {
        let mut needs = PieceSet::new(pieces);
        let (part, each) = ((n % u64::from(parts)) as u32, pieces.div_ceil(parts));
        for piece in part * each..(part + 1) * each {
            needs.insert(piece);
        }
        needed += u64::from(needs.len());
        crowd.join(n, blob, needs.words());
    }
    crowd.run();
    let between = crowd.scheduler.swarms().between / PIECE_BYTES;
    SwarmCost { scheduler: crowd.spent, words: crowd.words, pieces: needed, between }
}

struct Crowd {
    scheduler: Scheduler,
    now: Time,
    /// Who has to be told what, oldest first.
    told: Vec<(Conn, ToNode)>,
    spent: Duration,
    words: u64,
}

impl Crowd {
    fn join(&mut self, n: u64, blob: BlobRef, needs: Vec<u64>) {
        let (conn, session) = (Conn(n), String::new());
        let mut identity = Identity([7; 32]);
        identity.0[..8].copy_from_slice(&n.to_le_bytes());
        let caps = Caps {
            kind: NodeKind::Native,
            name: String::new(),
            gpu: None,
            cpu_slots: 0,
            memory: 0,
            threads: 0,
            engines: Vec::new(),
            speed: 100,
            class: 0,
        };
        let (version, token, held) = (PROTOCOL_VERSION, String::new(), Vec::new());
        let hello = Hello { version, token, identity, proof: NO_PROOF, caps, held };
        self.give(Input::Connected { conn, hello, session, trusted: false, network: 0 });
        let key = LinkKey([n as u8; 32]);
        self.give(Input::Said { conn, message: FromNode::Links { key, proof: NO_PROOF } });
        self.say(conn, SwarmSay::Part { blob, has: Vec::new(), needs });
    }

    /// Until all have what they need.
    fn run(&mut self) {
        while self.scheduler.swarms().waiting > 0 {
            let told = std::mem::take(&mut self.told);
            if told.is_empty() {
                self.now = self.now + Micros::from_millis(500);
                self.give(Input::Tick);
            }
            told.into_iter().for_each(|(conn, message)| self.act(conn, message));
        }
        self.scheduler.check();
    }

    fn act(&mut self, conn: Conn, message: ToNode) {
        if let ToNode::Enlist(enlist) = &message {
            let node = enlist.members[1 - usize::from(enlist.rank)].node;
            self.say(conn, SwarmSay::Near { node, near: true });
        }
        if let ToNode::Swarm(SwarmTold::Take { blob, pieces, from }) = message {
            for piece in pieces {
                self.say(conn, SwarmSay::Got { blob, piece, from });
            }
        }
    }

    fn say(&mut self, conn: Conn, say: SwarmSay) {
        self.words += 1;
        self.give(Input::Said { conn, message: FromNode::Swarm(say) });
    }

    fn give(&mut self, input: Input) {
        let began = Instant::now();
        self.scheduler.handle(self.now, input);
        while let Some(output) = self.scheduler.poll_output() {
            if let Output::Send { conn, message } = output {
                self.told.push((conn, message));
            }
        }
        self.spent += began.elapsed();
    }
}
