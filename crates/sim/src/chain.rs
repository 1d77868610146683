//! Worlds with a chain of stages, each with a running state: a hash of all it heard since the last mark. Members
//! vanish, one or many at once; a new one hears again what the lost one heard, nobody else computes anything twice,
//! and what comes out at the end is what comes out of an undisturbed chain. Here recovery is by replay; the field of
//! `crew` is the same promise by checkpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use shoal_node::collective::Rank;
use shoal_node::session::chain::{Chain, ChainInput, ChainOutput, Item, WINDOW};
use shoal_protocol::hash;

use crate::random::Random;

/// Virtual time after which a world that has not finished never will.
const PATIENCE: u64 = 600_000_000;

/// What a world came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainReport {
    pub events: u64,
    pub epochs: u64,
    /// Members that vanished.
    pub lost: u64,
    /// Items that new members computed again.
    pub again: u64,
    /// Times the crew had to begin again, because too little was kept.
    pub gaps: u64,
}

enum Event {
    Word { epoch: u32, from: usize, to: usize, bytes: Arc<Vec<u8>> },
    Made { birth: u64, rank: usize, n: u64, bytes: Vec<u8> },
    Fed { birth: u64, item: Item },
    Taken { birth: u64, before: u64 },
    Fault,
    Mend,
}

struct Stage {
    chain: Chain,
    birth: u64,
    /// The state, and the item computed last.
    state: [u8; 32],
    ran: Option<u64>,
}

struct World {
    random: Random,
    now: u64,
    events: BTreeMap<(u64, u64), Event>,
    count: u64,
    epoch: u32,
    births: u64,
    /// None where one vanished and nobody knows yet.
    stages: Vec<Option<Stage>>,
    log_bytes: u64,
    /// What goes in, the first that may be asked for again, the next to be fed, and how far rank 0 is with it.
    source: Vec<Item>,
    safe: u64,
    feed: u64,
    begun: u64,
    /// What came out, and how much of it in a row.
    results: BTreeMap<u64, Arc<Vec<u8>>>,
    taken: u64,
    /// When the last word from one to another arrives: they keep their order.
    arrives: BTreeMap<(usize, usize), u64>,
    mending: bool,
    /// The highest item that each rank ever computed: more are new, the others are made again.
    most: Vec<u64>,
    report: ChainReport,
}

/// Runs a world to its end; panics where a promise is broken.
pub fn chain(seed: u64) -> ChainReport {
    let mut random = Random::new(seed ^ 0xc4a1);
    let ranks = random.range(1, 7) as usize;
    let items = random.range(20, 300);
    let long = [3, 12, 60, 1_000][random.range(0, 4) as usize];
    let source: Vec<_> = (0..items)
        .map(|n| {
            let fresh = n == 0 || random.chance(1_000_000 / long);
            let bytes = vec![n as u8; random.range(0, 200) as usize];
            Item { n, fresh, bytes: Arc::new(bytes) }
        })
        .collect();
    let log_bytes = [1_500, 6_000, 1 << 30][random.range(0, 3) as usize];
    let faults = random.range(0, 9);
    let mut world = World {
        random,
        now: 0,
        events: BTreeMap::new(),
        count: 0,
        epoch: 1,
        births: 0,
        stages: Vec::new(),
        log_bytes,
        source,
        safe: 0,
        feed: 0,
        begun: 0,
        results: BTreeMap::new(),
        taken: 0,
        arrives: BTreeMap::new(),
        mending: false,
        most: vec![0; ranks],
        report: ChainReport::default(),
    };
    for _ in 0..faults {
        let at = world.random.range(0, items * 3_000);
        world.at(at, Event::Fault);
    }
    world.stages = (0..ranks).map(|_| None).collect();
    world.mend(false);
    world.run(seed)
}

