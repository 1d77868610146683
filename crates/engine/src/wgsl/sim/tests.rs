//! Needs a device, if only a software one.

use pollster::block_on;
use shoal_kinds::{Pass, SimField, SimSlots, SimWork};
use shoal_protocol::{Failure, Poke, Span};

use super::SimBand;
use crate::wgsl::Gpu;
use crate::wgsl::memory::Route;

/// Each pass looks `REACH` rows up and down and one cell to either side.
const SOURCE: &str = "
struct Params { width: u32, height: u32, first_row: u32, rows: u32, step: u32, poke: vec4<f32>, brush: vec2<f32> }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> next: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> picture: array<u32>;

fn cell(x: u32, y: i32) -> vec2<u32> {
    let row = u32(clamp(y, 0, i32(params.rows) - 1));
    return state[row * params.width + x % params.width];
}

@compute @workgroup_size(8, 4)
fn mix(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.rows) { return; }
    let y = i32(id.y);
    let up = cell(id.x, y - REACH);
    let down = cell(id.x, y + REACH);
    let side = cell(id.x + 1u, y);
    let row = (params.first_row + id.y) % params.height;
    var here = cell(id.x, y) * 3u + up * 5u + down * 7u + side.yx + vec2<u32>(row, params.step);
    if (params.brush.x > 0.0 && f32(row) == params.poke.y) { here += vec2<u32>(u32(params.poke.x), u32(params.brush.y)); }
    next[id.y * params.width + id.x] = here;
}

@compute @workgroup_size(8, 4)
fn init(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.rows) { return; }
    let row = (params.first_row + id.y) % params.height;
    next[id.y * params.width + id.x] = vec2<u32>(row * 1000u + id.x, id.x * 77u);
}

@compute @workgroup_size(8, 4)
fn show(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.rows) { return; }
    let row = (params.first_row + id.y) % params.height;
    picture[id.y * params.width + id.x] = row | (id.x << 8u) | 0xff000000u;
}
";

fn work(reach: u32, times: u32) -> SimWork {
    let pass = |entry: &str, times| Pass { entry: entry.to_owned(), workgroup: [8, 4, 1], times };
    let fields = [
        (SimField::Width, 0),
        (SimField::Height, 4),
        (SimField::FirstRow, 8),
        (SimField::Rows, 12),
        (SimField::Step, 16),
        (SimField::Poke, 32),
        (SimField::Brush, 48),
    ];
    SimWork {
        source: SOURCE.replace("REACH", &reach.to_string()),
        width: 21,
        height: 64,
        steps: 4,
        halo: 2,
        passes: vec![pass("mix", times)],
        init: Some(pass("init", 1)),
        show: Some(pass("show", 1)),
        first: None,
        members: 0,
        keep_every: None,
        speculate: false,
        cell_bytes: 8,
        lanes: 2,
        scalar: "u32".to_owned(),
        slots: SimSlots { params: 0, state: 1, next: 2, picture: Some(3) },
        params: vec![0; 64],
        fields: fields.to_vec(),
        reduce: None,
    }
}

const POKE: Poke = Poke { at: [5.0, 30.0], by: [0.0, 0.0], radius: 1.0, strength: 9.0 };

/// Whether edges are computed apart.
const WAYS: [bool; 2] = [false, true];

/// The state after `steps` steps on bands of these lengths, which pass each other their edges.
fn run(
    gpu: &Gpu,
    work: &SimWork,
    (bands, apart): (&[u64], bool),
    steps: u64,
) -> Result<Vec<u8>, Failure> {
    block_on(async {
        let program = gpu.sim(work).await?;
        let mut start = 0;
        let mut members: Vec<SimBand> = Vec::new();
        for len in bands {
            members.push(program.open(Span::new(start, *len), apart).await?);
            start += len;
        }
        let mut edges = Vec::new();
        for band in &mut members {
            band.init().await?;
            let found = band.edges().await?;
            edges.push((found.top().to_vec(), found.bottom().to_vec()));
        }
        let count = members.len();
        for step in 0..steps {
            let mut made = Vec::new();
            for (rank, band) in members.iter_mut().enumerate() {
                let above = &edges[(rank + count - 1) % count].1;
                let below = &edges[(rank + 1) % count].0;
                let poke = (step == 1).then_some(POKE);
                let found = band.step(step, above, below, poke).await?;
                made.push((found.top().to_vec(), found.bottom().to_vec()));
            }
            edges = made;
        }
        let mut all = Vec::new();
        for (band, (top, bottom)) in members.iter().zip(&edges) {
            let rows = band.read(band.rows()).await?.to_vec();
            assert!(rows.starts_with(top) && rows.ends_with(bottom), "edges first are the edges");
            all.extend(rows);
        }
        Ok(all)
    })
}

