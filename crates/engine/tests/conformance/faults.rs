//! What goes wrong on a node is reported as what it is, and the engine goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pollster::block_on;
use shoal_engine::intake;
use shoal_engine::wasi::{Run, Wasi};
use shoal_engine::wgsl::{Gpu, Input, Readback, Stage};
use shoal_kinds::{Feed, InputSplit, MapWork};
use shoal_protocol::{BlobRef, Failure, Hash, Limits, Span};

const DOUBLE: &str = "
@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&output)) { output[id.x] = input[id.x] * 2u; }
}";

fn double(items: u64) -> MapWork {
    let kernel = intake::map_kernel(DOUBLE, None, &[]).unwrap().kernel;
    let blob = BlobRef { hash: Hash([0; 32]), size: items * 4 };
    let inputs = vec![Feed { blob, split: InputSplit::PerItem { bytes: 4, reach: 0 } }];
    MapWork { kernel, inputs, output_bytes: 4, fold: None }
}

async fn unit(gpu: &Gpu, work: &MapWork, items: u64, span: Span) -> Result<Vec<u8>, Failure> {
    let pipeline = gpu.prepare(&work.kernel).await?;
    let mut stage = gpu.stage(span.len * 4).await?;
    let bytes: Vec<u8> =
        (span.start..span.end()).flat_map(|item| (item as u32).to_le_bytes()).collect();
    stage.write(0, &bytes)?;
    Ok(gpu.map(&pipeline, work, items, span, vec![stage.into()]).await?.to_vec())
}

#[test]
fn a_kernel_the_device_refuses_is_the_kernels_fault_and_the_device_lives() {
    let gpu = block_on(Gpu::open()).unwrap();
    let mut work = double(64);
    // With a loop too, which some devices look at before they compile.
    for source in ["fn main( {", "fn main( { loop { break; } }"] {
        work.kernel.source = source.to_owned();
        let Err(Failure::Kernel { message }) = block_on(gpu.prepare(&work.kernel)) else {
            panic!("the kernel was taken");
        };
        assert!(message.starts_with("1:10:") && message.contains("expected"), "{message}");
    }
    assert!(!gpu.is_lost());
    assert!(block_on(unit(&gpu, &double(64), 64, Span::new(0, 64))).is_ok());
}

#[test]
fn a_kernel_whose_bindings_do_not_fit_is_refused_by_validation() {
    let gpu = block_on(Gpu::open()).unwrap();
    let mut work = double(64);
    work.kernel.bindings.pop();
    assert!(matches!(block_on(gpu.prepare(&work.kernel)), Err(Failure::Kernel { .. })));
    assert!(!gpu.is_lost());
}

#[test]
fn more_memory_than_there_is_is_said_to_be_that() {
    let gpu = block_on(Gpu::open()).unwrap();
    let Err(Failure::OutOfMemory { message }) = block_on(gpu.stage(1 << 50)) else {
        panic!("a petabyte was given");
    };
    assert!(message.contains("at most"), "{message}");
    assert!(block_on(gpu.stage(1 << 20)).is_ok());
}

#[test]
fn inputs_of_the_wrong_size_are_not_computed_on() {
    let gpu = block_on(Gpu::open()).unwrap();
    let work = double(64);
    let failure = block_on(async {
        let pipeline = gpu.prepare(&work.kernel).await?;
        let stage = gpu.stage(12).await?;
        gpu.map(&pipeline, &work, 64, Span::new(0, 64), vec![stage.into()]).await.map(|_| ())
    });
    assert!(matches!(failure, Err(Failure::Internal { .. })), "{failure:?}");
    let mut stage = block_on(gpu.stage(4)).unwrap();
    assert!(stage.write(2, &[0; 4]).is_err());
}

/// Some software GPUs end loops after 65,535 turns.
#[test]
fn a_long_loop_gives_the_right_result_or_says_that_this_gpu_ended_it() {
    let gpu = block_on(Gpu::open()).unwrap();
    let mut work = double(64);
    let source = DOUBLE.replace(
        "input[id.x] * 2u",
        "input[id.x]; for (var i = 0u; i < 100000u + input[0]; i++) { output[id.x] ^= i * 7u; }",
    );
    work.kernel = intake::map_kernel(&source, None, &[]).unwrap().kernel;
    match block_on(unit(&gpu, &work, 64, Span::new(0, 64))) {
        Ok(found) => {
            let mixed = (0..100_000u32).fold(0, |mixed, i| mixed ^ i.wrapping_mul(7));
            let wanted: Vec<u8> = (0..64).flat_map(|it: u32| (it ^ mixed).to_le_bytes()).collect();
            assert_eq!(found, wanted);
        }
        Err(Failure::Unable { message }) => {
            assert!(message.contains("ends loops after"), "{message}");
            assert!(message.contains("run it on a node with a real GPU"), "{message}");
        }
        Err(other) => panic!("{other}"),
    }
    assert!(block_on(unit(&gpu, &double(64), 64, Span::new(0, 64))).is_ok());
}

