//! BLAKE3 for JavaScript: uploads need the name of a blob before they begin, and Workers check what they fetch.

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
