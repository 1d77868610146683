//! Strangers who want a job to fail or to stand still, and the honest nodes beside them who finish it.

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::world::{World, caps, job, trap};

/// What a hostile node does each time it is its turn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trick {
    /// Says that all it was lent runs, and hangs up.
    Flap,
    /// Hangs up without a word.
    Leave,
    /// Fails all it was lent with a trap.
    Trap,
    /// Says that it could not go on, whatever it was lent.
    Fault,
    /// Says for as long as it can that all it was lent runs.
    Hold,
    /// Gives back what it was lent.
    Return,
    /// Forgets what it was lent, and says so.
    Forget,
    /// Pauses with what it was lent and goes on.
    Pause,
}

const WAYS: [Trick; 8] = [
    Trick::Flap,
    Trick::Leave,
    Trick::Trap,
    Trick::Fault,
    Trick::Hold,
    Trick::Return,
    Trick::Forget,
    Trick::Pause,
];
const POLICIES: [Verify; 4] = [
    Verify::Adaptive,
    Verify::Quorum { votes: 2 },
    Verify::None,
    Verify::Spot { per_million: 300_000 },
];

/// A hostile node: with the same key each time it comes, or a new one.
struct Hostile {
    way: Trick,
    new_keys: bool,
    conn: Option<Conn>,
    came: u64,
}

impl Hostile {
    fn new(way: Trick, new_keys: bool) -> Hostile {
        Hostile { way, new_keys, conn: None, came: 0 }
    }

    fn act(&mut self, world: &mut World) {
        if let Some(conn) = self.conn.filter(|conn| world.refused.iter().any(|(c, _)| c == conn)) {
            world.lent.retain(|(holder, _)| *holder != conn);
            self.conn = None;
        }
        let conn = self.conn.unwrap_or_else(|| self.join(world));
        let held: Vec<_> = world.held_by(conn).iter().map(|lease| lease.attempt).collect();
        let running = || FromNode::Alive { running: held.clone(), queued: Vec::new() };
        match self.way {
            Trick::Flap => {
                world.say(conn, running());
                self.hang_up(world);
            }
            Trick::Leave => self.hang_up(world),
            Trick::Trap => while world.fail(conn, trap()).is_some() {},
            Trick::Fault => {
                for _ in 0..held.len() {
                    world.fail(conn, Failure::Internal { message: "no".into() });
                }
            }
            Trick::Hold if self.new_keys && self.came.is_multiple_of(64) => self.hang_up(world),
            Trick::Hold => world.say(conn, running()),
            Trick::Return => {
                world.lent.retain(|(holder, _)| *holder != conn);
                world.say(conn, FromNode::Returned(held));
            }
            Trick::Forget => {
                let (running, queued) = (Vec::new(), Vec::new());
                world.say(conn, FromNode::Alive { running, queued });
            }
            Trick::Pause => {
                world.say(conn, running());
                world.say(conn, FromNode::Pause(true));
                world.say(conn, FromNode::Pause(false));
            }
        }
        self.came += 1;
        if self.new_keys && matches!(self.way, Trick::Trap | Trick::Fault | Trick::Return) {
            self.hang_up(world);
        }
    }

    fn join(&mut self, world: &mut World) -> Conn {
        let who = if self.new_keys { 1_000 + self.came } else { 1_000 };
        let conn = world.join_as(10_000 + self.came, who, caps(100), Vec::new());
        self.conn = Some(conn);
        conn
    }

    fn hang_up(&mut self, world: &mut World) {
        if let Some(conn) = self.conn.take() {
            world.leave(conn);
        }
    }
}

/// A pool at work: every tenth of a second everybody hostile acts twice and each honest node answers one unit.
/// Gives the seconds that the job took.
fn labour(world: &mut World, id: JobId, honest: &[Conn], hostile: &mut [Hostile]) -> u64 {
    let from = world.now;
    for _ in 0..3_000 {
        for node in hostile.iter_mut() {
            node.act(world);
            node.act(world);
        }
        for conn in honest {
            world.answer_with(*conn, 0);
            let held = world.held_by(*conn).iter().map(|lease| lease.attempt).collect();
            world.say(*conn, FromNode::Alive { running: Vec::new(), queued: held });
        }
        if world.state(id) != JobState::Running {
            break;
        }
        world.wait(100);
    }
    (world.now - from).0 / 1_000_000
}

fn checked(items: u64, verify: Verify) -> JobSpec {
    JobSpec { policy: Policy::checked(verify), sizing: Sizing::fixed(1), ..job(items) }
}

/// Three honest strangers, perhaps an own node, and these: the job is done, and soon.
fn done_beside(way: Trick, new_keys: bool, verify: Verify, own: bool) {
    let mut alone = World::new();
    let honest = |world: &mut World| -> Vec<Conn> {
        let own = own.then(|| world.join_trusted(9));
        let strangers = (1..=3).map(|n| world.join(n));
        strangers.collect::<Vec<_>>().into_iter().chain(own).collect()
    };
    let nodes = honest(&mut alone);
    let id = alone.submit(checked(60, verify));
    let quiet = labour(&mut alone, id, &nodes, &mut []);
    let mut world = World::new();
    let nodes = honest(&mut world);
    let mut hostile = [Hostile::new(way, new_keys)];
    hostile[0].act(&mut world);
    let id = world.submit(checked(60, verify));
    let took = labour(&mut world, id, &nodes, &mut hostile);
    let what = format!("{way:?}, new keys {new_keys}, {verify:?}, own {own}");
    let failure = world.view(id).failure;
    let why: Vec<_> = world.scheduler.explain_job(id).iter().map(WhyJob::to_string).collect();
    assert_eq!(world.state(id), JobState::Done, "{what}: {failure:?} {}", why.join("; "));
    assert!(took <= quiet * 2 + 12, "{what}: {took} s instead of {quiet}");
}

