//! The simulation's part alone, over a network that is late and slow but loses nothing.

use std::collections::BTreeMap;

use shoal_protocol::{CrewSay, Epoch, Micros, NodeId, Poke};
use shoal_sim::{Clockwork, Wire};

use crate::grid::{Grid, Kernel};
use crate::party::Bare;
use crate::wires::{CALM, ROUGH};
use crate::world::World;

const GRID: Grid =
    Grid { kernel: Kernel::Floats, width: 7, height: 24, halo: 1, steps: 60, reduce: None };

fn poke(strength: f32) -> Poke {
    Poke { at: [3.0, 11.0], by: [0.5, 0.0], radius: 4.0, strength }
}

fn alone(grid: Grid) -> Vec<u8> {
    grid.alone(&BTreeMap::new())
}

/// Guessed halos that were right and that were not, over all members.
fn guesses(world: &World<Bare>) -> (u64, u64) {
    let mut last = BTreeMap::new();
    for (node, epoch, say) in &world.says {
        if let CrewSay::Progress { guessed, corrected, .. } = say {
            last.insert((*node, *epoch), (*guessed, *corrected));
        }
    }
    last.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

fn slow(world: &World<Bare>) -> BTreeMap<NodeId, Vec<NodeId>> {
    let mut slow: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (by, _, say) in &world.says {
        if let CrewSay::Slow { node } = say {
            slow.entry(*by).or_default().push(*node);
        }
    }
    slow
}

fn nobody_is_bad(world: &World<Bare>) {
    let bad = |say: &CrewSay| matches!(say, CrewSay::Bad { .. } | CrewSay::Failed { .. });
    let bad: Vec<_> = world.says.iter().filter(|(_, _, say)| bad(say)).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn any_number_of_members_gets_what_one_gets() {
    for kernel in [Kernel::Floats, Kernel::Integers] {
        for halo in [1, 3] {
            let grid = Grid { kernel, halo, ..GRID };
            for machines in 1..=6 {
                for (seed, wire) in [(1, CALM), (2, ROUGH), (3, ROUGH)] {
                    let mut world = World::<Bare>::new(seed, grid, machines, wire);
                    world.form_all();
                    assert_eq!(world.finish(), alone(grid), "{grid:?} of {machines}");
                    nobody_is_bad(&world);
                }
            }
        }
    }
}

#[test]
fn bands_need_not_be_even() {
    let grid = Grid { halo: 2, ..GRID };
    for bands in [vec![(1, 22), (2, 2)], vec![(3, 2), (1, 15), (2, 7)], vec![(2, 24)]] {
        let mut world = World::<Bare>::new(5, grid, 3, ROUGH);
        world.form(&bands);
        assert_eq!(world.finish(), alone(grid), "{bands:?}");
        nobody_is_bad(&world);
    }
}

#[test]
fn a_member_that_dies_costs_what_came_after_the_last_checkpoint() {
    for seed in 0..40 {
        let mut world = World::<Bare>::new(seed, GRID, 5, ROUGH);
        world.keep_every = 10;
        world.form_all();
        world.run(300 + seed * 37);
        world.kill(1 + seed % 5);
        let left: Vec<_> = world.machines.keys().map(|node| node.0).collect();
        world.run(100);
        world.form(&[(left[0], 6), (left[1], 7), (left[2], 5), (left[3], 6)]);
        // And another, at once or later.
        world.run(seed * 11);
        world.kill(left[(seed % 3) as usize]);
        let left: Vec<_> = world.machines.keys().map(|node| node.0).collect();
        world.form(&[(left[2], 8), (left[0], 8), (left[1], 8)]);
        assert_eq!(world.finish(), alone(GRID), "seed {seed}");
        nobody_is_bad(&world);
        assert_eq!(world.epoch, Epoch(3));
    }
}

#[test]
fn checkpoints_go_on_where_they_were() {
    let mut world = World::<Bare>::new(9, GRID, 3, CALM);
    world.keep_every = 10;
    world.form_all();
    world.run(300);
    let (said, before) = (world.says.len(), world.says.clone());
    let kept = |say: &CrewSay| match say {
        CrewSay::Checkpoint { step, .. } => Some(*step),
        _ => None,
    };
    let newest = before.iter().filter_map(|(_, _, say)| kept(say)).max().unwrap();
    assert!(newest >= 10);
    world.form(&[(1, 12), (2, 12)]);
    assert_eq!(world.finish(), alone(GRID));
    let progress = world.says[said..].iter().find_map(|(_, epoch, say)| match say {
        CrewSay::Progress { step, .. } if *epoch == Epoch(2) => Some(*step),
        _ => None,
    });
    assert!(progress.unwrap() + 10 >= newest, "{progress:?} after {newest}");
}

#[test]
fn slow_storage_slows_down_and_breaks_nothing() {
    let mut world = World::<Bare>::new(4, GRID, 3, CALM);
    world.keep_every = 2;
    world.machine(2).engine.storing = Micros::from_millis(400);
    world.form_all();
    assert_eq!(world.finish(), alone(GRID));
    let kept = world.says.iter().filter(|(_, _, say)| matches!(say, CrewSay::Checkpoint { .. }));
    assert!(kept.count() >= 3 * 29 - 2, "every checkpoint is kept, but maybe the last ones");
}

/// Now and then a message is very late.
const LATE: Wire = Wire { lost: 150_000, ..CALM };

#[test]
fn late_halos_are_waited_for_or_guessed_and_the_bits_are_the_same() {
    for kernel in [Kernel::Floats, Kernel::Integers, Kernel::Still] {
        let grid = Grid { kernel, halo: 2, ..GRID };
        for machines in 2..=5 {
            for seed in 0..4 {
                let mut world = World::<Bare>::new(seed, grid, machines, LATE);
                world.form_all();
                assert_eq!(world.finish(), alone(grid));
                assert_eq!(guesses(&world), (0, 0), "nobody asked for guesses");

                let mut world = World::<Bare>::new(seed, grid, machines, LATE);
                (world.speculate, world.keep_every) = (true, 7);
                world.form_all();
                assert_eq!(world.finish(), alone(grid), "{grid:?} of {machines}, seed {seed}");
                nobody_is_bad(&world);
                let (right, wrong) = guesses(&world);
                let back: u32 = world.machines.values().map(|one| one.engine.taken_back).sum();
                assert_eq!(wrong, u64::from(back), "each wrong guess is taken back");
                let still = kernel == Kernel::Still;
                assert!(if still { right > 0 && wrong == 0 } else { wrong > 0 }, "{right} {wrong}");
            }
        }
    }
}

#[test]
fn members_die_while_others_guess() {
    for seed in 0..30 {
        let mut world = World::<Bare>::new(seed, GRID, 4, LATE);
        (world.speculate, world.keep_every) = (true, 5);
        world.form_all();
        world.run(200 + seed * 53);
        world.kill(1 + seed % 4);
        let left: Vec<_> = world.machines.keys().map(|node| node.0).collect();
        world.form(&[(left[1], 9), (left[2], 9), (left[0], 6)]);
        assert_eq!(world.finish(), alone(GRID), "seed {seed}");
    }
}

#[test]
fn pokes_count_for_the_same_step_everywhere() {
    for machines in 1..=6 {
        for (seed, speculate) in [(1, false), (2, true), (3, false)] {
            let mut world = World::<Bare>::new(seed, GRID, machines, ROUGH);
            (world.speculate, world.keep_every) = (speculate, 10);
            world.form_all();
            world.run(45);
            for at in 0..40 {
                world.poke(poke(at as f32));
                world.run(at % 7);
            }
            let result = world.finish();
            assert!(world.poked().len() >= 10, "{} pokes", world.poked().len());
            assert_eq!(result, GRID.alone(&world.poked()), "{machines} members");
            assert_ne!(result, alone(GRID));
            nobody_is_bad(&world);
        }
    }
}

#[test]
fn after_a_death_all_pokes_count_again_for_the_same_steps() {
    for seed in 0..10 {
        let mut world = World::<Bare>::new(seed, GRID, 4, ROUGH);
        world.keep_every = 10;
        world.form_all();
        for at in 0..20 {
            world.run(10 + seed);
            world.poke(poke(at as f32));
        }
        world.kill(2);
        world.form(&[(1, 8), (4, 8), (3, 8)]);
        world.run(100);
        world.poke(poke(99.0));
        let result = world.finish();
        assert_eq!(world.poked(), world.pokes, "seed {seed}");
        assert!(world.pokes.len() > 10, "seed {seed}: {} pokes", world.pokes.len());
        assert_eq!(result, GRID.alone(&world.pokes), "seed {seed}");
        nobody_is_bad(&world);
    }
}

#[test]
fn a_poke_that_comes_too_late_counts_for_no_step() {
    let mut world = World::<Bare>::new(1, GRID, 2, CALM);
    world.form_all();
    let result = world.finish();
    world.poke(poke(1.0));
    assert!(world.pokes.is_empty());
    let last = world.says.last().map(|(_, _, say)| say);
    assert!(matches!(last, Some(CrewSay::Poked { step: None, .. })), "{last:?}");
    assert_eq!(result, alone(GRID));
}

#[test]
fn who_stalls_without_leaving_is_named_and_names_nobody() {
    for machines in 2..=5 {
        let mut world = World::<Bare>::new(1, GRID, machines, CALM);
        world.form_all();
        world.run(100);
        world.machine(2).engine.stuck = true;
        world.run(9_000);
        let slow = slow(&world);
        assert!(!slow.contains_key(&NodeId(2)), "{slow:?}");
        let named: Vec<_> = slow.values().flatten().collect();
        assert!(named.contains(&&NodeId(2)), "{slow:?}");
        // Everybody else that is named waits itself.
        assert!(named.iter().all(|node| **node == NodeId(2) || slow.contains_key(node)));
        let (height, others) = (u64::from(GRID.height), machines - 1);
        let nodes = (1..=machines).filter(|node| *node != 2);
        let share = |at: u64| height * (at + 1) / others - height * at / others;
        let bands: Vec<_> = (0..).zip(nodes).map(|(at, node)| (node, share(at))).collect();
        world.form(&bands);
        assert_eq!(world.finish(), alone(GRID));
    }
}

#[test]
fn pictures_are_sent_while_somebody_looks() {
    let mut world = World::<Bare>::new(1, Grid { steps: 1_000, ..GRID }, 2, CALM);
    world.form_all();
    world.run(1_000);
    assert_eq!(world.machine(1).engine.shown, 0);
    let watch = |world: &mut World<Bare>, on| {
        for node in [1, 2] {
            let told = shoal_protocol::CrewTold::Watch(on);
            world.give(NodeId(node), crate::party::Given::Told(told));
        }
    };
    watch(&mut world, true);
    world.run(1_000);
    watch(&mut world, false);
    let shown = world.machine(1).engine.shown;
    assert!((8..=10).contains(&shown), "{shown} pictures in a second");
    world.run(1_000);
    assert_eq!(world.machine(1).engine.shown, shown);
}

#[test]
fn the_same_seed_is_the_same_story() {
    let story = |seed| {
        let mut world = World::<Bare>::new(seed, GRID, 5, ROUGH);
        (world.speculate, world.keep_every) = (true, 10);
        world.form_all();
        world.run(150);
        world.poke(poke(1.0));
        world.run(150);
        world.kill(3);
        world.form(&[(1, 6), (2, 6), (4, 6), (5, 6)]);
        world.finish();
        world.clock.trace.finish()
    };
    assert_eq!(story(8), story(8));
    assert_ne!(story(8), story(9));
}
