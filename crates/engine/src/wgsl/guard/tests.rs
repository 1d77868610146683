//! Kernels that turn their loops more often than some devices allow: the right result, or none.

use std::fs;
use std::path::Path;

use pollster::block_on;
use shoal_kinds::{Binding, Kernel, MapWork, Pixel, RenderWork, Slot, Space};
use shoal_protocol::{Failure, Span};

use wgpu::naga::Module;
use wgpu::naga::front::wgsl::parse_str;
use wgpu::naga::valid::{Capabilities, ValidationFlags, Validator};

use super::rewrite::watch;
use crate::wgsl::Gpu;
use crate::wgsl::memory::Route;

const ITEMS: u32 = 100;

/// `body` makes a `u32` of `id`, the item's number; `zero` is zero, which compilers do not know.
fn kernel(body: &str) -> Kernel {
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> output: array<u32>;
        var<workgroup> gate: atomic<u32>;
        fn step(x: u32, turn: u32) -> u32 {{ return x * 1664525u + turn; }}
        fn turned(x: u32, turns: u32) -> u32 {{
            var sum = x;
            for (var turn = 0u; turn < turns; turn++) {{ sum = step(sum, turn); }}
            return sum;
        }}
        fn item(id: u32, zero: u32) -> u32 {{ {body} }}
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) at: vec3<u32>) {{
            if (at.x >= arrayLength(&output)) {{ return; }}
            output[at.x] = item(at.x, output[at.x]);
        }}"
    );
    let bindings = vec![Binding { index: 0, space: Space::StorageReadWrite, slot: Slot::Output }];
    Kernel {
        source,
        entry: "main".into(),
        workgroup: [64, 1, 1],
        bindings,
        params: None,
        windows: None,
    }
}

fn run(gpu: &Gpu, body: &str) -> Result<Vec<u32>, Failure> {
    run_kernel(gpu, kernel(body))
}

fn run_kernel(gpu: &Gpu, kernel: Kernel) -> Result<Vec<u32>, Failure> {
    block_on(async {
        let work = MapWork { kernel, inputs: Vec::new(), output_bytes: 4, fold: None };
        let pipeline = gpu.prepare(&work.kernel).await?;
        let span = Span::new(0, u64::from(ITEMS));
        let answer = gpu.map(&pipeline, &work, span.len, span, Vec::new()).await?;
        Ok(answer.chunks(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect())
    })
}

fn turned(x: u32, turns: u32) -> u32 {
    (0..turns).fold(x, |sum, turn| sum.wrapping_mul(1_664_525).wrapping_add(turn))
}

fn wanted(item: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..ITEMS).map(item).collect()
}

/// A device without the flaw must give the result, one with it must give the result or say why not.
fn right_or_refused(gpu: &Gpu, body: &str, item: impl Fn(u32) -> u32) {
    judge(gpu, run(gpu, body), &wanted(item), body);
}

fn judge(gpu: &Gpu, outcome: Result<Vec<u32>, Failure>, wanted: &[u32], what: &str) {
    match (outcome, &gpu.core.guard) {
        (Ok(found), _) => assert_eq!(found, wanted, "{what}"),
        (Err(failure), Some(guard)) => assert_eq!(failure, guard.failure(), "{what}"),
        (Err(failure), None) => panic!("{failure}: {what}"),
    }
}

#[test]
fn loops_within_bounds_give_the_right_result() {
    for route in [None, Some(Route::Copied)] {
        let gpu = block_on(Gpu::open_by(route)).expect("a device");
        let found = run(&gpu, "return turned(id, 60000u + zero);");
        assert_eq!(found, Ok(wanted(|id| turned(id, 60_000))));
        let nested = "var sum = id;
            for (var turn = 0u; turn < 240u + zero; turn++) { sum = turned(sum, 240u + zero); }
            return sum;";
        let item = |id| (0..240).fold(id, |sum, _| turned(sum, 240));
        assert_eq!(run(&gpu, nested), Ok(wanted(item)));
    }
}

