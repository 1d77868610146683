//! Why a node ends or does not begin, in words for people and a code for programs.

use std::io;

/// Whose fault it is, which whoever started the node turns into its own way to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fail {
    /// What the node was given is at fault: a link, a key, a file.
    Input { code: String, message: String },
    /// The world is at fault: network, disk, a coordinator that is gone.
    World { code: String, message: String },
}

impl Fail {
    pub(crate) fn input(message: impl Into<String>) -> Fail {
        Fail::Input { code: "bad_input".into(), message: message.into() }
    }

    pub(crate) fn world(code: &str, message: impl Into<String>) -> Fail {
        Fail::World { code: code.into(), message: message.into() }
    }
}

/// An operating system's error without its "(os error 2)".
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => "unknown reason".into(),
    }
}
