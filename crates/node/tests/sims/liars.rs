//! Members and engines that do what no honest one does: each is named, and nothing of it is computed on.

use shoal_node::collective::Rank;
use shoal_node::session::sim::{Place, Sim, SimInput, SimOutput};
use shoal_node::{SimAnswer, SimCommand};
use shoal_protocol::{
    Attempt, CrewSay, Epoch, Failure, JobId, Micros, Poke, SimTask, Span, Time, UnitOutput,
};
use shoal_sim::Random;

use crate::grid::{Grid, Kernel};

const GRID: Grid =
    Grid { kernel: Kernel::Integers, width: 2, height: 9, halo: 1, steps: 5, reduce: None };
const NOW: Time = Time(1_000);
const ROW: usize = 8;

fn task() -> SimTask {
    SimTask {
        job: JobId(1),
        bands: vec![Span::new(0, 3), Span::new(3, 3), Span::new(6, 3)],
        from: 0,
        kept: vec![],
        keep_every: 0,
        attempt: Attempt(4),
        check: None,
        speculate: false,
        pokes: Vec::new(),
        apart: false,
    }
}

/// Rank 1 of three.
fn sim(task: SimTask) -> Sim {
    let place = Place { epoch: Epoch(3), rank: Rank(1), ranks: 3 };
    Sim::new(NOW, place, &GRID.work(), task)
}

fn edges(epoch: u32, step: u64, length: usize) -> SimAnswer {
    let (top, bottom) = (vec![1; length], vec![2; length]);
    SimAnswer::Edges { epoch: Epoch(epoch), step, top, bottom, took: Micros(1) }
}

fn halo(step: u64, side: u8, rows: usize, pokes: &[u64]) -> Vec<u8> {
    let mut bytes = vec![3; rows];
    for poke in pokes {
        bytes.extend(poke.to_le_bytes());
        bytes.extend([0; 24]);
    }
    bytes.extend(step.to_le_bytes());
    bytes.extend([side, pokes.len() as u8]);
    bytes
}

fn outputs(sim: &mut Sim) -> Vec<SimOutput> {
    sim.check();
    std::iter::from_fn(|| sim.poll_output()).collect()
}

fn hear(sim: &mut Sim, from: u8, bytes: Vec<u8>) -> Vec<SimOutput> {
    sim.handle(NOW, SimInput::Heard { from: Rank(from), bytes });
    outputs(sim)
}

fn steps(outputs: &[SimOutput]) -> usize {
    let step = |output: &&SimOutput| matches!(output, SimOutput::Command(SimCommand::Step { .. }));
    outputs.iter().filter(step).count()
}

fn why(outputs: &[SimOutput]) -> Option<(Rank, String)> {
    outputs.iter().find_map(|output| match output {
        SimOutput::Bad { rank, why } => Some((*rank, why.clone())),
        _ => None,
    })
}

fn opened() -> Sim {
    let mut sim = sim(task());
    sim.handle(NOW, SimInput::Answer(edges(3, 0, ROW)));
    let told = outputs(&mut sim);
    let told = told.iter().filter(|output| matches!(output, SimOutput::Tell { .. }));
    assert_eq!(told.count(), 2);
    sim
}

#[test]
fn halos_that_cannot_be_are_named() {
    let many: Vec<_> = (0..81).collect();
    let cases = [
        (0, vec![], "shorter"),
        (0, halo(0, 0, ROW - 1, &[]), "7 bytes; expected 8"),
        (0, halo(0, 0, ROW + 4, &[]), "12 bytes; expected 8"),
        (0, halo(0, 2, ROW, &[]), "side 2"),
        (0, halo(0, 1, ROW, &[]), "not on that side"),
        (2, halo(0, 0, ROW, &[]), "not on that side"),
        (7, halo(0, 0, ROW, &[]), "not on that side"),
        (0, halo(2, 0, ROW, &[]), "of step 2, which needs ours"),
        (0, halo(u64::MAX, 0, ROW, &[]), "which needs ours"),
        (0, halo(0, 0, ROW, &[1_000]), "poke for step 1000"),
        (0, halo(0, 0, ROW, &[u64::MAX]), "poke for step"),
        (0, halo(0, 0, ROW, &many), "81 pokes"),
        (0, halo(1, 0, ROW, &[0]), "poke for step 0"),
    ];
    for (from, bytes, expected) in cases {
        let mut sim = opened();
        let said = hear(&mut sim, from, bytes.clone());
        let (rank, why) = why(&said).expect(expected);
        assert!(rank == Rank(from) && why.contains(expected), "{why}; expected {expected}");
        assert_eq!(hear(&mut sim, from, bytes), [], "once is enough");
        // An honest halo still counts, and nothing is made of the other.
        assert_eq!(steps(&hear(&mut sim, 2, halo(0, 1, ROW, &[]))), 0);
        assert_eq!(steps(&hear(&mut sim, 0, halo(0, 0, ROW, &[]))), 1);
    }
}

