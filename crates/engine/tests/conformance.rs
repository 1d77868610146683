//! Runs the cases of `/conformance` on the native engines. A case is data; see
//! `conformance/README.md`.
//!
//! - `SHOAL_OUTSIDE`: folder with the outside material named in `conformance/outside.json`; cases
//!   that need it are left out without it.
//! - `SHOAL_REQUIRE_ALL=1`: a case that would be left out is a failure.
//! - `SHOAL_CASE`: run only cases whose name contains this.
//! - `SHOAL_PREPARED`: folder to write what a browser needs: programs as `.wasm`, kernels as
//!   checked work.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at the first surprise"
)]

#[path = "conformance/case.rs"]
mod case;
#[path = "conformance/data.rs"]
mod data;
#[path = "conformance/exec.rs"]
mod exec;
#[path = "conformance/faults.rs"]
mod faults;
#[path = "conformance/garbage.rs"]
mod garbage;
#[path = "conformance/map.rs"]
mod map;
#[path = "conformance/prepared.rs"]
mod prepared;
#[path = "conformance/render.rs"]
mod render;
#[path = "conformance/sim.rs"]
mod sim;
#[path = "conformance/unit.rs"]
mod unit;

use case::Case;
use shoal_engine::wasi::Wasi;
use shoal_engine::wgsl::Gpu;
use shoal_kinds::Kind;

/// At least this many cases are ours and run everywhere.
const OWN_CASES: usize = 30;

#[test]
fn all_cases() {
    let gpu = pollster::block_on(Gpu::open()).unwrap();
    let wasi = Wasi::new().unwrap();
    let filter = std::env::var("SHOAL_CASE").unwrap_or_default();
    let (mut ran, mut failures) = (0, Vec::new());
    for case in Case::all().into_iter().filter(|case| case.name.contains(&filter)) {
        if case.is_outside() && !case::outside_is_there() {
            println!("left out {}: no outside material", case.name);
            continue;
        }
        if !Kind::NAMES.contains(&case.kind()) && !case::all_are_required() {
            println!("left out {}: this build does not know the kind {}", case.name, case.kind());
            continue;
        }
        let outcome = match case.kind() {
            "map" => map::run(&gpu, &case),
            "render" => render::run(&gpu, &case),
            "sim" => sim::run(&gpu, &case),
            "exec" => exec::run(&wasi, &case),
            _ => unit::run(&gpu, &case),
        };
        ran += 1;
        match outcome {
            Ok(()) => println!("ok {}", case.name),
            Err(problem) => {
                println!("FAILED {}: {problem}", case.name);
                failures.push(format!("{}: {problem}", case.name));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {ran} cases failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(!filter.is_empty() || ran >= OWN_CASES, "only {ran} cases were found");
}
