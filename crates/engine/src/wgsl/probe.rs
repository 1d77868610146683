//! Which way a device rounds: a short kernel whose bits differ wherever devices do. Equal numbers
//! stand for devices that agree bit for bit; others are compared within a tolerance.

use shoal_kinds::{Binding, Kernel, MapWork, Slot, Space};
use shoal_protocol::{Failure, Span};

use super::Gpu;

/// Enough places to meet each function's awkward spots; well under a millisecond of work.
const ITEMS: u64 = 256;
const FLOATS_PER_ITEM: u32 = 16;

/// What the language leaves to the device: the last bits of functions and divisions, whether a product
/// and a sum are rounded once or twice, and what becomes of the smallest numbers. The loop is short,
/// because software GPUs count the turns of all loops together.
const KERNEL: &str = "
@group(0) @binding(0) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&output) / 16u) { return; }
    let at = id.x * 16u;
    let i = f32(id.x);
    let x = i * 0.37 + 0.011;
    let y = 1.0 + i * 0.013;
    output[at] = sin(x);
    output[at + 1u] = cos(x);
    output[at + 2u] = sin(x * 97.0);
    output[at + 3u] = tan(i * 0.006);
    output[at + 4u] = exp(x * 0.1 - 4.0);
    output[at + 5u] = log(x);
    output[at + 6u] = exp2(x * 0.25 - 9.0);
    output[at + 7u] = log2(y);
    output[at + 8u] = sqrt(x);
    output[at + 9u] = inverseSqrt(y);
    output[at + 10u] = x / y;
    output[at + 11u] = pow(y, 1.7);
    output[at + 12u] = atan2(x - 40.0, y);
    output[at + 13u] = tanh(i * 0.02 - 2.5);
    var sum = 0.0;
    var term = x * 0.01;
    for (var turn = 0u; turn < 8u; turn++) {
        sum = sum + term * y;
        term = term * -0.77 + sum * 0.125;
    }
    output[at + 14u] = sum;
    output[at + 15u] = x * 1.0e-20 * (y * 1.0e-19);
}
";

/// The numeric class of a device, never 0. The same device gives the same number every time.
pub async fn probe(gpu: &Gpu) -> Result<u64, Failure> {
    let binding = Binding { index: 0, space: Space::StorageReadWrite, slot: Slot::Output };
    let kernel = Kernel {
        source: KERNEL.to_owned(),
        entry: "main".to_owned(),
        workgroup: [64, 1, 1],
        bindings: vec![binding],
        params: None,
        windows: None,
    };
    let work =
        MapWork { kernel, inputs: Vec::new(), output_bytes: FLOATS_PER_ITEM * 4, fold: None };
    let pipeline = gpu.prepare(&work.kernel).await?;
    let answer = gpu.map(&pipeline, &work, ITEMS, Span::new(0, ITEMS), Vec::new()).await?;
    Ok(class_of(&answer))
}

fn class_of(answer: &[u8]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(answer).as_bytes();
    // Zero says that a class is unknown.
    u64::from_le_bytes([a, b, c, d, e, f, g, h]).max(1)
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::wgsl::memory::Route;
    use pollster::block_on;

    #[test]
    fn a_device_has_one_class_however_its_bytes_travel() {
        let classes = [None, None, Some(Route::Copied)].map(|route| {
            let gpu = block_on(Gpu::open_by(route)).expect("a device");
            [block_on(probe(&gpu)), block_on(probe(&gpu))]
        });
        let [[first, _], ..] = classes.clone();
        assert!(first.as_ref().is_ok_and(|class| *class != 0), "{first:?}");
        assert!(classes.iter().flatten().all(|class| *class == first), "{classes:?}");
    }

    #[test]
    fn one_other_bit_is_another_class() {
        assert_ne!(class_of(&[0; 64]), class_of(&[[0; 63].as_slice(), &[1]].concat()));
    }
}
