//! Files that call themselves `.npy`.
#![no_main]

#[allow(dead_code, reason = "only reading and writing headers is tried")]
#[path = "../../crates/cli/src/npy/mod.rs"]
mod npy;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let read = npy::read_header(&mut &bytes[..], bytes.len() as u64);
    let Ok(read) = read else { panic!("memory can always be read") };
    if let Err(error) = &read {
        assert!(!error.to_string().is_empty());
    }
    // A header alone, whatever follows it.
    if let Ok(header) = npy::parse(bytes) {
        assert!(header.data_start <= bytes.len() as u64);
        let written = npy::header(header.dtype, &header.shape);
        match npy::parse(&written) {
            Ok(again) => assert_eq!((again.dtype, again.shape), (header.dtype, header.shape)),
            Err(error) => panic!("a header that Shoal wrote {error}"),
        }
    }
});