#[test]
fn units_in_flight_at_a_time_do_not_mix() {
    let gpu = block_on(Gpu::open()).unwrap();
    let items = 1 << 18;
    let work = double(items);
    let each = items / 64;
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (gpu, work) = (gpu.clone(), &work);
            scope.spawn(move || {
                for at in (worker..64).step_by(4) {
                    let span = Span::new(at * each, each);
                    let found = block_on(unit(&gpu, work, items, span)).unwrap();
                    let first = u32::from_le_bytes(found[..4].try_into().unwrap());
                    let last = u32::from_le_bytes(found[found.len() - 4..].try_into().unwrap());
                    let wanted = (span.start as u32 * 2, (span.end() as u32 - 1) * 2);
                    assert_eq!((first, last), wanted);
                }
            });
        }
    });
}

#[test]
fn what_the_shell_holds_can_go_to_another_thread() {
    fn is_send<T: Send + 'static>() {}
    is_send::<(Gpu, Stage, Input, Readback)>();
    fn future_is_send<T: Send>(_: T) {}
    let gpu = block_on(Gpu::open()).unwrap();
    let work = double(64);
    future_is_send(unit(&gpu, &work, 64, Span::new(0, 64)));
}

/// Of vectors too: what a processor gives differs from one to the other.
#[test]
fn nans_have_one_bit_pattern() {
    let wasi = Wasi::new().unwrap();
    let wat = "(module
      (import \"wasi_snapshot_preview1\" \"fd_write\" (func $write (param i32 i32 i32 i32) (result i32)))
      (memory (export \"memory\") 1)
      (func (export \"_start\")
        (v128.store (i32.const 64) (f32x4.div (v128.load (i32.const 128)) (v128.load (i32.const 128))))
        (v128.store (i32.const 80) (f64x2.sub
          (v128.const i64x2 0xfff8000000000001 0x7ff0000000000000)
          (v128.const i64x2 0 0x7ff0000000000000)))
        (f32.store (i32.const 96) (f32.div (f32.load (i32.const 128)) (f32.load (i32.const 128))))
        (i32.store (i32.const 0) (i32.const 64))
        (i32.store (i32.const 4) (i32.const 36))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))";
    let module = wasi.compile(&wat::parse_str(wat).unwrap()).unwrap();
    let answer = wasi.run(&module, nothing_asked(Arc::default())).unwrap();
    let (single, double) = (0x7fc0_0000_u32.to_le_bytes(), 0x7ff8_0000_0000_0000_u64.to_le_bytes());
    assert_eq!(answer.stdout, [&single.repeat(4)[..], &double.repeat(2), &single].concat());
}

#[test]
fn a_cancelled_program_ends_soon() {
    let wasi = Wasi::new().unwrap();
    let wat = "(module (memory (export \"memory\") 1) (func (export \"_start\") (loop (br 0))))";
    let module = wasi.compile(&wat::parse_str(wat).unwrap()).unwrap();
    let cancel = Arc::new(AtomicBool::new(false));
    let run = nothing_asked(cancel.clone());
    let start = Instant::now();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        cancel.store(true, Ordering::Relaxed);
    });
    let ended = wasi.run(&module, run).unwrap_err();
    assert!(matches!(ended.failure, Failure::Internal { .. }) && ended.told.is_none());
    assert!(start.elapsed() < Duration::from_secs(5));
}

fn nothing_asked(cancel: Arc<AtomicBool>) -> Run {
    Run {
        item: 0,
        again: 0,
        ok: vec![0],
        args: Vec::new(),
        env: Vec::new(),
        input: None,
        stdin: Default::default(),
        folder: None,
        leaves: false,
        limits: Limits::default(),
        clock: false,
        cancel,
        give: None,
    }
}
