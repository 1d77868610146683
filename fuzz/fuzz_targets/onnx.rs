//! Files that call themselves `.onnx`: read, inferred, cut and written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal_onnx::{Dim, Given, Model, TensorType};

/// What an open dimension is given as.
const OPEN: u64 = 2;

fuzz_target!(|bytes: &[u8]| {
    let model = match Model::read(bytes.to_vec()) {
        Ok(model) => model,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let given: Vec<_> = model.inputs().filter_map(given).collect();
    let shapes = match model.shapes(&given) {
        Ok(shapes) => shapes,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let cuts = model.cuts(&shapes);
    let parts = cuts.parts(4);
    for part in &parts.parts {
        let slice = match cuts.slice(part.from, part.to) {
            Ok(slice) => slice,
            Err(error) => panic!("a part is no slice: {error}"),
        };
        match Model::read(slice.file.to_bytes()) {
            Ok(read) => {
                let inputs: Vec<&str> = read.inputs().map(|input| input.name()).collect();
                assert_eq!(inputs, slice.takes);
            }
            Err(error) => panic!("a slice that Shoal wrote: {error}"),
        }
    }
    let again = model.explicit().map(|file| Model::read(file.to_bytes()));
    if let Some(Err(error)) = again {
        panic!("a model that Shoal wrote: {error}");
    }
});

fn given(input: &shoal_onnx::ValueInfo) -> Option<Given> {
    let declared = input.declared()?;
    let dims = declared.dims.as_ref()?.iter().map(|dim| match dim {
        Dim::Known(dim) => *dim,
        Dim::Open(_) => OPEN,
    });
    Some(Given::new(input.name(), TensorType::new(declared.dtype?, dims.collect::<Vec<_>>())))
}
