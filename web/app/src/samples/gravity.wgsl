// One step of gravity among many bodies, each drawn towards all others.
// Give the bodies whole to every unit: each unit moves its own part of them.

struct Params {
    offset: u32,
    total: u32,
    step: f32,
    softness: f32,
}

@group(0) @binding(0) var<storage, read> bodies: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> moved: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&moved)) { return; }
    let me = bodies[params.offset + id.x];
    var pull = vec2<f32>(0.0);
    for (var i = 0u; i < params.total; i++) {
        let away = bodies[i].xy - me.xy;
        let distance = dot(away, away) + params.softness;
        pull += away * inverseSqrt(distance * distance * distance);
    }
    let speed = me.zw + pull * params.step / f32(params.total);
    moved[id.x] = vec4<f32>(me.xy + speed * params.step, speed);
}
