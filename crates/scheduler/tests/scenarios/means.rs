//! Memory, threads and engines: what jobs ask for and nodes lend.

use shoal_kinds::JobSpec;
use shoal_protocol::*;
use shoal_scheduler::*;

use crate::crew_world::three;
use crate::world::{World, caps, job};

const MIB: u64 = 1 << 20;

fn takes(memory: u64, threads: u16) -> Footprint {
    Footprint { memory: memory * MIB, threads, ..Footprint::NOTHING }
}

/// Runs of a program that may use so much.
fn program(memory: u64) -> JobSpec {
    let needs = Needs::lane(Lane::Cpu).takes(takes(memory, 1));
    JobSpec { needs, sizing: Sizing::fixed(1), policy: Policy::checked(Verify::None), ..job(100) }
}

/// Eight cores, and so much memory.
fn lends(memory: u64) -> Caps {
    Caps { memory: memory * MIB, cpu_slots: 8, threads: 8, ..caps(100) }
}

/// A node that showed what it can: newcomers do not get all their slots.
fn proven(world: &mut World, n: u64, memory: u64) -> Conn {
    let node = world.join_as(n, n, lends(memory), Vec::new());
    let first = world.submit(JobSpec { items: 1, ..program(0) });
    world.answer(node, 1).expect("it was lent the only unit");
    assert_eq!(world.state(first), JobState::Done);
    node
}

fn refused(world: &mut World, spec: JobSpec) -> String {
    world.give(Input::Submit { request: RequestId(0), spec });
    let reply = world.replies.last().cloned().expect("a reply");
    reply.expect_err("nobody can").to_string()
}

#[test]
fn units_at_once_stay_within_the_memory_lent() {
    let mut world = World::new();
    let node = proven(&mut world, 1, 512);
    let job = world.submit(program(256));
    assert_eq!(world.held_by(node).len(), 2, "two of 256 MiB, whatever cores there are");
    world.answer(node, 1);
    assert_eq!(world.held_by(node).len(), 2);
    world.finish(&[(node, 1)]);
    assert_eq!(world.state(job), JobState::Done);
}

#[test]
fn memory_that_is_enough_for_all_slots_holds_nobody_up() {
    let mut world = World::new();
    let node = proven(&mut world, 1, 8 * 256);
    world.submit(program(256));
    assert_eq!(world.held_by(node).len(), 9, "one for each slot and one that waits");
}

#[test]
fn jobs_share_the_memory_of_a_node() {
    let mut world = World::new();
    let node = proven(&mut world, 1, 512);
    let (large, small) = (world.submit(program(400)), world.submit(program(100)));
    let jobs: Vec<_> = world.held_by(node).iter().map(|lease| lease.job).collect();
    assert_eq!(jobs, [large, small], "400 and 100 MiB fit beside each other");
}

#[test]
fn a_large_job_is_not_starved_by_small_ones() {
    let mut world = World::new();
    let node = proven(&mut world, 1, 512);
    world.submit(program(256));
    let large = world.submit(program(512));
    for _ in 0..4 {
        world.answer(node, 1_000);
    }
    assert!(world.view(large).items_done + world.view(large).items_leased > 0);
}

#[test]
fn a_unit_that_takes_more_than_any_node_lends_is_refused() {
    let mut world = World::new();
    world.join_as(1, 1, lends(128), Vec::new());
    let why = refused(&mut world, program(256));
    assert!(why.contains("256 MiB of memory"), "{why}");
    assert!(why.contains("at most 128 MiB of memory"), "{why}");
}

#[test]
fn a_missing_engine_is_named_with_those_that_are_there() {
    let mut world = World::new();
    world.join_as(1, 1, lends(512), Vec::new());
    let spec = program(1);
    let needs = spec.needs.clone().engine("llm-cpu");
    let why = refused(&mut world, JobSpec { needs, ..spec });
    assert!(why.contains("the engine llm-cpu"), "{why}");
    assert!(why.contains("the engines wasi, wgsl"), "{why}");
}

#[test]
fn who_has_no_engine_for_components_is_told_who_could_have_one() {
    let mut world = World::new();
    world.join_as(1, 1, lends(512), Vec::new());
    let spec = program(1);
    let needs = spec.needs.clone().engine(Engine::WASI_COMPONENTS);
    let component = JobSpec { needs, ..spec };
    let why = refused(&mut world, component.clone());
    assert!(why.contains("`shoal join`") && why.contains("browser tabs"), "{why}");
    // One that has it, but not the memory, is named.
    let engines = vec![Engine::new(Engine::WASI_COMPONENTS, "1")];
    let small = Caps { engines, name: "attic".into(), ..lends(512) };
    world.join_as(2, 2, small, Vec::new());
    let takes = takes(1 << 10, 1);
    let large = JobSpec { needs: component.needs.clone().takes(takes), ..component };
    let why = refused(&mut world, large);
    assert!(why.contains("the engine wasi-components on attic"), "{why}");
}

#[test]
fn only_nodes_with_the_engine_are_lent_units() {
    let mut world = World::new();
    let plain = world.join_as(1, 1, lends(512), Vec::new());
    let engines = vec![Engine::new("llm-cpu", "2")];
    let able = world.join_as(2, 2, Caps { engines, ..lends(512) }, Vec::new());
    let spec = program(1);
    let needs = spec.needs.clone().engine("llm-cpu");
    world.submit(JobSpec { needs, ..spec });
    assert!(world.held_by(plain).is_empty());
    assert!(!world.held_by(able).is_empty());
}

