//! The coordinator as the world sees it: real sockets, real files, nodes played by the tests.
#![allow(clippy::unwrap_used)]

mod again;
mod auth;
mod blobs;
mod check;
mod crash;
mod crew;
mod crowd;
mod disk;
mod events;
mod exec;
mod field;
mod flood;
mod hostile;
mod intake;
mod jobs;
mod kill;
mod node;
mod open;
mod openapi;
mod pages;
mod proof;
mod quic;
mod quic_way;
mod receipt;
mod relay;
mod relay_load;
mod render;
mod services;
mod sim;
mod socket;
mod speed;
mod tls;
mod types;
mod upload;
mod world;
