//! What runs left beside their answers: their files go to a folder, their stderr to the terminal or beside the answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use shoal_api::{LeftFileJson, LeftJson};
use shoal_kinds::exec::left::unpack;

use super::Context;
use crate::args::StderrArg;
use crate::client::{Answer, Client, Job, Sink};
use crate::fail::Fail;
use crate::out_files::{Folder, OutNames};
use crate::{out_files, show};

/// Lines of stderr that are told in the terminal if nobody asked for all; and of one run.
const TOLD: usize = 20;
const TOLD_OF_ONE: usize = 5;
/// Names that cannot be files here, told one by one.
const NAMED: usize = 5;

/// What a run left.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) item: u64,
    /// What the user calls its input.
    pub(super) input: &'a str,
    pub(super) failed: bool,
    pub(super) stderr: &'a str,
    /// Packed by [`shoal_kinds::exec::left`].
    pub(super) files: &'a [u8],
}

pub(super) struct Left {
    /// Where files go.
    folder: Option<PathBuf>,
    names: OutNames,
    stderr: StderrArg,
    /// For a document that tells all of it.
    list: Option<BTreeMap<u64, LeftJson>>,
    told: Vec<String>,
    /// Lines that are not told.
    untold: usize,
    /// By item: the files that were written, and how many there are with how many bytes.
    files: BTreeMap<u64, Vec<PathBuf>>,
    kept: BTreeMap<u64, (u64, u64)>,
    /// Whose stderr was told: all items before this one's.
    told_to: u64,
    /// Names that cannot be used here, by item.
    nameless: BTreeMap<u64, Vec<String>>,
    /// Inputs whose files make no sense, by item.
    damaged: BTreeMap<u64, String>,
    /// Items are some of many lines, which nobody but this command knows by their numbers.
    is_part: bool,
}

impl Left {
    pub(super) fn new(
        context: &Context,
        folder: Option<&Path>,
        names: OutNames,
        stderr: StderrArg,
    ) -> Result<Left, Fail> {
        if stderr == StderrArg::Files && folder.is_none() {
            return Err(Fail::input(
                "--stderr files needs a folder: -o DIR/ with files, or --out-files DIR",
            ));
        }
        let quiet = context.quiet || context.json;
        Ok(Left {
            folder: folder.map(Path::to_owned),
            names,
            stderr: if quiet && stderr == StderrArg::Few { StderrArg::None } else { stderr },
            list: context.json.then(BTreeMap::new),
            told: Vec::new(),
            untold: 0,
            files: BTreeMap::new(),
            kept: BTreeMap::new(),
            told_to: 0,
            nameless: BTreeMap::new(),
            damaged: BTreeMap::new(),
            is_part: false,
        })
    }

    /// Of some lines only.
    pub(super) fn of_part(&mut self, is_part: bool) {
        self.is_part = is_part;
    }

    /// Whether it writes to the terminal while a job runs.
    pub(super) fn takes_terminal(&self) -> bool {
        self.stderr == StderrArg::All
    }

    pub(super) fn take_answer(&mut self, input: &str, answer: &Answer) -> Result<(), Fail> {
        let Answer { item, failed, ref stderr, ref files, .. } = *answer;
        self.take(Of { item, input, failed, stderr, files })
    }

    /// Takes what a run left. It may come again, if what came first is not believed any more.
    pub(super) fn take(&mut self, of: Of<'_>) -> Result<(), Fail> {
        self.nameless.remove(&of.item);
        self.damaged.remove(&of.item);
        let files = unpack(of.files).unwrap_or_else(|| {
            self.damaged.insert(of.item, of.input.to_owned());
            Vec::new()
        });
        self.write(of, &files)?;
        let file = |(path, bytes): &(&str, &[u8])| LeftFileJson {
            path: (*path).to_owned(),
            size: bytes.len() as u64,
        };
        self.note(of, files.iter().map(file).collect())
    }

