//! Real processes of the real binary: pools, nodes and clients, and what happens to them.

mod app;
mod bad_input;
#[cfg(unix)]
mod battery;
mod consent;
#[cfg(feature = "count")]
mod count;
mod exec;
mod identity;
mod kernels;
mod liar;
mod material;
mod memory;
mod model;
#[cfg(target_os = "linux")]
mod netns;
mod onnx_file;
mod onnx_suite;
mod poke;
mod process;
mod proxy;
#[cfg(unix)]
mod quic;
mod receipt;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
mod secret;
mod service;
#[cfg(unix)]
mod sim;
mod speculate;
mod starting;
#[cfg(unix)]
mod straggler;
mod survive;
#[cfg(unix)]
mod swarm;
mod words;
mod world;
