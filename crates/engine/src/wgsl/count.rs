//! Counting runs as a map whose kernel is our own: one invocation for each block.

use shoal_kinds::count::{BLOCK, CountWork, WORKGROUP};
use shoal_kinds::{Binding, Kernel, MapWork, Params, Slot, Space};

const SOURCE: &str = include_str!("count.wgsl");

pub(super) fn as_map(work: &CountWork) -> MapWork {
    let bindings = [
        (0, Space::StorageRead, Slot::Input(0)),
        (1, Space::StorageReadWrite, Slot::Output),
        (2, Space::Uniform, Slot::Params),
    ];
    let bytes = [work.value, BLOCK].into_iter().flat_map(u32::to_le_bytes).collect();
    let kernel = Kernel {
        source: SOURCE.into(),
        entry: "main".into(),
        workgroup: [WORKGROUP, 1, 1],
        bindings: bindings.map(|(index, space, slot)| Binding { index, space, slot }).into(),
        params: Some(Params { bytes, places: Vec::new() }),
        windows: None,
    };
    MapWork { kernel, inputs: vec![work.input], output_bytes: 4, fold: None }
}
