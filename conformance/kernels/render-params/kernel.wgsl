struct Tile {
  tile_x: u32,
  tile_y: u32,
  tile_width: u32,
  tile_height: u32,
  stride: u32,
  image_width: u32,
  image_height: u32,
  samples: u32,
  tile: u32,
  total: u32,
  tint: vec3<f32>,
}

@group(0) @binding(0) var<storage, read_write> pixels: array<u32>;
@group(0) @binding(1) var<uniform> tile: Tile;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= tile.tile_width || id.y >= tile.tile_height) {
    return;
  }
  let x = tile.tile_x + id.x;
  let y = tile.tile_y + id.y;
  let at = id.y * tile.stride + id.x;
  let red = f32(tile.samples) / 255.0;
  let green = f32(tile.tile) / f32(tile.total);
  pixels[at] = pack4x8unorm(vec4(red, green, tile.tint.z, 1.0));
}
