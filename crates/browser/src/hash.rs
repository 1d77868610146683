//! BLAKE3 for the SDK: the name of a blob must be known before a resumable upload begins.

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
pub struct Hasher(blake3::Hasher);

#[wasm_bindgen]
impl Hasher {
    #[wasm_bindgen(constructor)]
    #[allow(clippy::new_without_default)] // called from JavaScript only
    pub fn new() -> Hasher {
        Hasher(blake3::Hasher::new())
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash as 64 hex digits.
    pub fn hex(&self) -> String {
        self.0.finalize().to_hex().as_str().into()
    }
}
