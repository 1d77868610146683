//! Real processes of the real binary: pools, nodes and clients, and what happens to them.

#[cfg(target_os = "linux")]
mod accelerator;
mod app;
mod arrays;
mod bad_input;
mod batch;
#[cfg(unix)]
mod battery;
mod beside;
mod consent;
#[cfg(feature = "count")]
mod count;
mod crowd;
mod exec;
mod identity;
mod kernels;
mod language;
mod language_gpu;
mod leave;
mod liar;
mod material;
mod memory;
mod model;
#[cfg(target_os = "linux")]
mod netns;
mod onnx_file;
mod onnx_suite;
mod partial;
mod poke;
mod process;
mod proxy;
#[cfg(unix)]
mod quantize;
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
mod split;
mod starting;
#[cfg(unix)]
mod straggler;
mod stream;
mod survive;
#[cfg(unix)]
mod swarm;
mod web;
mod words;
mod world;
