//! Makes stdin upper case: the smallest program that does something.
//!
//!     echo hello | shoal exec examples/programs/target/shout.wasm

use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    std::io::stdout().write_all(text.to_uppercase().as_bytes())
}