#[test]
fn threads_are_counted_like_memory() {
    let mut world = World::new();
    let node = proven(&mut world, 1, 512);
    let spec = program(1);
    let wide = |threads| JobSpec {
        needs: Needs::lane(Lane::Cpu).takes(takes(1, threads)),
        ..spec.clone()
    };
    world.submit(wide(3));
    assert_eq!(world.held_by(node).len(), 2, "three and three of eight threads");
    let why = refused(&mut world, wide(9));
    assert!(why.contains("9 threads") && why.contains("at most 8 threads"), "{why}");
}

#[test]
fn a_donor_who_lends_less_gets_units_taken_back() {
    let mut world = World::new();
    let node = proven(&mut world, 1, 1024);
    world.submit(program(256));
    let before = world.held_by(node);
    assert_eq!(before.len(), 4);
    world.say(node, FromNode::Caps(lends(300)));
    assert_eq!(world.held_by(node), before[..1], "the oldest stays");
    world.say(node, FromNode::Caps(lends(200)));
    assert!(world.held_by(node).is_empty());
}

#[test]
fn one_who_has_more_slots_now_does_not_get_beyond_its_memory() {
    let mut world = World::new();
    let narrow = Caps { cpu_slots: 1, ..lends(300) };
    let node = world.join_as(1, 1, narrow, Vec::new());
    world.submit(program(256));
    assert_eq!(world.held_by(node).len(), 2, "one runs and one waits");
    world.say(node, FromNode::Caps(lends(300)));
    assert_eq!(world.held_by(node).len(), 1);
}

#[test]
fn units_that_are_kept_over_a_reconnect_count() {
    let mut world = World::new();
    let node = proven(&mut world, 1, 512);
    let job = world.submit(program(256));
    let held =
        world.held_by(node).into_iter().map(|l| Held { attempt: l.attempt, job, span: l.span });
    let held: Vec<_> = held.collect();
    world.leave(node);
    let again = world.join_as(2, 1, lends(256), held.clone());
    assert_eq!(world.revoked, [held[1].attempt]);
    assert!(world.held_by(again).is_empty(), "what it has is all it can");
}

#[test]
fn buffers_of_gpu_units_are_limited_where_somebody_knows() {
    let with = |memory| {
        let mut caps = caps(100);
        caps.gpu.as_mut().expect("a GPU").memory = memory;
        caps
    };
    let takes = Footprint { gpu_memory: 64 * MIB, ..Footprint::NOTHING };
    let spec = JobSpec { needs: Needs::lane(Lane::Gpu).takes(takes), ..job(1_000) };
    let mut world = World::new();
    let knows = world.join_as(1, 1, with(Some(32 * MIB)), Vec::new());
    let why = refused(&mut world, spec.clone());
    assert!(why.contains("at most 32 MiB of GPU memory"), "{why}");
    let unknown = world.join_as(2, 2, with(None), Vec::new());
    world.submit(spec);
    assert!(world.held_by(knows).is_empty());
    assert!(!world.held_by(unknown).is_empty());
}

#[test]
fn a_job_says_what_it_waits_for() {
    let mut world = World::new();
    let node = proven(&mut world, 1, 512);
    let first = world.submit(program(512));
    let second = world.submit(program(256));
    assert!(world.scheduler.explain_job(second).contains(&WhyJob::Full { nodes: 1 }));
    let why = world.scheduler.explain_node(NodeId(1));
    assert!(why.contains(&WhyNode::Memory { used: 512 * MIB, lent: 512 * MIB }), "{why:?}");
    world.say(node, FromNode::Caps(lends(100)));
    let why = world.scheduler.explain_job(first);
    let lacks = |why: &WhyJob| why.to_string().contains("at most 100 MiB of memory");
    assert!(why.iter().any(lacks), "{why:?}");
}

#[test]
fn a_strangers_list_of_engines_is_cut_to_size() {
    let mut world = World::new();
    let long = "x".repeat(10_000);
    let engines = vec![Engine::new(&long, &long); 1_000];
    world.join_as(1, 1, Caps { engines, ..caps(100) }, Vec::new());
    let kept = &world.scheduler.nodes(world.now)[0].caps.engines;
    assert_eq!(kept.len(), limit::MAX_ENGINES);
    assert!(kept.iter().all(|engine| engine.name.len() <= limit::MAX_ENGINE_TEXT));
}

/// A row takes 4,000 bytes in three buffers, and there are two rows of each neighbour.
fn room_for(rows: u64) -> Caps {
    let mut caps = caps(100);
    caps.gpu.as_mut().expect("a GPU").memory = Some((rows + 4) * 12_000);
    caps
}

#[test]
fn a_member_of_a_crew_has_no_more_rows_than_its_memory_holds() {
    let (mut world, nodes, _) = three();
    assert_eq!(world.rows(nodes[0]).len, 40);
    world.say(nodes[0], FromNode::Caps(room_for(20)));
    world.wait(1_000);
    let rows = |conn| world.crews.enlisted.contains_key(&conn).then(|| world.rows(conn).len);
    assert!(rows(nodes[0]).is_none_or(|rows| rows <= 20), "{:?}", rows(nodes[0]));
    assert!(rows(nodes[1]).is_some_and(|rows| rows >= 50), "{:?}", rows(nodes[1]));
}

#[test]
fn units_leave_a_seat_in_a_crew_its_memory() {
    let (mut world, nodes, _) = three();
    world.say(nodes[0], FromNode::Caps(room_for(40)));
    let takes = Footprint { gpu_memory: 1, ..Footprint::NOTHING };
    world.submit(JobSpec { needs: Needs::lane(Lane::Gpu).takes(takes), ..job(1_000) });
    assert!(world.held_by(nodes[0]).is_empty(), "its 40 rows take all of it");
    assert!(!world.held_by(nodes[1]).is_empty());
}
