//! What runs at once stays within what the donor lends, whatever the coordinator says.

use shoal_node::*;
use shoal_protocol::*;

use crate::world::World;

/// Lent 1 GiB and a job whose units take 600 MiB each, so that one runs at a time in two slots.
fn large() -> World {
    let mut world = World::joined();
    world.tell_taking(Footprint { memory: 600 << 20, ..Footprint::NOTHING });
    world
}

fn offer(world: &World, memory: u64) -> Input {
    Input::Offer(Caps { memory, ..world.caps.clone() })
}

#[test]
fn a_unit_waits_until_another_gives_its_memory_back() {
    let mut world = large();
    world.lend(1..4);
    assert_eq!(world.runs.len(), 1);
    world.ran(1);
    assert_eq!(world.runs.len(), 2);
}

#[test]
fn what_never_fits_is_handed_back() {
    let mut world = large();
    let less = offer(&world, 100 << 20);
    world.give(less);
    world.lend(1..3);
    assert!(world.runs.is_empty());
    assert!(world.said.contains(&FromNode::Returned(vec![Attempt(1), Attempt(2)])));
}

#[test]
fn a_donor_who_lends_more_has_more_run() {
    let mut world = large();
    world.lend(1..3);
    let more = offer(&world, 2 << 30);
    world.give(more);
    assert_eq!(world.runs.len(), 2);
}

#[test]
fn a_donor_who_lends_less_has_nothing_begun_beyond_it() {
    let mut world = large();
    world.lend(1..3);
    let less = offer(&world, 500 << 20);
    world.give(less);
    assert!(world.said.iter().any(|said| matches!(said, FromNode::Caps(_))));
    world.hear(ToNode::Revoke(vec![Attempt(1)]));
    assert_eq!((world.runs.len(), world.aborted.as_slice()), (1, [Attempt(1)].as_slice()));
}
