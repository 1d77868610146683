//! What the device lends and for whom, read from plain JavaScript objects.

use shoal_node::Rules;
use shoal_protocol::{Caps, Condition, Engine, GpuCaps, NodeKind, PublicKey};
use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What the device lends. */
export interface Offer {
  name: string;
  cpuSlots: number;
  /** Bytes for all units that run at once. */
  memory: number;
  speed: number;
  gpu?: GpuOffer;
  /** What the probe kernel gave: 16 hex digits. Left out where it could not run. */
  class?: string;
  /** Whether ONNX models run. */
  onnx?: boolean;
  /** Whether language models run. */
  llm?: boolean;
  /** Whether they run on its GPU. */
  llmGpu?: boolean;
  /** What runs ONNX models beside the built-in engine, once it has been loaded. */
  runtime?: RuntimeOffer;
}
/** onnxruntime-web. */
export interface RuntimeOffer {
  version: string;
  /** Whether it computes on the GPU. */
  webgpu: boolean;
}
export interface GpuOffer {
  name: string;
  backend: string;
  software: boolean;
  /** Bytes for all buffers at once. Left out where nobody knows. */
  memory?: number;
  bufferBytes: number;
  workgroupInvocations: number;
  workgroupBytes: number;
  storageBuffers: number;
  slots: number;
}
/** Whose code may run, by the keys that stand for it: 64 hex digits each. */
export interface Rules {
  /** If any are named, nobody else's. */
  only: string[];
  never: string[];
}
/** How the device is doing. */
export interface Condition {
  visible: boolean;
  /** Left out where nobody tells. */
  batteryPercent?: number;
  charging: boolean;
  metered: boolean;
}
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "Offer")]
    pub type Offer;
    #[wasm_bindgen(method, getter)]
    fn name(this: &Offer) -> String;
    #[wasm_bindgen(method, getter, js_name = cpuSlots)]
    fn cpu_slots(this: &Offer) -> u16;
    #[wasm_bindgen(method, getter)]
    fn memory(this: &Offer) -> f64;
    #[wasm_bindgen(method, getter)]
    fn speed(this: &Offer) -> u32;
    #[wasm_bindgen(method, getter)]
    fn gpu(this: &Offer) -> Option<GpuOffer>;
    #[wasm_bindgen(method, getter)]
    fn class(this: &Offer) -> Option<String>;
    #[wasm_bindgen(method, getter)]
    fn onnx(this: &Offer) -> Option<bool>;
    #[wasm_bindgen(method, getter)]
    fn llm(this: &Offer) -> Option<bool>;
    #[wasm_bindgen(method, getter, js_name = llmGpu)]
    fn llm_gpu(this: &Offer) -> Option<bool>;
    #[wasm_bindgen(method, getter)]
    fn runtime(this: &Offer) -> Option<RuntimeOffer>;

    #[wasm_bindgen(typescript_type = "RuntimeOffer")]
    pub type RuntimeOffer;
    #[wasm_bindgen(method, getter)]
    fn version(this: &RuntimeOffer) -> String;
    #[wasm_bindgen(method, getter)]
    fn webgpu(this: &RuntimeOffer) -> bool;

    #[wasm_bindgen(typescript_type = "GpuOffer")]
    pub type GpuOffer;
    #[wasm_bindgen(method, getter)]
    fn name(this: &GpuOffer) -> String;
    #[wasm_bindgen(method, getter)]
    fn backend(this: &GpuOffer) -> String;
    #[wasm_bindgen(method, getter)]
    fn software(this: &GpuOffer) -> bool;
    #[wasm_bindgen(method, getter)]
    fn memory(this: &GpuOffer) -> Option<f64>;
    #[wasm_bindgen(method, getter, js_name = bufferBytes)]
    fn buffer_bytes(this: &GpuOffer) -> f64;
    #[wasm_bindgen(method, getter, js_name = workgroupInvocations)]
    fn workgroup_invocations(this: &GpuOffer) -> u32;
    #[wasm_bindgen(method, getter, js_name = workgroupBytes)]
    fn workgroup_bytes(this: &GpuOffer) -> u32;
    #[wasm_bindgen(method, getter, js_name = storageBuffers)]
    fn storage_buffers(this: &GpuOffer) -> u32;
    #[wasm_bindgen(method, getter)]
    fn slots(this: &GpuOffer) -> u16;

    #[wasm_bindgen(typescript_type = "Rules")]
    pub type DonorRules;
    #[wasm_bindgen(method, getter)]
    fn only(this: &DonorRules) -> Vec<String>;
    #[wasm_bindgen(method, getter)]
    fn never(this: &DonorRules) -> Vec<String>;

    #[wasm_bindgen(typescript_type = "Condition")]
    pub type DeviceCondition;
    #[wasm_bindgen(method, getter)]
    fn visible(this: &DeviceCondition) -> bool;
    #[wasm_bindgen(method, getter, js_name = batteryPercent)]
    fn battery_percent(this: &DeviceCondition) -> Option<u8>;
    #[wasm_bindgen(method, getter)]
    fn charging(this: &DeviceCondition) -> bool;
    #[wasm_bindgen(method, getter)]
    fn metered(this: &DeviceCondition) -> bool;
}

