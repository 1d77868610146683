//! What a kernel reads and writes, found by the check of its code.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KernelJson {
    pub entry: String,
    /// The read-only arrays, in binding order.
    pub inputs: Vec<ArrayJson>,
    pub output: ArrayJson,
    #[cfg_attr(feature = "schema", schema(min_items = 3, max_items = 3))]
    pub workgroup: [u32; 3],
    pub needs: KernelNeedsJson,
}

/// One array of a kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ArrayJson {
    /// Its variable in the kernel.
    pub name: String,
    /// The element as WGSL writes it: `f32`, `vec2<f32>`, or a struct's name.
    #[serde(rename = "type")]
    pub element: String,
    /// What the element is made of: `f32`, `i32` or `u32`; `mixed` for a struct of several kinds.
    pub scalar: String,
    /// Numbers from one element to the next, padding included: 4 for a `vec3<f32>`.
    pub lanes: u32,
    /// Bytes from one element to the next.
    pub stride: u32,
}

/// What a device must have to run it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct KernelNeedsJson {
    /// Invocations in one workgroup.
    pub workgroup_invocations: u32,
    /// Bytes of `var<workgroup>`.
    pub workgroup_bytes: u32,
    /// Storage buffers bound at once.
    pub storage_buffers: u32,
}

/// How blocks are brought together further: submit the result as the input of a map with the kernel `copy`, with
/// `columns` elements for each item, in and out, and `{"wgsl": combine}` as `reduce`, until one block is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReducedJson {
    /// Items of the map; an item of the job is a block of 256.
    pub items: u64,
    /// What a block becomes, as WGSL writes it.
    pub element: String,
    pub columns: u32,
    pub combine: String,
    pub copy: String,
}