#[test]
fn loops_past_the_bounds_of_a_device_give_no_wrong_result() {
    for route in [None, Some(Route::Copied)] {
        let gpu = block_on(Gpu::open_by(route)).expect("a device");
        right_or_refused(&gpu, "return turned(id, 100000u + zero);", |id| turned(id, 100_000));
        // One invocation of all is enough.
        let one = "return turned(id, select(5u, 100000u, id == 77u) + zero);";
        right_or_refused(&gpu, one, |id| turned(id, if id == 77 { 100_000 } else { 5 }));
        // And the device is as good as before.
        assert_eq!(run(&gpu, "return turned(id, 9u + zero);"), Ok(wanted(|id| turned(id, 9))));
    }
}

#[test]
fn near_the_bound_nothing_is_wrong_either() {
    let gpu = block_on(Gpu::open()).expect("a device");
    for turns in 65_520..65_545 {
        let body = format!("return turned(id, {turns}u + zero);");
        right_or_refused(&gpu, &body, |id| turned(id, turns));
    }
}

#[test]
fn loops_count_together() {
    let gpu = block_on(Gpu::open()).expect("a device");
    let nested = "var sum = id;
        for (var turn = 0u; turn < 300u + zero; turn++) { sum = turned(sum, 300u + zero); }
        return sum;";
    right_or_refused(&gpu, nested, |id| (0..300).fold(id, |sum, _| turned(sum, 300)));
    let in_turn = "let sum = turned(id, 40000u + zero); return turned(sum, 40000u + zero);";
    right_or_refused(&gpu, in_turn, |id| turned(turned(id, 40_000), 40_000));
    // Neighbours run side by side: none of them turns too often, together they do.
    let branches = "if (id % 2u == 0u) { return turned(id, 40000u + zero); }
        return turned(id + 7u, 40001u + zero);";
    right_or_refused(&gpu, branches, |id| match id % 2 {
        0 => turned(id, 40_000),
        _ => turned(id + 7, 40_001),
    });
    let lengths = "var sum = id;
        for (var turn = 0u; turn < 16u; turn++) {
            sum = turned(sum, select(zero, 30000u, turn == id % 16u));
        }
        return sum;";
    right_or_refused(&gpu, lengths, |id| turned(id, 30_000));
}

#[test]
fn every_kind_of_loop_is_watched() {
    let gpu = block_on(Gpu::open()).expect("a device");
    let bodies = [
        "var sum = id; var turn = zero;
        while (turn < 90000u) { sum = step(sum, turn); turn++; } return sum;",
        "var sum = id; var turn = zero;
        loop { if (turn >= 90000u) { return sum; } sum = step(sum, turn); turn++; } return 1u;",
        "var sum = id; var turn = zero;
        loop { sum = step(sum, turn); continuing { turn++; break if turn >= 90000u; } }
        return sum;",
        "var sum = id; var turn = zero;
        loop { switch (turn / 90000u) { case 0u: { sum = step(sum, turn); }
            default: { return sum; } } turn++; if (turn > 90001u) { break; } } return 1u;",
    ];
    for body in bodies {
        right_or_refused(&gpu, body, |id| turned(id, 90_000));
    }
}

#[test]
fn an_endless_loop_ends_in_a_failure() {
    let gpu = block_on(Gpu::open()).expect("a device");
    // Elsewhere only the shell can end it.
    let Some(guard) = gpu.core.guard.clone() else { return };
    // An even number never becomes one.
    let endless = "var x = id * 2u + zero; while (x != 1u) { x = x * 4u + 2u; } return x;";
    let nested = "var x = id * 2u + zero;
        while (x != 1u) { var y = x; while (y != 3u) { y = y * 4u + 2u; } x = y * 2u; } return x;";
    let waiting = "while (atomicLoad(&gate) == zero) { } return 1u;";
    for body in [endless, nested, waiting] {
        assert_eq!(run(&gpu, body), Err(guard.failure()), "{body}");
    }
    let words = guard.failure().to_string();
    assert!(words.contains("ends loops after") && words.contains(&gpu.caps().name), "{words}");
}