fn done_beside_all(way: Trick) {
    for verify in POLICIES {
        for own in [false, true] {
            for new_keys in [false, true] {
                done_beside(way, new_keys, verify, own);
            }
        }
    }
}

#[test]
fn whoever_hangs_up_with_all_units_running_ends_no_job() {
    done_beside_all(Trick::Flap);
}

#[test]
fn whoever_comes_and_goes_freezes_no_job() {
    done_beside_all(Trick::Leave);
}

#[test]
fn whoever_fails_all_it_is_lent_ends_no_job() {
    done_beside_all(Trick::Trap);
    done_beside_all(Trick::Fault);
}

#[test]
fn whoever_holds_all_it_is_lent_freezes_no_job() {
    done_beside_all(Trick::Hold);
    done_beside_all(Trick::Pause);
}

#[test]
fn whoever_gives_back_all_it_is_lent_freezes_no_job() {
    done_beside_all(Trick::Return);
    done_beside_all(Trick::Forget);
}

#[test]
fn all_of_them_at_once_neither_end_nor_freeze_a_job() {
    for verify in POLICIES {
        for own in [false, true] {
            let mut world = World::new();
            let mut nodes: Vec<_> = (1..=4).map(|n| world.join(n)).collect();
            nodes.extend(own.then(|| world.join_trusted(9)));
            let mut hostile: Vec<_> = WAYS.map(|way| Hostile::new(way, true)).into();
            for (at, node) in hostile.iter_mut().enumerate() {
                node.came = 100_000 * (at as u64 + 1);
            }
            let id = world.submit(checked(60, verify));
            let took = labour(&mut world, id, &nodes, &mut hostile);
            let failure = world.view(id).failure;
            assert_eq!(world.state(id), JobState::Done, "{verify:?}, own {own}: {failure:?}");
            assert!(took < 60, "{verify:?}, own {own}: {took} s");
        }
    }
}

#[test]
fn a_program_that_traps_everywhere_fails_soon_whoever_is_here() {
    for (strangers, own) in [(10, false), (3, true), (1, false), (40, true)] {
        let mut world = World::new();
        let mut nodes: Vec<_> = (1..=strangers).map(|n| world.join(n)).collect();
        nodes.extend(own.then(|| world.join_trusted(900)));
        let id = world.submit(checked(10_000, Verify::Adaptive));
        let from = world.now;
        while world.state(id) == JobState::Running && world.now - from < Micros::from_secs(60) {
            nodes.iter().for_each(|node| while world.fail(*node, trap()).is_some() {});
            world.wait(50);
        }
        assert_eq!(world.state(id), JobState::Failed, "{strangers} strangers, own {own}");
        assert_eq!(world.view(id).failure.unwrap().failure, trap());
        let took = (world.now - from).0 / 1_000_000;
        assert!(took < if own { 2 } else { 15 }, "{strangers} strangers, own {own}: {took} s");
    }
}

#[test]
fn nobody_computes_more_at_a_time_than_it_has_slots_whatever_it_says() {
    let mut world = World::new();
    let node = world.join(1);
    world.submit(checked(10, Verify::None));
    let running: Vec<_> = world.held_by(node).iter().map(|lease| lease.attempt).collect();
    assert_eq!(running.len(), 2);
    world.say(node, FromNode::Alive { running, queued: Vec::new() });
    assert_eq!(world.scheduler.nodes(world.now)[0].running, 1);
}

#[test]
fn a_node_with_a_bad_network_that_comes_back_is_not_shut_out() {
    let mut world = World::new();
    world.join(1);
    let id = world.submit(JobSpec { sizing: Sizing::fixed(1), ..job(400) });
    let mut shaky = world.join_as(100, 2, caps(100), Vec::new());
    for conn in 101..150 {
        for _ in 0..3 {
            world.answer(shaky, 10);
        }
        world.leave(shaky);
        world.wait(100);
        shaky = world.join_as(conn, 2, caps(100), Vec::new());
    }
    let done = world.view(id).shares.iter().find(|share| share.node == NodeId(2)).unwrap().units;
    assert!(done > 140, "{done} units");
}

#[test]
fn whoever_vanished_with_a_unit_does_not_get_it_again_while_somebody_else_can() {
    let mut world = World::new();
    let (leaves, _stays) = (world.join(1), world.join(2));
    world.submit(checked(40, Verify::None));
    let unit = world.held_by(leaves)[0];
    let (running, queued) = (vec![unit.attempt], Vec::new());
    world.say(leaves, FromNode::Alive { running, queued });
    world.leave(leaves);
    let back = world.join_as(3, 1, caps(100), Vec::new());
    assert!(world.held_by(back).iter().all(|lease| lease.span != unit.span));
}

#[test]
fn strangers_who_all_say_something_else_end_no_job_while_an_own_node_can_say_what_is_right() {
    let mut world = World::new();
    let own = world.join_trusted(900);
    world.submit(checked(2, Verify::None));
    let liars: Vec<_> = (1..=20).map(|n| (world.join(n), n as u8)).collect();
    let id = world.submit(checked(1, Verify::Adaptive));
    world.work(&liars);
    assert_eq!(world.state(id), JobState::Running);
    world.work(&[(own, 0)]);
    assert_eq!(world.state(id), JobState::Done);
    assert!(world.scheduler.merged(id).iter().all(|(_, place)| place.unwrap().offset == 0));
}
