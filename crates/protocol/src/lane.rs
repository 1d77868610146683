//! Which part of a node computes, and tables with a place for each.

use core::ops::{Index, IndexMut};
use serde::{Deserialize, Serialize};

/// Which part of a node computes. A new one stands here and in [`Lane::ALL`]; tables by lane grow with it, and the
/// compiler names every decision that has to be made for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Lane {
    /// Answered at once by the node itself.
    Inline,
    Gpu,
    Cpu,
}

impl Lane {
    /// In the order of the enum, in which they are also served.
    pub const ALL: [Lane; 3] = [Lane::Inline, Lane::Gpu, Lane::Cpu];
}

/// A value for each lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerLane<T>([T; Lane::ALL.len()]);

impl<T> PerLane<T> {
    pub fn from_fn(mut value: impl FnMut(Lane) -> T) -> PerLane<T> {
        PerLane(Lane::ALL.map(&mut value))
    }

    /// The same for all.
    pub fn all(value: T) -> PerLane<T>
    where
        T: Clone,
    {
        PerLane::from_fn(|_| value.clone())
    }

    pub fn iter(&self) -> impl Iterator<Item = (Lane, &T)> {
        Lane::ALL.into_iter().zip(&self.0)
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }
}

impl<T> Index<Lane> for PerLane<T> {
    type Output = T;

    fn index(&self, lane: Lane) -> &T {
        &self.0[lane as usize]
    }
}

impl<T> IndexMut<Lane> for PerLane<T> {
    fn index_mut(&mut self, lane: Lane) -> &mut T {
        &mut self.0[lane as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_has_its_place() {
        let table = PerLane::from_fn(|lane| lane);
        assert!(table.iter().all(|(lane, value)| lane == *value && table[lane] == lane));
        assert_eq!(table.values().count(), Lane::ALL.len());
    }
}
