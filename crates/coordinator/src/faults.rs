//! What tests let go wrong in the driver. Nothing does by default.

use std::fmt;
use std::sync::Arc;

/// Where a batch of the driver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Decided, and results' bytes are in their files; its facts are not written.
    Decided,
    /// Its facts are durable; nobody was told.
    Written,
    /// Everybody was told.
    Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The database answers that another program holds it; asked again after a while.
    Busy,
}

/// Asked at every point of every batch that has something to make durable.
#[derive(Clone, Default)]
pub struct Faults(Option<Arc<dyn Fn(Point) -> Fault + Send + Sync>>);

impl Faults {
    pub fn new(at: impl Fn(Point) -> Fault + Send + Sync + 'static) -> Faults {
        Faults(Some(Arc::new(at)))
    }

    pub(crate) fn at(&self, point: Point) -> Fault {
        self.0.as_ref().map_or(Fault::None, |at| at(point))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Faults(..)" } else { "Faults(none)" })
    }
}
