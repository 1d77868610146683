//! Language models: what they say is what others say, and the same however it is computed.

mod abreast;
mod again;
mod embeddings;
#[cfg(feature = "gpu")]
mod gpu;
mod guesses;
mod material;
mod outside;
mod rests;
mod rounds;
mod tiny;
