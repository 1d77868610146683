//! Language models: what they say is what others say, and the same however it is computed.

mod material;
mod outside;
mod rounds;
mod tiny;
