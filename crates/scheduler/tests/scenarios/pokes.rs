//! Pokes over a simulation's field: none is lost and none counts twice, whoever leaves.
#![allow(clippy::unwrap_used)]

use shoal_protocol::*;
use shoal_scheduler::*;

use crate::crew_world::three;
use crate::world::World;

fn poke(strength: f32) -> Poke {
    Poke { at: [1.0, 2.0], by: [0.0, 0.0], radius: 3.0, strength }
}

impl World {
    fn poke_by(&mut self, strength: f32) {
        self.give(Input::Poke { job: JobId(1), poke: poke(strength) });
    }

    /// Rank 0 says for which step a poke counts.
    fn counts(&mut self, conn: Conn, strength: f32, step: u64) {
        let say = CrewSay::Poked { poke: poke(strength), step: Some(step) };
        self.say_crew(conn, self.place(conn).epoch, say);
    }

    fn told_pokes(&mut self) -> Vec<(Conn, f32)> {
        let told = std::mem::take(&mut self.crews.told).into_iter();
        let pokes = told.filter_map(|(conn, told)| match told {
            CrewTold::Poke(poke) => Some((conn, poke.strength)),
            CrewTold::Watch(_) | CrewTold::NotMet { .. } | CrewTold::Drop { .. } => None,
        });
        pokes.collect()
    }
}

#[test]
fn pokes_since_the_checkpoint_count_again_for_the_same_steps() {
    let (mut world, nodes, _) = three();
    for (strength, step) in [(1.0, 8), (2.0, 10), (3.0, 17)] {
        world.poke_by(strength);
        world.counts(nodes[0], strength, step);
    }
    world.keep_all(10);
    world.leave(nodes[1]);
    let pokes = [(10, poke(2.0)), (17, poke(3.0))];
    assert_eq!(world.task(nodes[0]).from, 10);
    assert_eq!(world.task(nodes[0]).pokes, pokes, "the first is in the checkpoint");
    assert_eq!(world.task(nodes[2]).pokes, pokes, "all members know");
}

#[test]
fn a_poke_that_nobody_gave_a_step_is_told_to_the_next_crew() {
    let (mut world, nodes, _) = three();
    world.poke_by(1.0);
    world.poke_by(2.0);
    assert_eq!(world.told_pokes(), [(nodes[0], 1.0), (nodes[0], 2.0)]);
    world.counts(nodes[0], 1.0, 5);
    world.leave(nodes[0]);
    assert_eq!(world.told_pokes(), [(nodes[1], 2.0)]);
    assert_eq!(world.task(nodes[1]).pokes, [(5, poke(1.0))]);
    world.counts(nodes[1], 2.0, 6);
    world.leave(nodes[2]);
    assert_eq!(world.task(nodes[1]).pokes, [(5, poke(1.0)), (6, poke(2.0))]);
    assert_eq!(world.told_pokes(), []);
}

#[test]
fn pokes_outlive_the_coordinator() {
    let (mut world, nodes, id) = three();
    world.poke_by(1.0);
    world.counts(nodes[0], 1.0, 9);
    world.poke_by(2.0);
    world.counts(nodes[0], 2.0, 12);
    world.keep_all(10);
    let mut world = world.restarted();
    let again = world.able(1, 1_000_000);
    world.wait(3_000);
    assert_eq!(world.task(again).pokes, [(12, poke(2.0))]);
    world.finish_all();
    assert_eq!(world.state(id), JobState::Done);
}

#[test]
fn pokes_while_a_crew_waits_for_members_count_when_it_goes_on() {
    let mut world = World::new();
    world.submit(crate::crew_world::sim(2));
    let first = world.able(1, 1_000_000);
    world.poke_by(1.0);
    assert_eq!(world.told_pokes(), []);
    world.able(2, 1_000_000);
    assert_eq!(world.told_pokes(), [(first, 1.0)]);
}

#[test]
fn nobody_but_rank_0_chooses_steps_and_nobody_makes_up_pokes() {
    let (mut world, nodes, _) = three();
    world.poke_by(1.0);
    world.counts(nodes[1], 1.0, 5);
    world.counts(nodes[0], 9.0, 6);
    world.counts(nodes[0], 1.0, 100);
    world.poke_by(2.0);
    world.say_crew(nodes[0], Epoch(0), CrewSay::Poked { poke: poke(2.0), step: Some(7) });
    world.counts(nodes[0], 2.0, 8);
    world.poke_by(3.0);
    world.counts(nodes[0], 3.0, 8);
    world.leave(nodes[2]);
    assert_eq!(world.task(nodes[0]).pokes, [(8, poke(2.0))]);
}

#[test]
fn a_hand_that_is_faster_than_the_simulation_is_not_listened_to_all_the_time() {
    let (mut world, nodes, _) = three();
    (0..40).for_each(|at| world.poke_by(at as f32));
    assert_eq!(world.told_pokes().len(), 16, "so many wait for their step");
    (0..16).for_each(|at| world.counts(nodes[0], at as f32, 20 + at));
    world.poke_by(99.0);
    assert_eq!(world.told_pokes(), [(nodes[0], 99.0)]);
}
