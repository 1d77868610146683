//! Why a job is refused before it is submitted. What only one kind refuses stands in that kind's folder.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use serde_json::{Value, json};
use shoal_protocol::Hash;
use shoal_protocol::limit::{MAX_KERNEL_BYTES, MAX_UNIT_BYTES};

use crate::intake::IntakeError;

/// What went wrong with the store.
pub type StoreError = Box<dyn core::error::Error + Send + Sync>;

/// Why one kind refuses a request.
pub trait Refusal: core::error::Error + Send + Sync + 'static {
    /// For machines, stable.
    fn code(&self) -> &'static str;

    /// For machines, beside the code.
    fn details(&self) -> Option<Value> {
        None
    }
}

impl<R: Refusal> From<R> for PlanError {
    fn from(refusal: R) -> PlanError {
        PlanError::Kind(Box::new(refusal))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("the body is not valid JSON: {0}")]
    Json(String),
    #[error("cannot read the request: {0}")]
    Request(String),
    #[error("{0}")]
    Intake(#[from] IntakeError),
    #[error("the kernel has {size} bytes; at most {MAX_KERNEL_BYTES} are allowed")]
    KernelTooLarge { size: usize },
    #[error("{what}: {hash:?} is not a BLAKE3 hash; expected 64 hexadecimal digits")]
    BadHash { what: String, hash: String },
    #[error("{what}: no blob {hash} is stored; upload it first with PUT /api/v1/blobs/{hash}")]
    NoBlob { what: String, hash: Hash },
    #[error(
        "{what}: the stored bytes of blob {hash} were damaged and have been removed: upload it again"
    )]
    Torn { what: String, hash: Hash },
    #[error("the input is empty: there is nothing to compute")]
    Empty,
    #[error("{what} is empty: there is nothing to compute")]
    EmptyInput { what: String },
    #[error("{what} must be at least 1")]
    Zero { what: &'static str },
    #[error("one item takes {bytes} bytes; at most {MAX_UNIT_BYTES} are allowed")]
    ItemTooLarge { bytes: u64 },
    #[error("\"unit\" must be at least 1")]
    UnitEmpty,
    #[error("\"unit\" is {unit}, but one unit of this job may hold at most {most} items")]
    UnitTooLarge { unit: u64, most: u64 },
    #[error("limit {which} is {value}; it must be above 0 and at most {most}")]
    Limit { which: &'static str, value: String, most: u64 },
    #[error(
        "\"verify\" is {text:?}; expected none, spot, spot:0.25, quorum:3 (2 to 15) or adaptive"
    )]
    Verify { text: String },
    #[error(
        "\"tolerance\" is for float outputs; this job's answers are compared bit for bit: leave it out"
    )]
    ToleranceExact,
    #[error("tolerance {which} is {value}; it must be 0 or more")]
    Tolerance { which: &'static str, value: f32 },
    #[error("\"weight\" is {weight}; it must be from 1 to {most}")]
    Weight { weight: u32, most: u32 },
    #[error("a job of kind {kind} cannot be a service; only exec, onnx and llm can")]
    NotServed { kind: &'static str },
    #[error("a service of kind {kind} cannot be split over several nodes; only onnx and llm can")]
    NotSplit { kind: &'static str },
    #[error("\"name\" is {name:?}; expected 1 to 64 letters, digits, \"-\", \"_\" or \".\"")]
    ServiceName { name: String },
    #[error(
        "\"least\" is {least} and \"most\" is {most}; expected 0 <= least <= most, and most from 1 to {limit}"
    )]
    Replicas { least: u16, most: u16, limit: u16 },
    #[error("\"split\" is {text:?}; expected auto, never or a number of devices from 2 to {most}")]
    Split { text: String, most: u8 },
    #[error("{devices} devices cannot share it: it has {}", parts_words(*.parts))]
    TooFewParts { devices: u8, parts: u64 },
    #[error("{what} is {value}; it must be from 1 to {most}")]
    OutOfRange { what: &'static str, value: u64, most: u64 },
    #[error("a job of this kind has no code to sign: leave \"signature\" out")]
    NothingToSign,
    #[error("the signature is not valid: {0}")]
    BadSignature(String),
    #[error("{0}")]
    Kind(Box<dyn Refusal>),
    #[error("the disk failed: {0}")]
    Disk(StoreError),
}

impl PlanError {
    /// For machines, stable.
    pub fn code(&self) -> &'static str {
        match self {
            PlanError::Json(_) => "bad_json",
            PlanError::Request(_)
            | PlanError::Zero { .. }
            | PlanError::UnitEmpty
            | PlanError::UnitTooLarge { .. }
            | PlanError::Limit { .. }
            | PlanError::Verify { .. }
            | PlanError::ToleranceExact
            | PlanError::Tolerance { .. }
            | PlanError::Weight { .. }
            | PlanError::NothingToSign
            | PlanError::NotServed { .. }
            | PlanError::NotSplit { .. }
            | PlanError::ServiceName { .. }
            | PlanError::Replicas { .. }
            | PlanError::Split { .. }
            | PlanError::TooFewParts { .. }
            | PlanError::OutOfRange { .. }
            | PlanError::BadHash { .. } => "bad_request",
            PlanError::Intake(error) => error.code,
            PlanError::BadSignature(_) => "bad_signature",
            PlanError::KernelTooLarge { .. } => "bad_kernel",
            PlanError::NoBlob { .. } | PlanError::Torn { .. } => "blob_missing",
            PlanError::Empty | PlanError::EmptyInput { .. } => "empty_input",
            PlanError::ItemTooLarge { .. } => "too_large",
            PlanError::Kind(refusal) => refusal.code(),
            PlanError::Disk(_) => "disk_failed",
        }
    }

    /// For machines, beside the code.
    pub fn details(&self) -> Option<Value> {
        match self {
            PlanError::Intake(error) => Some(json!({ "line": error.line, "column": error.column })),
            PlanError::NoBlob { hash, .. } | PlanError::Torn { hash, .. } => {
                Some(json!({ "hash": hash.to_string() }))
            }
            PlanError::Kind(refusal) => refusal.details(),
            PlanError::Json(_)
            | PlanError::Request(_)
            | PlanError::KernelTooLarge { .. }
            | PlanError::BadHash { .. }
            | PlanError::Empty
            | PlanError::EmptyInput { .. }
            | PlanError::Zero { .. }
            | PlanError::ItemTooLarge { .. }
            | PlanError::UnitEmpty
            | PlanError::UnitTooLarge { .. }
            | PlanError::Limit { .. }
            | PlanError::Verify { .. }
            | PlanError::ToleranceExact
            | PlanError::Tolerance { .. }
            | PlanError::Weight { .. }
            | PlanError::NothingToSign
            | PlanError::NotServed { .. }
            | PlanError::NotSplit { .. }
            | PlanError::ServiceName { .. }
            | PlanError::Replicas { .. }
            | PlanError::Split { .. }
            | PlanError::TooFewParts { .. }
            | PlanError::OutOfRange { .. }
            | PlanError::BadSignature(_)
            | PlanError::Disk(_) => None,
        }
    }
}

fn parts_words(parts: u64) -> String {
    match parts {
        0 | 1 => "only one part".into(),
        parts => alloc::format!("{parts} parts"),
    }
}
