//! What goes and what stays when a log is shortened.

use super::*;
use crate::store::facts::Batch;
use shoal_kinds::{JobSpec, Kind, NoopWork, ServiceSpec};
use shoal_protocol::{
    Epoch, Lane, Limits, Micros, Needs, Poke, Policy, Sizing, Span, Strategy, Time,
};
use shoal_scheduler::{Input, Output, Proof, RequestId};
use std::path::{Path, PathBuf};

fn database(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("shoal-{name}-{}", std::process::id()));
    remove(&path);
    path
}

fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
}

fn submitted(job: u64) -> Fact {
    let spec = JobSpec {
        name: "job".into(),
        owner: "owner".into(),
        work: Kind::Noop(NoopWork),
        items: 20_000,
        sizing: Sizing::fixed(1),
        strategy: Strategy::Adaptive,
        needs: Needs::lane(Lane::Inline),
        limits: Limits::default(),
        policy: Policy::default(),
        signed: None,
    };
    Fact::Submitted { job: JobId(job), at: Time(1), spec: Box::new(spec) }
}

fn merged(job: u64, item: u64) -> Fact {
    let (job, span) = (JobId(job), Span::new(item, 1));
    Fact::Merged { job, span, node: NodeId(1), place: None }
}

#[test]
fn facts_of_removed_jobs_go_and_the_rest_stays() {
    let path = database("compact");
    let mut facts = Facts::open(&path).unwrap();
    for job in 1..=3 {
        let all = std::iter::once(submitted(job)).chain((0..6_000).map(|i| merged(job, i)));
        let end = [Fact::Cancelled { job: JobId(job), at: Time(2) }];
        let batch = Batch { facts: all.chain(end).collect(), ..Batch::default() };
        facts.write(&batch).unwrap();
    }
    let gone = [Fact::Removed { job: JobId(1) }, Fact::Removed { job: JobId(3) }];
    facts.write(&Batch { facts: gone.into(), ..Batch::default() }).unwrap();
    compact(&mut facts).unwrap();
    assert_eq!(facts.log().count(), 6_002 + 2);
    let mut scheduler = Scheduler::replay(facts.log());
    assert_eq!(scheduler.job(Time(3), JobId(2)).unwrap().items_done, 6_000);
    assert!(scheduler.job(Time(3), JobId(3)).is_none());
    scheduler.handle(Time(3), Input::Start { seed: 1 });
    let request = RequestId(1);
    let Fact::Submitted { spec, .. } = submitted(9) else { unreachable!() };
    scheduler.handle(Time(3), Input::Submit { request, spec: *spec });
    let outputs = std::iter::from_fn(|| scheduler.poll_output());
    let mut replies = outputs.filter_map(|output| {
        let Output::Reply { result, .. } = output else { return None };
        Some(result)
    });
    assert_eq!(replies.next(), Some(Ok(JobId(4))));
    drop(facts);
    remove(&path);
}

#[test]
fn of_a_crew_only_the_last_epoch_and_checkpoint_and_pokes_since_then_stay() {
    let path = database("crews");
    let mut facts = Facts::open(&path).unwrap();
    let job = JobId(1);
    let epoch = |epoch| Fact::Epoch { job, epoch: Epoch(epoch) };
    let kept = |step| Fact::Checkpoint { job, step, parts: Vec::new() };
    let poke = Poke { at: [1.0, 2.0], by: [0.0, 0.0], radius: 3.0, strength: 1.0 };
    let poked = |step| Fact::Poked { job, step, poke };
    let all = (1..=6_000).flat_map(|at| [epoch(at), poked(at.into()), kept(u64::from(at) * 10)]);
    let all = all.chain([poked(60_000)]);
    let all = [submitted(1)].into_iter().chain(all).collect();
    facts.write(&Batch { facts: all, ..Batch::default() }).unwrap();
    compact(&mut facts).unwrap();
    assert!(facts.log().eq([submitted(1), epoch(6_000), kept(60_000), poked(60_000)]));
    drop(facts);
    remove(&path);
}

fn serves(service: JobId) -> Fact {
    let spec = ServiceSpec {
        name: "echo".into(),
        owner: "owner".into(),
        work: Kind::Noop(NoopWork),
        needs: Needs::lane(Lane::Cpu),
        limits: Limits::default(),
        signed: None,
        least: 1,
        most: 4,
        queue: 4,
        idle: Micros::from_secs(10),
        strangers: true,
        split: shoal_kinds::Split::Never,
    };
    Fact::Serves { service, spec: Box::new(spec) }
}

#[test]
fn of_a_replica_that_came_and_went_only_what_is_true_now_stays() {
    let path = database("replicas");
    let mut facts = Facts::open(&path).unwrap();
    let service = JobId(1);
    let replica = |node, on| Fact::Replica { service, node: NodeId(node), on };
    let flaps =
        (0..6_000).flat_map(|_| [1, 2].map(|node| [replica(node, true), replica(node, false)]));
    let all = [serves(service)].into_iter().chain(flaps.flatten()).chain([replica(1, true)]);
    facts.write(&Batch { facts: all.collect(), ..Batch::default() }).unwrap();
    let replicas = |facts: &Facts| Scheduler::replay(facts.log()).services().remove(0).replicas;
    let before = replicas(&facts);
    compact(&mut facts).unwrap();
    assert!(facts.log().eq([serves(service), replica(1, true)]));
    assert_eq!(replicas(&facts), before);
    assert_eq!(before.len(), 1);
    drop(facts);
    remove(&path);
}

