//! Bodies of `POST /api/v1/jobs`, from bytes to a planned job, with the real check of kernels and
//! programs. The coordinator's own files are compiled in here: the whole crate, with its database, its
//! TLS and its server, would take minutes to instrument and add nothing.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only what plans a job is called")]

// The joining file of the command line names the coordinator as another crate; here it is this one.
extern crate self as shoal_coordinator;

#[path = "../../../crates/cli/src/intake.rs"]
mod engine;
#[path = "../../../crates/coordinator/src/intake.rs"]
mod intake;
#[path = "../../../crates/coordinator/src/json/mod.rs"]
mod json;
mod keys;
#[path = "../../../crates/coordinator/src/plan/mod.rs"]
mod plan;
mod store;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use shoal_protocol::JobSpec;

use intake::{Intake, SimAsked, SimPlan};
use keys::Signer;
use store::blobs::Blobs;

static BLOBS: LazyLock<Blobs> = LazyLock::new(Blobs::new);

fuzz_target!(|body: &[u8]| {
    let planned = plan::read(body).and_then(|request| {
        // What is understood can be shown again.
        assert!(serde_json::to_string(&request).is_ok());
        plan::plan(request, &engine::EngineIntake, &BLOBS, &Signer)
    });
    match planned {
        Ok(planned) => check(&planned.spec),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

/// What the scheduler takes for granted.
fn check(spec: &JobSpec) {
    assert!(spec.items > 0 && spec.sizing.grain > 0 && spec.sizing.grain <= spec.sizing.most);
    assert!(!spec.name.is_empty() && !spec.owner.is_empty());
    assert!(spec.limits.memory > 0 && spec.limits.output > 0);
}
