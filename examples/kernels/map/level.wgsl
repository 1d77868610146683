// Every block of 64 numbers without its mean: the 64 items of a workgroup add up together.
//
//   shoal map examples/kernels/map/level.wgsl signal.f32 --raw f32 -o level.npy

const SIZE = 64u;

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

var<workgroup> block: array<f32, SIZE>;

@compute @workgroup_size(SIZE)
fn main(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_id) own: vec3<u32>,
) {
    let i = id.x;
    let is_item = i < arrayLength(&input);
    block[own.x] = select(0.0, input[i], is_item);
    for (var half = SIZE / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (own.x < half) {
            block[own.x] += block[own.x + half];
        }
    }
    workgroupBarrier();
    if (is_item) {
        let rest = arrayLength(&input) - (i - own.x);
        output[i] = input[i] - block[0] / f32(min(rest, SIZE));
    }
}