    /// Takes what is said of a run, whose files are written already or stay where they are.
    fn note(&mut self, of: Of<'_>, files: Vec<LeftFileJson>) -> Result<(), Fail> {
        self.kept.remove(&of.item);
        if !files.is_empty() {
            let bytes = files.iter().map(|file| file.size).sum();
            self.kept.insert(of.item, (files.len() as u64, bytes));
        }
        if self.stderr == StderrArg::Files {
            self.write_stderr(of)?;
        } else if !of.failed && of.item >= self.told_to {
            self.tell(of);
        }
        self.told_to = self.told_to.max(of.item + 1);
        if let Some(list) = &mut self.list {
            list.remove(&of.item);
            let has_any = !of.stderr.is_empty() || !files.is_empty();
            if has_any && !of.failed {
                let (input, stderr) = (Some(of.input.to_owned()), of.stderr.to_owned());
                list.insert(of.item, LeftJson { item: of.item, input, stderr, files });
            }
        }
        Ok(())
    }

    fn write(&mut self, of: Of<'_>, files: &[(&str, &[u8])]) -> Result<(), Fail> {
        let Some(place) = &self.folder else { return Ok(()) };
        let root = place.join(self.names.out(of.input));
        // Of an answer that was taken back: its files may have the names of folders now.
        if let Some(before) = self.files.remove(&of.item) {
            out_files::remove(&root, &before)?;
        }
        if files.is_empty() {
            return Ok(());
        }
        make_all(place)?;
        let mut folder = Folder::new(root);
        for (path, bytes) in files {
            match folder.write(path, bytes)? {
                Some(place) => self.files.entry(of.item).or_default().push(place),
                None => {
                    let nameless = self.nameless.entry(of.item).or_default();
                    nameless.push(format!("{}: {path}", of.input));
                }
            }
        }
        Ok(())
    }

    /// An empty one is none; what an earlier run said is no word of this one.
    fn write_stderr(&self, of: Of<'_>) -> Result<(), Fail> {
        let Some(place) = &self.folder else { return Ok(()) };
        let path = place.join(self.names.stderr(of.input));
        if of.stderr.is_empty() {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(Fail::writing(&path, &error))
                }
                Ok(()) | Err(_) => Ok(()),
            };
        }
        make_all(place)?;
        let mut sink = Sink::create(&path)?;
        sink.write(of.stderr.as_bytes())?;
        sink.finish()
    }

    /// Each line with its input's name. All of them are told as they come.
    fn tell(&mut self, of: Of<'_>) {
        let input = show::harmless(of.input);
        let lines: Vec<&str> = of.stderr.trim_end().lines().collect();
        let said = |line: &&str| format!("{input}: {}", show::harmless(line));
        match self.stderr {
            StderrArg::All => lines.iter().for_each(|line| eprintln!("{}", said(line))),
            StderrArg::None | StderrArg::Files => {}
            StderrArg::Few => {
                let last = &lines[lines.len().saturating_sub(TOLD_OF_ONE)..];
                let room = TOLD - self.told.len().min(TOLD);
                let told = &last[last.len().saturating_sub(room)..];
                self.told.extend(told.iter().map(said));
                self.untold += lines.len() - told.len();
            }
        }
    }

    /// Says at the end what the user has not seen yet, and where files are.
    pub(super) fn finish(&self, context: &Context, job: &Job) -> Result<(), Fail> {
        if !context.quiet && !context.json {
            self.told.iter().for_each(|line| eprintln!("{line}"));
            if self.untold > 0 {
                let lines = if self.untold == 1 { "line" } else { "lines" };
                eprintln!("and {} more {lines} on stderr: --stderr all shows them", self.untold);
            }
            self.tell_files(job);
        }
        let told = |names: &mut dyn Iterator<Item = &String>| {
            names.take(NAMED).map(|it| show::harmless(it)).collect::<Vec<_>>().join(", ")
        };
        let mut said = Vec::new();
        if !self.damaged.is_empty() {
            let inputs = told(&mut self.damaged.values());
            let more = self.damaged.len().saturating_sub(NAMED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            said.push(format!("the device sent damaged files for {inputs}{more}"));
        }
        let names = told(&mut self.nameless.values().flatten());
        match self.nameless.values().map(Vec::len).sum::<usize>() {
            0 => {}
            1 => said.push(format!(
                "1 file was not written, because its name cannot be used here: {names}"
            )),
            count => said.push(format!(
                "{count} files were not written, because their names cannot be used here: {names}"
            )),
        }
        let code = if self.damaged.is_empty() { "bad_file_name" } else { "bad_answer" };
        if said.is_empty() { Ok(()) } else { Err(Fail::world(code, said.join("; "))) }
    }

    fn tell_files(&self, job: &Job) {
        let (count, size) =
            self.kept.values().fold((0, 0), |(count, size), it| (count + it.0, size + it.1));
        if count == 0 {
            return;
        }
        let files = if count == 1 { "a file" } else { &format!("{count} files") };
        let size = show::size(size);
        let first = self.files.values().find_map(|files| files.first());
        match (&self.folder, first) {
            (Some(folder), Some(first)) => {
                let plain = |path: &Path| show::harmless(&path.display().to_string());
                let (folder, first) = (plain(folder), plain(first));
                eprintln!(
                    "{folder}: {files} that the program left in /out ({size}), such as {first}"
                );
            }
            (Some(_), None) => {}
            (None, _) if self.is_part => {
                eprintln!("the program left {files} in /out ({size})");
            }
            (None, _) => {
                let id = job.id;
                eprintln!(
                    "the program left {files} in /out ({size}): `shoal result {id} --out-files DIR` fetches them"
                );
            }
        }
    }

    /// What a document says of it.
    pub(super) fn list(&self) -> Vec<&LeftJson> {
        self.list.iter().flat_map(BTreeMap::values).collect()
    }

    /// Asks for what the runs of a finished job left.
    pub(super) async fn fetch(
        &mut self,
        client: &Client,
        job: &Job,
        name: impl Fn(&LeftJson) -> String,
    ) -> Result<(), Fail> {
        if job.result.bytes_left == 0 {
            return Ok(());
        }
        for own in client.left(job.id).await? {
            let (item, input) = (own.item, name(&own));
            let of = Of { item, input: &input, failed: false, stderr: &own.stderr, files: &[] };
            if own.files.is_empty() || self.folder.is_none() {
                self.note(of, own.files.clone())?;
                continue;
            }
            let files = client.left_files(job.id, item).await?;
            self.take(Of { files: &files, ..of })?;
        }
        Ok(())
    }
}

