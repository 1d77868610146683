@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;

const NAMES = array<u32, 4>(11u, 22u, 33u, 44u);
const SHIFT = 1u << 4u;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= arrayLength(&output)) {
    return;
  }
  switch (input[i] % 5u) {
    case 0u: {
      output[i] = NAMES[0] + SHIFT;
    }
    case 1u, 2u: {
      output[i] = NAMES[input[i] % 4u];
    }
    default: {
      output[i] = 7u;
    }
  }
}