/// The same on the processor, without bands.
fn reference(work: &SimWork, reach: i64, steps: u64) -> Vec<u8> {
    let (width, height) = (work.width as i64, i64::from(work.height));
    let at = |x: i64, y: i64| (y.rem_euclid(height) * width + x.rem_euclid(width)) as usize;
    let cells = (0..height).flat_map(|y| (0..width).map(move |x| [y * 1000 + x, x * 77]));
    let mut state: Vec<[u32; 2]> = cells.map(|cell| cell.map(|it| it as u32)).collect();
    for step in 0..steps {
        for _ in 0..work.passes[0].times {
            let old = state.clone();
            for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
                let [here, up, down, side] = [(x, y), (x, y - reach), (x, y + reach), (x + 1, y)]
                    .map(|(x, y)| old[at(x, y)]);
                let poked = step == 1 && y == 30;
                let add =
                    [y as u32 + if poked { 5 } else { 0 }, step as u32 + if poked { 9 } else { 0 }];
                for lane in 0..2 {
                    state[at(x, y)][lane] = (here[lane].wrapping_mul(3))
                        .wrapping_add(up[lane].wrapping_mul(5))
                        .wrapping_add(down[lane].wrapping_mul(7))
                        .wrapping_add(side[1 - lane])
                        .wrapping_add(add[lane]);
                }
            }
        }
    }
    state.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn the_split_does_not_show() {
    for route in [None, Some(Route::Copied)] {
        let gpu = block_on(Gpu::open_by(route)).expect("a device");
        // One pass that reaches two rows, or two that reach one each.
        for (reach, times) in [(2, 1), (1, 2)] {
            let work = work(reach, times);
            let wanted = reference(&work, i64::from(reach), 5);
            // The smallest band is as high as the halo, too small for edges apart; another has nothing between its edges.
            let splits = [&[64][..], &[40, 24], &[2, 33, 29], &[5, 4, 55]];
            for way in splits.into_iter().flat_map(|bands| WAYS.map(|apart| (bands, apart))) {
                assert_eq!(run(&gpu, &work, way, 5), Ok(wanted.clone()), "{way:?} {reach}");
            }
        }
    }
}

#[test]
fn a_step_taken_back_was_never_made() {
    let gpu = block_on(Gpu::open()).expect("a device");
    for (reach, times, apart) in [(2, 1, false), (1, 2, false), (2, 1, true), (1, 2, true)] {
        let work = work(reach, times);
        let wanted = reference(&work, i64::from(reach), 2);
        let found = block_on(async {
            let mut band = gpu.sim(&work).await?.open(Span::new(0, 64), apart).await?;
            assert!(!band.back(), "there was no step");
            band.init().await?;
            let mut edges = band.edges().await?;
            for step in 0..2 {
                let wrong = vec![7; edges.top().len()];
                band.step(step, &wrong, &wrong, None).await?;
                assert!(band.back() && !band.back());
                let poke = (step == 1).then_some(POKE);
                edges = band.step(step, edges.bottom(), edges.top(), poke).await?;
            }
            Ok::<_, Failure>(band.read(band.rows()).await?.to_vec())
        });
        assert_eq!(found, Ok(wanted));
    }
}

