//! Taking a job in.

use core::fmt;
use alloc::string::String;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitError {
    /// Nothing to compute.
    Empty,
    /// More open jobs than allowed.
    Busy { open: usize },
    /// More units than allowed.
    TooManyUnits { units: u64 },
    /// No node connected now could ever run it; says what is asked and what the pool offers.
    NoNodeCan { asked: String, offered: String },
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubmitError::Empty => f.write_str("the input is empty: there is nothing to compute"),
            SubmitError::Busy { open } => {
                write!(f, "{open} jobs are open already: wait for one to end or cancel one")
            }
            SubmitError::TooManyUnits { units } => {
                write!(f, "the job would have {units} units: give each more items")
            }
            SubmitError::NoNodeCan { asked, offered } => {
                write!(f, "no node can run this: it asks for {asked}; the pool offers {offered}")
            }
        }
    }
}
