//! Needs a device, if only a software one: what cannot be seen from outside.

use pollster::block_on;
use shoal_kinds::{
    Binding, Feed, Field, InputSplit, Kernel, MapWork, Params, Pixel, RenderWork, Slot, Space,
};
use shoal_protocol::{BlobRef, Failure, Hash, Span};

use super::Gpu;
use super::memory::Route;

const MAP: &str = "
@group(0) @binding(0) var<storage, read> own: array<u32>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;
@group(0) @binding(3) var<uniform> offset: u32;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&output)) { output[id.x] = own[id.x] + table[id.x % 3u] + offset; }
}";

const RENDER: &str = "
struct Tile { x: u32, y: u32, stride: u32 }
@group(0) @binding(0) var<storage, read_write> output: array<u32>;
@group(0) @binding(1) var<uniform> tile: Tile;
@compute @workgroup_size(4, 4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (max(id.x, id.y) < tile.stride) {
    output[id.y * tile.stride + id.x] = (tile.x + id.x) * 100u + tile.y + id.y;
  }
}";

fn kernel(source: &str, slots: &[(Space, Slot)], params: Params, workgroup: [u32; 3]) -> Kernel {
    let bindings = slots.iter().zip(0..);
    Kernel {
        source: source.to_owned(),
        entry: "main".to_owned(),
        workgroup,
        bindings: bindings.map(|(&(space, slot), index)| Binding { index, space, slot }).collect(),
        params: Some(params),
        windows: None,
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

async fn map(gpu: &Gpu) -> Result<Vec<u32>, Failure> {
    let slots = [
        (Space::StorageRead, Slot::Input(0)),
        (Space::StorageRead, Slot::Input(1)),
        (Space::StorageReadWrite, Slot::Output),
        (Space::Uniform, Slot::Params),
    ];
    let params = Params { bytes: vec![0; 4], places: vec![(Field::Offset, 0)] };
    let input = |size, split| Feed { blob: BlobRef { hash: Hash([0; 32]), size }, split };
    let inputs =
        vec![input(800, InputSplit::PerItem { bytes: 4, reach: 0 }), input(12, InputSplit::Whole)];
    let kernel = kernel(MAP, &slots, params, [64, 1, 1]);
    let work = MapWork { kernel, inputs, output_bytes: 4, fold: None };
    let pipeline = gpu.prepare(&work.kernel).await?;
    let mut table = gpu.stage(12).await?;
    table.write(0, &bytes(&[1000, 2000, 3000]))?;
    let table = gpu.share(table).await?;
    let mut found = Vec::new();
    for span in [Span::new(0, 100), Span::new(100, 100)] {
        let mut stage = gpu.stage(400).await?;
        // In pieces that end within a word, as sockets give them.
        let own = bytes(&(0..100).collect::<Vec<_>>());
        stage.write(0, &own[..33])?;
        stage.write(33, &own[33..])?;
        let inputs = vec![stage.into(), table.clone().into()];
        found.extend(words(&gpu.map(&pipeline, &work, 200, span, inputs).await?));
    }
    Ok(found)
}

async fn render(gpu: &Gpu) -> Result<Vec<u32>, Failure> {
    let slots = [(Space::StorageReadWrite, Slot::Output), (Space::Uniform, Slot::Params)];
    let places = vec![(Field::TileX, 0), (Field::TileY, 4), (Field::Stride, 8)];
    let params = Params { bytes: vec![0; 12], places };
    let kernel = kernel(RENDER, &slots, params, [4, 4, 1]);
    let pixel = Pixel::Rgba8;
    let work = RenderWork { kernel, width: 9, height: 6, tile: 3, samples: 1, pixel };
    let pipeline = gpu.prepare(&work.kernel).await?;
    Ok(words(&gpu.render(&pipeline, &work, Span::new(1, 4)).await?))
}

#[test]
fn every_route_gives_the_same() {
    let wanted: Vec<u32> = (0..200)
        .map(|item| item % 100 + [1000, 2000, 3000][item as usize % 100 % 3] + item / 100 * 100)
        .collect();
    let tile = |x: u32, y: u32| (0..9).map(move |at| (x + at % 3) * 100 + y + at / 3);
    let tiles: Vec<u32> =
        [(3, 0), (6, 0), (0, 3), (3, 3)].into_iter().flat_map(|(x, y)| tile(x, y)).collect();
    for route in [None, Some(Route::Copied)] {
        let gpu = block_on(Gpu::open_by(route)).expect("a device");
        assert_eq!(block_on(map(&gpu)), Ok(wanted.clone()), "{route:?}");
        assert_eq!(block_on(render(&gpu)), Ok(tiles.clone()), "{route:?}");
        // Again, now with used buffers.
        assert_eq!(block_on(map(&gpu)), Ok(wanted.clone()), "{route:?}");
    }
}

#[test]
fn a_lost_device_says_so_and_another_can_be_opened() {
    let gpu = block_on(Gpu::open()).expect("a device");
    assert!(!gpu.is_lost());
    gpu.core.device.destroy();
    let _ = gpu.core.device.poll(wgpu::PollType::Poll);
    assert!(gpu.is_lost());
    assert!(matches!(block_on(gpu.stage(64)), Err(Failure::DeviceLost { .. })));
    drop(gpu);
    assert!(block_on(Gpu::open()).is_ok_and(|gpu| !gpu.is_lost()));
}
