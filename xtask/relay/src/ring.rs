//! Four members sum 16 MiB of numbers in a ring, beside what one link and what all links at once carry.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};
use shoal_node::collective::{Element, Fold, How, Numbers, Op};
use shoal_node::{Member, MemberConfig, MemberInput};
use shoal_protocol::sign::link_statement;
use shoal_protocol::{CrewTask, Enlist, Identity, MemberInfo, NodeId, PublicKey, Signature, Time};
use shoal_seal::{Claims, Keys, Rights, mint};

use crate::Outcome;
use crate::member::{Came, Told, read, work};
use crate::middle::{CREW, Client, Middle};

const MEMBERS: usize = 4;
const BYTES: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(60);
/// Tokens of this crew are good for so long.
const LIVES: u64 = 3_600_000_000;
const RUNS: usize = 3;

/// The members, at work.
struct Crew {
    nodes: Vec<NodeId>,
    tell: Vec<Sender<Told>>,
    came: Receiver<Came>,
    threads: Vec<JoinHandle<Outcome>>,
}

/// Seconds of each run: one link, all links, the sum; and processor seconds of members and relay.
pub(crate) fn measure(folder: &Path) -> Outcome<Value> {
    let mut middle = Middle::coordinator(folder)?;
    let crew = Crew::gather(middle.crew(MEMBERS as u64, [0; 4])?)?;
    // Keys are agreed on and buffers have grown before anything counts.
    crew.all(&middle, Op::Barrier, |_| Arc::default())?;
    crew.sum(&middle)?;
    let (mut one, mut every, mut sum) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        one.push(crew.say(&middle, &[0])?);
        every.push(crew.say(&middle, &[0, 1, 2, 3])?);
        sum.push(crew.sum(&middle)?);
    }
    let seconds = |runs: &[Took]| runs.iter().map(|took| took.seconds).collect::<Vec<_>>();
    let cpu = |runs: &[Took]| runs.iter().map(|took| took.cpu).collect::<Vec<_>>();
    let dropped = middle.order("")?;
    crew.end()?;
    let _ = std::fs::remove_dir_all(folder);
    Ok(json!({
        "one": seconds(&one),
        "every": seconds(&every),
        "sum": seconds(&sum),
        "one_cpu": cpu(&one),
        "sum_cpu": cpu(&sum),
        "dropped": dropped,
    }))
}

/// What something took.
struct Took {
    seconds: f64,
    cpu: f64,
}

impl Crew {
    fn gather(clients: Vec<Client>) -> Outcome<Crew> {
        let start = Instant::now();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as u64;
        let nodes: Vec<NodeId> = clients.iter().map(|client| client.node).collect();
        let members: Vec<MemberInfo> = nodes.iter().map(|node| info(*node)).collect();
        let (report, came) = channel();
        let (mut tell, mut threads) = (Vec::new(), Vec::new());
        for (rank, client) in clients.into_iter().enumerate() {
            let enlist = enlist(&client, rank, &members, unix);
            let member = member(client.node, unix, enlist);
            let writer = client.wire.writer()?;
            let (order, told) = channel();
            read(client.wire, order.clone());
            let report = report.clone();
            threads.push(thread::spawn(move || work(rank, member, start, writer, &told, &report)));
            tell.push(order);
        }
        Ok(Crew { nodes, tell, came, threads })
    }

    /// Until all have their sum, which is looked at.
    fn sum(&self, middle: &Middle) -> Outcome<Took> {
        let count = BYTES / 4;
        let numbers = Numbers { element: Element::F32, count, fold: Fold::Sum };
        let given = |rank: usize| {
            let number = |at: usize| ((at % 1000) * (rank + 1)) as f32;
            Arc::new((0..count).flat_map(|at| number(at).to_le_bytes()).collect())
        };
        let op = Op::AllReduce { numbers, how: How::Ring };
        let (took, sums) = self.all(middle, op, given)?;
        for came in sums {
            for at in (0..count).step_by(9_973) {
                let bytes = came.bytes.get(4 * at..).and_then(|rest| rest.first_chunk());
                let expected = ((at % 1000) * 10) as f32;
                if bytes.map(|bytes| f32::from_le_bytes(*bytes)) != Some(expected) {
                    return Err(format!("rank {}: number {at} is not {expected}", came.rank).into());
                }
            }
        }
        Ok(took)
    }

