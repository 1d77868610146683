//! What came of a world.

use crate::crew::CrewReport;
use crate::swarm::SwarmReport;

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub nodes: u64,
    pub events: u64,
    /// Inputs the scheduler handled.
    pub inputs: u64,
    pub units: u64,
    pub virtual_micros: u64,
    /// A fingerprint of the whole trace: the same seed gives the same one.
    pub trace: u64,
    pub crashes: u64,
    pub vanished: u64,
    /// Times that a device was out of reach, for whatever reason.
    pub lost: u64,
    pub faults: u64,
    /// What hostile devices did.
    pub deeds: u64,
    /// Units that were wrong when their job was delivered.
    pub wrong: u64,
    /// Answers found wrong.
    pub rejected: u64,
    /// Of those, answers of honest devices.
    pub honest_rejected: u64,
    pub unmerged: u64,
    pub speculated: u64,
    /// For each job: when it was submitted and done, its items, and the items computed for it.
    pub jobs: Vec<JobReport>,
    /// For each liar that was found out for good: answers it had given by then.
    pub liar_answers: Vec<u64>,
    pub liars_left: u64,
    /// Microseconds that devices were there and able to compute, times slots, divided by their time for an
    /// item: the items that could have been computed until the last job was done.
    pub capacity_items: u64,
    /// Requests to services, and those of them that were answered.
    pub calls: u64,
    pub answered: u64,
    /// Answers of services that were wrong because devices lied, words that were said again, those of them that were
    /// found wrong, and answers that nobody could look at.
    pub wrong_answers: u64,
    pub words_again: u64,
    pub lies_found: u64,
    pub unchecked_answers: u64,
    /// Times that devices were called to keep a service ready together, and requests that were answered so.
    pub split: u64,
    pub answered_split: u64,
    /// Times that texts, which go round and round, had a turn, and that one went on behind words that were said by
    /// devices of which some are lost.
    pub rounds: u64,
    pub resumed: u64,
    pub crew: CrewReport,
    pub swarm: SwarmReport,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobReport {
    pub submitted: u64,
    pub done: u64,
    pub items: u64,
    pub computed: u64,
    pub units: u64,
    pub wrong: u64,
}

impl Report {
    /// What can be counted over many worlds.
    pub fn add(&mut self, other: &Report) {
        self.events += other.events;
        self.units += other.units;
        self.crashes += other.crashes;
        self.faults += other.faults;
        self.deeds += other.deeds;
        self.rejected += other.rejected;
        self.honest_rejected += other.honest_rejected;
        self.unmerged += other.unmerged;
        self.speculated += other.speculated;
        self.wrong += other.wrong;
        self.calls += other.calls;
        self.answered += other.answered;
        self.wrong_answers += other.wrong_answers;
        self.lies_found += other.lies_found;
        self.unchecked_answers += other.unchecked_answers;
        self.words_again += other.words_again;
        self.split += other.split;
        self.answered_split += other.answered_split;
        self.rounds += other.rounds;
        self.resumed += other.resumed;
        self.crew.add(&other.crew);
        self.swarm.add(&other.swarm);
    }
}