#[test]
fn a_kernel_that_reaches_beyond_its_halo_is_found_out() {
    let gpu = block_on(Gpu::open()).expect("a device");
    for (reach, times, least) in [(3, 1, "at least 3 rows"), (1, 3, "at least 3 rows")] {
        let splits = [&[64][..], &[40, 24], &[2, 33, 29]];
        for way in splits.into_iter().flat_map(|bands| WAYS.map(|apart| (bands, apart))) {
            match run(&gpu, &work(reach, times), way, 1) {
                Err(Failure::Kernel { message }) => {
                    assert!(message.contains(least) && message.contains("has 2"), "{message}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_pass_that_leaves_cells_unwritten_is_found_out() {
    let gpu = block_on(Gpu::open()).expect("a device");
    let mut work = work(1, 1);
    let written = "next[id.y * params.width + id.x] = here;";
    work.source = work.source.replace(written, &format!("if (id.x != 3u) {{ {written} }}"));
    for apart in WAYS {
        match run(&gpu, &work, (&[40, 24], apart), 1) {
            Err(Failure::Kernel { message }) => assert!(message.contains("unwritten"), "{message}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn rows_are_loaded_read_and_shown() {
    let gpu = block_on(Gpu::open()).expect("a device");
    block_on(async {
        let mut work = work(1, 1);
        let program = gpu.sim(&work).await.expect("compiles");
        let mut band = program.open(Span::new(10, 7), false).await.expect("room");
        let row = vec![3; 21 * 8];
        band.load(12, &[row.as_slice(), &row].concat()).expect("loads");
        let read = band.read(Span::new(11, 2)).await.expect("reads");
        assert_eq!(read.to_vec(), [vec![0; 21 * 8], row.clone()].concat());
        drop(read);
        assert!(
            band.load(9, &row).is_err()
                && band.load(16, &[row.clone(), row.clone()].concat()).is_err()
        );
        assert!(band.load(12, &row[1..]).is_err());
        assert!(program.open(Span::new(60, 7), false).await.is_err(), "beyond the grid");
        assert!(program.open(Span::new(0, 1), false).await.is_err(), "less than the halo");

        let view = band.show(1).await.expect("shows");
        assert_eq!((view.first, view.rows, view.width), (10, 7, 21));
        assert_eq!(view.rgba[..8], [10, 0, 0, 255, 10, 1, 0, 255]);
        // Rows 12..15 and 15..17, which is cut at the band's end.
        let view = band.show(3).await.expect("shows");
        assert_eq!((view.first, view.rows, view.width), (4, 2, 7));
        assert_eq!(view.rgba[..8], [13, 1, 0, 255, 13, 4, 0, 255]);
        assert_eq!(view.rgba[28..32], [16, 1, 0, 255]);

        work.show = None;
        work.slots.picture = None;
        let program = gpu.sim(&work).await.expect("compiles");
        let mut band = program.open(Span::new(0, 64), false).await.expect("room");
        band.load(1, &row).expect("loads");
        let view = band.show(1).await.expect("shows");
        assert_eq!(view.rgba[21 * 4 - 4..21 * 4 + 4], [0, 0, 0, 255, 255, 255, 255, 255]);
    });
}

#[test]
fn loops_cut_short_and_lost_devices_are_noticed() {
    let gpu = block_on(Gpu::open()).expect("a device");
    let mut long = work(1, 1);
    long.source = long.source.replace(
        "let y = i32(id.y);",
        "let y = i32(id.y); var turns = 0u; var sum = state[0].x;
         while (turns < 100000u) { sum = sum * 3u + turns; turns++; } if (sum == 7u) { return; }",
    );
    let found = run(&gpu, &long, (&[64], false), 1);
    match &gpu.core.guard {
        Some(guard) => assert_eq!(found, Err(guard.failure())),
        None => assert!(found.is_ok()),
    }
    let program = block_on(gpu.sim(&work(1, 1))).expect("compiles");
    let mut band = block_on(program.open(Span::new(0, 64), false)).expect("room");
    block_on(band.settle()).expect("goes on");
    gpu.core.device.destroy();
    let _ = gpu.core.device.poll(wgpu::PollType::Poll);
    let halo = vec![0; 2 * 21 * 8];
    let failure = block_on(band.step(0, &halo, &halo, None)).err();
    assert!(matches!(failure, Some(Failure::DeviceLost { .. })), "{failure:?}");
}

#[test]
fn a_step_is_timed() {
    let gpu = block_on(Gpu::open()).expect("a device");
    let start = std::time::Instant::now();
    let now = || shoal_protocol::Time(start.elapsed().as_micros() as u64);
    let (cells, took) = block_on(gpu.time_sim(&work(1, 2), now)).expect("a time");
    assert_eq!(cells, 21 * 64);
    assert!(took.0 > 0);
}
