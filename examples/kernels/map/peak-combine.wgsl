// Of two values with their places, the larger one; of two equal ones, the earlier. Goes with
// peak.wgsl.

fn combine(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    if (b.x > a.x) {
        return b;
    }
    return a;
}