    fn all(
        &self,
        middle: &Middle,
        op: Op,
        given: impl Fn(usize) -> Arc<Vec<u8>>,
    ) -> Outcome<(Took, Vec<Came>)> {
        let given: Vec<_> = (0..MEMBERS).map(given).collect();
        let before = middle.cpu_of_both()?;
        let start = Instant::now();
        for (tell, data) in self.tell.iter().zip(given) {
            tell.send(Told::Together(op.clone(), data))?;
        }
        let came = self.wait(MEMBERS)?;
        let (seconds, cpu) = (since(start, &came), middle.cpu_of_both()? - before);
        Ok((Took { seconds, cpu }, came))
    }

    /// Until the data of each of these ranks is with its neighbour.
    fn say(&self, middle: &Middle, ranks: &[usize]) -> Outcome<Took> {
        let message = Arc::new(vec![7; BYTES]);
        let before = middle.cpu_of_both()?;
        let start = Instant::now();
        for rank in ranks {
            let to = self.nodes[(rank + 1) % MEMBERS];
            self.tell[*rank].send(Told::Say(to, message.clone()))?;
        }
        let seconds = since(start, &self.wait(ranks.len())?);
        Ok(Took { seconds, cpu: middle.cpu_of_both()? - before })
    }

    fn wait(&self, count: usize) -> Outcome<Vec<Came>> {
        (0..count).map(|_| Ok(self.came.recv_timeout(PATIENCE)?)).collect()
    }

    fn end(self) -> Outcome {
        for tell in &self.tell {
            tell.send(Told::End)?;
        }
        for thread in self.threads {
            thread.join().map_err(|_| "a member panicked")??;
        }
        Ok(())
    }
}

fn since(start: Instant, came: &[Came]) -> f64 {
    let last = came.iter().map(|came| came.at).max().unwrap_or(start);
    last.duration_since(start).as_secs_f64()
}

/// The relay asks for nobody's word: whoever enlists these members need not be its coordinator.
fn root() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn coordinator() -> PublicKey {
    PublicKey(root().verifying_key().to_bytes())
}

fn secret(node: NodeId) -> [u8; 32] {
    let mut secret = [3; 32];
    secret[..8].copy_from_slice(&node.0.to_le_bytes());
    secret
}

fn info(node: NodeId) -> MemberInfo {
    let signer = SigningKey::from_bytes(&secret(node));
    let key = Keys::new(secret(node)).public();
    let proof = signer.sign(&link_statement(&coordinator(), &key));
    let identity = Identity(signer.verifying_key().to_bytes());
    MemberInfo { node, identity, key, proof: Signature::new(&proof.to_bytes()) }
}

fn enlist(client: &Client, rank: usize, members: &[MemberInfo], unix: u64) -> Enlist {
    let (crew, epoch, holder) = (CREW, client.epoch, client.node);
    let rights = Rights::WRITE;
    let claims = Claims { crew, epoch, holder, buffers: (1, 15), rights, until: unix + LIVES };
    let sign = |words: &[u8]| Signature::new(&root().sign(words).to_bytes());
    let token = mint(sign, &claims, secret(holder));
    let (rank, members, ice) = (rank as u8, members.to_vec(), Vec::new());
    Enlist { crew, epoch, rank, members, token, ice, task: CrewTask::Talk }
}

fn member(me: NodeId, unix_at_zero: u64, enlist: Enlist) -> Member {
    let (secret, mut seed) = (secret(me), secret(me));
    seed[31] = 1;
    let (coordinator, tries_direct, work) = (coordinator(), false, None);
    let config = MemberConfig { me, coordinator, secret, seed, unix_at_zero, tries_direct, work };
    let mut member = Member::new(Time(0), config);
    member.handle(Time(0), MemberInput::Relay(true));
    member.handle(Time(0), MemberInput::Enlist(Box::new(enlist)));
    member
}
