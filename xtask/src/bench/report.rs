//! What a benchmark found, as one JSON object: `name, rounds, ours, peers, ratios, targets, met`.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// Figures and what was asked of them.
#[derive(Serialize)]
pub(crate) struct Report {
    name: &'static str,
    rounds: usize,
    ours: Map<String, Value>,
    peers: Map<String, Value>,
    ratios: Map<String, Value>,
    targets: Map<String, Value>,
    met: Map<String, Value>,
    /// What a reader must know to judge the figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// Which side of the target is good.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

impl Report {
    pub(crate) fn new(name: &'static str, rounds: usize) -> Report {
        Report {
            name,
            rounds,
            ours: Map::new(),
            peers: Map::new(),
            ratios: Map::new(),
            targets: Map::new(),
            met: Map::new(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn ours(&mut self, what: &str, value: f64) {
        self.ours.insert(what.into(), rounded(value));
    }

    pub(crate) fn peer(&mut self, what: &str, value: f64) {
        self.peers.insert(what.into(), rounded(value));
    }

    pub(crate) fn ratio(&mut self, what: &str, value: f64, wanted: Wanted) {
        self.ratios.insert(what.into(), rounded(value));
        self.judge(what, value, wanted);
    }

    /// A ratio that is good to know but has no target.
    pub(crate) fn aside(&mut self, what: &str, value: f64) {
        self.ratios.insert(what.into(), rounded(value));
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// A target on one of our own figures or ratios.
    pub(crate) fn judge(&mut self, what: &str, value: f64, wanted: Wanted) {
        let (target, met) = match wanted {
            Wanted::AtLeast(least) => (json!({ "atLeast": least }), value >= least),
            Wanted::AtMost(most) => (json!({ "atMost": most }), value <= most),
        };
        self.targets.insert(what.into(), target);
        self.met.insert(what.into(), met.into());
    }

    /// A table for people, then the object on one line; only the latter with `--json`.
    pub(crate) fn print(&self, only_json: bool) {
        if !only_json {
            for (title, figures) in
                [("ours", &self.ours), ("peers", &self.peers), ("ratios", &self.ratios)]
            {
                for (what, value) in figures {
                    let target = self.targets.get(what).map(|target| target.to_string());
                    let met = match self.met.get(what) {
                        Some(Value::Bool(true)) => " met",
                        Some(_) => " NOT MET",
                        None => "",
                    };
                    println!(
                        "{title:<7} {what:<40} {value:>14} {}{met}",
                        target.unwrap_or_default()
                    );
                }
            }
            self.notes.iter().for_each(|note| println!("note    {note}"));
        }
        // Straight from the struct, so that the order of its fields stays.
        println!("{}", serde_json::to_string(self).unwrap_or_default());
    }
}

/// Three digits after the point are more than a noisy machine can vouch for.
fn rounded(value: f64) -> Value {
    json!((value * 1_000.0).round() / 1_000.0)
}

/// The best of several rounds: noise only ever makes things slower.
pub(crate) fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

pub(crate) fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// What is usual.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