#[test]
fn invocations_that_wait_for_each_other_are_watched() {
    let gpu = block_on(Gpu::open()).expect("a device");
    for turns in [3000, 80_000] {
        let mut kernel = kernel("return turned(id, zero);");
        kernel.source = format!(
            "struct At {{
                @builtin(local_invocation_index) own: u32,
                @builtin(global_invocation_id) all: vec3<u32>,
            }}
            override turns: u32 = {turns}u;
            @group(0) @binding(0) var<storage, read_write> output: array<u32>;
            var<workgroup> shared_words: array<u32, 64>;
            @compute @workgroup_size(64)
            fn main(at: At, @builtin(workgroup_id) group: vec3<u32>) {{
                shared_words[at.own] = at.own;
                for (var turn = 0u; turn < turns; turn++) {{
                    workgroupBarrier();
                    let next = shared_words[(at.own + 1u) % 64u];
                    workgroupBarrier();
                    shared_words[at.own] = next;
                }}
                output[at.all.x] = shared_words[at.own] + group.x;
            }}"
        );
        let wanted = wanted(|id| (id % 64 + turns) % 64 + id / 64);
        let found = run_kernel(&gpu, kernel);
        assert!(turns > 60_000 || found.is_ok(), "{found:?}");
        judge(&gpu, found, &wanted, "barriers");
    }
}

#[test]
fn tiles_are_watched_too() {
    let gpu = block_on(Gpu::open()).expect("a device");
    let mut kernel = kernel("return turned(id, 100000u + zero);");
    kernel.workgroup = [64, 1, 1];
    let pixel = Pixel::Rgba8;
    let work = RenderWork { kernel, width: 64, height: 2, tile: 64, samples: 1, pixel };
    let answer = block_on(async {
        let pipeline = gpu.prepare(&work.kernel).await?;
        Ok::<_, Failure>(gpu.render(&pipeline, &work, Span::new(0, 1)).await?.to_vec())
    });
    match (answer, &gpu.core.guard) {
        (Ok(found), _) => assert_eq!(found[256..260], turned(64, 100_000).to_le_bytes()),
        (Err(failure), Some(guard)) => assert_eq!(failure, guard.failure()),
        (Err(failure), None) => panic!("{failure}"),
    }
}

#[test]
fn only_kernels_with_loops_are_watched_and_only_readable_ones_run() {
    let watched = |source: &str| watch(source, "main").map(|it| it.is_some());
    assert_eq!(watched("@compute @workgroup_size(1) fn main() { }"), Ok(false));
    assert_eq!(watched("@compute @workgroup_size(1) fn main() { loop { break; } }"), Ok(true));
    assert!(watched("@compute @workgroup_size(1) fn other() { loop { break; } }").is_err());
    assert!(watched("fn main( { for").is_err());
}

/// Every kernel of the conformance cases is still a kernel when it is watched.
#[test]
fn what_is_watched_is_valid() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/kernels");
    let valid = |module: &Module| {
        Validator::new(ValidationFlags::all(), Capabilities::all()).validate(module).is_ok()
    };
    let mut watched = 0;
    for case in fs::read_dir(cases).expect("the cases") {
        let folder = case.expect("a case").path();
        // What the intake refuses never comes here.
        if folder.to_string_lossy().contains("refused") {
            continue;
        }
        let path = folder.join("kernel.wgsl");
        let source = fs::read_to_string(&path).expect("a kernel") + "\n// for";
        let Ok(plain) = parse_str(&source) else { continue };
        let Some(main) = plain.entry_points.first() else { continue };
        if valid(&plain) {
            let module = watch(&source, &main.name).ok().flatten().expect("a watched kernel");
            assert!(valid(&module.0), "{}", path.display());
            watched += 1;
        }
    }
    assert!(watched >= 30, "only {watched} kernels were looked at");
}