impl World {
    fn run(mut self, seed: u64) -> ChainReport {
        while self.taken < self.source.len() as u64 {
            let Some(((at, _), event)) = self.events.pop_first() else {
                panic!("seed {seed}: the chain stands still at {}: {}", self.taken, self.picture());
            };
            assert!(at < PATIENCE, "seed {seed}: no end in sight: {}", self.picture());
            self.now = at;
            self.report.events += 1;
            self.step(event);
        }
        let expected = undisturbed(&self.source, self.stages.len());
        let results: Vec<_> = self.results.into_values().collect();
        assert!(results.iter().map(|it| it.as_slice()).eq(expected.iter().map(Vec::as_slice)));
        self.report
    }

    fn picture(&self) -> String {
        let stages = self.stages.iter().map(|stage| match stage {
            Some(stage) => format!("{:?}", stage.chain),
            None => String::from("nobody"),
        });
        stages.collect::<Vec<_>>().join("\n")
    }

    fn at(&mut self, at: u64, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Word { epoch, from, to, bytes } if epoch == self.epoch => {
                let from = Rank(from as u8);
                self.tell(to, ChainInput::Heard { from, bytes: bytes.to_vec() });
            }
            Event::Word { .. } => {}
            Event::Made { birth, rank, n, bytes } if self.is(rank, birth) => {
                self.tell(rank, ChainInput::Made { n, bytes });
            }
            Event::Fed { birth, item } if self.is(0, birth) => {
                self.tell(0, ChainInput::Fed(item));
            }
            Event::Taken { birth, before } => {
                let last = self.stages.len() - 1;
                if self.is(last, birth) {
                    self.tell(last, ChainInput::Taken { before });
                }
            }
            Event::Made { .. } | Event::Fed { .. } => {}
            Event::Fault => self.fault(),
            Event::Mend => self.mend(false),
        }
    }

    fn is(&self, rank: usize, birth: u64) -> bool {
        self.stages[rank].as_ref().is_some_and(|stage| stage.birth == birth)
    }

    /// Some vanish, sometimes all.
    fn fault(&mut self) {
        let share = [200_000, 500_000, 1_000_000][self.random.range(0, 3) as usize];
        for rank in 0..self.stages.len() {
            if self.random.chance(share) && self.stages[rank].take().is_some() {
                self.report.lost += 1;
            }
        }
        self.mend_soon();
    }

    fn mend_soon(&mut self) {
        if !self.mending {
            self.mending = true;
            let at = self.now + self.random.range(1_000, 40_000);
            self.at(at, Event::Mend);
        }
    }

    /// A new epoch: whoever is left keeps its place, the others are new; all are, if the crew begins again.
    fn mend(&mut self, again: bool) {
        self.mending = false;
        self.epoch += 1;
        self.report.epochs += 1;
        self.arrives.clear();
        let ranks = self.stages.len() as u8;
        for rank in 0..self.stages.len() {
            match self.stages[rank].as_mut().filter(|_| !again) {
                Some(stage) => stage.chain.moved(Rank(rank as u8), ranks),
                None => {
                    self.births += 1;
                    let (birth, log) = (self.births, self.log_bytes);
                    let chain = Chain::new(Rank(rank as u8), ranks, log, self.taken);
                    self.stages[rank] = Some(Stage { chain, birth, state: [0; 32], ran: None });
                }
            }
        }
        (0..self.stages.len()).for_each(|rank| self.drain(rank));
    }

    fn tell(&mut self, rank: usize, input: ChainInput) {
        let Some(stage) = &mut self.stages[rank] else { return };
        stage.chain.handle(input);
        stage.chain.check();
        self.drain(rank);
    }

    fn drain(&mut self, rank: usize) {
        let epoch = self.epoch;
        while self.epoch == epoch
            && let Some(stage) = &mut self.stages[rank]
            && let Some(output) = stage.chain.poll_output()
        {
            self.act(rank, output);
        }
    }

    fn act(&mut self, rank: usize, output: ChainOutput) {
        let birth = self.stages[rank].as_ref().map_or(0, |stage| stage.birth);
        match output {
            ChainOutput::Tell { to, message } => {
                let (epoch, to) = (self.epoch, usize::from(to.0));
                let before = self.arrives.get(&(rank, to)).copied().unwrap_or(0);
                let at = before.max(self.now + self.random.range(100, 4_000));
                self.arrives.insert((rank, to), at);
                self.at(at, Event::Word { epoch, from: rank, to, bytes: message });
            }
            ChainOutput::Run(item) => self.compute(rank, birth, &item),
            ChainOutput::Give { n, bytes } => {
                let before = self.results.insert(n, bytes.clone());
                assert!(before.is_none_or(|before| before == bytes), "two results of item {n}");
                while self.results.contains_key(&self.taken) {
                    self.taken += 1;
                }
                let (before, at) = (self.taken, self.now + self.random.range(100, 9_000));
                self.at(at, Event::Taken { birth, before });
            }
            ChainOutput::Feed { from } => {
                // What is safe is forgotten here too.
                if from.is_none_or(|from| from < self.safe) {
                    self.begun = self.safe;
                }
                self.feed = from.unwrap_or(0).max(self.safe);
                self.feed_on(birth);
            }
            ChainOutput::Safe { before } => {
                assert!(self.source[before as usize].fresh, "only a mark is safe");
                assert!(before <= self.taken, "what is not taken is not safe");
                self.safe = self.safe.max(before);
            }
            ChainOutput::Gap => {
                self.report.gaps += 1;
                assert!(self.log_bytes < 1 << 30, "all was kept: {}", self.picture());
                self.mend(true);
            }
            ChainOutput::Bad { rank: other, why } => panic!("{rank} blames {other:?}: {why}"),
        }
    }

    /// In order, and no more than it can take.
    fn feed_on(&mut self, birth: u64) {
        while self.feed < self.begun + WINDOW
            && let Some(item) = self.source.get(self.feed as usize).cloned()
        {
            self.feed += 1;
            self.at(self.now + 1, Event::Fed { birth, item });
        }
    }

    fn compute(&mut self, rank: usize, birth: u64, item: &Item) {
        let Some(stage) = &mut self.stages[rank] else { return };
        // One that is still catching up may leave out what was taken meanwhile.
        let skips = |ran: u64| item.fresh && item.n > ran && item.n <= self.taken;
        let fits = stage.ran.map_or(item.fresh, |ran| ran + 1 == item.n || skips(ran));
        assert!(
            fits,
            "rank {rank} goes back or leaves something out: {} after {:?}",
            item.n, stage.ran
        );
        stage.ran = Some(item.n);
        self.report.again += u64::from(item.n < self.most[rank]);
        self.most[rank] = self.most[rank].max(item.n + 1);
        stage.state = next_state(stage.state, rank, item.fresh, &item.bytes);
        let bytes = stage.state[..8].to_vec();
        let at = self.now + self.random.range(200, 3_000);
        self.at(at, Event::Made { birth, rank, n: item.n, bytes });
        if rank == 0 {
            self.begun = item.n + 1;
            self.feed_on(birth);
        }
    }
}

fn next_state(state: [u8; 32], rank: usize, fresh: bool, bytes: &[u8]) -> [u8; 32] {
    let state = if fresh { [0; 32] } else { state };
    hash(&[&state[..], &[rank as u8], bytes].concat()).0
}

fn undisturbed(source: &[Item], ranks: usize) -> Vec<Vec<u8>> {
    let mut states = vec![[0; 32]; ranks];
    let through = source.iter().map(|item| {
        states.iter_mut().enumerate().fold(item.bytes.to_vec(), |bytes, (rank, state)| {
            *state = next_state(*state, rank, item.fresh, &bytes);
            state[..8].to_vec()
        })
    });
    through.collect()
}
