//! A WASI program, run once for each line or file.

pub mod left;
mod work;

#[cfg(feature = "plan")]
mod error;
#[cfg(feature = "plan")]
mod lines;
#[cfg(feature = "plan")]
mod list;
#[cfg(feature = "plan")]
mod plan;
#[cfg(feature = "plan")]
mod request;

pub use work::{ExecItems, ExecWork, Failing, files_room};

#[cfg(feature = "plan")]
pub use error::ExecError;
#[cfg(feature = "plan")]
pub use request::{ExecRequest, FileRequest, LinesRequest, OnErrorJson};

use alloc::vec::Vec;
use shoal_protocol::{Failure, Lane};

use crate::form::{End, Form, Record};
use crate::kind::{About, Code, Told, body};
use crate::plain::Plain;

/// What a program is, by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramForm {
    /// A module of WASI preview 1.
    Module,
    /// A component of WASI preview 2.
    Component,
}

impl About for ExecWork {
    fn name(&self) -> &'static str {
        "exec"
    }

    fn told() -> Told {
        Told { item: "run", items: "runs", ..Told::of("a program in a sandbox") }
    }

    fn lane(&self) -> Lane {
        Lane::Cpu
    }

    /// A module's own bytes are hashed where they arrive.
    fn code(&self) -> Option<Code> {
        Some(Code { what: "program", hash: self.module.hash })
    }

    fn form(&self) -> Form<'_> {
        Form::Answers
    }

    fn is_rounded(&self) -> bool {
        false
    }

    fn repeats(&self) -> bool {
        !self.clock
    }

    /// What a run leaves that no device could end in its time, or whose stack is too deep for all of them.
    fn failed(&self, failure: &Failure) -> Option<Vec<u8>> {
        let end = match failure {
            _ if self.failing.stop => None,
            Failure::Trap { .. } => Some(End::Trap),
            Failure::Exit { code, .. } => Some(End::Exit(*code)),
            Failure::Limit { which, .. } => Some(End::Limit(*which)),
            Failure::Kernel { .. }
            | Failure::DeviceLost { .. }
            | Failure::OutOfMemory { .. }
            | Failure::Fetch { .. }
            | Failure::Internal { .. }
            | Failure::Signature { .. }
            | Failure::Unable { .. }
            | Failure::Outside { .. }
            | Failure::Model { .. } => None,
        };
        end.map(|end| Record::alone(end, failure.stderr().as_bytes()))
    }

    fn plain(&self) -> Plain {
        let text = |text: &str| Plain::Text(text.into());
        let items = match &self.items {
            ExecItems::Lines { data, ends } => {
                [("kind", text("lines")), ("data", Plain::blob(data)), ("ends", Plain::blob(ends))]
                    .into()
            }
            ExecItems::Files { manifest } => {
                [("kind", text("files")), ("manifest", Plain::blob(manifest))].into()
            }
            ExecItems::Requests => [("kind", text("requests"))].into(),
        };
        let env = self.env.iter();
        let env = env.map(|(name, value)| Plain::List([text(name), text(value)].into()));
        let Failing { stop, ok, retry } = &self.failing;
        let failing = Vec::from([
            ("stop", Plain::Truth(*stop)),
            ("ok", Plain::List(ok.iter().map(|code| Plain::Number(f64::from(*code))).collect())),
            ("retry", Plain::Number(f64::from(*retry))),
        ]);
        let mut fields = Vec::from([
            ("kind", text("exec")),
            ("module", Plain::blob(&self.module)),
            ("args", Plain::List(self.args.iter().map(|arg| text(arg)).collect())),
            ("env", Plain::List(env.collect())),
            ("items", Plain::Object(items)),
            ("clock", Plain::Truth(self.clock)),
            ("failing", Plain::Object(failing)),
            ("leaves", Plain::Truth(self.leaves)),
        ]);
        fields.extend(self.folder.as_ref().map(|folder| ("folder", Plain::blob(folder))));
        Plain::Object(fields)
    }

    fn body(&self) -> Vec<u8> {
        body(self)
    }

    #[cfg(feature = "plan")]
    fn settings(&self) -> crate::plan::Settings {
        let env = self.env.iter().map(|(name, value)| serde_json::json!([name, value]));
        let mut settings = crate::plan::Settings::new();
        settings.insert("args".into(), self.args.clone().into());
        settings.insert("clock".into(), self.clock.into());
        settings.insert("env".into(), env.collect());
        // As it was before there was a choice, receipts say nothing of it.
        if self.failing != Failing::default() {
            let Failing { stop, ok, retry } = &self.failing;
            settings.insert("okExit".into(), ok.clone().into());
            settings.insert("onError".into(), if *stop { "stop" } else { "continue" }.into());
            settings.insert("retry".into(), (*retry).into());
        }
        settings
    }

    #[cfg(feature = "plan")]
    fn inputs(&self, store: &dyn crate::plan::Store) -> Vec<crate::plan::NamedInput> {
        let mut inputs = match &self.items {
            ExecItems::Lines { data, .. } => [crate::plan::NamedInput::plain("lines", data)].into(),
            ExecItems::Files { manifest } => list::named("file", manifest, store),
            ExecItems::Requests => Vec::new(),
        };
        inputs.extend(self.folder.iter().flat_map(|folder| list::named("folder", folder, store)));
        inputs
    }

    #[cfg(feature = "plan")]
    fn item_name(
        &self,
        item: u64,
        note: &crate::plan::Note,
        store: &dyn crate::plan::Store,
    ) -> Option<alloc::string::String> {
        match &self.items {
            ExecItems::Lines { .. } => Some(lines::words(item, note.lines_per_run.unwrap_or(1))),
            ExecItems::Files { manifest } => list::name_of(item, manifest, store),
            ExecItems::Requests => None,
        }
    }
}