#[test]
fn nothing_is_said_twice_and_at_most_one_step_ahead() {
    let mut sim = sim(task());
    outputs(&mut sim);
    assert_eq!(why(&hear(&mut sim, 0, halo(0, 0, ROW, &[]))), None);
    let ahead = hear(&mut sim, 0, halo(1, 0, ROW, &[]));
    assert!(why(&ahead).unwrap().1.contains("needs ours"), "ours are not told yet");

    let mut sim = opened();
    assert_eq!(why(&hear(&mut sim, 0, halo(0, 0, ROW, &[]))), None);
    assert_eq!(why(&hear(&mut sim, 0, halo(1, 0, ROW, &[]))), None);
    let again = hear(&mut sim, 0, halo(0, 0, ROW, &[]));
    assert!(why(&again).unwrap().1.contains("told before"));
}

#[test]
fn bytes_of_any_kind_break_nothing() {
    let mut random = Random::new(7);
    let mut next = || random.draw();
    for _ in 0..20_000 {
        let mut sim = opened();
        let mut bytes = halo(next() % 3, (next() % 3) as u8, ROW, &[next() % 9]);
        let length = next() as usize % (bytes.len() + 3);
        bytes.resize(length, 1);
        for _ in 0..next() % 3 {
            let at = next() as usize % bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = next() as u8;
            }
        }
        hear(&mut sim, (next() % 4) as u8, bytes);
    }
}

#[test]
fn answers_of_another_epoch_change_nothing() {
    let mut sim = sim(task());
    outputs(&mut sim);
    for answer in [
        edges(2, 0, ROW),
        SimAnswer::Failed { epoch: Epoch(2), failure: internal() },
        SimAnswer::Final { epoch: Epoch(2), output: UnitOutput::Inline(vec![]) },
    ] {
        sim.handle(NOW, SimInput::Answer(answer));
        assert_eq!(outputs(&mut sim), []);
    }
}

fn internal() -> Failure {
    Failure::Internal { message: "the test says so".into() }
}

#[test]
fn a_failing_engine_ends_the_part_with_words() {
    for answer in [
        SimAnswer::Failed { epoch: Epoch(3), failure: internal() },
        edges(3, 0, ROW - 1),
        edges(3, 1, ROW),
    ] {
        let mut sim = sim(task());
        outputs(&mut sim);
        sim.handle(NOW, SimInput::Answer(answer));
        let said = outputs(&mut sim);
        assert!(matches!(said[..], [SimOutput::Says(CrewSay::Failed { .. })]), "{said:?}");
        assert_eq!(sim.next_timeout(), None);
        assert_eq!(hear(&mut sim, 0, vec![]), [], "it is over");
    }
}

#[test]
fn a_task_that_makes_no_sense_is_refused_with_words() {
    let poke = Poke { at: [0.0; 2], by: [0.0; 2], radius: 1.0, strength: 1.0 };
    let cases = [
        SimTask { bands: vec![Span::new(0, 9)], ..task() },
        SimTask { bands: vec![Span::new(0, 3), Span::new(3, 3), Span::new(7, 2)], ..task() },
        SimTask { bands: vec![Span::new(0, 3), Span::new(3, 6), Span::new(9, 0)], ..task() },
        SimTask { bands: vec![Span::new(0, 3), Span::new(3, 3), Span::new(6, 4)], ..task() },
        SimTask { from: 6, ..task() },
        SimTask { pokes: (0..5_000).map(|step| (step, poke)).collect(), ..task() },
    ];
    for task in cases {
        let said = outputs(&mut sim(task));
        let failed = |say: &SimOutput| matches!(say, SimOutput::Says(CrewSay::Failed { .. }));
        assert!(said.iter().any(failed), "{said:?}");
        assert!(!said.iter().any(|say| matches!(say, SimOutput::Command(_))), "{said:?}");
    }
}
