//! Devices that want jobs to fail or to stand still. They speak the protocol without a node's brain, and go on with
//! it for as long as the world lasts: what honest devices can finish must be finished beside them.

use shoal_node::Input;
use shoal_protocol::limit::PROTOCOL_VERSION;
use shoal_protocol::{
    Attempt, Failure, Finished, FromNode, Hello, Identity, Lease, Micros, Signature, ToNode,
    UnitOutput,
};
use shoal_scheduler::Conn;

use crate::liar::Content;
use crate::random::Random;
use crate::world::{Event, Probe, World};

/// What a hostile device does with what it was lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trick {
    /// Says that it all runs, and hangs up.
    Flap,
    /// Hangs up without a word.
    Leave,
    /// Fails it with a trap.
    Trap,
    /// Fails it as if the device were at fault.
    Fault,
    /// Says for ever that it all runs.
    Hold,
    /// Gives it back.
    Return,
    /// Forgets it, and says so.
    Forget,
    /// Answers rightly at first, and then does any of the above.
    Sly,
    /// Answers, with something else each time. Not among those drawn for any world: where few know better, nobody
    /// can tell.
    Lie,
}

const WAYS: [Trick; 8] = [
    Trick::Flap,
    Trick::Leave,
    Trick::Trap,
    Trick::Fault,
    Trick::Hold,
    Trick::Return,
    Trick::Forget,
    Trick::Sly,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enemy {
    pub way: Trick,
    /// Comes with another key each time.
    pub new_keys: bool,
    /// What it says it can compute at a time.
    pub slots: u16,
    /// The honest device whose numeric class it claims; it computes in its own.
    pub claims: Option<u64>,
}

impl Enemy {
    pub(crate) fn random(random: &mut Random) -> Enemy {
        let way = WAYS[random.range(0, WAYS.len() as u64) as usize];
        let slots = if random.chance(300_000) { random.range(1, 1_000) } else { 1 };
        Enemy { way, new_keys: random.chance(500_000), slots: slots as u16, claims: None }
    }

    /// The same, worse: perhaps it claims the class of one of so many honest devices, or lies.
    pub(crate) fn harder(self, honest: u64, may_lie: bool, random: &mut Random) -> Enemy {
        let claims = random.chance(500_000).then(|| random.range(0, honest));
        let way = if may_lie && random.chance(250_000) { Trick::Lie } else { self.way };
        Enemy { way, claims, ..self }
    }
}

/// How long a hostile device waits between two deeds, in microseconds.
const PAUSE: (u64, u64) = (5_000, 400_000);
/// One that holds what it has stays at least so many deeds, if it has a key to spare.
const HOLDS_FOR: u64 = 60;
/// Right answers of one that wants to be believed at first.
const SLY_FOR: u64 = 12;
/// One that lies does so as often before it takes another key, if it has one to spare.
const LIES_FOR: u64 = 3;
/// Its lies are above all others.
const LIES_FROM: u64 = 1 << 40;

/// A hostile device's state.
pub(crate) struct Hostile {
    enemy: Enemy,
    held: Vec<Lease>,
    /// Connections it has had, deeds on this one, and right answers with this key.
    came: u64,
    deeds: u64,
    answers: u64,
    /// It is about to open a socket.
    opening: bool,
}

impl Hostile {
    pub(crate) fn new(enemy: Enemy) -> Hostile {
        let held = Vec::new();
        Hostile { enemy, held, came: 0, deeds: 0, answers: 0, opening: false }
    }
}

/// Keys of one device differ above its number.
const KEYS_FROM: u32 = 32;

/// The device of a key that may be one of several.
pub(crate) fn device_of_key(number: u64) -> u64 {
    number & ((1 << KEYS_FROM) - 1)
}

impl<P: Probe> World<P> {
    /// Everything that happens to a hostile device.
    pub(crate) fn hostile_hears(&mut self, at: usize, input: Input) {
        let Some(hostile) = &mut self.devices[at].hostile else { return };
        match input {
            Input::Opened => hostile.opening = false,
            Input::Closed => {
                hostile.opening = false;
                hostile.held.clear();
            }
            Input::Received(ToNode::Challenge { .. }) => self.hostile_greets(at),
            Input::Received(ToNode::Lend(leases)) => hostile.held.extend(leases),
            Input::Received(ToNode::Revoke(attempts)) => {
                hostile.held.retain(|lease| !attempts.contains(&lease.attempt));
            }
            Input::Start | Input::Tick => {
                self.hostile_acts(at);
                let pause = self.random.range(PAUSE.0, PAUSE.1);
                self.at(self.now.0 + pause, Event::NodeTimer(at));
            }
            // Whatever else a node is told does not move it.
            Input::Received(_)
            | Input::Signed { .. }
            | Input::Checked { .. }
            | Input::Ran { .. }
            | Input::Part { .. }
            | Input::Warmed { .. }
            | Input::LinkKey(_)
            | Input::CrewSays { .. }
            | Input::QuicUp
            | Input::QuicDown
            | Input::SwarmSays(_)
            | Input::Offer(_)
            | Input::Rules(_)
            | Input::Pause(_)
            | Input::Condition(_)
            | Input::CrewAnswers { .. }
            | Input::CrewPart { .. }
            | Input::Stop => {}
        }
    }

    fn hostile_greets(&mut self, at: usize) {
        let device = &self.devices[at];
        let Some(hostile) = &device.hostile else { return };
        let key = if hostile.enemy.new_keys { hostile.came << KEYS_FROM } else { 0 };
        let mut identity = [0; 32];
        identity[..8].copy_from_slice(&(device.number | key).to_le_bytes());
        let mut caps = crate::device::usual_caps(at);
        caps.cpu_slots = hostile.enemy.slots;
        caps.class =
            hostile.enemy.claims.map_or(caps.class, |of| self.devices[of as usize].class());
        if let Some(gpu) = &mut caps.gpu {
            gpu.slots = hostile.enemy.slots;
        }
        let hello = Hello {
            version: PROTOCOL_VERSION,
            token: String::new(),
            identity: Identity(identity),
            proof: Signature([0; 32], [0; 32]),
            caps,
            held: Vec::new(),
        };
        self.send_from_node(at, FromNode::Hello(Box::new(hello)));
    }

    fn hostile_acts(&mut self, at: usize) {
        let Some(conn) = self.devices[at].conn else { return self.hostile_comes(at) };
        let Some(hostile) = &mut self.devices[at].hostile else { return };
        hostile.deeds += 1;
        self.report.deeds += 1;
        let (enemy, deeds, answers) = (hostile.enemy, hostile.deeds, hostile.answers);
        let sly = enemy.way == Trick::Sly;
        if sly && answers < SLY_FOR {
            return self.hostile_answers(at);
        }
        if enemy.way == Trick::Lie {
            self.hostile_answers(at);
            if enemy.new_keys && deeds > LIES_FOR {
                self.hostile_leaves(at, conn);
            }
            return;
        }
        let any = self.random.range(0, WAYS.len() as u64 - 1) as usize;
        let way = if sly { WAYS[any] } else { enemy.way };
        let held = self.hostile_held(at);
        match way {
            Trick::Flap | Trick::Leave => {
                if way == Trick::Flap {
                    self.hostile_says_alive(at, held);
                }
                self.hostile_leaves(at, conn);
            }
            Trick::Trap | Trick::Fault => {
                for attempt in held {
                    let message = String::from("no");
                    let failure = if way == Trick::Trap {
                        Failure::Trap { item: 0, message, stderr: String::new() }
                    } else {
                        Failure::Internal { message }
                    };
                    self.send_from_node(at, FromNode::Failed { attempt, failure });
                }
                self.hostile_forgets(at);
            }
            Trick::Return => {
                self.send_from_node(at, FromNode::Returned(held));
                self.hostile_forgets(at);
            }
            Trick::Hold => self.hostile_says_alive(at, held),
            Trick::Forget | Trick::Sly | Trick::Lie => self.hostile_says_alive(at, Vec::new()),
        }
        let stays = if matches!(way, Trick::Hold | Trick::Forget) { HOLDS_FOR } else { 2 };
        if enemy.new_keys && deeds > stays {
            self.hostile_leaves(at, conn);
        }
    }

    fn hostile_held(&self, at: usize) -> Vec<Attempt> {
        let held = self.devices[at].hostile.iter().flat_map(|hostile| &hostile.held);
        held.map(|lease| lease.attempt).collect()
    }

    fn hostile_forgets(&mut self, at: usize) {
        if let Some(hostile) = &mut self.devices[at].hostile {
            hostile.held.clear();
        }
    }

    fn hostile_says_alive(&mut self, at: usize, running: Vec<Attempt>) {
        self.send_from_node(at, FromNode::Alive { running, queued: Vec::new() });
    }

    /// The truth about all it has, or lies that nobody else tells.
    fn hostile_answers(&mut self, at: usize) {
        let Some(hostile) = &mut self.devices[at].hostile else { return };
        let held = std::mem::take(&mut hostile.held);
        hostile.answers += held.len() as u64;
        let lies = hostile.enemy.way == Trick::Lie;
        let class = self.devices[at].class();
        let finished = held.iter().map(|lease| {
            let plan = self.oracle.plan_of(lease.job);
            let floats = plan.is_some_and(|job| self.scenario.jobs[job].floats);
            let class = if floats { class } else { 0 };
            let lie = LIES_FROM + lease.attempt.0;
            let content =
                if lies { Content::lying(lie, lease.span, class) } else { Content::truth(class) };
            let (attempt, took) = (lease.attempt, Micros(100));
            Finished { attempt, took, output: UnitOutput::Inline(content.bytes()) }
        });
        let finished: Vec<_> = finished.collect();
        if finished.is_empty() {
            self.hostile_says_alive(at, Vec::new());
        } else {
            self.send_from_node(at, FromNode::Done(finished));
        }
    }

    fn hostile_comes(&mut self, at: usize) {
        let Some(hostile) = &mut self.devices[at].hostile else { return };
        // In a new pool where nobody honest ever was, nobody can know better than the first who comes: a job that
        // it fails breaks no promise. A greeting may get lost, so hostile devices wait for one that did not. After
        // a restart honest ones are expected back, and the hostile may well come first.
        let cannot_know = !self.has_honest && self.life == 0;
        if hostile.opening || cannot_know {
            return;
        }
        (hostile.opening, hostile.deeds) = (true, 0);
        hostile.came += 1;
        if hostile.enemy.new_keys {
            hostile.answers = 0;
        }
        self.next_conn += 1;
        let delay = self.delay();
        let (birth, conn) = (self.devices[at].birth, Conn(self.next_conn));
        self.at((self.now + delay).0, Event::Opened { device: at, birth, conn });
    }

    /// What it said before is heard first.
    fn hostile_leaves(&mut self, at: usize, conn: Conn) {
        self.hostile_forgets(at);
        self.devices[at].conn = None;
        let said = self.sockets.remove(&conn).map_or(self.now, |socket| socket.from_node);
        self.at(said.0.max(self.now.0) + 1, Event::Gone(conn));
    }
}
