//! Arrays in cases: written out, generated, or in a file; and their comparison.

use serde_json::Value;

use crate::case::Case;

/// The bytes of `{"type", "values" | "ramp" | "random" | "file"}`, little-endian.
pub(crate) fn bytes(case: &Case, array: &Value) -> Vec<u8> {
    if !array["file"].is_null() {
        return case.file(&array["file"]);
    }
    let ty = array["type"].as_str().unwrap();
    numbers(array).into_iter().flat_map(|number| encode(ty, number)).collect()
}

fn numbers(array: &Value) -> Vec<f64> {
    let number = |value: &Value| value.as_f64().unwrap();
    let count = |value: &Value| value["count"].as_u64().unwrap();
    if let Some(values) = array["values"].as_array() {
        return values.iter().map(number).collect();
    }
    let ramp = &array["ramp"];
    if !ramp.is_null() {
        let (start, step) = (number(&ramp["start"]), number(&ramp["step"]));
        return (0..count(ramp)).map(|at| start + at as f64 * step).collect();
    }
    let random = &array["random"];
    let (low, high) = (number(&random["low"]), number(&random["high"]));
    let mut state = random["seed"].as_u64().unwrap();
    (0..count(random))
        .map(|_| {
            // The upper 24 bits: exact in an f32 as well.
            let unit = (split_mix(&mut state) >> 40) as f64 / (1u64 << 24) as f64;
            let number = low + unit * (high - low);
            if array["type"] == "f32" { number } else { number.floor() }
        })
        .collect()
}

pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn encode(ty: &str, number: f64) -> [u8; 4] {
    match ty {
        "f32" => (number as f32).to_le_bytes(),
        "u32" => (number as u32).to_le_bytes(),
        "i32" => (number as i32).to_le_bytes(),
        other => panic!("unknown type {other}"),
    }
}

fn decode(ty: &str, word: &[u8]) -> f64 {
    let word = [word[0], word[1], word[2], word[3]];
    match ty {
        "f32" => f64::from(f32::from_le_bytes(word)),
        "u32" => f64::from(u32::from_le_bytes(word)),
        "i32" => f64::from(i32::from_le_bytes(word)),
        other => panic!("unknown type {other}"),
    }
}

/// Whether `found` is what `expect` says, within its tolerance: `abs + rel * |expected|`, exact
/// without one.
pub(crate) fn compare(case: &Case, expect: &Value, found: &[u8]) -> Result<(), String> {
    let expected = bytes(case, expect);
    if expected.len() != found.len() {
        return Err(format!("{} bytes instead of {}", found.len(), expected.len()));
    }
    let ty = expect["type"].as_str().unwrap();
    let part = |name: &str| expect["tolerance"][name].as_f64().unwrap_or(0.0);
    let (abs, rel, channel) = (part("abs"), part("rel"), part("channel"));
    for (at, (want, have)) in expected.chunks(4).zip(found.chunks(4)).enumerate() {
        if want == have {
            continue;
        }
        // Packed colours are compared channel by channel.
        if channel > 0.0 {
            let far = want.iter().zip(have).any(|(w, h)| f64::from(w.abs_diff(*h)) > channel);
            if far {
                return Err(format!("pixel {at} is {have:?} instead of {want:?}"));
            }
            continue;
        }
        let (want, have) = (decode(ty, want), decode(ty, have));
        let same_nan = want.is_nan() && have.is_nan();
        let near = (want - have).abs() <= abs + rel * want.abs();
        if !near && !same_nan {
            return Err(format!("value {at} is {have} instead of {want}"));
        }
    }
    Ok(())
}
