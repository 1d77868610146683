//! The browser's shell, run inside Workers. It wires and decides nothing: the node brain and the engine
//! are the same as everywhere; sockets, timers and HTTP are TypeScript in `web/sdk`.
//!
//! - `brain` (feature): the node brain, and the supervisor of engines, with plain JavaScript objects in and out
//! - `crew` (feature): a member of a crew, likewise
//! - `files` (feature): what programs see as files
//! - `gpu` (feature): the engine's kernels over WebGPU
//! - `onnx` (feature): the engine's ONNX models
//! - `llm` (feature): the engine's language models
//! - `llm-gpu` (feature): the same over WebGPU
//! - `vision` (feature): pictures for models

#[cfg(feature = "brain")]
mod brain;
#[cfg(feature = "crew")]
mod crew;
#[cfg(feature = "brain")]
mod describe;
#[cfg(feature = "brain")]
mod engines;
#[cfg(any(
    feature = "brain",
    feature = "crew",
    feature = "gpu",
    feature = "onnx",
    feature = "llm",
    feature = "llm-gpu"
))]
mod failure;
#[cfg(feature = "files")]
mod files;
#[cfg(feature = "gpu")]
mod gpu;
#[cfg(feature = "brain")]
mod hash;
#[cfg(feature = "llm")]
mod llm;
#[cfg(feature = "llm-gpu")]
mod llm_gpu;
#[cfg(any(
    feature = "brain",
    feature = "crew",
    feature = "gpu",
    feature = "onnx",
    feature = "llm",
    feature = "llm-gpu"
))]
mod object;
#[cfg(feature = "brain")]
mod offer;
#[cfg(feature = "onnx")]
mod onnx;
#[cfg(feature = "brain")]
mod output;
#[cfg(any(feature = "onnx", feature = "llm", feature = "llm-gpu"))]
mod panicked;
#[cfg(feature = "gpu")]
mod sim;
#[cfg(feature = "onnx")]
mod stage;
#[cfg(any(feature = "llm", feature = "llm-gpu"))]
mod talk;
#[cfg(feature = "vision")]
mod vision;

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

/// Runs when the module is loaded: without it a panic says only "unreachable".
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        console_error(&text);
        #[cfg(any(feature = "onnx", feature = "llm", feature = "llm-gpu"))]
        panicked::note(text);
    }));
}
