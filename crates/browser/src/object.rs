//! Plain JavaScript objects, built field by field.

use js_sys::{Object, Reflect};
use wasm_bindgen::JsValue;

pub(crate) struct Fields(Object);

impl Fields {
    pub(crate) fn new() -> Fields {
        Fields(Object::new())
    }

    /// An object with a `type` field, the tag of a TypeScript union.
    #[cfg(any(feature = "brain", feature = "crew"))]
    pub(crate) fn of(tag: &str) -> Fields {
        Fields::new().with("type", tag)
    }

    pub(crate) fn with(self, name: &str, value: impl Into<JsValue>) -> Fields {
        // Setting a field of a plain object cannot fail.
        let _ = Reflect::set(&self.0, &JsValue::from_str(name), &value.into());
        self
    }

    pub(crate) fn done(self) -> JsValue {
        self.0.into()
    }
}
