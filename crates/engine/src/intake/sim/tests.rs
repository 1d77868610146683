//! What is found in a file, and what is refused in which words.

use super::*;

const FILE: &str = "
// passes: spread*3, fade
// params: rate=0.25
struct Params { width: u32, height: u32, first_row: u32, rows: u32, step: u32, rate: f32, poke: vec4<f32>, brush: vec2<f32> }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> next: array<vec2<f32>>;
@group(0) @binding(3) var<storage, read_write> picture: array<u32>;
fn helper() {}
@compute @workgroup_size(8, 8)
fn fade(@builtin(global_invocation_id) id: vec3<u32>) { next[id.x] = state[id.x] * params.rate; }
@compute @workgroup_size(8, 4)
fn spread(@builtin(global_invocation_id) id: vec3<u32>) { next[id.x] = state[id.x]; }
@compute @workgroup_size(16, 16)
fn init(@builtin(global_invocation_id) id: vec3<u32>) { next[id.x] = vec2<f32>(1.0); }
@compute @workgroup_size(8, 8)
fn show(@builtin(global_invocation_id) id: vec3<u32>) { picture[id.x] = u32(state[id.x].x); }
";

fn ask(source: &str) -> SimAsk<'_> {
    SimAsk { source, width: 64, height: 48, steps: 10, halo: None, passes: None, params: &[] }
}

fn refused(ask: &SimAsk<'_>, part: &str) {
    let error = super::super::sim(ask).expect_err(part);
    assert!(error.message.contains(part), "{part:?} is not in: {error}");
}

#[test]
fn a_file_is_understood() {
    let (work, needs) = super::super::sim(&ask(FILE)).expect("a simulation");
    let names: Vec<_> = work.passes.iter().map(|it| (it.entry.as_str(), it.times)).collect();
    assert_eq!(names, [("spread", 3), ("fade", 1)]);
    assert_eq!(work.passes[0].workgroup, [8, 4, 1]);
    assert_eq!((work.halo, work.cell_bytes, work.lanes), (4, 8, 2));
    assert_eq!(work.scalar, "f32");
    assert!(work.init.is_some() && work.show.is_some());
    assert_eq!(work.slots.picture, Some(3));
    assert_eq!(work.params[20..24], 0.25f32.to_le_bytes());
    assert!(
        work.fields.contains(&(SimField::Poke, 32)) && work.fields.contains(&(SimField::Brush, 48))
    );
    assert_eq!(work.params.len(), 64);
    assert_eq!((needs.workgroup_invocations, needs.buffer_bytes), (256, 56 * 64 * 8));
}

#[test]
fn a_request_overrides_the_file_and_the_file_order_is_the_default() {
    let rate = [("rate".to_owned(), ParamValue::Float(0.5))];
    let given = SimAsk { halo: Some(7), passes: Some("fade"), params: &rate, ..ask(FILE) };
    let (work, _) = super::super::sim(&given).expect("a simulation");
    assert_eq!((work.halo, work.passes.len()), (7, 1));
    assert_eq!(work.params[20..24], 0.5f32.to_le_bytes());
    let plain = FILE.replace("// passes:", "// in order:");
    let (work, _) = super::super::sim(&ask(&plain)).expect("a simulation");
    let names: Vec<_> = work.passes.iter().map(|it| it.entry.as_str()).collect();
    assert_eq!((names, work.halo), (vec!["fade", "spread"], 2));
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let file = ask(FILE);
    refused(
        &SimAsk { passes: Some("melt"), ..file.clone() },
        "no pass `melt`; it has `fade`, `spread`",
    );
    refused(&SimAsk { passes: Some("helper"), ..file.clone() }, "lacks @compute");
    refused(&SimAsk { passes: Some("fade, show"), ..file.clone() }, "`show` is run by itself");
    refused(&SimAsk { passes: Some("fade*2000"), ..file.clone() }, "2000 passes");
    refused(&SimAsk { halo: Some(0), ..file.clone() }, "the halo is 0");
    refused(&SimAsk { halo: Some(49), ..file.clone() }, "49 rows, more than the grid's 48");
    refused(&SimAsk { width: 0, ..file.clone() }, "0 by 48");
    refused(&SimAsk { steps: 0, ..file.clone() }, "0 steps");
    refused(&SimAsk { steps: 1 << 32, ..file.clone() }, "a u32");
    refused(&SimAsk { width: 16_000, height: 16_000, ..file.clone() }, "1954 MiB");
    refused(&SimAsk { width: u32::MAX, height: u32::MAX - 8, ..file.clone() }, "MiB");
    refused(&SimAsk { width: 1_000_000, height: 4, ..file.clone() }, "workgroups in a row");
    let wrong = [("speed".to_owned(), ParamValue::Int(1))];
    refused(&SimAsk { params: &wrong, ..file.clone() }, "no parameter `speed`");
    let filled = [("width".to_owned(), ParamValue::Int(1))];
    refused(&SimAsk { params: &filled, ..file }, "filled by Shoal");
}

