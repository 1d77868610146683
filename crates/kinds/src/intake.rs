//! Why user code is refused, by whoever reads it.

use alloc::string::String;
use core::fmt;

/// Why user code is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntakeError {
    /// For machines: `bad_kernel`, `bad_params` or `bad_module`.
    pub code: &'static str,
    /// For people, in whole sentences; for kernels with line, column and a caret under the spot.
    pub message: String,
    pub line: Option<u32>,
    pub column: Option<u32>,
}

impl IntakeError {
    /// One that names no spot.
    pub fn plain(code: &'static str, message: impl Into<String>) -> IntakeError {
        IntakeError { code, message: message.into(), line: None, column: None }
    }
}

impl fmt::Display for IntakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for IntakeError {}
