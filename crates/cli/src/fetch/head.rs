//! Looks at the beginning of a file that is still coming, so that a wrong one is refused early.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use shoal_engine::intake;
use shoal_kinds::llm::LlmPlan;
use shoal_kinds::onnx::MAX_MODEL_BYTES;

use crate::fail::Fail;
use crate::show;

/// Looked at first.
const FIRST_BYTES: u64 = 1 << 20;
/// More than any pool of today holds; a server that never stops sending is stopped here.
const MOST_BYTES: u64 = 1 << 40;
/// How GGUF files begin.
const GGUF: &[u8] = b"GGUF";
/// What is often fetched instead of a model: how it begins, and what to say of it.
const OTHERS: [(&[u8], &str); 6] = [
    (b"version https://git-lfs", "a Git LFS pointer, not the file it points to"),
    (b"{", "JSON"),
    (b"PK\x03\x04", "a ZIP archive (PyTorch files are such)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"<", "a web page or XML"),
    (b"GGML", "an old GGML file"),
];

/// Why there is no file.
#[derive(Debug)]
pub(super) enum Wrong {
    /// It is none that anybody wants.
    File(Fail),
    /// The file may be right: the next try goes on.
    World(Fail),
}

/// Watches over one file.
pub(super) struct Watch {
    /// As it is shown.
    url: String,
    /// The next look is when so many bytes are here; none is needed any more where there is no number.
    next: Option<u64>,
    is_onnx: bool,
}

impl Watch {
    pub(super) fn new(url: String) -> Watch {
        Watch { url, next: Some(FIRST_BYTES), is_onnx: false }
    }

    /// The most that such a file may have.
    pub(super) fn most(&self) -> u64 {
        let named = self.url.to_ascii_lowercase().ends_with(".onnx");
        if self.is_onnx || named { MAX_MODEL_BYTES } else { MOST_BYTES }
    }

    pub(super) fn too_large(&self, size: u64) -> Wrong {
        let (size, most) = (show::size(size), show::size(self.most()));
        let message = format!("{} has {size} or more; at most {most} are allowed", self.url);
        Wrong::File(Fail::Input { code: "too_large".into(), message })
    }

    /// Called whenever more is here, and with `ended` when nothing more comes.
    pub(super) fn look(
        &mut self,
        path: &Path,
        (have, total): (u64, Option<u64>),
        ended: bool,
    ) -> Result<(), Wrong> {
        let Some(next) = self.next.filter(|next| ended || have >= *next) else { return Ok(()) };
        let head = read(path, have.min(next))
            .map_err(|error| Wrong::World(Fail::reading(path, &error)))?;
        if !head.starts_with(GGUF) {
            self.is_onnx = true;
            self.next = None;
            return match shoal_onnx::may_begin(&head) && !is_gguf(&self.url) {
                true => Ok(()),
                false => Err(self.wrong(&head)),
            };
        }
        let size = total.unwrap_or(if ended { have } else { MOST_BYTES });
        let read = head.len() as u64;
        match intake::language_model(head, size) {
            Ok(LlmPlan::Model(_)) => self.next = None,
            Ok(LlmPlan::More(needed)) if !ended => {
                self.next = Some(needed.max(read * 2).min(size));
            }
            // All of it is here: whoever reads it next says the same, or finds it whole.
            Ok(LlmPlan::More(_)) => self.next = None,
            Err(error) => {
                let message = format!("{}: {}", self.url, error.message);
                return Err(Wrong::File(Fail::Input { code: error.code.into(), message }));
            }
        }
        Ok(())
    }

    fn wrong(&self, head: &[u8]) -> Wrong {
        let text = head.trim_ascii_start();
        let known = OTHERS.iter().find(|(begin, _)| text.starts_with(begin));
        let found = match known {
            Some((_, what)) => format!("it is {what}"),
            None if head.is_empty() => "it is empty".into(),
            None => {
                let first = head.iter().take(8).map(|byte| format!("{byte:02x}"));
                format!("it begins with the bytes {}", first.collect::<Vec<_>>().join(" "))
            }
        };
        let wanted = if is_gguf(&self.url) { "a GGUF model" } else { "an ONNX or GGUF model" };
        let message = format!("{} is not {wanted}: {found}", self.url);
        Wrong::File(Fail::Input { code: "bad_model".into(), message })
    }
}

fn is_gguf(url: &str) -> bool {
    url.to_ascii_lowercase().ends_with(".gguf")
}

fn read(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(bytes).read_to_end(&mut head)?;
    Ok(head)
}
