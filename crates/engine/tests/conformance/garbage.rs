//! Damaged kernels and programs are refused or taken, but the check itself never fails.

use shoal_engine::intake;

use crate::case::Case;
use crate::data::split_mix;

/// Damaged copies of each case's file.
const COPIES: u64 = 40;
/// The words of a check that panicked; see `intake::unpanicking`.
const PANICKED: &str = "the check itself failed";

#[test]
fn damaged_kernels_never_break_the_check() {
    for case in Case::all().iter().filter(|case| case.json["wgsl"].is_string()) {
        let source = case.text(&case.json["wgsl"]);
        for copy in 0..COPIES {
            let damaged = String::from_utf8_lossy(&damaged(source.as_bytes(), copy)).into_owned();
            for outcome in [
                intake::map_kernel(&damaged, None, &case.params()).err(),
                intake::render_kernel(&damaged, None, &case.params()).err(),
            ] {
                let message = outcome.map(|error| error.message).unwrap_or_default();
                assert!(!message.contains(PANICKED), "{} copy {copy}:\n{damaged}", case.name);
            }
        }
    }
}

#[test]
fn damaged_programs_never_break_the_check() {
    for case in Case::all().iter().filter(|case| case.json["program"].is_string()) {
        let Ok(wasm) =
            wat::parse_bytes(&case.file(&case.json["program"])).map(|it| it.into_owned())
        else {
            continue;
        };
        for copy in 0..COPIES {
            if let Err(error) = intake::wasi_program(&damaged(&wasm, copy), 1 << 20) {
                assert!(!error.message.contains(PANICKED), "{} copy {copy}", case.name);
            }
        }
    }
}

/// A copy with some bytes changed, taken out or doubled, the same for the same seed.
fn damaged(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut state = seed ^ bytes.len() as u64;
    let mut copy = bytes.to_vec();
    for _ in 0..=split_mix(&mut state) % 4 {
        if copy.is_empty() {
            break;
        }
        let at = split_mix(&mut state) as usize % copy.len();
        match split_mix(&mut state) % 4 {
            0 => copy[at] = split_mix(&mut state) as u8,
            1 => drop(copy.remove(at)),
            2 => copy.insert(at, b" ;(){}<>0@"[split_mix(&mut state) as usize % 10]),
            _ => copy.truncate(at),
        }
    }
    copy
}
