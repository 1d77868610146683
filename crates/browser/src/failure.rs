//! What went wrong with a unit, as a plain object: `UnitFailure` in TypeScript. It crosses from an engine
//! Worker to the brain Worker, so it cannot be a wasm object.

use shoal_protocol::{Failure, LimitKind};
use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export interface UnitFailure {
  kind: "kernel" | "trap" | "exit" | "time" | "memory" | "output" | "lost" | "oom" | "fetch" | "internal" | "signature" | "unable" | "outside" | "model";
  message: string;
  /** Counted in the whole job. */
  item?: number;
  code?: number;
  /** Microseconds or bytes. */
  allowed?: number;
  stderr?: string;
}
"#;

#[cfg(any(feature = "brain", feature = "crew"))]
#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "UnitFailure")]
    pub type UnitFailure;
    #[wasm_bindgen(method, getter)]
    fn kind(this: &UnitFailure) -> String;
    #[wasm_bindgen(method, getter)]
    fn message(this: &UnitFailure) -> String;
    #[wasm_bindgen(method, getter)]
    fn item(this: &UnitFailure) -> Option<f64>;
    #[wasm_bindgen(method, getter)]
    fn code(this: &UnitFailure) -> Option<i32>;
    #[wasm_bindgen(method, getter)]
    fn allowed(this: &UnitFailure) -> Option<f64>;
    #[wasm_bindgen(method, getter)]
    fn stderr(this: &UnitFailure) -> Option<String>;
}

#[cfg(any(feature = "brain", feature = "crew"))]
pub(crate) fn from_js(failure: &UnitFailure) -> Failure {
    use shoal_protocol::id::clip;
    use shoal_protocol::limit::{MAX_STDERR_BYTES, MAX_TEXT_BYTES};

    let message = clip(failure.message(), MAX_TEXT_BYTES);
    let stderr = clip(failure.stderr().unwrap_or_default(), MAX_STDERR_BYTES);
    let item = failure.item().map(|item| item as u64);
    let limit = |which| {
        let allowed = failure.allowed().unwrap_or(0.0) as u64;
        Failure::Limit { item, which, allowed, stderr: stderr.clone() }
    };
    match failure.kind().as_str() {
        "kernel" => Failure::Kernel { message },
        "trap" => Failure::Trap { item: item.unwrap_or(0), message, stderr },
        "exit" => {
            let code = failure.code().unwrap_or(1);
            Failure::Exit { item: item.unwrap_or(0), code, stderr }
        }
        "time" => limit(LimitKind::Time),
        "memory" => limit(LimitKind::Memory),
        "output" => limit(LimitKind::Output),
        "lost" => Failure::DeviceLost { message },
        "oom" => Failure::OutOfMemory { message },
        "fetch" => Failure::Fetch { message },
        "signature" => Failure::Signature { message },
        "unable" => Failure::Unable { message },
        "outside" => Failure::Outside { message },
        "model" => Failure::Model { message },
        _ => Failure::Internal { message },
    }
}

#[cfg(any(feature = "gpu", feature = "onnx", feature = "llm", feature = "llm-gpu"))]
pub(crate) fn to_js(failure: &Failure) -> JsValue {
    use crate::object::Fields;

    let (kind, message) = match failure {
        Failure::Kernel { message } => ("kernel", message.as_str()),
        Failure::Trap { message, .. } => ("trap", message.as_str()),
        Failure::Exit { .. } => ("exit", ""),
        Failure::Limit { which: LimitKind::Time, .. } => ("time", ""),
        Failure::Limit { which: LimitKind::Memory, .. } => ("memory", ""),
        Failure::Limit { which: LimitKind::Output, .. } => ("output", ""),
        Failure::DeviceLost { message } => ("lost", message.as_str()),
        Failure::OutOfMemory { message } => ("oom", message.as_str()),
        Failure::Fetch { message } => ("fetch", message.as_str()),
        Failure::Internal { message } => ("internal", message.as_str()),
        Failure::Signature { message } => ("signature", message.as_str()),
        Failure::Unable { message } => ("unable", message.as_str()),
        Failure::Outside { message } => ("outside", message.as_str()),
        Failure::Model { message } => ("model", message.as_str()),
    };
    let mut fields = Fields::new().with("kind", kind).with("message", message);
    if let Some(item) = failure.item() {
        fields = fields.with("item", item as f64);
    }
    if let Failure::Limit { allowed, .. } = failure {
        fields = fields.with("allowed", *allowed as f64);
    }
    fields.with("stderr", failure.stderr()).done()
}

#[cfg(any(feature = "gpu", feature = "onnx", feature = "llm", feature = "llm-gpu"))]
pub(crate) fn internal(message: String) -> JsValue {
    to_js(&Failure::Internal { message })
}
