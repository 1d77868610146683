//! Chance, from the machine.

use crate::fail::Fail;

pub(super) fn random() -> Result<[u8; 32], Fail> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Fail::world("internal", error.to_string()))?;
    Ok(bytes)
}

pub(super) fn random_number() -> Result<u64, Fail> {
    let [a, b, c, d, e, f, g, h, ..] = random()?;
    Ok(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
}
