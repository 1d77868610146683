//! Members make totals of all their rows: however the crew is cut and whatever happens to it, they are those of one
//! who is alone with the whole grid, bit for bit.

use std::collections::BTreeMap;

use shoal_kinds::Reduce;
use shoal_protocol::CrewSay;
use shoal_sim::Clockwork;

use crate::grid::{Grid, Kernel};
use crate::party::{Bare, Party};
use crate::whole::Whole;
use crate::wires::{CALM, ROUGH};
use crate::world::World;

const GRID: Grid = Grid {
    kernel: Kernel::Floats,
    width: 9,
    height: 24,
    halo: 2,
    steps: 50,
    reduce: Some(Reduce::Sum),
};

/// By step, as bits; each step's are said the same every time.
fn totals<P: Party>(world: &World<P>) -> BTreeMap<u64, Vec<u64>> {
    let all = said(world);
    let last: BTreeMap<_, _> = all.iter().cloned().collect();
    assert!(all.iter().all(|(step, bits)| last[step] == *bits), "two totals of one step");
    last
}

/// In the order they were said. Where hands stir, a crew that goes back may come to another field.
pub(crate) fn said<P: Party>(world: &World<P>) -> Vec<(u64, Vec<u64>)> {
    let says = world.says.iter().filter_map(|(_, _, say)| {
        let CrewSay::Total { step, numbers } = say else { return None };
        Some((*step, numbers.iter().map(|number| number.to_bits()).collect()))
    });
    says.collect()
}

/// Of the whole grid after so many steps.
fn expected(grid: Grid, step: u64) -> Vec<u64> {
    total_of(grid, &Grid { steps: step, ..grid }.alone(&BTreeMap::new()))
}

pub(crate) fn total_of(grid: Grid, field: &[u8]) -> Vec<u64> {
    let how = grid.reduce.expect("a grid with totals");
    let total = how.total(&grid.work(), &how.rows(&grid.work(), field));
    total.iter().map(|number| number.to_bits()).collect()
}

#[test]
fn a_total_does_not_depend_on_how_the_crew_is_cut() {
    let cuts: [&[(u64, u64)]; 5] = [
        &[(1, 24)],
        &[(1, 12), (2, 12)],
        &[(3, 5), (1, 17), (2, 2)],
        &[(1, 6), (2, 6), (3, 6), (4, 6)],
        &[(4, 2), (2, 2), (3, 18), (1, 2)],
    ];
    for reduce in Reduce::ALL {
        let grid = Grid { reduce: Some(reduce), ..GRID };
        for (seed, cut) in (0..).zip(cuts) {
            let mut world = World::<Whole>::new(seed, grid, 4, ROUGH);
            (world.keep_every, world.speculate) = (10, seed % 2 == 0);
            world.form(cut);
            world.finish();
            let totals = totals(&world);
            assert!(totals.keys().eq(&[10, 20, 30, 40, 50]), "{:?}", totals.keys());
            for (step, total) in totals {
                assert_eq!(total, expected(grid, step), "{reduce:?} of {cut:?} at step {step}");
            }
        }
    }
}

#[test]
fn without_checkpoints_there_is_one_total_at_the_end_and_only_rank_0_says_it() {
    let mut world = World::<Whole>::new(7, GRID, 3, ROUGH);
    world.form(&[(2, 8), (3, 8), (1, 8)]);
    world.finish();
    let says = world.says.iter().filter(|(_, _, say)| matches!(say, CrewSay::Total { .. }));
    assert!(says.map(|(node, _, _)| node.0).eq([2]));
    assert_eq!(totals(&world), BTreeMap::from([(50, expected(GRID, 50))]));
}

#[test]
fn a_crew_that_is_called_anew_goes_on_making_totals() {
    for seed in 0..8 {
        let mut world = World::<Whole>::new(seed, GRID, 4, ROUGH);
        world.keep_every = 5;
        world.form_all();
        world.run(300 + seed * 83);
        world.kill(1 + seed % 4);
        let left: Vec<_> = world.machines.keys().map(|node| node.0).collect();
        world.run(100);
        world.form(&[(left[2], 5), (left[0], 9), (left[1], 10)]);
        world.finish();
        let totals = totals(&world);
        assert!(totals.contains_key(&50), "seed {seed}: the last one is missing");
        for (step, total) in totals {
            assert_eq!(total, expected(GRID, step), "seed {seed}, step {step}");
        }
    }
}

#[test]
fn the_last_rows_wait_for_a_total_and_whoever_withholds_its_part_is_named() {
    let mut world = World::<Bare>::new(3, GRID, 3, CALM);
    world.form_all();
    // It hands in its rows and is silent from then on.
    world.machine(3).engine.reduces = false;
    world.run(8_000);
    assert_eq!(world.results.len(), 2, "rank 0 waits");
    let named = world.says.iter().filter(|(node, _, say)| {
        node.0 == 1 && matches!(say, CrewSay::Slow { node } if node.0 == 3)
    });
    assert!(named.count() >= 4, "again and again, until the coordinator acts");
}
