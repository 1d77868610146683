//! How a job is treated beside others, and how its answers are checked.

use serde::{Deserialize, Serialize};

use crate::id::NodeId;

/// Nothing special, nothing checked: what a job has if nobody says otherwise. Shells choose better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    pub priority: Priority,
    /// Its share beside other jobs of the same priority; 100 is usual.
    pub weight: u16,
    pub verify: Verify,
    /// When two answers count as the same.
    pub tolerance: Tolerance,
    /// The submitter's own device: an interactive job goes there first, then to the nearest.
    pub home: Option<NodeId>,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            priority: Priority::Normal,
            weight: 100,
            verify: Verify::None,
            tolerance: Tolerance::EXACT,
            home: None,
        }
    }
}

impl Policy {
    /// Nothing special, but checked like this.
    pub fn checked(verify: Verify) -> Policy {
        Policy { verify, ..Policy::default() }
    }
}

/// Who is served first. A later one goes before all earlier ones. Append nothing in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Priority {
    /// When nothing else is there to do.
    Batch,
    #[default]
    Normal,
    /// Somebody waits for it.
    Interactive,
}

/// What must happen before an answer is believed. Append new kinds at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verify {
    /// Every answer is believed.
    #[default]
    None,
    /// Some units, drawn by chance, are computed by a second node as well.
    Spot { per_million: u32 },
    /// Every unit is computed by this many nodes of different owners, who must agree.
    Quorum { votes: u16 },
    /// Everything of a new node is checked; the longer its answers were right, the less.
    Adaptive,
}

/// When two answers of different numeric classes count as the same: where one of the three bounds holds
/// for every element. NaN equals NaN.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    pub dtype: Dtype,
    /// Largest difference.
    pub abs: f32,
    /// Largest difference as a part of the larger of the two.
    pub rel: f32,
    /// Largest number of representable values between the two.
    pub ulps: u32,
}

/// What the bytes of an answer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dtype {
    /// Compared bit for bit: integers, text, files.
    Bytes,
    /// Colours and the like: each byte a number that came from a float.
    Unorm8,
    F16,
    F32,
}

impl Tolerance {
    /// Bit for bit.
    pub const EXACT: Tolerance = Tolerance { dtype: Dtype::Bytes, abs: 0.0, rel: 0.0, ulps: 0 };

    /// What honest devices stay within: functions like `sin` differ by some units in the last place, and
    /// sums of many terms by more.
    pub const fn usual(dtype: Dtype) -> Tolerance {
        match dtype {
            Dtype::Bytes => Tolerance::EXACT,
            Dtype::Unorm8 => Tolerance { dtype, abs: 2.0, rel: 0.0, ulps: 0 },
            Dtype::F16 => Tolerance { dtype, abs: 1e-3, rel: 1e-2, ulps: 4 },
            Dtype::F32 => Tolerance { dtype, abs: 1e-5, rel: 1e-4, ulps: 16 },
        }
    }

    /// Whether only the same bits are the same answer.
    pub fn is_exact(&self) -> bool {
        self.dtype == Dtype::Bytes
    }
}
