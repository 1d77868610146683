struct Tile {
  tile_x: u32,
  tile_y: u32,
  tile_width: u32,
  tile_height: u32,
  stride: u32,
  image_width: u32,
  image_height: u32,
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
  pixels[at] = x | (y << 8u) | (0x80u << 16u) | (0xffu << 24u);
}
