// A path tracer: light is followed backwards from the eye through diffuse, metal and glass bodies.
//
//   shoal render examples/kernels/path.wgsl --size 1280x720 --samples 64 -o path.png
//
// Every random number comes from pixel and sample, so a tile looks the same whoever renders it.

struct Params {
    tile_x: u32,
    tile_y: u32,
    tile_width: u32,
    tile_height: u32,
    image_width: u32,
    image_height: u32,
    samples: u32,
    stride: u32,
}

@group(0) @binding(0) var<storage, read_write> output: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;

const TAU = 6.2831853;
const FAR = 1e9;
// A ray starts this far off the surface it left, so that rounding does not make it hit that again.
const SKIN = 1e-3;
const MOST_BOUNCES = 10u;
// Paths that carry little light end early by chance from here on.
const SURE_BOUNCES = 3u;

// ---- random numbers -------------------------------------------------------------------------

// The PCG permutation: one step of a small generator that passes statistical tests.
fn pcg(seed: u32) -> u32 {
    let state = seed * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

fn random(state: ptr<function, u32>) -> f32 {
    *state = pcg(*state);
    return f32(*state >> 8u) / 16777216.0;
}

fn random_direction(state: ptr<function, u32>) -> vec3<f32> {
    let z = 2.0 * random(state) - 1.0;
    let angle = TAU * random(state);
    return vec3<f32>(sqrt(max(0.0, 1.0 - z * z)) * vec2<f32>(cos(angle), sin(angle)), z);
}

// ---- the scene ------------------------------------------------------------------------------

struct Ray {
    origin: vec3<f32>,
    direction: vec3<f32>,
}

const DIFFUSE = 0u;
const METAL = 1u;
const GLASS = 2u;
const LAMP = 3u;

struct Sphere {
    centre: vec3<f32>,
    radius: f32,
    colour: vec3<f32>,
    // For metal how rough it is, for a lamp how bright.
    amount: f32,
    material: u32,
}

const SPHERES = 9u;

fn sphere(index: u32) -> Sphere {
    switch (index) {
        case 0u: { return Sphere(vec3(0.0, 1.0, 0.0), 1.0, vec3(1.0, 1.0, 1.0), 0.0, GLASS); }
        case 1u: { return Sphere(vec3(-2.3, 1.0, -0.9), 1.0, vec3(0.83, 0.33, 0.24), 0.0, DIFFUSE); }
        case 2u: { return Sphere(vec3(2.2, 1.0, -0.6), 1.0, vec3(0.95, 0.79, 0.49), 0.04, METAL); }
        case 3u: { return Sphere(vec3(-0.9, 0.35, 1.5), 0.35, vec3(0.18, 0.42, 0.82), 0.0, DIFFUSE); }
        case 4u: { return Sphere(vec3(1.1, 0.3, 1.7), 0.3, vec3(0.9, 0.9, 0.92), 0.25, METAL); }
        case 5u: { return Sphere(vec3(0.15, 0.22, 2.3), 0.22, vec3(0.93, 1.0, 0.95), 0.0, GLASS); }
        case 6u: { return Sphere(vec3(-1.7, 0.28, 2.0), 0.28, vec3(0.35, 0.68, 0.35), 0.0, DIFFUSE); }
        case 7u: { return Sphere(vec3(1.9, 0.2, 2.5), 0.2, vec3(1.0, 0.72, 0.42), 9.0, LAMP); }
        default: { return Sphere(vec3(-3.6, 0.6, 1.0), 0.6, vec3(0.75, 0.62, 0.9), 0.12, METAL); }
    }
}

struct Hit {
    distance: f32,
    normal: vec3<f32>,
    colour: vec3<f32>,
    amount: f32,
    material: u32,
}

// The nearest point of a sphere in front of the ray; FAR if it misses.
fn meet(ray: Ray, body: Sphere) -> f32 {
    let to_ray = ray.origin - body.centre;
    let b = dot(to_ray, ray.direction);
    let c = dot(to_ray, to_ray) - body.radius * body.radius;
    let inside = b * b - c;
    if (inside < 0.0) {
        return FAR;
    }
    let root = sqrt(inside);
    if (-b - root > SKIN) {
        return -b - root;
    }
    return select(FAR, -b + root, -b + root > SKIN);
}

fn trace(ray: Ray) -> Hit {
    var hit = Hit(FAR, vec3(0.0), vec3(0.0), 0.0, DIFFUSE);
    for (var i = 0u; i < SPHERES; i++) {
        let body = sphere(i);
        let distance = meet(ray, body);
        if (distance < hit.distance) {
            let point = ray.origin + distance * ray.direction;
            let normal = (point - body.centre) / body.radius;
            hit = Hit(distance, normal, body.colour, body.amount, body.material);
        }
    }
    // The ground: a plane with a fine chequered pattern.
    let distance = -ray.origin.y / ray.direction.y;
    if (distance > SKIN && distance < hit.distance) {
        let point = ray.origin + distance * ray.direction;
        let squares = floor(point.xz * 1.25);
        let odd = abs(squares.x + squares.y) % 2.0 == 1.0;
        let colour = select(vec3(0.72, 0.72, 0.70), vec3(0.30, 0.34, 0.38), odd);
        hit = Hit(distance, vec3(0.0, 1.0, 0.0), colour, 0.0, DIFFUSE);
    }
    return hit;
}

// A clear sky with a wide, hazy sun.
fn sky(direction: vec3<f32>) -> vec3<f32> {
    let up = clamp(direction.y, 0.0, 1.0);
    let blue = mix(vec3(0.86, 0.90, 0.96), vec3(0.28, 0.48, 0.85), pow(up, 0.55));
    let sun = max(dot(direction, normalize(vec3(-0.55, 0.62, 0.56))), 0.0);
    return 0.55 * blue + vec3(2.4, 2.0, 1.5) * pow(sun, 10.0);
}

// ---- surfaces -------------------------------------------------------------------------------

// How much of the light a glass surface throws back (Schlick's approximation).
fn thrown_back(cosine: f32, ratio: f32) -> f32 {
    let straight = (1.0 - ratio) / (1.0 + ratio);
    let base = straight * straight;
    return base + (1.0 - base) * pow(1.0 - cosine, 5.0);
}

fn through_glass(direction: vec3<f32>, outward: vec3<f32>, state: ptr<function, u32>) -> vec3<f32> {
    let entering = dot(direction, outward) < 0.0;
    let normal = select(-outward, outward, entering);
    let ratio = select(1.5, 1.0 / 1.5, entering);
    let cosine = min(-dot(direction, normal), 1.0);
    let bent = refract(direction, normal, ratio);
    // A zero vector: the angle is so flat that all light stays on its side.
    if (dot(bent, bent) == 0.0 || random(state) < thrown_back(cosine, ratio)) {
        return reflect(direction, normal);
    }
    return bent;
}

// Where the light goes on from a surface.
fn scatter(direction: vec3<f32>, hit: Hit, state: ptr<function, u32>) -> vec3<f32> {
    switch (hit.material) {
        case METAL: {
            let rough = hit.amount * random_direction(state);
            return normalize(reflect(direction, hit.normal) + rough);
        }
        case GLASS: {
            return normalize(through_glass(direction, hit.normal, state));
        }
        default: {
            // Cosine-weighted about the normal; the small term keeps it from being zero.
            return normalize(hit.normal * 1.0001 + random_direction(state));
        }
    }
}

// The light that arrives along a ray.
fn light(first: Ray, state: ptr<function, u32>) -> vec3<f32> {
    var ray = first;
    var carried = vec3<f32>(1.0);
    for (var bounce = 0u; bounce < MOST_BOUNCES; bounce++) {
        let hit = trace(ray);
        if (hit.distance == FAR) {
            return carried * sky(ray.direction);
        }
        if (hit.material == LAMP) {
            return carried * hit.colour * hit.amount;
        }
        carried *= hit.colour;
        if (bounce >= SURE_BOUNCES) {
            let strongest = clamp(max(carried.x, max(carried.y, carried.z)), 0.05, 1.0);
            if (random(state) > strongest) {
                return vec3<f32>(0.0);
            }
            carried /= strongest;
        }
        let point = ray.origin + hit.distance * ray.direction;
        let onward = scatter(ray.direction, hit, state);
        let side = select(-1.0, 1.0, dot(onward, hit.normal) > 0.0);
        ray = Ray(point + side * SKIN * hit.normal, onward);
    }
    return vec3<f32>(0.0);
}

// ---- the camera -----------------------------------------------------------------------------

const EYE = vec3<f32>(0.6, 1.55, 7.2);
const LOOKS_AT = vec3<f32>(-0.1, 0.75, 0.0);
// Half the picture's height at distance 1.
const HALF_HEIGHT = 0.30;
const LENS_RADIUS = 0.03;

fn camera(pixel: vec2<f32>, state: ptr<function, u32>) -> Ray {
    let image = vec2<f32>(f32(params.image_width), f32(params.image_height));
    let jittered = pixel + vec2<f32>(random(state), random(state));
    let screen = (2.0 * jittered - image) / image.y * HALF_HEIGHT;
    let ahead = normalize(LOOKS_AT - EYE);
    let right = normalize(cross(ahead, vec3(0.0, 1.0, 0.0)));
    let up = cross(right, ahead);
    let focus = length(LOOKS_AT - EYE) * (ahead + screen.x * right - screen.y * up);
    let angle = TAU * random(state);
    let lens = LENS_RADIUS * sqrt(random(state)) * vec2<f32>(cos(angle), sin(angle));
    let offset = lens.x * right + lens.y * up;
    return Ray(EYE + offset, normalize(focus - offset));
}

// Bright light fades to white instead of being cut (the ACES curve, fitted by Narkowicz).
fn tone(x: vec3<f32>) -> vec3<f32> {
    return clamp((x * (2.51 * x + 0.03)) / (x * (2.43 * x + 0.59) + 0.14), vec3(0.0), vec3(1.0));
}

fn srgb(linear: vec3<f32>) -> vec3<f32> {
    let curved = 1.055 * pow(linear, vec3(1.0 / 2.4)) - 0.055;
    return select(curved, 12.92 * linear, linear <= vec3(0.0031308));
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.tile_width || id.y >= params.tile_height) {
        return;
    }
    let x = params.tile_x + id.x;
    let y = params.tile_y + id.y;
    var sum = vec3<f32>(0.0);
    for (var sample = 0u; sample < params.samples; sample++) {
        var state = pcg(pcg(x + y * params.image_width) + sample);
        sum += light(camera(vec2<f32>(f32(x), f32(y)), &state), &state);
    }
    let colour = srgb(tone(0.8 * sum / f32(params.samples)));
    output[id.y * params.stride + id.x] = pack4x8unorm(vec4<f32>(colour, 1.0));
}
