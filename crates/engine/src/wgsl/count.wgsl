struct Params { value: u32, block: u32 }
@group(0) @binding(0) var<storage, read> numbers: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= arrayLength(&counts) { return; }
    let start = id.x * params.block;
    let end = min(start + params.block, arrayLength(&numbers));
    var found = 0u;
    for (var at = start; at < end; at++) {
        found += u32(numbers[at] == params.value);
    }
    counts[id.x] = found;
}