#[test]
fn of_a_services_crews_only_the_last_stays() {
    let path = database("service-crews");
    let mut facts = Facts::open(&path).unwrap();
    let service = JobId(1);
    let crew = |epoch| {
        let seats = vec![(NodeId(epoch), Span::new(0, 1)), (NodeId(7), Span::new(1, 1))];
        Fact::ServiceCrew { service, epoch: Epoch(epoch as u32), seats }
    };
    let all = [serves(service)].into_iter().chain((1..=11_000).map(crew)).collect();
    facts.write(&Batch { facts: all, ..Batch::default() }).unwrap();
    compact(&mut facts).unwrap();
    assert!(facts.log().eq([serves(service), crew(11_000)]));
    drop(facts);
    remove(&path);
}

#[test]
fn of_what_was_proven_only_the_last_word_stays() {
    let path = database("proven");
    let mut facts = Facts::open(&path).unwrap();
    let proven = |step| Fact::Proven { job: JobId(1), step, unchecked: step / 2 };
    let all = [submitted(1)].into_iter().chain((1..=11_000).map(proven)).collect();
    facts.write(&Batch { facts: all, ..Batch::default() }).unwrap();
    compact(&mut facts).unwrap();
    assert!(facts.log().eq([submitted(1), proven(11_000)]));
    drop(facts);
    remove(&path);
}

/// Three nodes' answers, each confirmed by the next, and a lie now and then.
fn judged(job: u64, items: u64) -> Vec<Fact> {
    let mut facts = vec![submitted(job)];
    for item in 0..items {
        let (job, span, node) = (JobId(job), Span::new(item, 1), NodeId(item % 3 + 1));
        if item % 1_000 == 999 {
            facts.push(Fact::Rejected { job, span, node: NodeId(4), rounds: item % 2 == 0 });
        }
        let by = vec![NodeId((item + 1) % 3 + 1)];
        let proof = Proof { by, sure: item % 7 != 0, vouched: false };
        facts.push(Fact::Checked { job, span, node, proof });
        facts.push(Fact::Passed { at: Time(job.0 * 100_000 + item) });
        facts.push(Fact::Class { node, class: item + 1 });
        facts.push(Fact::Merged { job, span, node, place: None });
    }
    facts.push(Fact::Cancelled { job: JobId(job), at: Time(2) });
    facts
}

/// Streaks and wrong answers of all nodes; classes and moments in the receipt of job 2.
type Worth = (Vec<(u32, u32)>, Vec<u64>, Vec<Time>);

fn worth(facts: &Facts) -> Worth {
    let scheduler = Scheduler::replay(facts.log());
    let lanes = [Lane::Inline, Lane::Gpu, Lane::Cpu];
    let all = (1..=5).flat_map(|node| lanes.map(|lane| (NodeId(node), lane)));
    let trust = all.map(|(node, lane)| scheduler.trust_of(node, lane));
    let trust = trust.map(|trust| (trust.streak, trust.wrong)).collect();
    let receipt = scheduler.receipt(JobId(2)).unwrap();
    let classes = receipt.nodes.iter().map(|node| node.class).collect();
    (trust, classes, receipt.units.iter().map(|unit| unit.at).collect())
}

#[test]
fn what_nodes_are_worth_outlives_the_jobs_that_showed_it() {
    let path = database("trust");
    let mut facts = Facts::open(&path).unwrap();
    for (job, items) in [(1, 4_000), (2, 50), (3, 4_000)] {
        facts.write(&Batch { facts: judged(job, items), ..Batch::default() }).unwrap();
    }
    let gone = |job| Batch { facts: vec![Fact::Removed { job }], ..Batch::default() };
    facts.write(&gone(JobId(1))).unwrap();
    facts.write(&gone(JobId(3))).unwrap();
    let before = worth(&facts);
    assert!(before.0.iter().any(|(streak, _)| *streak > 0));
    assert!(before.0.iter().any(|(_, wrong)| *wrong > 0));
    compact(&mut facts).unwrap();
    assert_eq!(worth(&facts), before);
    let left = facts.log().count();
    assert!(left < 200, "{left} facts are left");
    // More is learned and dropped: what was said before is not counted twice.
    facts.write(&Batch { facts: judged(4, 4_000), ..Batch::default() }).unwrap();
    facts.write(&gone(JobId(4))).unwrap();
    let before = worth(&facts);
    compact(&mut facts).unwrap();
    assert_eq!(worth(&facts), before);
    assert!(facts.log().count() <= left + 10);
    drop(facts);
    remove(&path);
}
