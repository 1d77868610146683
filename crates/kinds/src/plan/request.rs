//! What clients ask for.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::Ask;
use crate::kind::kinds;

/// A job to run: what is common to all kinds, and one kind.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobRequest {
    #[serde(flatten)]
    pub common: CommonRequest,
    #[serde(flatten)]
    pub work: WorkRequest,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CommonRequest {
    /// What people see. Default: the kind.
    pub name: Option<String>,
    /// For whom: shown to donors.
    pub owner: Option<String>,
    pub strategy: Option<StrategyJson>,
    /// Items in every unit. Default: chosen by each node's measured speed.
    pub unit: Option<u64>,
    pub limits: LimitsJson,
    /// How answers are checked: `none`, `spot` (one in ten is computed twice), `spot:0.25`, `quorum:3` or
    /// `adaptive`. Default: `adaptive`.
    pub verify: Option<String>,
    /// How much floats from different kinds of devices may differ. Default: what honest devices stay within.
    pub tolerance: Option<ToleranceJson>,
    /// Default: `normal`.
    pub priority: Option<PriorityJson>,
    /// Its share among jobs of the same priority, from 1 to 10000. Default: 100.
    pub weight: Option<u32>,
    /// The submitter's own node: an interactive job goes there first, then to the nearest.
    pub home: Option<u64>,
    /// Who stands for the code. Default: the coordinator itself.
    pub signature: Option<SignatureJson>,
}

impl CommonRequest {
    pub const FIELDS: [&'static str; 11] = [
        "name",
        "owner",
        "strategy",
        "unit",
        "limits",
        "verify",
        "tolerance",
        "priority",
        "weight",
        "home",
        "signature",
    ];
}

/// Answers agree where one of these bounds holds; those left out are the usual ones of the type.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ToleranceJson {
    /// Largest difference; for 8-bit pixels, in steps of 255.
    pub abs: Option<f32>,
    /// Largest difference as a part of the larger of the two.
    pub rel: Option<f32>,
    /// Largest number of representable values between the two.
    pub ulps: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum PriorityJson {
    Batch,
    #[default]
    Normal,
    Interactive,
}

/// An Ed25519 signature of the words `shoal code 1`, a zero byte and the BLAKE3 hash of the code: of the
/// kernel's text exactly as submitted, or of the module's bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SignatureJson {
    /// The public key, 64 hexadecimal digits.
    pub key: String,
    /// 128 hexadecimal digits.
    pub signature: String,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StrategyJson {
    Adaptive,
    RoundRobin,
    Weight,
}

/// What one unit may use; for exec, one run of the program.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct LimitsJson {
    /// Default: 30.
    pub seconds: Option<f64>,
    /// Default: 256.
    #[serde(rename = "memoryMiB")]
    pub memory_mib: Option<u64>,
    /// Default: 16.
    #[serde(rename = "outputMiB")]
    pub output_mib: Option<u64>,
}

macro_rules! request {
    ($($(#[doc = $doc:literal])* $(#[cfg($cfg:meta)])?
        $name:ident: $Kind:ident($Work:ident, $Request:ident);)*) => {
        $($(#[cfg($cfg)])? use crate::$name::$Request;)*

        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        #[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
        pub enum WorkRequest {
            $($(#[doc = $doc])* $(#[cfg($cfg)])? $Kind($Request),)*
        }

        impl WorkRequest {
            pub fn ask(&self) -> &dyn Ask {
                match self {
                    $($(#[cfg($cfg)])? WorkRequest::$Kind(asked) => asked,)*
                }
            }
        }
    };
}

kinds!(request);