pub(crate) fn caps(offer: &Offer) -> Result<Caps, JsError> {
    let gpu = offer.gpu().map(|gpu| GpuCaps {
        name: gpu.name(),
        backend: gpu.backend(),
        software: gpu.software(),
        memory: gpu.memory().map(|bytes| bytes as u64),
        buffer_bytes: gpu.buffer_bytes() as u64,
        workgroup_invocations: gpu.workgroup_invocations(),
        workgroup_bytes: gpu.workgroup_bytes(),
        storage_buffers: gpu.storage_buffers(),
        slots: gpu.slots(),
    });
    let class = offer.class().map(|text| {
        u64::from_str_radix(&text, 16)
            .map_err(|_| JsError::new(&format!("a class of {text:?}; expected 16 hex digits")))
    });
    let cpu_slots = offer.cpu_slots();
    let models = cpu_slots > 0 && offer.onnx() == Some(true);
    let languages = cpu_slots > 0 && offer.llm() == Some(true);
    let lent = [
        (gpu.is_some(), Engine::WGSL),
        (cpu_slots > 0, Engine::WASI),
        (models, Engine::ONNX),
        (languages, Engine::LLM),
        (cpu_slots > 0 && gpu.is_some() && offer.llm_gpu() == Some(true), Engine::LLM_GPU),
    ];
    let lent = lent.into_iter().filter(|(lent, _)| *lent);
    let engine = |(_, name)| Engine::new(name, env!("CARGO_PKG_VERSION"));
    let mut engines: Vec<Engine> = lent.map(engine).collect();
    if let Some(runtime) = offer.runtime().filter(|_| models) {
        let names = [(true, ""), (runtime.webgpu(), "-webgpu")];
        let names = names.iter().filter(|(has, _)| *has);
        let named = names.map(|(_, of)| format!("{}{of}", Engine::ONNX_RUNTIME_WEB));
        engines.extend(named.map(|name| Engine::new(&name, &runtime.version())));
    }
    Ok(Caps {
        kind: NodeKind::Browser,
        name: offer.name(),
        cpu_slots,
        gpu,
        memory: offer.memory() as u64,
        threads: cpu_slots,
        engines,
        speed: offer.speed(),
        class: class.transpose()?.unwrap_or(0),
    })
}

pub(crate) fn rules(rules: &DonorRules) -> Result<Rules, JsError> {
    Ok(Rules { only: keys(rules.only())?, never: keys(rules.never())? })
}

fn keys(texts: Vec<String>) -> Result<Vec<PublicKey>, JsError> {
    let key = |text: String| {
        text.parse().map_err(|error| JsError::new(&format!("the key {text:?}: {error}")))
    };
    texts.into_iter().map(key).collect()
}

pub(crate) fn condition(condition: &DeviceCondition) -> Condition {
    Condition {
        visible: condition.visible(),
        battery_percent: condition.battery_percent(),
        charging: condition.charging(),
        metered: condition.metered(),
    }
}
