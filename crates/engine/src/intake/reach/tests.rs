//! Kernels as people write them, and what is found out of each.

use super::*;
use crate::intake::map_reading;

const TWO: &str = "@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
";

/// A kernel over `input` and `output`, of these statements; `i` is the item.
fn reading_of(body: &str, ask: &MapAsk) -> Result<MapReading, IntakeError> {
    let source = format!(
        "{TWO}@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  let i = id.x;
  let n = arrayLength(&input);
  if (i >= arrayLength(&output)) {{ return; }}
  {body}
}}"
    );
    map_reading(&source, None, &[], ask)
}

fn ask(inputs: usize) -> MapAsk {
    let input = InputAsk { whole: false, per_item: 1, overlap: None };
    MapAsk { inputs: vec![input; inputs], out_per_item: 1, ..MapAsk::default() }
}

fn one(per_item: u32, out_per_item: u32) -> MapAsk {
    let input = InputAsk { whole: false, per_item, overlap: None };
    MapAsk { inputs: vec![input], out_per_item, ..MapAsk::default() }
}

/// Without windows: the kernel is run as it was written.
fn is_plain(body: &str, ask: &MapAsk) {
    let reading = reading_of(body, ask).expect("is taken");
    assert_eq!(reading.windows, None, "{body}");
    assert_eq!(reading.inputs, [Reading::Own], "{body}");
}

fn reads(body: &str, wanted: &Reading) {
    let reading = reading_of(body, &ask(1)).expect("is taken");
    assert!(reading.windows.is_some(), "{body}");
    assert_eq!(reading.inputs, std::slice::from_ref(wanted), "{body}");
}

fn refused(body: &str, ask: &MapAsk, words: &str) {
    let error = reading_of(body, ask).expect_err("is refused");
    assert!(error.message.contains(words), "{}", error.message);
    assert!(error.line.is_some(), "{}", error.message);
}

#[test]
fn a_kernel_that_keeps_to_its_item_is_run_as_it_is() {
    for body in [
        "output[i] = input[i] * 2.0;",
        "var x = input[i]; x = x * x; output[i] = x;",
        "if (input[i] > 0.5) { output[i] = 1.0; } else { output[i] = input[min(i, n - 1u)]; }",
        "var at = i; output[at] = input[at];",
        "for (var k = 0u; k < 8u; k++) { output[i] += input[i] * f32(k); }",
    ] {
        is_plain(body, &ask(1));
    }
    for body in [
        "for (var k = 0u; k < 4u; k++) { output[i] += input[i * 4u + k]; }",
        "for (var k = 0u; k < 4u; k += 2u) { output[i] += input[i * 4u + k] * input[(i << 2u) + k + 1u]; }",
        "let row = 4u * i; var sum = 0.0; for (var k = 3; k >= 0; k--) { sum += 1.0; } output[i] = input[row] + sum;",
    ] {
        is_plain(body, &one(4, 1));
    }
}

#[test]
fn a_constant_shift_is_an_overlap() {
    reads("output[i] = input[i] + input[i + 1u];", &Reading::Near { elements: 1 });
    reads("output[i] = input[i] - input[i - 1u];", &Reading::Near { elements: 1 });
    reads("output[i] = input[max(i, 1u) - 1u];", &Reading::Near { elements: 1 });
    reads("output[i] = input[min(i + 1u, n - 1u)];", &Reading::Near { elements: 1 });
    reads(
        "let x = i32(i); output[i] = input[x - 2] + input[x + 3];",
        &Reading::Near { elements: 3 },
    );
    reads(
        "for (var k = 0u; k < 5u; k++) { output[i] += input[i + k - 2u]; }",
        &Reading::Near { elements: 2 },
    );
    reads(
        "if (i > 0u && i < n - 1u) { output[i] = input[i - 1u] + input[i + 1u]; }",
        &Reading::Near { elements: 1 },
    );
}

#[test]
fn a_look_that_nobody_can_follow_needs_the_whole_array() {
    reads("output[i] = input[n - 1u - i];", &Reading::Anywhere { line: 8 });
    reads("output[i] = input[u32(input[i])];", &Reading::Anywhere { line: 8 });
    reads("output[i] = input[0];", &Reading::Anywhere { line: 8 });
    reads("output[i] = input[i / 2u];", &Reading::Anywhere { line: 8 });
}

#[test]
fn a_place_that_becomes_a_number_is_the_one_in_the_whole() {
    for body in [
        "output[i] = f32(id.x);",
        "output[i] = input[i] / f32(n);",
        "if (i % 2u == 0u) { output[i] = input[i]; }",
        "var x = 0.0; for (var k = 0u; k < i; k++) { x += 1.0; } output[i] = input[i] + x;",
        "var p = 0u; for (var k = 0u; k < 3u; k++) { if (k == 2u) { output[i] = f32(p); } p = i; }",
        "output[i] = select(input[i], 0.0, i == 5u);",
    ] {
        let reading = reading_of(body, &ask(1)).expect("is taken");
        assert!(reading.windows.is_some(), "{body}");
        assert_eq!(reading.inputs, [Reading::Own], "{body}");
    }
}

