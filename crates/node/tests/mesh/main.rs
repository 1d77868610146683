//! Meshes: keys, seals, tokens and the ladder between the members of a crew, with every fault a network and a
//! liar can have.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod world;

use shoal_node::link::Path;
use world::World;

#[test]
fn two_members_talk_by_relay() {
    let mut world = World::new(1, 2);
    world.enlist();
    world.send(1, 2, 1, b"from one");
    world.send(2, 1, 2, b"from two");
    world.until(1_000, World::all_open);
    world.run(1_000);
    assert_eq!(world.got(2, 1, 1), [b"from one"]);
    assert_eq!(world.got(1, 2, 2), [b"from two"]);
    assert_eq!(world.using(1, 2), Some(Path::Relay));
    world.nobody_is_bad();
}
