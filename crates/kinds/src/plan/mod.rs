//! From what a client asks to what the scheduler is given. Everything is checked here, before anything
//! is stored: sizes, counts, names, limits; user code by the [`Intake`].

mod error;
mod intake;
mod policy;
mod request;
mod serve;
mod shown;
mod store;

pub use error::{PlanError, Refusal, StoreError};
pub use intake::Intake;
pub use policy::verify_words;
pub use request::{
    CommonRequest, JobRequest, LimitsJson, PriorityJson, SignatureJson, StrategyJson,
    ToleranceJson, WorkRequest,
};
pub use serde_json::{Map, Value};
pub use serve::{ServiceCommon, ServiceRequest, read_service, serve};
pub use shown::{NamedInput, Note, OutputJson, Settings, Shown};
pub use store::Store;

pub(crate) use shown::{hex, kernel_settings};
pub(crate) use store::{blob, parse_hash, read_whole};

use alloc::string::{String, ToString};
use shoal_protocol::id::clip;
use shoal_protocol::limit::MAX_KERNEL_BYTES;
use shoal_protocol::{
    Dtype, Hash, Limits, Micros, Needs, Policy, Signed, Sizing, Strategy, Tolerance, Verify,
};

use crate::job::{JobSpec, Split};
use crate::kind::Kind;

/// Names are shown on small screens and kept for ever.
const MAX_NAME_BYTES: usize = 200;
/// A unit that needs longer than this should be cut smaller.
const MAX_SECONDS: f64 = 3600.0;
/// All a 32-bit WebAssembly memory can have.
const MAX_MEMORY_MIB: u64 = 4096;
/// Larger answers belong into files of their own runs.
const MAX_OUTPUT_MIB: u64 = 256;
/// Nobody said for whom.
const NO_OWNER: &str = "anonymous";

/// A job ready to be submitted.
#[derive(Debug)]
pub struct Planned {
    pub spec: JobSpec,
    pub note: Note,
}

/// The part of a plan that depends on the kind of work.
pub struct Part {
    pub kind: Kind,
    pub items: u64,
    pub sizing: Sizing,
    pub needs: Needs,
    /// What its answers are made of.
    pub dtype: Dtype,
    pub note: Note,
}

/// What somebody asks for, of one kind.
pub trait Ask {
    fn kind(&self) -> &'static str;

    /// Whether planning reads blobs or compiles.
    fn is_heavy(&self) -> bool {
        true
    }

    /// The hash of the code that it brings or names; none if there is none.
    fn code(&self) -> Result<Option<Hash>, PlanError> {
        Ok(None)
    }

    /// Whether answers are compared bit for bit, so that no tolerance is asked for.
    fn is_exact(&self) -> bool {
        false
    }

    fn usual_verify(&self) -> Verify {
        Verify::Adaptive
    }

    /// What honest devices stay within.
    fn usual_tolerance(&self, dtype: Dtype) -> Tolerance {
        Tolerance::usual(dtype)
    }

    /// Why its answers cannot be checked in this way, if they cannot.
    fn unchecked(&self, _verify: Verify) -> Option<PlanError> {
        None
    }

    fn plan(&self, common: &Common<'_>, tools: &Tools<'_>) -> Result<Part, PlanError>;

    /// The work of a service that answers requests with this; what a node needs for it.
    fn serve(&self, _limits: Limits, _tools: &Tools<'_>) -> Result<(Kind, Needs), PlanError> {
        Err(PlanError::NotServed { kind: self.kind() })
    }

    /// Whether several nodes may keep it ready together, if nobody says.
    fn usual_split(&self) -> Split {
        Split::Never
    }

    /// The same work in parts, for a service that several nodes keep ready together.
    fn cut(&self, _work: Kind, _tools: &Tools<'_>) -> Result<Kind, PlanError> {
        Err(PlanError::NotSplit { kind: self.kind() })
    }
}

/// What is asked for whatever the kind.
pub struct Common<'a> {
    pub asked: &'a CommonRequest,
    pub unit: Option<u64>,
    pub limits: Limits,
}

/// What planning works with.
pub struct Tools<'a> {
    pub intake: &'a dyn Intake,
    pub store: &'a dyn Store,
}

/// Reads a request, naming the field that is wrong.
pub fn read(body: &[u8]) -> Result<JobRequest, PlanError> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| PlanError::Json(error.to_string()))?;
    let Value::Object(mut fields) = value else {
        return Err(PlanError::Json("expected a JSON object".into()));
    };
    let common = CommonRequest::FIELDS
        .iter()
        .filter_map(|name| fields.remove_entry(*name))
        .collect::<serde_json::Map<_, _>>();
    let bad = |error: serde_json::Error| PlanError::Request(error.to_string());
    let common = serde_json::from_value(Value::Object(common)).map_err(bad)?;
    let work = serde_json::from_value(Value::Object(fields)).map_err(bad)?;
    Ok(JobRequest { common, work })
}

