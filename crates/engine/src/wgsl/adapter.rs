//! Which device is opened, and what it offers.

use shoal_protocol::GpuCaps;
use wgpu::{
    Adapter, AdapterInfo, Backends, Device, DeviceDescriptor, DeviceType, Features, Instance,
    InstanceDescriptor, Limits, Queue,
};

use super::memory::Route;

/// Units in flight: one computes while another's bytes travel. More only take memory.
const SLOTS: u16 = 2;

pub(crate) struct Opened {
    pub(crate) device: Device,
    pub(crate) queue: Queue,
    pub(crate) limits: Limits,
    pub(crate) caps: GpuCaps,
    pub(super) route: Route,
}

/// Opens for who copies all that goes in and out.
#[cfg(feature = "llm")]
pub(crate) async fn open_copied() -> Result<Opened, String> {
    open(Some(Route::Copied)).await
}

/// Opens with the route that suits the device, or one chosen for a test.
pub(super) async fn open(route: Option<Route>) -> Result<Opened, String> {
    let instance = Instance::new(InstanceDescriptor {
        backends: Backends::VULKAN | Backends::METAL | Backends::DX12 | Backends::BROWSER_WEBGPU,
        ..InstanceDescriptor::new_without_display_handle()
    });
    let adapter = choose(&instance).await?;
    let info = adapter.get_info();
    let limits = adapter.limits();
    let route = route.unwrap_or_else(|| Route::of(&info, adapter.features()));
    let features = if route == Route::InPlace {
        Features::MAPPABLE_PRIMARY_BUFFERS
    } else {
        Features::empty()
    };
    let descriptor = DeviceDescriptor {
        label: Some("shoal"),
        required_features: features,
        required_limits: limits.clone(),
        ..DeviceDescriptor::default()
    };
    let (device, queue) = adapter
        .request_device(&descriptor)
        .await
        .map_err(|error| format!("the GPU {} does not open: {error}", info.name))?;
    let caps = caps(&device, &info, &limits);
    Ok(Opened { device, queue, limits, caps, route })
}

/// The fastest kind there is; among equals the first the system names.
#[cfg(not(target_arch = "wasm32"))]
async fn choose(instance: &Instance) -> Result<Adapter, String> {
    let mut adapters = instance.enumerate_adapters(Backends::all()).await;
    adapters.sort_by_key(|adapter| match adapter.get_info().device_type {
        DeviceType::DiscreteGpu => 0,
        DeviceType::IntegratedGpu => 1,
        DeviceType::VirtualGpu => 2,
        DeviceType::Other => 3,
        DeviceType::Cpu => 4,
    });
    adapters.into_iter().next().ok_or_else(|| {
        "no GPU was found, and no software Vulkan (such as Mesa's lavapipe) either".to_owned()
    })
}

#[cfg(target_arch = "wasm32")]
async fn choose(instance: &Instance) -> Result<Adapter, String> {
    let options = wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        ..wgpu::RequestAdapterOptions::default()
    };
    instance
        .request_adapter(&options)
        .await
        .map_err(|error| format!("the browser offers no WebGPU adapter: {error}"))
}

fn caps(device: &Device, info: &AdapterInfo, limits: &Limits) -> GpuCaps {
    let name = name(device, info);
    GpuCaps {
        software: is_software(&name, info.device_type),
        name,
        backend: format!("{:?}", info.backend),
        // Nobody tells, neither Vulkan nor browsers.
        memory: None,
        buffer_bytes: limits.max_buffer_size.min(limits.max_storage_buffer_binding_size),
        workgroup_invocations: limits.max_compute_invocations_per_workgroup,
        workgroup_bytes: limits.max_compute_workgroup_storage_size,
        storage_buffers: limits.max_storage_buffers_per_shader_stage,
        slots: SLOTS,
    }
}

/// Browsers name software adapters without always calling them that.
fn is_software(name: &str, kind: DeviceType) -> bool {
    let name = name.to_lowercase();
    kind == DeviceType::Cpu
        || ["swiftshader", "llvmpipe", "lavapipe", "basic render"]
            .iter()
            .any(|it| name.contains(it))
}

#[cfg(not(target_arch = "wasm32"))]
fn name(_device: &Device, info: &AdapterInfo) -> String {
    info.name.clone()
}

/// Browsers leave the description empty, so the name is put together from vendor and architecture.
#[cfg(target_arch = "wasm32")]
fn name(device: &Device, info: &AdapterInfo) -> String {
    if !info.name.is_empty() {
        return info.name.clone();
    }
    let field = |object: &js_sys::wasm_bindgen::JsValue, key: &str| {
        js_sys::Reflect::get(object, &key.into()).unwrap_or_default()
    };
    let words = device.as_webgpu().map(|device| {
        let info = field(device.as_ref(), "adapterInfo");
        ["vendor", "architecture", "device"]
            .map(|key| field(&info, key).as_string().unwrap_or_default())
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    });
    words.filter(|name| !name.is_empty()).unwrap_or_else(|| "WebGPU adapter".to_owned())
}
