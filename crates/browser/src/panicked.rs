//! Why the module stopped, if it panicked: the browser says only "unreachable", as it does when memory ran out.

use std::sync::OnceLock;

/// The first panic's words. There is no second one, since the module is not used again.
static PANICKED: OnceLock<String> = OnceLock::new();

pub(crate) fn note(text: String) {
    let _ = PANICKED.set(text);
}

pub(crate) fn words() -> Option<String> {
    PANICKED.get().cloned()
}