/// An input's name that somebody else chose: as a file it must stay in its folder.
pub(super) fn harmless_name(own: &LeftJson) -> String {
    let name = own.input.clone().unwrap_or_else(|| format!("item {}", own.item));
    let plain = name.replace(['/', '\\', '\0'], "-");
    if matches!(plain.as_str(), "" | "." | "..") { "item".into() } else { plain }
}

fn make_all(folder: &Path) -> Result<(), Fail> {
    std::fs::create_dir_all(folder).map_err(|error| Fail::writing(folder, &error))
}

#[cfg(test)]
mod tests {
    use shoal_kinds::exec::left::pack;

    use super::*;

    #[test]
    fn what_replaces_an_answer_replaces_all_that_was_said_of_it() {
        let here = std::env::temp_dir().join(format!("shoal-left-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&here);
        let mut left = Left {
            folder: Some(here.clone()),
            names: OutNames::default(),
            stderr: StderrArg::None,
            list: None,
            told: Vec::new(),
            untold: 0,
            files: BTreeMap::new(),
            kept: BTreeMap::new(),
            told_to: 0,
            nameless: BTreeMap::new(),
            damaged: BTreeMap::new(),
            is_part: false,
        };
        let mut take = |paths: &[&str], torn: &[u8]| {
            let mut files = Vec::new();
            paths.iter().for_each(|path| pack(&mut files, path, path.as_bytes()));
            files.extend(torn);
            let of = Of { item: 3, input: "a", failed: false, stderr: "", files: &files };
            left.take(of).expect("taken");
            (left.nameless.len(), left.damaged.len(), left.kept.len())
        };
        let root = here.join("a.out");
        assert_eq!(take(&["b\\c", "x"], b""), (1, 0, 1));
        assert!(root.join("x").is_file());
        assert_eq!(take(&["x/y"], b""), (0, 0, 1), "a file was where a folder is now");
        assert!(root.join("x/y").is_file());
        assert_eq!(take(&["x"], b"torn"), (0, 1, 0));
        assert!(!root.exists());
        assert_eq!(take(&["x"], b""), (0, 0, 1));
        assert_eq!(std::fs::read(root.join("x")).expect("there"), b"x");
        std::fs::remove_dir_all(&here).expect("removed");
    }
}
