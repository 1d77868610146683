//! The seam between a model and what computes it.

use std::sync::Arc;

/// Computes one model, beside the built-in engine. A request that comes here is checked: it has what the model takes, and its values fit into
/// memory. What an engine answers is checked behind it.
pub trait Engine: Send + Sync {
    /// Packed tensors in, packed tensors out.
    fn run(&self, request: &[u8]) -> Result<Vec<u8>, Trouble>;

    /// Whether it can be asked now. One that broke may be starting again.
    fn is_ready(&self) -> bool {
        true
    }
}

/// Why an engine gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// This cannot be computed from this request.
    Refused(String),
    /// The engine itself failed; another one may answer.
    Broken(String),
}

/// An engine beside the built-in one.
pub struct Second {
    /// As people know it.
    pub name: String,
    pub engine: Arc<dyn Engine>,
    /// Whether it answers without being timed.
    pub preferred: bool,
    /// Microseconds since any moment.
    pub clock: fn() -> u64,
    pub tell: Arc<dyn Fn(Note) + Send + Sync>,
}

/// What became of a model that two engines can compute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// From now on one of them answers. What a run took, at best, in microseconds; none for an engine that cannot.
    Chose { name: String, built_in: Option<u64>, second: Option<u64> },
    /// The other engine failed at a request, and the built-in one was asked.
    Broke { name: String, why: String },
}
