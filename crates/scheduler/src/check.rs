//! See the crate's doc.