#[test]
fn what_a_file_has_wrong_is_refused() {
    for (from, to, part) in [
        ("// params: rate=0.25", "", "`rate` (f32)"),
        ("state", "before", "`before` is none of"),
        (
            "var<storage, read> state",
            "var<storage, read_write> state",
            "must be `var<storage, read>`",
        ),
        ("@group(0) @binding(3)", "@group(1) @binding(3)", "group 1"),
        ("@group(0) @binding(3)", "@group(0) @binding(2)", "@binding(2)"),
        ("poke: vec4<f32>", "poke: vec2<f32>", "must be a vec4<f32>, not vec2<f32>"),
        ("@workgroup_size(8, 4)", "@workgroup_size(8, 4, 2)", "deeper than 1"),
        ("{ next[id.x] = state[id.x]; }", "{ }", "`spread` does not write `next`"),
        ("rate: f32,", "rate: f32, table: array<vec4<f32>, 5000>,", "table"),
    ] {
        let file = FILE.replace(from, to);
        assert_ne!(file, FILE, "{from}");
        refused(&ask(&file), part);
    }
}

#[test]
fn cells_are_of_one_kind_and_without_gaps() {
    let cell = |ty: &str| {
        format!(
            "struct Params {{ width: u32 }} struct Mixed {{ a: f32, b: u32 }} struct Pair {{ a: vec2<f32>, b: f32 }}
            @group(0) @binding(0) var<uniform> params: Params;
            @group(0) @binding(1) var<storage, read> state: array<{ty}>;
            @group(0) @binding(2) var<storage, read_write> next: array<{ty}>;
            @compute @workgroup_size(8, 8)
            fn go(@builtin(global_invocation_id) id: vec3<u32>) {{ next[id.x] = state[id.x + params.width]; }}"
        )
    };
    refused(&ask(&cell("Mixed")), "made of mixed numbers");
    refused(&ask(&cell("vec3<f32>")), "holds 3 numbers but takes the room of 4");
    refused(&ask(&cell("Pair")), "holds 3 numbers but takes the room of 4");
    for (ty, lanes) in [("i32", 1), ("vec4<u32>", 4), ("mat2x2<f32>", 4), ("array<f32, 3>", 3)] {
        let (work, _) = super::super::sim(&ask(&cell(ty))).expect(ty);
        assert_eq!(work.lanes, lanes, "{ty}");
    }
}

#[test]
fn a_file_without_its_bindings_is_told_which() {
    let start = "struct Params { width: u32 }
        @compute @workgroup_size(1) fn go() { _ = 1; }";
    refused(&ask(start), "no parameter block");
    let params = format!("@group(0) @binding(0) var<uniform> params: Params;\n{start}");
    refused(&ask(&params), "no `state`");
    let state = format!("@group(0) @binding(1) var<storage, read> state: array<f32>;\n{params}");
    refused(&ask(&state), "no `next`");
    refused(&ask("struct A { b: u32 }"), "no pass");
    let next = "@group(0) @binding(2) var<storage, read_write> next: array<u32>;";
    refused(&ask(&format!("{next}\n{state}")), "`next` is an array of u32, but `state` one of f32");
}
