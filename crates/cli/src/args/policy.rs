//! How a job is checked, who goes first, and who stands for its code.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use shoal_api::{PriorityJson, ToleranceJson};

/// The most votes that may be asked for; the coordinator knows the same bound.
const MOST_VOTES: u16 = 15;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Checking and order")]
pub(crate) struct PolicyArgs {
    /// How answers are checked: none, spot[:FRACTION] (compute this fraction of the units twice, 0.1 if
    /// you name none), quorum:N (N devices must agree) or adaptive (check new devices more than trusted
    /// ones) [default: adaptive]
    #[arg(long = "verify", value_name = "HOW", value_parser = verify)]
    pub(crate) verify: Option<String>,
    /// How much floats from different kinds of GPUs may differ, such as abs=1e-5,rel=1e-4,ulps=16
    #[arg(long, value_name = "BOUNDS", value_parser = tolerance)]
    pub(crate) tolerance: Option<ToleranceJson>,
    /// How urgent the job is
    #[arg(long, value_name = "WHEN", value_enum)]
    pub(crate) priority: Option<PriorityArg>,
    /// The job's share among jobs of the same priority; the default is 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) weight: Option<u16>,
    /// Sign the code with the key in this file; Shoal makes one if it is missing [default: submitter.key
    /// in the data folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) signer_key: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PriorityArg {
    /// Runs when there is nothing else to do
    Batch,
    Normal,
    /// Runs before all others; first on this machine's own node, then on the nearest nodes
    Interactive,
}

impl PriorityArg {
    /// Somebody waits for it: it goes to their own device first.
    pub(crate) fn has_home(self) -> bool {
        self == PriorityArg::Interactive
    }
}

impl From<PriorityArg> for PriorityJson {
    fn from(priority: PriorityArg) -> PriorityJson {
        match priority {
            PriorityArg::Batch => PriorityJson::Batch,
            PriorityArg::Normal => PriorityJson::Normal,
            PriorityArg::Interactive => PriorityJson::Interactive,
        }
    }
}

fn verify(text: &str) -> Result<String, String> {
    let is_good = match text.split_once(':') {
        None => matches!(text, "none" | "spot" | "adaptive"),
        Some(("spot", part)) => part.parse::<f64>().is_ok_and(|part| part > 0.0 && part <= 1.0),
        Some(("quorum", votes)) => {
            votes.parse::<u16>().is_ok_and(|votes| (2..=MOST_VOTES).contains(&votes))
        }
        Some(_) => false,
    };
    if is_good {
        return Ok(text.into());
    }
    Err(format!(
        "expected none, spot, spot:FRACTION (0 to 1), quorum:N (2 to {MOST_VOTES}) or adaptive"
    ))
}

fn tolerance(text: &str) -> Result<ToleranceJson, String> {
    let mut bounds = ToleranceJson::default();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let bound = || value.parse::<f32>().ok().filter(|bound| *bound >= 0.0 && bound.is_finite());
        let (good, twice) = match name {
            "abs" => (bound().is_some(), put(&mut bounds.abs, bound())),
            "rel" => (bound().is_some(), put(&mut bounds.rel, bound())),
            "ulps" => {
                let count = value.parse().ok();
                (count.is_some(), put(&mut bounds.ulps, count))
            }
            _ => (false, false),
        };
        if !good {
            return Err("expected bounds such as abs=1e-5,rel=1e-4,ulps=16".into());
        }
        if twice {
            return Err(format!("{name} is given twice"));
        }
    }
    Ok(bounds)
}

/// Whether something was there before.
fn put<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    std::mem::replace(place, value).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_and_bounds_are_read_or_refused_with_what_was_expected() {
        for good in ["none", "spot", "spot:0.25", "quorum:2", "quorum:15", "adaptive"] {
            assert_eq!(verify(good), Ok(good.into()));
        }
        for bad in ["", "all", "spot:0", "spot:2", "quorum", "quorum:1", "quorum:16", "none:1"] {
            assert!(verify(bad).is_err_and(|text| text.contains("quorum:N")), "{bad}");
        }
        let bounds = tolerance("abs=1e-5,ulps=4").expect("bounds");
        assert_eq!((bounds.abs, bounds.rel, bounds.ulps), (Some(1e-5), None, Some(4)));
        for bad in ["", "abs", "abs=-1", "abs=x", "ulps=1.5", "abs=1,abs=2", "abs=inf", "abs=1e99"]
        {
            assert!(tolerance(bad).is_err(), "{bad}");
        }
    }
}
