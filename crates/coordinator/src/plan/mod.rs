//! From what a client asks to what the scheduler is given. Everything is checked here, before anything
//! is stored: sizes, counts, names, limits; user code by the [`Intake`].

mod code;
mod error;
mod exec;
mod fold;
mod kernel;
mod lines;
mod look;
mod policy;
mod sim;
mod types;

pub(crate) use error::PlanError;
pub(crate) use exec::{entries_of, file_name};
pub(crate) use policy::verify_words;

use serde_json::Value;
use shoal_protocol::id::clip;
use shoal_protocol::{
    BlobRef, Dtype, Hash, JobSpec, Lane, Limits, Micros, Needs, Policy, Sizing, Strategy, Work,
};

use crate::intake::Intake;
use crate::json::{
    CommonRequest, JobRequest, KernelJson, KernelRequest, LimitsJson, StrategyJson, WorkRequest,
};
use crate::keys::Signer;
use crate::store::blobs::Blobs;
use crate::store::facts::Note;

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
pub(crate) struct Planned {
    pub(crate) spec: JobSpec,
    pub(crate) note: Note,
}

/// The part of a plan that depends on the kind of work.
struct Part {
    work: Work,
    items: u64,
    sizing: Sizing,
    needs: Needs,
    /// What its answers are made of.
    dtype: Dtype,
    note: Note,
}

/// Reads a request, naming the field that is wrong.
pub(crate) fn read(body: &[u8]) -> Result<JobRequest, PlanError> {
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

/// Whether planning reads blobs or compiles, and so must not be done on the reactor.
pub(crate) fn is_heavy(request: &JobRequest) -> bool {
    match request.work {
        WorkRequest::Noop(_) => false,
        WorkRequest::Map(_)
        | WorkRequest::Render(_)
        | WorkRequest::Exec(_)
        | WorkRequest::Sim(_) => true,
    }
}

/// Checks a map kernel as for a job, and says what it reads and writes.
pub(crate) fn describe(
    request: &KernelRequest,
    intake: &dyn Intake,
) -> Result<KernelJson, PlanError> {
    kernel::check_size(&request.wgsl)?;
    let plan = intake.map_kernel(&request.wgsl, request.entry.as_deref(), &request.params)?;
    let names = intake.input_names(&request.wgsl, &plan.kernel);
    Ok(types::described(plan, names))
}

pub(crate) fn plan(
    request: JobRequest,
    intake: &dyn Intake,
    blobs: &Blobs,
    signer: &Signer,
) -> Result<Planned, PlanError> {
    let JobRequest { common, work } = request;
    let limits = limits(&common.limits)?;
    if common.unit == Some(0) {
        return Err(PlanError::UnitEmpty);
    }
    let policy = policy::policy(&common, &work)?;
    let signed = code::signed(common.signature.as_ref(), code::hash(&work)?, signer)?;
    let (kind, part) = match work {
        WorkRequest::Noop(noop) => {
            let sizing = Sizing::fixed(common.unit.unwrap_or(1));
            let needs = Needs::lane(Lane::Inline);
            let (items, note) = (noop.items, Note::default());
            let dtype = Dtype::Bytes;
            ("noop", Part { work: Work::Noop, items, sizing, needs, dtype, note })
        }
        WorkRequest::Map(map) => ("map", kernel::map(map, common.unit, intake, blobs)?),
        WorkRequest::Render(render) => ("render", kernel::render(render, common.unit, intake)?),
        WorkRequest::Exec(exec) => ("exec", exec::exec(exec, common.unit, limits, intake, blobs)?),
        WorkRequest::Sim(sim) => ("sim", sim::sim(&sim, &common, intake, blobs)?),
    };
    if part.items == 0 {
        return Err(PlanError::Empty);
    }
    let tolerance = policy::tolerance(common.tolerance.as_ref(), part.dtype)?;
    let name = common.name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| kind.into());
    let owner = common.owner.filter(|owner| !owner.trim().is_empty());
    let strategy = match common.strategy {
        None | Some(StrategyJson::Adaptive) => Strategy::Adaptive,
        Some(StrategyJson::RoundRobin) => Strategy::RoundRobin,
        Some(StrategyJson::Weight) => Strategy::Weight,
    };
    let spec = JobSpec {
        name: clip(name, MAX_NAME_BYTES),
        owner: clip(owner.unwrap_or_else(|| NO_OWNER.into()), MAX_NAME_BYTES),
        work: part.work,
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

/// A blob named in a request; `what` says where.
fn blob(blobs: &Blobs, what: &str, hash: &str) -> Result<BlobRef, PlanError> {
    let parsed: Hash = hash
        .parse()
        .map_err(|_| PlanError::BadHash { what: what.into(), hash: clip(hash.into(), 80) })?;
    let found = blobs.find(parsed).map_err(PlanError::Disk)?;
    found.ok_or(PlanError::NoBlob { what: what.into(), hash: parsed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_with_an_unknown_field_is_told_which() {
        let error = read(br#"{"kind":"noop","items":1,"itens":2}"#).unwrap_err();
        assert!(error.to_string().contains("itens"), "{error}");
        let error = read(br#"{"kind":"noop","items":1,"limits":{"second":2}}"#).unwrap_err();
        assert!(error.to_string().contains("second"), "{error}");
        let error = read(br#"{"kind":"dance"}"#).unwrap_err();
        assert!(error.to_string().contains("dance"), "{error}");
        let error = read(br#"{"items":1}"#).unwrap_err();
        assert!(error.to_string().contains("kind"), "{error}");
        assert!(matches!(read(b"{"), Err(PlanError::Json(_))));
    }

    #[test]
    fn limits_out_of_range_are_refused() {
        let too_long = LimitsJson { seconds: Some(1e9), ..LimitsJson::default() };
        assert!(limits(&too_long).is_err());
        let none = LimitsJson { memory_mib: Some(0), ..LimitsJson::default() };
        assert!(limits(&none).is_err());
        let fine = LimitsJson { seconds: Some(0.5), ..LimitsJson::default() };
        assert_eq!(limits(&fine).unwrap().time, Micros(500_000));
    }
}
