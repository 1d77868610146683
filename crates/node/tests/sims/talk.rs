//! Crews that talk: applications' own messages, and what members compute together, over real links.

use std::sync::Arc;

use shoal_node::collective::{Element, Fold, How, Numbers, Op};
use shoal_protocol::{Micros, NodeId};
use shoal_sim::{Clockwork, Wire};

use crate::grid::{Grid, Kernel};
use crate::party::Given;
use crate::whole::Whole;
use crate::wires::{CALM, ROUGH};
use crate::world::World;

const NOTHING: Grid =
    Grid { kernel: Kernel::Still, width: 1, height: 8, halo: 1, steps: 0, reduce: None };

fn crew(seed: u64, members: u64, wire: Wire) -> World<Whole> {
    let mut world = World::<Whole>::new(seed, NOTHING, members, wire);
    world.talkers = (1..=members).collect();
    world.form_all();
    world.run(1_000);
    world
}

fn numbers(node: u64, count: usize) -> Vec<u8> {
    (0..count as i32).flat_map(|at| (at * node as i32).to_le_bytes()).collect()
}

/// All members add up their numbers; so long it takes in virtual time.
fn all_reduce(world: &mut World<Whole>, count: usize, how: How) -> Micros {
    let numbers_of = Numbers { element: Element::I32, count, fold: Fold::Sum };
    let members = world.members.clone();
    world.done.clear();
    for node in &members {
        let op = Op::AllReduce { numbers: numbers_of, how };
        let data = Arc::new(numbers(node.0, count));
        world.give(*node, Given::Collective { op, data });
    }
    let took = world.until(60_000, |world| world.done.len() == members.len());
    let all = members.iter().map(|node| node.0).sum();
    assert!(world.done.values().all(|done| *done == [numbers(all, count)]));
    took
}

#[test]
fn four_members_add_up_over_links_that_lose_and_mix_up() {
    for how in [How::Ring, How::Tree, How::Mesh] {
        for (seed, wire) in [(1, CALM), (2, ROUGH)] {
            let mut world = crew(seed, 4, wire);
            all_reduce(&mut world, 100_000, how);
            all_reduce(&mut world, 3, how);
        }
    }
}

#[test]
fn a_relay_restarted_in_the_middle_of_a_sum_changes_nothing() {
    let mut world = crew(3, 4, CALM);
    world.radios = true;
    let data = Arc::new(numbers(1, 200_000));
    let numbers_of = Numbers { element: Element::I32, count: 200_000, fold: Fold::Most };
    for node in world.members.clone() {
        let op = Op::AllReduce { numbers: numbers_of, how: How::Ring };
        world.give(node, Given::Collective { op, data: data.clone() });
    }
    world.run(8);
    world.restart_relay();
    world.run(20_000);
    assert!(world.done.len() == 4 && world.done.values().all(|done| *done == [data.to_vec()]));
}

#[test]
fn applications_say_what_they_like() {
    let mut world = crew(4, 3, ROUGH);
    for (from, to, channel) in [(1, 2, 1), (2, 3, 7), (3, 1, 14), (1, 2, 1)] {
        let message = Arc::new(vec![from as u8; 100_000]);
        world.give(NodeId(from), Given::App { to: NodeId(to), channel, message });
    }
    world.run(20_000);
    assert_eq!(world.heard[&NodeId(2)], vec![(1, vec![1; 100_000]); 2]);
    assert_eq!(world.heard[&NodeId(3)], [(7, vec![2; 100_000])]);
    assert_eq!(world.heard[&NodeId(1)], [(14, vec![3; 100_000])]);
}
