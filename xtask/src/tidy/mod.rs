//! The house rules as tests. Each finding names the file, the line, and what to do instead.

mod calls;
mod edges;
mod example;
mod hosts;
mod house;
mod kinds;
mod lengths;
mod promises;
mod source;
mod versions;

use std::path::{Path, PathBuf};

use crate::shell::{Outcome, command, output, read, root};

/// One broken rule.
pub(crate) struct Finding {
    pub(crate) file: PathBuf,
    /// Counted from 1; 0 for the file as a whole.
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// A file under version control, or about to be.
pub(crate) struct Source {
    /// Relative to the repository, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(crate) fn found(&self, line: usize, text: impl Into<String>) -> Finding {
        Finding { file: PathBuf::from(&self.path), line, text: text.into() }
    }
}

pub(crate) fn run(args: &[String]) -> Outcome {
    let lower = match args {
        [] => false,
        [flag] if flag == "--ratchet" => true,
        _ => return Err(format!("tidy takes only --ratchet, not {args:?}")),
    };
    let sources = sources()?;
    let mut findings = edges::check()?;
    findings.extend(sources.iter().flat_map(missing_head));
    findings.extend(sources.iter().flat_map(calls::check));
    findings.extend(sources.iter().flat_map(hosts::check));
    findings.extend(house::check(&sources));
    findings.extend(kinds::check(&sources));
    findings.extend(example::check(&sources));
    findings.extend(promises::check(&sources));
    findings.extend(versions::check(&sources));
    findings.extend(lengths::check(&sources, lower)?);
    if findings.is_empty() {
        println!("tidy: {} files keep the rules", sources.len());
        return Ok(());
    }
    for Finding { file, line, text } in &findings {
        println!("{}:{line}: {text}", file.display());
    }
    Err(format!("{} rules broken", findings.len()))
}

/// All text files git knows or would take.
fn sources() -> Outcome<Vec<Source>> {
    let words = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let listed = output(command("git").args(words))?;
    let mut sources = Vec::new();
    for path in listed.lines() {
        let file = root().join(path);
        if is_text(&file) && file.is_file() {
            sources.push(Source { path: path.to_owned(), text: read(&file)? });
        }
    }
    Ok(sources)
}

fn is_text(file: &Path) -> bool {
    let known = [
        "rs", "toml", "lock", "md", "wgsl", "ts", "mjs", "js", "json", "html", "css", "txt", "py",
        "wat", "c", "sh", "yml", "svg",
    ];
    match file.extension().and_then(|extension| extension.to_str()) {
        Some(extension) => known.contains(&extension),
        None => file.file_name().is_some_and(|name| name == "run"),
    }
}

/// A file says in its first line what it is for.
fn missing_head(source: &Source) -> Option<Finding> {
    let lacks = source.is_rust() && !source.text.starts_with("//!");
    lacks.then(|| source.found(1, "no `//!` first line: say what this file is for"))
}
