//! Asking for a service: a job without an end.

use alloc::string::{String, ToString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shoal_protocol::limit::MAX_MEMBERS;
use shoal_protocol::{Micros, Signed};

use super::error::PlanError;
use super::request::{LimitsJson, SignatureJson, WorkRequest};
use super::{NO_OWNER, Tools, limits};
use crate::job::{ServiceSpec, Split};

/// Nodes that keep one service ready: more copies of a program serve nobody better.
const MOST_REPLICAS: u16 = 64;
const USUAL_MOST: u16 = 4;
/// Requests that wait unless something else is asked for, and at most: each is up to a mebibyte in memory.
const USUAL_QUEUE: u32 = 64;
const MOST_QUEUE: u32 = 1024;
const USUAL_IDLE_SECONDS: u64 = 60;
const MOST_IDLE_SECONDS: u64 = 86_400;
const MAX_NAME: usize = 64;

/// A service to run: what is common to all kinds, and one kind without its items.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServiceRequest {
    #[serde(flatten)]
    pub common: ServiceCommon,
    #[serde(flatten)]
    pub work: WorkRequest,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ServiceCommon {
    /// What clients call it in `/api/v1/services/NAME`.
    pub name: String,
    /// For whom: shown to donors.
    pub owner: Option<String>,
    /// For each request.
    pub limits: LimitsJson,
    /// Number of nodes that keep it ready while there is memory. Default: 1.
    pub least: Option<u16>,
    /// Number of nodes that may keep it ready when requests are waiting. Default: 4.
    pub most: Option<u16>,
    /// Requests that may wait; more are refused. Default: 64.
    pub queue: Option<u32>,
    /// Seconds without work after which a node beyond `least` is released. Default: 60.
    pub idle_seconds: Option<u64>,
    /// Whether other people's devices may serve it too. Their answers are not checked.
    pub strangers: bool,
    /// Whether several devices may keep it ready together, each some of its parts: `auto` (where no device has the
    /// memory for all of it, or several answer sooner), `never`, or how many. Default: `auto` for language models,
    /// `never` for everything else.
    pub split: Option<String>,
    /// Who stands for the code. Default: the coordinator itself.
    pub signature: Option<SignatureJson>,
}

impl ServiceCommon {
    const FIELDS: [&'static str; 10] = [
        "name",
        "owner",
        "limits",
        "least",
        "most",
        "queue",
        "idleSeconds",
        "strangers",
        "split",
        "signature",
    ];
}

/// Reads a request, naming the field that is wrong.
pub fn read_service(body: &[u8]) -> Result<ServiceRequest, PlanError> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| PlanError::Json(error.to_string()))?;
    let Value::Object(mut fields) = value else {
        return Err(PlanError::Json("expected a JSON object".into()));
    };
    let common = ServiceCommon::FIELDS.iter().filter_map(|name| fields.remove_entry(*name));
    let common = common.collect::<serde_json::Map<_, _>>();
    let bad = |error: serde_json::Error| PlanError::Request(error.to_string());
    let common = serde_json::from_value(Value::Object(common)).map_err(bad)?;
    let work = serde_json::from_value(Value::Object(fields)).map_err(bad)?;
    Ok(ServiceRequest { common, work })
}

/// Checks all of a request. `signed` says who stands for its code.
pub fn serve(
    request: &ServiceRequest,
    signed: Option<Signed>,
    tools: &Tools<'_>,
) -> Result<ServiceSpec, PlanError> {
    let ServiceRequest { common, work } = request;
    let name = common.name.clone();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
        return Err(PlanError::ServiceName { name });
    }
    let most = common.most.unwrap_or(USUAL_MOST.max(common.least.unwrap_or(1)));
    let least = common.least.unwrap_or(1.min(most));
    if most == 0 || most > MOST_REPLICAS || least > most {
        return Err(PlanError::Replicas { least, most, limit: MOST_REPLICAS });
    }
    let queue = common.queue.unwrap_or(USUAL_QUEUE);
    in_range("\"queue\"", queue.into(), MOST_QUEUE.into())?;
    let idle = common.idle_seconds.unwrap_or(USUAL_IDLE_SECONDS);
    in_range("\"idleSeconds\"", idle, MOST_IDLE_SECONDS)?;
    let limits = limits(&common.limits)?;
    let ask = work.ask();
    let split = read_split(common.split.as_deref())?.unwrap_or_else(|| ask.usual_split());
    let (work, needs) = ask.serve(limits, tools)?;
    let work = match split {
        Split::Never => work,
        Split::Auto | Split::Exactly(_) => ask.cut(work, tools)?,
    };
    if let Split::Exactly(devices) = split {
        let parts = work.crew().map_or(1, |plan| plan.problem.shares());
        if u64::from(devices) > parts {
            return Err(PlanError::TooFewParts { devices, parts });
        }
    }
    let owner = common.owner.clone().filter(|owner| !owner.trim().is_empty());
    Ok(ServiceSpec {
        name,
        owner: owner.unwrap_or_else(|| NO_OWNER.into()),
        work,
        needs,
        limits,
        signed,
        least,
        most,
        queue,
        idle: Micros::from_secs(idle),
        strangers: common.strangers,
        split,
    })
}

fn read_split(text: Option<&str>) -> Result<Option<Split>, PlanError> {
    let most = MAX_MEMBERS as u8;
    match text {
        None => Ok(None),
        Some("never") => Ok(Some(Split::Never)),
        Some("auto") => Ok(Some(Split::Auto)),
        Some(text) => {
            let number = text.parse().ok().filter(|devices| (2..=most).contains(devices));
            let wrong = || PlanError::Split { text: text.into(), most };
            number.map(Split::Exactly).map(Some).ok_or_else(wrong)
        }
    }
}

fn in_range(what: &'static str, value: u64, most: u64) -> Result<(), PlanError> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(PlanError::OutOfRange { what, value, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_is_a_word_or_a_number_of_devices() {
        assert_eq!(read_split(None).expect("as it should be"), None);
        assert_eq!(read_split(Some("auto")).expect("as it should be"), Some(Split::Auto));
        assert_eq!(read_split(Some("3")).expect("as it should be"), Some(Split::Exactly(3)));
        for wrong in ["1", "0", "-2", "65", "some", ""] {
            let error = read_split(Some(wrong)).expect_err(wrong).to_string();
            assert!(error.contains("auto, never or a number of devices from 2 to 64"), "{error}");
        }
    }

    #[test]
    fn a_service_with_an_unknown_field_or_a_strange_name_is_told_so() {
        let error = read_service(br#"{"name":"a","kind":"exec","module":"00","leest":2}"#);
        assert!(error.expect_err("it is wrong").to_string().contains("leest"));
        let fine = br#"{"name":"a","kind":"exec","module":"00","least":2,"idleSeconds":5}"#;
        let fine = read_service(fine).expect("it is right");
        assert_eq!((fine.common.least, fine.common.idle_seconds), (Some(2), Some(5)));
    }
}
