//! Pokes over a field outlive members and the coordinator.

use crate::sim::{Crew, undisturbed};

const STROKE: &str = r#"{"at":[80.5,60.5],"by":[1.0,0.0],"radius":9.0,"strength":3.0}"#;

#[test]
fn a_poke_counts_again_when_the_crew_begins_again() {
    let mut crew = Crew::of(3, &[]);
    // Without checkpoints all of it is computed again when a member leaves.
    let job = crew.begin_with(2, "0", &["--param", "stiffness=0.2"]);
    crew.pool.until(|job| job["sim"]["step"].as_u64() > Some(50));
    crew.pool.ask("POST /api/v1/jobs/1/poke", STROKE);
    let step = crew.step();
    crew.pool.until(|job| job["sim"]["step"].as_u64() > Some(step + 100));
    let doomed = crew.seated(0);
    crew.nodes[doomed].kill();
    crew.pool.until(|job| job["sim"]["crew"]["epoch"].as_u64() > Some(1));
    crew.pool.crash_and_restart();
    job.end().ok();
    assert!(crew.field() != undisturbed(), "the poke got lost");
}
