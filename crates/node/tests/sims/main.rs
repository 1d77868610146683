//! Simulations over a ring of members in a world made from a seed: whatever happens on the way, the final state
//! is bit for bit that of one who is alone with the whole grid.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod bare;
mod chaos;
mod engine;
mod grid;
mod liars;
mod members;
mod party;
mod talk;
mod totals;
mod whole;
mod wires;
mod world;
