//! What a job waits for, and how it went.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use shoal_protocol::{JobId, Priority};

use super::{asked, many, offered};
use crate::job::{Job, JobState};
use crate::state::Scheduler;
use crate::verify::Checked;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyJob {
    /// No node connected now could compute it.
    NobodyAble,
    /// The same, because none has what it needs.
    Lacking {
        asked: String,
        offered: String,
    },
    /// Nodes that could compute it and lend no more memory or threads beside what they compute.
    Full {
        nodes: usize,
    },
    /// Nodes are busy with a job that goes first.
    Outranked {
        by: JobId,
        priority: Priority,
    },
    /// Donors who do not work for whoever stands for its code.
    Declined {
        nodes: usize,
    },
    /// Nodes whose numbers differ from others' by more than the tolerance; they get no more of it.
    Odd {
        nodes: usize,
    },
    Waiting {
        items: u64,
    },
    Computing {
        copies: u64,
        units: u64,
    },
    /// Units whose answers wait for others to say the same.
    Checking {
        units: u64,
    },
    /// The policy asks for more voices than the pool has.
    TooFewVoices {
        has: usize,
        asks: usize,
    },
    /// All is merged, but some of it is tried before the job may end.
    Auditing {
        units: u64,
    },
    Merged {
        checked: Checked,
        /// How many had to agree on each unit.
        votes: Option<u64>,
    },
    LentAgain {
        retries: u64,
        late: u64,
    },
    /// About a simulation's crew, in words.
    Crew(String),
}

impl fmt::Display for WhyJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyJob::Crew(words) => f.write_str(words),
            WhyJob::NobodyAble => f.write_str("no connected node can compute it"),
            WhyJob::Lacking { asked, offered } => {
                write!(
                    f,
                    "no connected node can compute it: it needs {asked}; the pool offers {offered}"
                )
            }
            WhyJob::Full { nodes } => write!(
                f,
                "{} lent all their memory or threads to units that are still running",
                many(*nodes as u64, "node")
            ),
            WhyJob::Outranked { by, priority: Priority::Interactive } => {
                write!(f, "job {by} goes first: somebody is waiting for it")
            }
            WhyJob::Outranked { by, priority: Priority::Normal | Priority::Batch } => {
                write!(f, "job {by} goes first: it is more urgent, or has been served less so far")
            }
            WhyJob::Declined { nodes } => {
                write!(
                    f,
                    "{} refused to run code signed with this key",
                    many(*nodes as u64, "donor")
                )
            }
            WhyJob::Odd { nodes } => write!(
                f,
                "the floats of {} differ from others' by more than the tolerance, so this job gives them no more work; a wider --tolerance would accept them",
                many(*nodes as u64, "node")
            ),
            WhyJob::Waiting { items } => write!(f, "{items} items are waiting for a node"),
            WhyJob::Computing { copies, units } if copies == units => {
                write!(f, "{units} units are being computed")
            }
            WhyJob::Computing { copies, units } => {
                write!(f, "{units} units are being computed, in {copies} copies")
            }
            WhyJob::Checking { units } => {
                write!(f, "{units} units are computed and wait for other nodes to check them")
            }
            WhyJob::TooFewVoices { has, asks } => write!(
                f,
                "its quorum needs {asks} nodes of different owners and has {has}: it waits for more"
            ),
            WhyJob::Auditing { units } => {
                write!(
                    f,
                    "everything is computed; {units} units are checked again before the job ends"
                )
            }
            WhyJob::Merged { checked, votes } => {
                write!(f, "done: {}", checked.in_words(*votes))
            }
            WhyJob::LentAgain { retries, late } => write!(
                f,
                "{retries} units went to another node because the first one left or failed, {late} because they were late"
            ),
        }
    }
}

impl Scheduler {
    /// What a job waits for and how it went; empty if there is none.
    pub fn explain_job(&self, id: JobId) -> Vec<WhyJob> {
        let Some(job) = self.jobs.get(&id) else { return Vec::new() };
        let mut why = Vec::new();
        if job.state == JobState::Running {
            self.explain_running(id, job, &mut why);
        }
        why.extend(self.explain_crew(id).into_iter().map(WhyJob::Crew));
        if !job.merged.is_empty() {
            let (checked, votes) = (job.proofs.of(job.merged.len()), job.quorum());
            why.push(WhyJob::Merged { checked, votes });
        }
        if job.farmed && job.retries + job.speculated > 0 {
            why.push(WhyJob::LentAgain { retries: job.retries, late: job.speculated });
        }
        why
    }

