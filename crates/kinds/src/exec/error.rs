//! Why runs of a program are refused.

use alloc::string::String;

use crate::plan::Refusal;

#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    #[error("the module has {size} bytes; at most {most} are allowed")]
    ModuleTooLarge { size: u64, most: u64 },
    #[error("the file {name:?} has {size} bytes; at most {most} are allowed")]
    FileTooLarge { name: String, size: u64, most: u64 },
    #[error("the files of \"folder\" have {size} bytes together; at most {most} are allowed")]
    FolderTooLarge { size: u64, most: u64 },
    #[error("a service gets its inputs with requests: leave \"lines\" and \"files\" out")]
    ServiceItems,
    #[error(
        "the program is a component (wasm32-wasip2), and components get no folder: leave \"folder\" out, or compile the program for wasm32-wasip1"
    )]
    ComponentFolder,
    #[error("give either \"lines\" or \"files\", not both")]
    LinesAndFiles,
    #[error(
        "the name {name:?} in \"folder\" cannot be used: names are relative, with no empty, \".\" or \"..\" parts, and each is used once"
    )]
    FolderName { name: String },
    #[error("the text has more than {most} runs: put more lines into each with \"perRun\"")]
    TooManyRuns { most: u64 },
    #[error("{what} cannot be passed to a program: {text:?} holds a NUL or, in a name, a \"=\"")]
    Unpassable { what: &'static str, text: String },
    #[error("\"retry\" is {retry}; it must be from 0 to {most}")]
    Retry { retry: u32, most: u32 },
    #[error("\"okExit\" lists {count} exit codes; at most {most} are allowed")]
    TooManyCodes { count: usize, most: usize },
    #[error(
        "a program that sees the real time (\"clock\": true) may answer differently each time, so its answers cannot be checked: leave \"verify\" out or say none"
    )]
    ClockChecked,
}

impl Refusal for ExecError {
    fn code(&self) -> &'static str {
        match self {
            ExecError::ModuleTooLarge { .. } => "bad_module",
            ExecError::FileTooLarge { .. }
            | ExecError::FolderTooLarge { .. }
            | ExecError::TooManyRuns { .. } => "too_large",
            ExecError::LinesAndFiles
            | ExecError::Retry { .. }
            | ExecError::TooManyCodes { .. }
            | ExecError::ServiceItems
            | ExecError::FolderName { .. }
            | ExecError::ComponentFolder
            | ExecError::Unpassable { .. }
            | ExecError::ClockChecked => "bad_request",
        }
    }
}
