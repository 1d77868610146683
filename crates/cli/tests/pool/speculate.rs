//! Going on with guesses where a neighbour is late: they are counted, those that were wrong are corrected, and
//! the field shows no trace of them.

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::process::signal;
use crate::sim::{Crew, undisturbed};
use crate::world::Running;

/// So long a member stands still: late for its neighbour, and far from silent for the coordinator.
const MOMENT: Duration = Duration::from_millis(60);

/// Lets a member of the running crew stand still for moments, until enough of both members' guesses are counted.
fn disturb(crew: &Crew, wanted: impl Fn(u64, u64) -> bool) {
    crew.pool.until(|job| job["sim"]["step"].as_u64() > Some(20));
    let late = crew.nodes[crew.seated(1)].id();
    crew.pool.wait("guesses", || {
        signal("-STOP", late);
        sleep(MOMENT);
        signal("-CONT", late);
        let job = crew.pool.job(1).expect("the job");
        assert_eq!(job["state"], "running", "it ended before there were enough guesses: {job}");
        wanted(count(&job, "guessed"), count(&job, "corrected"))
    });
    let story = crew.pool.explain("1");
    assert!(story.contains("edges guessed"), "{story}");
}

fn count(job: &Value, what: &str) -> u64 {
    let members = job["sim"]["crew"]["members"].as_array().cloned().unwrap_or_default();
    members.iter().map(|member| member[what].as_u64().expect("a count")).sum()
}

fn begin(crew: &Crew, stiffness: &str) -> Running {
    crew.begin_with(2, "250", &["--speculate", "--param", &format!("stiffness={stiffness}")])
}

#[test]
fn wrong_guesses_are_corrected_and_leave_no_trace() {
    let crew = Crew::of(2, &[]);
    let job = begin(&crew, "0.2");
    disturb(&crew, |_, corrected| corrected >= 3);
    job.end().ok();
    assert!(crew.field() == undisturbed());
}

/// Where nothing moves, what was is what will be.
#[test]
fn right_guesses_are_counted_as_such() {
    let crew = Crew::of(2, &[]);
    let job = begin(&crew, "0");
    disturb(&crew, |guessed, _| guessed >= 3);
    let counted = crew.pool.job(1).map(|job| count(&job, "corrected"));
    assert_eq!(counted, Some(0));
    job.end().ok();
    let still = crew.field();
    crew.begin_with(1, "0", &["--param", "stiffness=0"]).end().ok();
    assert!(crew.field() == still);
}
