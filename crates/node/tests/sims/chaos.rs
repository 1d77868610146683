//! Everything at once, by a seed: members die, stall, come and go, links and relay break, fields are stirred. The
//! coordinator here is a simple one: it calls together who is there, from the last checkpoint on.

use shoal_kinds::Reduce;
use shoal_protocol::{CrewSay, Micros, Poke};
use shoal_sim::Clockwork;

use crate::grid::{Grid, Kernel};
use crate::party::{Bare, Party};
use crate::totals::{said, total_of};
use crate::whole::Whole;
use crate::wires::{CALM, ROUGH};
use crate::world::World;

/// Chosen by the seed, as all else.
fn grid(seed: u64) -> Grid {
    let kernel = [Kernel::Floats, Kernel::Integers, Kernel::Still][(seed % 3) as usize];
    let halo = 1 + (seed / 3 % 3) as u32;
    let reduce = Reduce::ALL.get((seed % 7) as usize).copied();
    Grid { kernel, width: 5, height: 26, halo, steps: 90, reduce }
}

fn reform<P: Party>(world: &mut World<P>) {
    let mut there: Vec<_> = world.machines.keys().map(|node| node.0).collect();
    let turn = world.chance() as usize % there.len();
    there.rotate_left(turn);
    if there.len() > 2 && world.chance().is_multiple_of(4) {
        there.pop();
    }
    let halo = u64::from(world.grid.halo);
    let mut left = u64::from(world.grid.height) - halo * there.len() as u64;
    let mut bands = Vec::new();
    for (at, node) in there.iter().enumerate() {
        let last = at + 1 == there.len();
        let more = if last { left } else { world.chance() % (left + 1) };
        left -= more;
        bands.push((*node, halo + more));
    }
    world.form(&bands);
}

fn fault<P: Party>(world: &mut World<P>) {
    let nodes: Vec<_> = world.machines.keys().map(|node| node.0).collect();
    let node = nodes[world.chance() as usize % nodes.len()];
    match world.chance() % 10 {
        0 | 1 if nodes.len() > 1 => {
            world.kill(node);
            world.run(50);
            reform(world);
        }
        2 => {
            world.machine(node).engine.stuck = true;
            world.run(3_000);
            world.kill(node);
            if nodes.len() == 1 {
                world.add(20 + node);
            }
            reform(world);
        }
        3 => {
            let new = 1 + nodes.iter().max().copied().unwrap_or(0);
            world.add(new);
            reform(world);
        }
        4 => world.restart_relay(),
        5 => world.cut_direct(),
        6 => world.machine(node).engine.pace = Micros(1_000 + node * 2_000),
        7 => reform(world),
        _ => {
            let strength = world.chance() as f32 / 1e9;
            world.poke(Poke { at: [2.0, 13.0], by: [0.1, 0.2], radius: 6.0, strength });
        }
    }
}

fn story<P: Party>(seed: u64) -> World<P> {
    let wire = if seed.is_multiple_of(4) { CALM } else { ROUGH };
    let mut world = World::<P>::new(seed, grid(seed), 2 + seed % 4, wire);
    world.radios = seed.is_multiple_of(2);
    world.speculate = (seed / 2).is_multiple_of(2);
    world.keep_every = seed % 5 * 4;
    world.form_all();
    for _ in 0..12 {
        let pause = world.chance() % 250;
        world.run(pause);
        fault(&mut world);
    }
    let result = world.finish();
    assert_eq!(world.poked(), world.pokes, "seed {seed}: a poke got lost");
    assert!(result == world.grid.alone(&world.pokes), "seed {seed}: another result");
    let last = world.grid.reduce.map(|_| total_of(world.grid, &result));
    let told = said(&world).into_iter().rfind(|(step, _)| *step == 90).map(|(_, bits)| bits);
    assert_eq!(told, last, "seed {seed}: another total");
    let bad = |say: &CrewSay| matches!(say, CrewSay::Bad { .. } | CrewSay::Failed { .. });
    let bad = world.says.iter().find(|(_, _, say)| bad(say));
    assert!(bad.is_none(), "seed {seed}: {bad:?}");
    world
}

/// More by `SEEDS=1000`.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let more = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    0..more.unwrap_or(usual)
}

#[test]
fn whatever_happens_to_parts_the_bits_are_the_same() {
    for seed in seeds(150) {
        story::<Bare>(seed);
    }
}

#[test]
fn whatever_happens_to_members_and_links_the_bits_are_the_same() {
    for seed in seeds(12) {
        let one = story::<Whole>(seed);
        if seed == 5 {
            assert_eq!(one.clock.trace.finish(), story::<Whole>(seed).clock.trace.finish());
        }
    }
}
