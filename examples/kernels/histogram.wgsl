// Histograms of blocks: every item reads 256 numbers and writes 8 counts.
//
//   shoal map examples/kernels/histogram.wgsl samples.npy --in-per 256 --out-per 8 -o counts.npy
//
// Samples are u32 from 0 to 255; adding the blocks' counts gives the histogram of all.

const BLOCK = 256u;
const BINS = 8u;

@group(0) @binding(0) var<storage, read> samples: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x * BINS >= arrayLength(&counts)) {
        return;
    }
    var bins: array<u32, BINS>;
    for (var i = 0u; i < BLOCK; i++) {
        let bin = min(samples[id.x * BLOCK + i] * BINS / 256u, BINS - 1u);
        bins[bin]++;
    }
    for (var i = 0u; i < BINS; i++) {
        counts[id.x * BINS + i] = bins[i];
    }
}
