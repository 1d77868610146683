//! What a kernel reads and writes, found by the check of its code.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct KernelJson {
    pub(crate) entry: String,
    /// The read-only arrays, in binding order.
    pub(crate) inputs: Vec<ArrayJson>,
    pub(crate) output: ArrayJson,
    pub(crate) workgroup: [u32; 3],
    pub(crate) needs: KernelNeedsJson,
}

/// One array of a kernel.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ArrayJson {
    /// Its variable in the kernel.
    pub(crate) name: String,
    /// The element as WGSL writes it: `f32`, `vec2<f32>`, or a struct's name.
    #[serde(rename = "type")]
    pub(crate) element: String,
    /// What the element is made of: `f32`, `i32` or `u32`; `mixed` for a struct of several kinds.
    pub(crate) scalar: String,
    /// Numbers from one element to the next, padding included: 4 for a `vec3<f32>`.
    pub(crate) lanes: u32,
    /// Bytes from one element to the next.
    pub(crate) stride: u32,
}

/// What a device must have to run it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KernelNeedsJson {
    /// Invocations in one workgroup.
    pub(crate) workgroup_invocations: u32,
    /// Bytes of `var<workgroup>`.
    pub(crate) workgroup_bytes: u32,
    /// Storage buffers bound at once.
    pub(crate) storage_buffers: u32,
}
