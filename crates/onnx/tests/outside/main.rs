//! Models and cases that others published. `SHOAL_OUTSIDE` names the folder they are in (`cargo xtask test pure`
//! fetches them); without it these tests look at nothing, and with `SHOAL_REQUIRE_ALL=1` that is a failure.

mod explicit;
mod material;
mod models;
mod operators;
