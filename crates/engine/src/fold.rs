//! The text of a kernel that folds blocks of a map's outputs.

use shoal_kinds::map::fold::{FOLD_ITEMS, Fold, How};

/// Its entry point.
pub(crate) const ENTRY: &str = "shoal_fold";
/// Its workgroup.
pub(crate) const WORKGROUP: u32 = 64;

/// A built-in way to fold: what it makes of an element, and how it combines two of those.
pub(crate) struct Parts {
    /// What is folded, and its bytes.
    pub(crate) made: &'static str,
    pub(crate) bytes: u32,
    lift: &'static str,
    pub(crate) combine: &'static str,
}

const ADD_64: &str = "fn combine(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}";

/// Floats in the order of their bits, which all devices agree on; what is no number stays.
const MIN_F32: &str = "fn key(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}
fn is_none(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn combine(a: f32, b: f32) -> f32 {
  return select(b, a, is_none(a) || (!is_none(b) && key(a) <= key(b)));
}";
const MAX_F32: &str = "fn key(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}
fn is_none(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn combine(a: f32, b: f32) -> f32 {
  return select(b, a, is_none(a) || (!is_none(b) && key(a) >= key(b)));
}";

/// None for what cannot be folded so.
pub(crate) fn parts(how: &How, element: &str) -> Option<Parts> {
    let same = |made, combine| Parts { made, bytes: 4, lift: "", combine };
    Some(match (how, element) {
        (How::Sum, "f32") => same("f32", "fn combine(a: f32, b: f32) -> f32 { return a + b; }"),
        (How::Sum, "u32") => Parts {
            made: "vec2<u32>",
            bytes: 8,
            lift: "fn shoal_lift(x: u32) -> vec2<u32> { return vec2<u32>(x, 0u); }",
            combine: ADD_64,
        },
        (How::Sum, "i32") => Parts {
            made: "vec2<u32>",
            bytes: 8,
            lift: "fn shoal_lift(x: i32) -> vec2<u32> {
  return vec2<u32>(bitcast<u32>(x), select(0u, 0xffffffffu, x < 0));
}",
            combine: ADD_64,
        },
        (How::Min, "f32") => same("f32", MIN_F32),
        (How::Max, "f32") => same("f32", MAX_F32),
        (How::Min, "u32") => same("u32", "fn combine(a: u32, b: u32) -> u32 { return min(a, b); }"),
        (How::Max, "u32") => same("u32", "fn combine(a: u32, b: u32) -> u32 { return max(a, b); }"),
        (How::Min, "i32") => same("i32", "fn combine(a: i32, b: i32) -> i32 { return min(a, b); }"),
        (How::Max, "i32") => same("i32", "fn combine(a: i32, b: i32) -> i32 { return max(a, b); }"),
        (How::Sum | How::Min | How::Max | How::Combine(_), _) => return None,
    })
}

/// The kernel: an invocation for each block and column. None if the fold is none.
pub(crate) fn text(fold: &Fold) -> Option<String> {
    let Fold { how, element, columns, .. } = fold;
    let (made, lift, combine) = match how {
        How::Combine(source) => (element.as_str(), "", source.as_str()),
        How::Sum | How::Min | How::Max => {
            let parts = parts(how, element)?;
            (parts.made, parts.lift, parts.combine)
        }
    };
    let lifted = |at: &str| match lift {
        "" => format!("shoal_input[{at}]"),
        _ => format!("shoal_lift(shoal_input[{at}])"),
    };
    let (first, next) = (
        lifted(&format!("first * {columns}u + column")),
        lifted(&format!("i * {columns}u + column")),
    );
    Some(format!(
        "{combine}
{lift}
@group(0) @binding(0) var<storage, read> shoal_input: array<{element}>;
@group(0) @binding(1) var<storage, read_write> shoal_output: array<{made}>;
@group(0) @binding(2) var<uniform> shoal_items: vec4<u32>;
@compute @workgroup_size({WORKGROUP})
fn {ENTRY}(@builtin(global_invocation_id) id: vec3<u32>) {{
  let first = id.x / {columns}u * {FOLD_ITEMS}u;
  let column = id.x % {columns}u;
  if (first >= shoal_items.x) {{ return; }}
  let end = min(first + {FOLD_ITEMS}u, shoal_items.x);
  var folded = {first};
  for (var i = first + 1u; i < end; i++) {{ folded = combine(folded, {next}); }}
  shoal_output[id.x] = folded;
}}
"
    ))
}

/// A kernel that gives back its input, so that what was folded can be folded again.
pub(crate) fn copy(how: &How, made: &str, columns: u32) -> String {
    let types = match how {
        How::Combine(source) => source.as_str(),
        How::Sum | How::Min | How::Max => "",
    };
    format!(
        "{types}
@group(0) @binding(0) var<storage, read> shoal_in: array<{made}>;
@group(0) @binding(1) var<storage, read_write> shoal_out: array<{made}>;
@compute @workgroup_size(64)
fn shoal_copy(@builtin(global_invocation_id) id: vec3<u32>) {{
  if (id.x * {columns}u >= arrayLength(&shoal_out)) {{ return; }}
  for (var k = 0u; k < {columns}u; k++) {{
    shoal_out[id.x * {columns}u + k] = shoal_in[id.x * {columns}u + k];
  }}
}}
"
    )
}
