//! What clients ask of models and devices hand on between slices: requests of the Open Inference Protocol, packed tensors,
//! and tensors on their way from one slice to the next.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal_kinds::onnx::inference::{self, InferenceError};
use shoal_kinds::onnx::tensor::{pack, pack_asked, unpack, unpack_asked};
use shoal_kinds::onnx::{Element, Head, Port, Side, Tensor, Wire, wire};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[how, low, high], body)) = bytes.split_first_chunk() else { return };
    match how % 4 {
        0 => asked(body, None),
        1 => asked(body, Some(usize::from(u16::from_le_bytes([low, high])))),
        2 => packed(body),
        _ => crossing(body),
    }
});

/// A request; `head` is the length of its JSON where bytes follow.
fn asked(body: &[u8], head: Option<usize>) {
    let asked = match inference::read(body, head) {
        Ok(asked) => asked,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let Ok((tensors, _)) = unpack_asked(&asked.packed) else {
        panic!("what a request was packed into is no request");
    };
    let heads: Vec<_> = tensors.iter().map(|tensor| tensor.head.clone()).collect();
    assert_eq!(heads, asked.heads);
    whole(&tensors);
    // The inputs come back as if they were the outputs.
    match inference::write("m", &asked, &pack(&tensors)) {
        Ok(written) => {
            assert!(serde_json::from_slice::<serde_json::Value>(&written.json).is_ok());
        }
        Err(InferenceError::NoOutput { .. }) => {}
        Err(error) => panic!("an answer that Shoal packed: {error}"),
    }
}

/// Tensors as they travel, with what is asked beside them or not.
fn packed(body: &[u8]) {
    if let Ok(tensors) = unpack(body) {
        whole(&tensors);
        assert_eq!(unpack(&pack(&tensors)).as_ref(), Ok(&tensors));
    }
    match unpack_asked(body) {
        Ok((tensors, sight)) => {
            whole(&tensors);
            let again = pack_asked(&tensors, &sight);
            let Ok((same, _)) = unpack_asked(&again) else { panic!("Shoal packed no request") };
            assert_eq!(same, tensors);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// What a slice gets from the one before it.
fn crossing(body: &[u8]) {
    // Models are cut for fixed shapes.
    let port = |name: &str, element, dims: &[u64]| {
        let dims = dims.iter().map(|dim| Side::Fixed(*dim));
        Port { name: name.into(), element, dims: Some(dims.collect()) }
    };
    let ports = [
        port("a", Element::F32, &[2, 3]),
        port("b", Element::F32, &[1, 65]),
        port("c", Element::I64, &[1]),
    ];
    match wire::receive(body, &ports) {
        Ok(arrived) => {
            let tensors: Vec<Tensor<'_>> = arrived
                .tensors
                .iter()
                .map(|(head, bytes)| Tensor { head: head.clone(), bytes })
                .collect();
            whole(&tensors);
            for form in Wire::ALL {
                let sent = wire::send(&tensors, form, arrived.seeking.as_ref());
                assert!(wire::receive(&sent, &ports).is_ok(), "Shoal sent what it does not take");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Each has the bytes that its shape says.
fn whole(tensors: &[Tensor<'_>]) {
    for Tensor { head, bytes } in tensors {
        let Head { name, .. } = head;
        assert_eq!(head.bytes(), Some(bytes.len()), "{name}");
    }
}