/// Checks all of a request. `signed` says who stands for its code, whose hash [`Ask::code`] names.
pub fn plan(
    request: &JobRequest,
    signed: Option<Signed>,
    tools: &Tools<'_>,
) -> Result<Planned, PlanError> {
    let JobRequest { common, work } = request;
    let ask = work.ask();
    let limits = limits(&common.limits)?;
    if common.unit == Some(0) {
        return Err(PlanError::UnitEmpty);
    }
    let policy = policy::policy(common, ask)?;
    let part = ask.plan(&Common { asked: common, unit: common.unit, limits }, tools)?;
    if part.items == 0 {
        return Err(PlanError::Empty);
    }
    let tolerance = policy::tolerance(common.tolerance.as_ref(), ask.usual_tolerance(part.dtype))?;
    let said = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let name = said(&common.name).unwrap_or_else(|| ask.kind().into());
    let owner = said(&common.owner).unwrap_or_else(|| NO_OWNER.into());
    let strategy = match common.strategy {
        None | Some(StrategyJson::Adaptive) => Strategy::Adaptive,
        Some(StrategyJson::RoundRobin) => Strategy::RoundRobin,
        Some(StrategyJson::Weight) => Strategy::Weight,
    };
    let spec = JobSpec {
        name: clip(name, MAX_NAME_BYTES),
        owner: clip(owner, MAX_NAME_BYTES),
        work: part.kind,
        items: part.items,
        sizing: part.sizing,
        strategy,
        needs: part.needs,
        limits,
        policy: Policy { tolerance, ..policy },
        signed,
    };
    Ok(Planned { spec, note: part.note })
}

fn limits(given: &LimitsJson) -> Result<Limits, PlanError> {
    let mut limits = Limits::default();
    if let Some(seconds) = given.seconds {
        if !(seconds > 0.0 && seconds <= MAX_SECONDS) {
            let value = seconds.to_string();
            return Err(PlanError::Limit { which: "seconds", value, most: MAX_SECONDS as u64 });
        }
        // No limit is nothing: what rounds to zero is the shortest there is.
        limits.time = Micros(((seconds * 1e6) as u64).max(1));
    }
    let mebibytes = |which, given: Option<u64>, most| match given {
        Some(value) if value == 0 || value > most => {
            Err(PlanError::Limit { which, value: value.to_string(), most })
        }
        given => Ok(given.map(|value| value << 20)),
    };
    if let Some(memory) = mebibytes("memoryMiB", given.memory_mib, MAX_MEMORY_MIB)? {
        limits.memory = memory;
    }
    if let Some(output) = mebibytes("outputMiB", given.output_mib, MAX_OUTPUT_MIB)? {
        limits.output = output;
    }
    Ok(limits)
}

/// Units of one size if asked for, else from `grain` to `most`.
pub(crate) fn sizing(grain: u64, most: u64, unit: Option<u64>) -> Result<Sizing, PlanError> {
    match unit {
        None => Ok(Sizing::loose(grain, most)),
        Some(unit) if unit <= most => Ok(Sizing::fixed(unit)),
        Some(unit) => Err(PlanError::UnitTooLarge { unit, most }),
    }
}

/// Refuses kernels that are too long to be read.
pub(crate) fn check_kernel_size(wgsl: &str) -> Result<(), PlanError> {
    if wgsl.len() > MAX_KERNEL_BYTES {
        return Err(PlanError::KernelTooLarge { size: wgsl.len() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_with_an_unknown_field_is_told_which() {
        let error = |body: &[u8]| read(body).expect_err("it is wrong").to_string();
        let text = error(br#"{"kind":"noop","items":1,"itens":2}"#);
        assert!(text.contains("itens"), "{text}");
        let text = error(br#"{"kind":"noop","items":1,"limits":{"second":2}}"#);
        assert!(text.contains("second"), "{text}");
        let text = error(br#"{"kind":"dance"}"#);
        assert!(text.contains("dance"), "{text}");
        let text = error(br#"{"items":1}"#);
        assert!(text.contains("kind"), "{text}");
        assert!(matches!(read(b"{"), Err(PlanError::Json(_))));
    }

    #[test]
    fn limits_out_of_range_are_refused() {
        let too_long = LimitsJson { seconds: Some(1e9), ..LimitsJson::default() };
        assert!(limits(&too_long).is_err());
        let none = LimitsJson { memory_mib: Some(0), ..LimitsJson::default() };
        assert!(limits(&none).is_err());
        let fine = LimitsJson { seconds: Some(0.5), ..LimitsJson::default() };
        assert_eq!(limits(&fine).expect("half a second is fine").time, Micros(500_000));
    }
}
