//! What people see: progress bars, tables, numbers in words.

mod bytes;
mod checked;
mod job;
mod table;
mod text;

pub(crate) use bytes::Bytes;
pub(crate) use checked::{checked, in_words, votes};
pub(crate) use job::{JobBar, JsonLines, Quiet};
pub(crate) use table::{compared, forms, jobs, left, nodes};
pub(crate) use text::{count, duration, harmless, size};

use std::io::{self, Write};

use shoal_host::tls::Fingerprint;

use crate::fail::Fail;

/// A certificate nobody vouches for, as the user should compare it once.
pub(crate) fn first_seen(base: &str, found: Fingerprint) {
    eprintln!(
        "first connection to {base}: compare the SHA-256 fingerprint of its certificate with the one that \
         the coordinator printed:\n  {found}"
    );
}

/// Writes one line to stdout. A reader that has gone away is no fault.
pub(crate) fn line(text: &str) -> Result<(), Fail> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n"));
    match written.and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Fail::PipeClosed),
        Err(error) => Err(Fail::writing("stdout".as_ref(), &error)),
    }
}

/// Writes one JSON document to stdout.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<(), Fail> {
    let text = serde_json::to_string(value)
        .map_err(|error| Fail::world("internal", format!("cannot write JSON: {error}")))?;
    line(&text)
}
