//! What both ends can do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one end says of itself, or what both have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Capabilities {
    /// By WebGPU's names.
    pub features: Vec<String>,
    /// By WebGPU's names.
    pub limits: BTreeMap<String, f64>,
}

impl Capabilities {
    /// 16-bit floats in shaders.
    pub fn float16(&self) -> bool {
        self.has("shader-f16")
    }

    pub fn subgroups(&self) -> bool {
        self.has("subgroups")
    }

    pub fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|known| known == feature)
    }

    pub(crate) fn both(&self, other: &Capabilities) -> Capabilities {
        let features = self.features.iter().filter(|feature| other.has(feature)).cloned().collect();
        let limits = self.limits.iter().filter_map(|(name, mine)| {
            let theirs = other.limits.get(name)?;
            // Alignments are met by the coarser one.
            let both = if name.starts_with("min") { mine.max(*theirs) } else { mine.min(*theirs) };
            Some((name.clone(), both))
        });
        Capabilities { features, limits: limits.collect() }
    }
}
