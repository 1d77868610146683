//! Real processes of the real binary: pools, nodes and clients, and what happens to them.

mod bad_input;
mod exec;
mod kernels;
mod material;
mod starting;
mod survive;
mod world;
