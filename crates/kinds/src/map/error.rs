//! Why a map is refused.

use alloc::string::String;
use serde_json::{Value, json};
use shoal_protocol::limit::MAX_UNIT_BYTES;

use crate::plan::Refusal;

#[derive(Debug, thiserror::Error)]
pub enum MapError {
    #[error(
        "the kernel reads {expected} arrays ({types}), but the job has {given} inputs: give one for each array"
    )]
    InputCount { expected: usize, given: usize, types: String },
    #[error(
        "input {input} has {size} bytes, which is not a multiple of {each} (an item is {per_item} x {element} of {stride} bytes): {over} bytes are left over"
    )]
    NotDivisible {
        input: usize,
        size: u64,
        each: u64,
        per_item: u32,
        element: String,
        stride: u32,
        over: u64,
    },
    #[error(
        "the request says that input {input} holds {given}, but the kernel reads array<{element}>: {advice}, or leave \"type\" out to pass the bytes unchecked"
    )]
    WrongType { input: usize, given: String, element: String, advice: String },
    #[error(
        "{one} has {items} items, but {other} has {others}: all split inputs must have the same number of items"
    )]
    ItemsDiffer { one: String, items: u64, other: String, others: u64 },
    #[error("no input is split, so \"items\" must say how many items there are")]
    ItemsMissing,
    #[error(
        "there are {items} items, but the kernel's parameter block counts them with u32: at most {} are allowed",
        u32::MAX
    )]
    TooManyItems { items: u64 },
    #[error(
        "the kernel looks beyond its own items, and there are {elements} elements: at most {most} are allowed then"
    )]
    TooManyElements { elements: u64, most: u64 },
    #[error(
        "{name}: an overlap of {bytes} bytes is too much for one unit; use --whole (\"whole\": true) to send all of it to every device"
    )]
    Overlap { name: String, bytes: u64 },
    #[error(
        "items read {name} anywhere (line {line} of the kernel), and it has {size} bytes; at most {most} are sent to every device by default. Use --overlap N (\"overlap\") if items look at most N elements away, or --whole (\"whole\": true) to send all of it to every device"
    )]
    Anywhere { name: String, line: u32, size: u64, most: u64 },
    #[error(
        "with --edge wrap, items at one end read the other end of {name}, which has {size} bytes; at most {most} are sent to every device by default: use --whole (\"whole\": true) to send all of it to every device"
    )]
    Ring { name: String, size: u64, most: u64 },
    #[error(
        "items of one workgroup work together, so a unit must hold whole workgroups: \"unit\" is {unit}, which is not a multiple of {workgroup}"
    )]
    UnitCutsGroups { unit: u64, workgroup: u64 },
    #[error(
        "items of one workgroup work together, but a workgroup of {workgroup} does not fit into a unit, which holds at most {most} items"
    )]
    GroupTooLarge { workgroup: u64, most: u64 },
    #[error(
        "a reduction works on blocks of items: \"unit\" is {unit}, which is not a multiple of {block}"
    )]
    UnitCutsBlocks { unit: u64, block: u64 },
    #[error(
        "a reduction works on blocks of {block} items; a block of this job has {bytes} bytes, and at most {MAX_UNIT_BYTES} are allowed: run the map without --reduce first, then reduce its result"
    )]
    BlockTooLarge { bytes: u64, block: u64 },
}

impl Refusal for MapError {
    fn code(&self) -> &'static str {
        match self {
            MapError::InputCount { .. } => "input_count",
            MapError::NotDivisible { .. } => "not_divisible",
            MapError::WrongType { .. } => "wrong_type",
            MapError::ItemsDiffer { .. } => "items_differ",
            MapError::ItemsMissing => "items_missing",
            MapError::TooManyItems { .. }
            | MapError::TooManyElements { .. }
            | MapError::Overlap { .. }
            | MapError::Anywhere { .. }
            | MapError::Ring { .. }
            | MapError::GroupTooLarge { .. }
            | MapError::BlockTooLarge { .. } => "too_large",
            MapError::UnitCutsGroups { .. } | MapError::UnitCutsBlocks { .. } => "bad_request",
        }
    }

    fn details(&self) -> Option<Value> {
        if let MapError::WrongType { input, .. } = self {
            return Some(json!({ "input": input }));
        }
        None
    }
}
