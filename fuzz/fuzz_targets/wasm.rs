//! Programs that strangers submit: raw bytes, and valid modules grown from them.
#![no_main]

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use shoal_engine::intake::wasi_program;
use wasm_smith::{Config, Module};
use wasmparser::{Parser, Payload, Validator};

const PAGE: u64 = 64 << 10;
/// A limit in the reach of what a module may ask for.
const LIMIT: u64 = 16 * PAGE;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    if let Some(module) = grown(bytes) {
        check(&module);
    }
});

/// A valid command that imports nothing: raw bytes seldom become one.
fn grown(bytes: &[u8]) -> Option<Vec<u8>> {
    let config = Config {
        bulk_memory_enabled: true,
        extended_const_enabled: true,
        gc_enabled: false,
        max_imports: 0,
        max_memory32_bytes: 64 * PAGE,
        memory64_enabled: false,
        multi_value_enabled: true,
        exceptions_enabled: false,
        relaxed_simd_enabled: false,
        threads_enabled: false,
        wide_arithmetic_enabled: false,
        custom_page_sizes_enabled: false,
        shared_everything_threads_enabled: false,
        // (module (memory (export "memory") 1) (func (export "_start")))
        exports: Some(wanted()),
        ..Config::default()
    };
    let module = Module::new(config, &mut Unstructured::new(bytes)).ok()?;
    Some(module.to_bytes())
}

/// The smallest module that has what every command must export.
fn wanted() -> Vec<u8> {
    let mut bytes = b"\0asm\x01\0\0\0".to_vec();
    bytes.extend([1, 4, 1, 0x60, 0, 0]); // one type: nothing to nothing
    bytes.extend([3, 2, 1, 0]); // one function of it
    bytes.extend([5, 3, 1, 0, 1]); // one memory of a page
    bytes.extend([7, 19, 2]); // two exports
    bytes.extend(b"\x06memory\x02\0");
    bytes.extend(b"\x06_start\0\0");
    bytes.extend([10, 4, 1, 2, 0, 0x0b]); // an empty body
    bytes
}

/// What is let through is a module that starts within the limit.
fn check(wasm: &[u8]) {
    if wasi_program(wasm, LIMIT).is_err() {
        return;
    }
    assert!(Validator::new().validate_all(wasm).is_ok());
    for payload in Parser::new(0).parse_all(wasm) {
        let Ok(Payload::MemorySection(memories)) = payload else { continue };
        for memory in memories.into_iter().flatten() {
            assert!(memory.initial * PAGE <= LIMIT);
        }
    }
}