    /// What keeps a job that runs from being computed, or from ending; none if nothing does.
    pub fn waiting_for(&self, id: JobId) -> Option<WhyJob> {
        let job = self.jobs.get(&id).filter(|job| job.state == JobState::Running)?;
        let mut why = Vec::new();
        self.explain_running(id, job, &mut why);
        let computed = job.units_leased > 0 || !job.farmed;
        why.into_iter().find(|why| match why {
            WhyJob::NobodyAble | WhyJob::Lacking { .. } | WhyJob::TooFewVoices { .. } => true,
            WhyJob::Full { .. } | WhyJob::Outranked { .. } | WhyJob::Declined { .. } => !computed,
            WhyJob::Odd { .. }
            | WhyJob::Waiting { .. }
            | WhyJob::Computing { .. }
            | WhyJob::Checking { .. }
            | WhyJob::Auditing { .. }
            | WhyJob::Merged { .. }
            | WhyJob::LentAgain { .. }
            | WhyJob::Crew(_) => false,
        })
    }

    fn explain_running(&self, id: JobId, job: &Job, why: &mut Vec<WhyJob>) {
        let first = self.jobs.ready_jobs().next().filter(|first| first.id != id);
        if self.able_besides(job, &[]) == 0 {
            why.push(self.why_nobody(job));
        } else if let Some(first) = first
            && job.left() > 0
            && job.units_leased == 0
        {
            why.push(WhyJob::Outranked { by: first.id, priority: first.spec.policy.priority });
        }
        let nodes = self.decliners(id);
        if nodes > 0 {
            why.push(WhyJob::Declined { nodes });
        }
        let nodes = job.odd.keys().filter(|node| job.is_odd(**node)).count();
        if nodes > 0 {
            why.push(WhyJob::Odd { nodes });
        }
        let able = self.peers.values().filter(|peer| !peer.paused && peer.suits(job));
        let nodes = able.filter(|peer| !self.has_means(peer, job)).count();
        let farmed = job.left() > 0 && job.farmed;
        if nodes > 0 && farmed && job.units_leased == 0 {
            why.push(WhyJob::Full { nodes });
        }
        if farmed {
            why.push(WhyJob::Waiting { items: job.left() });
        }
        if job.units_leased > 0 {
            let units = job.units.values().filter(|unit| !unit.copies.is_empty()).count() as u64;
            why.push(WhyJob::Computing { copies: job.units_leased, units });
        }
        let checked = job.units.values().filter(|unit| unit.ballot.is_some());
        let (audits, ballots): (Vec<_>, Vec<_>) = checked.partition(|unit| unit.is_merged());
        if !ballots.is_empty() {
            why.push(WhyJob::Checking { units: ballots.len() as u64 });
        }
        if let Some(votes) = job.quorum() {
            let (has, asks) = (self.voices(job), votes as usize);
            why.extend((has < asks).then_some(WhyJob::TooFewVoices { has, asks }));
        }
        if !audits.is_empty() {
            why.push(WhyJob::Auditing { units: audits.len() as u64 });
        }
    }

    fn why_nobody(&self, job: &Job) -> WhyJob {
        let (needs, pool) = (&job.spec.needs, self.peers.values().map(|peer| &peer.caps));
        if self.peers.is_empty() || pool.clone().any(|caps| caps.meets(needs)) {
            return WhyJob::NobodyAble;
        }
        WhyJob::Lacking { asked: asked(needs), offered: offered(needs, pool) }
    }

    /// Different owners among the nodes that could compute a job, as far as networks tell.
    fn voices(&self, job: &Job) -> usize {
        let able = self.peers.values().filter(|peer| !peer.paused && peer.suits(job));
        let (known, unknown): (Vec<_>, Vec<_>) =
            able.partition(|peer| peer.network != 0 && !peer.trusted);
        let mut networks: Vec<_> = known.iter().map(|peer| peer.network).collect();
        networks.sort_unstable();
        networks.dedup();
        networks.len() + unknown.len()
    }
}