#[test]
fn what_can_be_no_map_is_refused_with_the_way_out() {
    refused("output[i + 1u] = input[i];", &ask(1), "Turn it around");
    refused("output[2u * i] = input[i];", &ask(1), "--out-per 2");
    refused("output[i] = input[2u * i] + input[2u * i + 1u];", &ask(1), "--in-per input=2");
    refused("output[i] = input[i];", &one(4, 1), "--in-per input=1");
    let source = format!(
        "{}@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  atomicAdd(&counts[u32(input[id.x])], 1u);
}}",
        TWO.replace("output: array<f32>", "counts: array<atomic<u32>>")
    );
    let error = map_reading(&source, None, &[], &ask(1)).expect_err("is refused");
    assert!(error.message.contains("--reduce sum"), "{}", error.message);
}

#[test]
fn an_unguarded_write_is_kept_from_other_items() {
    let source = format!(
        "{TWO}@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {{ output[id.x] = input[id.x]; }}"
    );
    let reading = map_reading(&source, None, &[], &ask(1)).expect("is taken");
    assert!(reading.windows.is_some_and(|windows| windows.may_return));
}

#[test]
fn functions_structs_and_comments_are_followed() {
    let source = "struct At { @builtin(global_invocation_id) id: vec3<u32>, @builtin(workgroup_id) group: vec3<u32> }
@group(0) @binding(0) var<storage, read> input: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> output: array<f32>;
fn near(i: u32, by: i32) -> f32 { return input[ /* [ */ u32(i32(i) + by) /* ] */ ].x; }
fn has_none(i: u32) -> bool { return i >= arrayLength(&output); }
@compute @workgroup_size(64) fn main(at: At) /* { */ {
  if (has_none(at.id.x)) { return; }
  let p = &input;
  output[at.id.x] = near(at.id.x, -1) + near(at.id.x, 2) + (*p)[at.id.x + 1u][2] + f32(at.group.x);
}";
    let reading = map_reading(source, None, &[], &ask(1)).expect("is taken");
    assert_eq!(reading.inputs, [Reading::Near { elements: 2 }]);
    assert!(reading.whole_groups);
    let windows = reading.windows.expect("is taken");
    assert_eq!((windows.block, windows.report), (1, 2));
}

#[test]
fn a_kernel_that_asks_for_its_units_place_keeps_it() {
    let source = "struct Place { offset: u32, length: u32 }
@group(0) @binding(0) var<uniform> place: Place;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= place.length) { return; }
  output[id.x] = (place.offset + id.x) * 2u + place.offset;
}";
    let reading = map_reading(source, None, &[], &ask(0)).expect("is taken");
    assert_eq!(reading.windows, None);
}

/// Kernels that once were taken for plain ones: each gives other numbers when units are cut elsewhere.
#[test]
fn nothing_that_follows_from_a_units_end_is_taken_for_plain() {
    let has_windows = |body: &str, ask: &MapAsk| {
        let reading = reading_of(body, ask).expect("is taken");
        assert!(reading.windows.is_some(), "{body}");
    };
    for body in [
        "let right = min(i + 1u, n - 1u); let left = max(i, 1u) - 1u; output[i] = input[i] * f32(right - left);",
        "var x = 0u; var y = 0u; var k = 0u;
         loop { k += 1u; if (input[i] > 0.5) { x = i; continue; } x = 0u; continuing { y = x; break if k >= 2u; } }
         output[i] = f32(y);",
        "if ((i << 22u) >= (arrayLength(&output) << 22u)) { return; } output[i] = f32(i);",
        "output[i] = input[i + min(65536u * 65537u, 70000u) - 70000u];",
    ] {
        has_windows(body, &ask(1));
    }
    has_windows("output[i] = input[max(8u * i + 1u, 8u) - 1u];", &one(8, 1));
    has_windows(
        "var k = 0u; let first = k; var sum = 0.0;
         loop { if (first < 8u) {} else { break; } sum += input[8u * i + k]; if (k >= 11u) { break; } continuing { k += 1u; } }
         output[i] = sum;",
        &one(8, 1),
    );
}

#[test]
fn a_whole_parameter_block_is_not_its_first_member() {
    let source = "struct Params { total: u32, length: u32 }
@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let p = params;
  if (id.x >= p.length) { return; }
  output[id.x] = input[id.x] / f32(p.length);
}";
    assert!(map_reading(source, None, &[], &ask(1)).expect("is taken").windows.is_some());
}

#[test]
fn a_kernel_too_long_to_follow_gets_windows() {
    let calls = "x += h(x);".repeat(120);
    let list = vec!["1u"; 4000].join(", ");
    let source = format!(
        "{TWO}fn h(x: u32) -> u32 {{ var list = array<u32, 4000>({list}); return list[x % 4000u]; }}
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  if (id.x >= arrayLength(&output)) {{ return; }}
  var x = 0u;
  for (var k = 0u; k < 3u; k++) {{ {calls} x = id.x; }}
  output[id.x] = input[id.x] + f32(x);
}}"
    );
    let reading = map_reading(&source, None, &[], &ask(1)).expect("is taken");
    assert!(reading.windows.is_some());
}

#[test]
fn a_function_that_takes_the_place_of_a_built_in_one_is_refused() {
    let source = format!(
        "{TWO}fn select(a: u32, b: u32, c: bool) -> u32 {{ if (c) {{ return a; }} return b; }}
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  if (id.x >= arrayLength(&output)) {{ return; }}
  output[id.x] = input[select(id.x, id.x + 1u, false)]; // shoal_x is no name here
}}"
    );
    let error = map_reading(&source, None, &[], &ask(1)).expect_err("is refused");
    assert!(error.message.contains("`select`"), "{}", error.message);
}
