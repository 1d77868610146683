//! Whole members, over real links that are sealed and lose, double and mix up what they are given.

use std::collections::BTreeMap;
use std::sync::Arc;

use shoal_protocol::{CrewSay, CrewTold, Epoch, Micros, NodeId, Path, Poke};
use shoal_sim::{Clockwork, Wire};

use crate::grid::{Grid, Kernel};
use crate::party::Given;
use crate::whole::Whole;
use crate::wires::{CALM, ROUGH};
use crate::world::World;

const GRID: Grid =
    Grid { kernel: Kernel::Floats, width: 9, height: 24, halo: 2, steps: 50, reduce: None };

fn alone() -> Vec<u8> {
    GRID.alone(&BTreeMap::new())
}

fn nobody_is_bad(world: &World<Whole>) {
    let bad = |say: &CrewSay| matches!(say, CrewSay::Bad { .. } | CrewSay::Failed { .. });
    let bad: Vec<_> = world.says.iter().filter(|(_, _, say)| bad(say)).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn any_number_of_members_gets_what_one_gets() {
    for machines in 1..=6 {
        for (seed, wire) in [(1, CALM), (2, ROUGH)] {
            let mut world = World::<Whole>::new(seed, GRID, machines, wire);
            world.form_all();
            assert_eq!(world.finish(), alone(), "{machines} members");
            nobody_is_bad(&world);
        }
    }
}

#[test]
fn a_member_that_dies_costs_what_came_after_the_last_checkpoint() {
    for seed in 0..8 {
        let mut world = World::<Whole>::new(seed, GRID, 4, ROUGH);
        (world.keep_every, world.speculate) = (10, seed % 2 == 1);
        world.form_all();
        world.run(400 + seed * 97);
        world.kill(1 + seed % 4);
        let left: Vec<_> = world.machines.keys().map(|node| node.0).collect();
        world.run(100);
        // What the dead one said is still on the way, and what the others said in the old epoch.
        world.form(&[(left[2], 5), (left[0], 9), (left[1], 10)]);
        assert_eq!(world.finish(), alone(), "seed {seed}");
        nobody_is_bad(&world);
    }
}

#[test]
fn a_member_that_joins_later_has_its_place() {
    let mut world = World::<Whole>::new(3, GRID, 4, ROUGH);
    world.keep_every = 5;
    world.form(&[(1, 12), (3, 12)]);
    world.run(700);
    world.form(&[(4, 6), (1, 6), (2, 6), (3, 6)]);
    assert_eq!(world.finish(), alone());
    nobody_is_bad(&world);
}

#[test]
fn a_member_left_out_for_an_epoch_finds_its_place_again() {
    for (seed, out) in [(1, 1), (2, 2), (3, 3), (4, 1), (5, 3)] {
        let mut world = World::<Whole>::new(seed, GRID, 3, ROUGH);
        world.keep_every = 5;
        world.form_all();
        world.run(400);
        // It was away, and hears neither of this epoch nor that it is not in it.
        let [one, two] = [[2, 3], [1, 3], [1, 2]][out as usize - 1];
        world.form(&[(one, 12), (two, 12)]);
        world.run(300);
        world.form(&[(out, 8), (two, 8), (one, 8)]);
        assert_eq!(world.finish(), alone(), "seed {seed}");
        nobody_is_bad(&world);
    }
}

#[test]
fn a_relay_restarted_again_and_again_changes_nothing() {
    for seed in 0..4 {
        let mut world = World::<Whole>::new(seed, GRID, 3, ROUGH);
        world.form_all();
        for _ in 0..6 {
            world.run(150);
            world.restart_relay();
        }
        assert_eq!(world.finish(), alone(), "seed {seed}");
        nobody_is_bad(&world);
    }
}

#[test]
fn direct_channels_come_and_go() {
    let grid = Grid { steps: 1_500, ..GRID };
    let far = Wire { delay: Micros::from_millis(12), ..CALM };
    let mut world = World::<Whole>::new(5, grid, 3, far);
    world.radios = true;
    world.form_all();
    for _ in 0..3 {
        world.until(20_000, |world| world.direct.len() == 3);
        world.run(2_500);
        world.cut_direct();
    }
    assert_eq!(world.finish(), grid.alone(&BTreeMap::new()));
    nobody_is_bad(&world);
    let reports = world.says.iter().filter_map(|(_, _, say)| match say {
        CrewSay::Progress { links, .. } => Some(links),
        _ => None,
    });
    let via: Vec<_> = reports.flatten().map(|link| link.via).collect();
    assert!(via.contains(&Path::Direct), "the coordinator hears of the links: {via:?}");
}

#[test]
fn who_is_cut_off_or_stalls_is_named() {
    for cut_off in [true, false] {
        let mut world = World::<Whole>::new(2, GRID, 3, CALM);
        world.keep_every = 10;
        world.form_all();
        world.run(300);
        world.machine(3).cut_off = cut_off;
        world.machine(3).engine.stuck = !cut_off;
        let said = world.says.len();
        world.run(5_000);
        let slow = |by: u64| {
            let says = world.says[said..].iter().filter(move |(node, _, _)| *node == NodeId(by));
            says.filter_map(|(_, _, say)| match say {
                CrewSay::Slow { node } => Some(*node),
                _ => None,
            })
        };
        assert!(slow(1).chain(slow(2)).any(|node| node == NodeId(3)), "{cut_off}");
        assert!(cut_off || slow(3).next().is_none(), "it waits for nobody");
        world.kill(3);
        world.form(&[(1, 12), (2, 12)]);
        assert_eq!(world.finish(), alone());
    }
}

#[test]
fn pokes_and_guesses_over_real_links() {
    for seed in 0..4 {
        let mut world = World::<Whole>::new(seed, GRID, 5, ROUGH);
        (world.speculate, world.keep_every) = (true, 10);
        world.form_all();
        world.run(300);
        for strength in 0..12 {
            let strength = strength as f32;
            let poke = Poke { at: [4.0, 9.0], by: [1.0, 0.0], radius: 5.0, strength };
            world.poke(poke);
            world.run(20);
        }
        let result = world.finish();
        assert!(!world.poked().is_empty());
        assert_eq!(result, GRID.alone(&world.poked()), "seed {seed}");
        nobody_is_bad(&world);
    }
}

#[test]
fn words_that_no_simulation_has_are_reported_once() {
    for (channel, expected) in [(7, "channel 7"), (1, "3 bytes"), (14, "channel 14")] {
        let mut world = World::<Whole>::new(1, GRID, 3, CALM);
        // It talks while the others compute.
        world.talkers = vec![2];
        world.form_all();
        world.run(500);
        for _ in 0..3 {
            let message = Arc::new(vec![1, 2, 3, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            world.give(NodeId(2), Given::App { to: NodeId(1), channel, message });
        }
        world.run(500);
        let bad = world.says.iter().filter_map(|(by, _, say)| match say {
            CrewSay::Bad { node: NodeId(2), why } if *by == NodeId(1) => Some(why),
            _ => None,
        });
        let bad: Vec<_> = bad.collect();
        assert!(bad.len() == 1 && bad[0].contains(expected), "{bad:?}");
        world.form(&[(3, 12), (1, 12)]);
        assert_eq!(world.finish(), alone());
    }
}

#[test]
fn who_looks_still_looks_in_the_next_epoch() {
    let mut world = World::<Whole>::new(1, Grid { steps: 300, ..GRID }, 3, CALM);
    world.form_all();
    world.run(200);
    world.give(NodeId(1), Given::Told(CrewTold::Watch(true)));
    world.run(300);
    let shown = world.machine(1).engine.shown;
    assert!(shown > 0);
    world.form(&[(2, 12), (1, 12)]);
    world.run(500);
    assert!(world.machine(1).engine.shown > shown);
    assert_eq!(world.machine(2).engine.shown, 0, "nobody told it");
}

#[test]
fn halos_of_many_frames_pass_too() {
    let grid = Grid { width: 20_000, steps: 6, ..GRID };
    let mut world = World::<Whole>::new(7, grid, 3, ROUGH);
    world.keep_every = 2;
    world.form_all();
    world.run(300);
    world.kill(2);
    world.form(&[(3, 4), (1, 20)]);
    assert!(world.finish() == grid.alone(&BTreeMap::new()), "other bytes");
    nobody_is_bad(&world);
}

#[test]
fn an_enlistment_of_an_old_epoch_changes_nothing() {
    let mut world = World::<Whole>::new(6, GRID, 3, CALM);
    world.keep_every = 10;
    world.form_all();
    let old: Vec<_> = world.pending_enlistments();
    world.run(200);
    world.form(&[(2, 12), (1, 6), (3, 6)]);
    world.run(200);
    for (node, enlist) in old {
        world.give(node, Given::Enlist(enlist));
    }
    assert_eq!(world.finish(), alone());
    assert_eq!(world.epoch, Epoch(2));
    nobody_is_bad(&world);
}

#[test]
fn the_same_seed_is_the_same_story() {
    let story = |seed| {
        let mut world = World::<Whole>::new(seed, GRID, 4, ROUGH);
        (world.speculate, world.keep_every, world.radios) = (true, 10, true);
        world.form_all();
        world.run(400);
        world.restart_relay();
        world.run(200);
        world.kill(3);
        world.form(&[(1, 8), (2, 8), (4, 8)]);
        world.finish();
        world.clock.trace.finish()
    };
    assert_eq!(story(8), story(8));
    assert_ne!(story(8), story(9));
}
