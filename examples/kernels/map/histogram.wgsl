// How many samples from 0 to 255 fall into each of 8 bins: an item reads 100 of them and writes 8
// counts, `--reduce sum` adds the counts of all items.
//
//   shoal map examples/kernels/map/histogram.wgsl samples.u32 --raw u32 --in-per 100 --out-per 8 \
//     --reduce sum -o counts.npy

const SAMPLES = 100u;
const BINS = 8u;

@group(0) @binding(0) var<storage, read> samples: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i * BINS >= arrayLength(&counts)) {
        return;
    }
    var bins: array<u32, BINS>;
    for (var k = 0u; k < SAMPLES; k++) {
        bins[min(samples[i * SAMPLES + k] / 32u, BINS - 1u)]++;
    }
    for (var k = 0u; k < BINS; k++) {
        counts[i * BINS + k] = bins[k];
    }
}
