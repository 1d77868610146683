//! How a job is treated and checked: what was asked for, or what suits its kind.

use alloc::format;
use alloc::string::String;
use shoal_protocol::{NodeId, Policy, Priority, Tolerance, Verify};

use super::error::PlanError;
use super::{Ask, CommonRequest, PriorityJson, ToleranceJson};

/// What is computed twice if `spot` says no fraction: one in ten.
const USUAL_SPOT: u32 = MILLION / 10;
const MILLION: u32 = 1_000_000;
/// More voices than this make nothing surer, and few pools have them.
const MOST_VOTES: u16 = 15;
const USUAL_WEIGHT: u16 = 100;
const MOST_WEIGHT: u32 = 10_000;

/// All but the tolerance, which depends on what the code gives.
pub(super) fn policy(asked: &CommonRequest, ask: &dyn Ask) -> Result<Policy, PlanError> {
    if ask.is_exact() && asked.tolerance.is_some() {
        return Err(PlanError::ToleranceExact);
    }
    let weight = match asked.weight {
        None => USUAL_WEIGHT,
        Some(weight) => u16::try_from(weight)
            .ok()
            .filter(|_| (1..=MOST_WEIGHT).contains(&weight))
            .ok_or(PlanError::Weight { weight, most: MOST_WEIGHT })?,
    };
    let priority = match asked.priority {
        None | Some(PriorityJson::Normal) => Priority::Normal,
        Some(PriorityJson::Batch) => Priority::Batch,
        Some(PriorityJson::Interactive) => Priority::Interactive,
    };
    let verify = verify(asked.verify.as_deref(), ask)?;
    let home = asked.home.map(NodeId);
    Ok(Policy { priority, weight, verify, home, tolerance: Tolerance::EXACT })
}

fn verify(asked: Option<&str>, ask: &dyn Ask) -> Result<Verify, PlanError> {
    let verify = match asked {
        None => ask.usual_verify(),
        Some(text) => parse(text).ok_or_else(|| PlanError::Verify { text: text.into() })?,
    };
    match ask.unchecked(verify) {
        Some(error) if verify != Verify::None => Err(error),
        Some(_) | None => Ok(verify),
    }
}

fn parse(text: &str) -> Option<Verify> {
    let (word, value) = match text.split_once(':') {
        Some((word, value)) => (word, Some(value)),
        None => (text, None),
    };
    match (word, value) {
        ("none", None) => Some(Verify::None),
        ("adaptive", None) => Some(Verify::Adaptive),
        ("spot", None) => Some(Verify::Spot { per_million: USUAL_SPOT }),
        ("spot", Some(value)) => {
            let part: f64 = value.parse().ok().filter(|part| (0.0..=1.0).contains(part))?;
            let per_million = round(part * f64::from(MILLION));
            Some(Verify::Spot { per_million })
        }
        ("quorum", Some(value)) => {
            let votes = value.parse().ok().filter(|votes| (2..=MOST_VOTES).contains(votes))?;
            Some(Verify::Quorum { votes })
        }
        (_, _) => None,
    }
}

/// Half up; there is no `f64::round` without std.
fn round(value: f64) -> u32 {
    (value + 0.5) as u32
}

/// A policy in the words of a request.
pub fn verify_words(verify: Verify) -> String {
    match verify {
        Verify::None => "none".into(),
        Verify::Spot { per_million } => {
            format!("spot:{}", f64::from(per_million) / f64::from(MILLION))
        }
        Verify::Quorum { votes } => format!("quorum:{votes}"),
        Verify::Adaptive => "adaptive".into(),
    }
}

pub(super) fn tolerance(
    asked: Option<&ToleranceJson>,
    usual: Tolerance,
) -> Result<Tolerance, PlanError> {
    let Some(asked) = asked else { return Ok(usual) };
    if usual.is_exact() {
        return Err(PlanError::ToleranceExact);
    }
    for (which, value) in [("abs", asked.abs), ("rel", asked.rel)] {
        if let Some(value) = value.filter(|value| !(value.is_finite() && *value >= 0.0)) {
            return Err(PlanError::Tolerance { which, value });
        }
    }
    Ok(Tolerance {
        dtype: usual.dtype,
        abs: asked.abs.unwrap_or(usual.abs),
        rel: asked.rel.unwrap_or(usual.rel),
        ulps: asked.ulps.unwrap_or(usual.ulps),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_protocol::Dtype;

    #[test]
    fn policies_read_back_what_they_write() {
        let spot = |per_million| Verify::Spot { per_million };
        for (text, verify) in [
            ("none", Verify::None),
            ("adaptive", Verify::Adaptive),
            ("spot:0.25", spot(250_000)),
            ("spot:1", spot(MILLION)),
            ("quorum:3", Verify::Quorum { votes: 3 }),
        ] {
            assert_eq!(parse(text), Some(verify));
            assert_eq!(verify_words(verify), text);
        }
        assert_eq!(parse("spot"), Some(spot(100_000)));
        for bad in ["", "some", "spot:2", "spot:NaN", "quorum", "quorum:1", "quorum:16", "none:1"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_bound_replaces_the_usual_one() {
        let asked = ToleranceJson { rel: Some(0.5), ..ToleranceJson::default() };
        let usual = Tolerance::usual(Dtype::F32);
        let expected = Tolerance { rel: 0.5, ..usual };
        assert_eq!(tolerance(Some(&asked), usual).expect("a tolerance"), expected);
        assert!(tolerance(Some(&asked), Tolerance::EXACT).is_err());
        let bad = ToleranceJson { abs: Some(-1.0), ..ToleranceJson::default() };
        assert!(tolerance(Some(&bad), usual).is_err());
    }
}
