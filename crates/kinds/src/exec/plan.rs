//! Planning runs of a program: the module checked, lines and files made into items.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_UNIT_BYTES;
use shoal_protocol::{BlobRef, Dtype, Engine, Footprint, Hash, Lane, Limits, Needs, Verify, hash};

use super::lines::{Finder, Lines};
use super::list::{self, Entry};
use super::{
    ExecError, ExecItems, ExecRequest, ExecWork, Failing, FileRequest, LinesRequest, OnErrorJson,
    ProgramForm, files_room,
};
use crate::kind::Kind;
use crate::plan::{
    Ask, Common, Note, Part, PlanError, Store, Tools, blob, parse_hash, read_whole, sizing,
};

/// Runs in one unit: a quarter of a second of the smallest programs.
const MAX_RUNS: u64 = 4096;

/// Items of one job: where each ends takes 8 bytes, which have to fit in memory here and on nodes.
const MAX_ITEMS: u64 = 32_000_000;
/// Whole language runtimes fit; anything larger is no program.
const MAX_MODULE_BYTES: u64 = 256 << 20;

/// A file is read whole into the memory of the node that runs it, and devices with 4 GiB are common.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// A run that fails so often fails for good; and each try takes its time from other runs.
const MAX_RETRY: u32 = 100;
/// Exit codes listed with each job; WASI has 256 of them.
const MAX_OK_EXIT: usize = 256;
/// All files of a folder are in a node's memory together.
const MAX_FOLDER_BYTES: u64 = 1 << 30;

/// What an exec runs over: found and checked, with nothing stored yet.
enum Source {
    Lines {
        data: BlobRef,
        found: Lines,
    },
    Files(Vec<Entry>),
    /// Without any input the program runs once, with nothing on stdin.
    Nothing,
}

impl Ask for ExecRequest {
    fn kind(&self) -> &'static str {
        "exec"
    }

    fn code(&self) -> Result<Option<Hash>, PlanError> {
        parse_hash("module", &self.module).map(Some)
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn usual_verify(&self) -> Verify {
        if self.clock { Verify::None } else { Verify::Adaptive }
    }

    /// A program that sees the time may answer differently each time: nothing can be compared.
    fn unchecked(&self, _verify: Verify) -> Option<PlanError> {
        self.clock.then(|| ExecError::ClockChecked.into())
    }

    fn plan(&self, common: &Common<'_>, tools: &Tools<'_>) -> Result<Part, PlanError> {
        let store = tools.store;
        check_words(self)?;
        let failing = self.failing()?;
        let module = blob(store, "module", &self.module)?;
        if module.size > MAX_MODULE_BYTES {
            let (size, most) = (module.size, MAX_MODULE_BYTES);
            return Err(ExecError::ModuleTooLarge { size, most }.into());
        }
        let lines_per_run = self.lines.as_ref().map(|lines| lines.per_run.unwrap_or(1));
        let source = match (&self.lines, self.files.as_slice()) {
            (Some(_), [_, ..]) => return Err(ExecError::LinesAndFiles.into()),
            (Some(lines), []) => find_lines(lines, store)?,
            (None, []) => Source::Nothing,
            (None, files) => Source::Files(entries("files", files, store)?),
        };
        check_names(&self.folder)?;
        let folder = entries("folder", &self.folder, store)?;
        check_folder(&folder)?;
        let (count, largest) = (source.count(), source.largest());
        let most = (MAX_UNIT_BYTES / largest.max(1)).clamp(1, MAX_RUNS);
        let sizing = sizing(1, most, common.unit)?;
        let needs = needs(module, common.limits.memory, &folder, tools)?;
        // Nothing is refused from here on, so nothing is stored in vain.
        let items = source.store(store)?;
        let folder = if folder.is_empty() { None } else { Some(list::store(&folder, store)?) };
        let kind = Kind::Exec(ExecWork {
            module,
            args: self.args.clone(),
            env: self.env.clone().into_iter().collect(),
            items,
            folder,
            clock: self.clock,
            failing,
            leaves: true,
        });
        let note = Note { lines_per_run, ..Note::default() };
        Ok(Part { kind, items: count, sizing, needs, dtype: Dtype::Bytes, note })
    }

    fn serve(&self, limits: Limits, tools: &Tools<'_>) -> Result<(Kind, Needs), PlanError> {
        if self.lines.is_some() || !self.files.is_empty() {
            return Err(ExecError::ServiceItems.into());
        }
        let (module, folder, needs) = self.program(limits.memory, tools)?;
        let work = ExecWork {
            module,
            args: self.args.clone(),
            env: self.env.clone().into_iter().collect(),
            items: ExecItems::Requests,
            folder,
            clock: self.clock,
            // Whoever asked is told what went wrong.
            failing: Failing { stop: true, ..self.failing()? },
            // A request is answered with what the program writes, as it writes it.
            leaves: false,
        };
        // A request runs beside units, so that nobody waits for them: it takes memory, but no thread of theirs.
        let takes = Footprint { threads: 0, ..needs.takes };
        Ok((work.into(), needs.takes(takes)))
    }
}

/// Reads the program and checks it. Every node that runs programs runs modules; components only where there is an engine
/// for them. A program may have its limit at any moment, and its files all their room if it can make any; another one
/// runs in the next slot.
fn needs(
    module: BlobRef,
    memory: u64,
    folder: &[Entry],
    tools: &Tools<'_>,
) -> Result<Needs, PlanError> {
    let wasm = read_module(tools.store, module)?;
    let form = tools.intake.module(&wasm, memory)?;
    let takes = |memory| {
        Needs::lane(Lane::Cpu).takes(Footprint { memory, threads: 1, ..Footprint::NOTHING })
    };
    Ok(match form {
        ProgramForm::Module if tools.intake.knows_paths(&wasm) => {
            takes(memory.saturating_add(files_room(memory)))
        }
        ProgramForm::Module => takes(memory),
        // What they would see of one differs from machine to machine: order, times, links.
        ProgramForm::Component if !folder.is_empty() => {
            return Err(ExecError::ComponentFolder.into());
        }
        ProgramForm::Component => takes(memory).engine(Engine::WASI_COMPONENTS),
    })
}

impl ExecRequest {
    fn failing(&self) -> Result<Failing, ExecError> {
        let (retry, most) = (self.retry, MAX_RETRY);
        if retry > most {
            return Err(ExecError::Retry { retry, most });
        }
        if self.ok_exit.len() > MAX_OK_EXIT {
            return Err(ExecError::TooManyCodes { count: self.ok_exit.len(), most: MAX_OK_EXIT });
        }
        let stop = match self.on_error {
            OnErrorJson::Stop => true,
            OnErrorJson::Continue => false,
        };
        let ok = if self.ok_exit.is_empty() { [0].into() } else { self.ok_exit.clone() };
        Ok(Failing { stop, ok, retry })
    }

    /// The module, checked, and the list of its folder.
    fn program(
        &self,
        memory: u64,
        tools: &Tools<'_>,
    ) -> Result<(BlobRef, Option<BlobRef>, Needs), PlanError> {
        let store = tools.store;
        check_words(self)?;
        let module = blob(store, "module", &self.module)?;
        if module.size > MAX_MODULE_BYTES {
            let (size, most) = (module.size, MAX_MODULE_BYTES);
            return Err(ExecError::ModuleTooLarge { size, most }.into());
        }
        check_names(&self.folder)?;
        let folder = entries("folder", &self.folder, store)?;
        check_folder(&folder)?;
        let needs = needs(module, memory, &folder, tools)?;
        let folder = if folder.is_empty() { None } else { Some(list::store(&folder, store)?) };
        Ok((module, folder, needs))
    }
}

impl Source {
    fn count(&self) -> u64 {
        match self {
            Source::Lines { found, .. } => found.items,
            Source::Files(files) => files.len() as u64,
            Source::Nothing => 1,
        }
    }

    /// Bytes of the largest item.
    fn largest(&self) -> u64 {
        match self {
            Source::Lines { found, .. } => found.longest,
            Source::Files(files) => files.iter().map(|file| file.size).max().unwrap_or(0),
            Source::Nothing => 0,
        }
    }

    fn store(self, store: &dyn Store) -> Result<ExecItems, PlanError> {
        let manifest = match self {
            Source::Lines { data, found } => {
                let ends = store.put(&found.ends).map_err(PlanError::Disk)?;
                return Ok(ExecItems::Lines { data, ends });
            }
            Source::Files(files) => list::store(&files, store)?,
            Source::Nothing => {
                let nothing = store.put(&[]).map_err(PlanError::Disk)?;
                let hash = nothing.hash.to_string();
                list::store(&[Entry { name: String::new(), hash, size: 0 }], store)?
            }
        };
        Ok(ExecItems::Files { manifest })
    }
}

fn find_lines(lines: &LinesRequest, store: &dyn Store) -> Result<Source, PlanError> {
    let data = blob(store, "lines", &lines.blob)?;
    let per_run = lines.per_run.unwrap_or(1);
    if per_run == 0 {
        return Err(PlanError::Zero { what: "\"perRun\"" });
    }
    let mut finder = Finder::new(per_run, MAX_ITEMS);
    let is_there = store.read(data.hash, &mut |piece| finder.push(piece));
    if !is_there.map_err(PlanError::Disk)? {
        return Err(PlanError::NoBlob { what: "lines".into(), hash: data.hash });
    }
    let found = finder.finish();
    if found.items > MAX_ITEMS {
        return Err(ExecError::TooManyRuns { most: MAX_ITEMS }.into());
    }
    if found.items == 0 {
        return Err(PlanError::EmptyInput { what: "the text of lines".into() });
    }
    if found.longest > MAX_UNIT_BYTES {
        return Err(PlanError::ItemTooLarge { bytes: found.longest });
    }
    Ok(Source::Lines { data, found })
}

fn entries(what: &str, files: &[FileRequest], store: &dyn Store) -> Result<Vec<Entry>, PlanError> {
    let entry = |file: &FileRequest| {
        let found = blob(store, &format!("{what}: {}", file.name), &file.blob)?;
        let (name, size, most) = (file.name.clone(), found.size, MAX_FILE_BYTES);
        if size > most {
            return Err(ExecError::FileTooLarge { name, size, most }.into());
        }
        Ok(Entry { name, hash: found.hash.to_string(), size })
    };
    files.iter().map(entry).collect()
}

/// Arguments and environment end at a NUL, and names of the environment at a "=".
fn check_words(request: &ExecRequest) -> Result<(), ExecError> {
    let bad = |what, text: &str| Err(ExecError::Unpassable { what, text: text.into() });
    if let Some(arg) = request.args.iter().find(|arg| arg.contains('\0')) {
        return bad("an argument", arg);
    }
    for (name, value) in &request.env {
        if name.is_empty() || name.contains(['\0', '=']) || value.contains('\0') {
            return bad("an environment variable", name);
        }
    }
    Ok(())
}

/// Names that a program can open below `/data`, and nothing else.
fn check_names(files: &[FileRequest]) -> Result<(), ExecError> {
    let mut seen = BTreeSet::new();
    for FileRequest { name, .. } in files {
        let plain = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !plain || name.contains(['\\', '\0']) || !seen.insert(name) {
            return Err(ExecError::FolderName { name: name.clone() });
        }
    }
    Ok(())
}

fn check_folder(files: &[Entry]) -> Result<(), ExecError> {
    let size = files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.size));
    let most = MAX_FOLDER_BYTES;
    if size > most { Err(ExecError::FolderTooLarge { size, most }) } else { Ok(()) }
}

/// The module's bytes, held against their hash: they are what is signed.
fn read_module(store: &dyn Store, module: BlobRef) -> Result<Vec<u8>, PlanError> {
    let bytes = read_whole(store, module)?;
    if hash(&bytes) != module.hash {
        store.drop_torn(module.hash);
        return Err(PlanError::Torn { what: "module".into(), hash: module.hash });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use serde_json::json;

    use super::*;
    use crate::intake::IntakeError;
    use crate::plan::{Intake, StoreError, plan, read};

    /// Every program is of this form.
    struct Knows(ProgramForm);
    impl Intake for Knows {
        fn module(&self, _: &[u8], _: u64) -> Result<ProgramForm, IntakeError> {
            Ok(self.0)
        }
    }

    /// Holds one blob.
    struct Holds(Vec<u8>);
    impl Store for Holds {
        fn find(&self, hash: Hash) -> Result<Option<BlobRef>, StoreError> {
            Ok(Some(BlobRef { hash, size: self.0.len() as u64 }))
        }
        fn read(&self, _: Hash, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, StoreError> {
            take(&self.0);
            Ok(true)
        }
        fn put(&self, bytes: &[u8]) -> Result<BlobRef, StoreError> {
            Ok(BlobRef { hash: hash(bytes), size: bytes.len() as u64 })
        }
        fn drop_torn(&self, _: Hash) {}
    }

    #[test]
    fn components_get_no_folder() {
        let store = Holds(vec![1, 2, 3]);
        let blob = hash(&store.0).to_string();
        for (form, with_folder, code) in [
            (ProgramForm::Module, true, None),
            (ProgramForm::Component, false, None),
            (ProgramForm::Component, true, Some("bad_request")),
        ] {
            let files = json!([{ "name": "a.txt", "blob": &blob }]);
            let folder = if with_folder { files } else { json!([]) };
            let tools = Tools { intake: &Knows(form), store: &store };
            let job = json!({ "kind": "exec", "module": &blob, "folder": &folder }).to_string();
            let planned = read(job.as_bytes()).and_then(|job| plan(&job, None, &tools).map(drop));
            let fields = json!({ "module": &blob, "folder": &folder });
            let service: ExecRequest = serde_json::from_value(fields).expect("a request");
            let served = service.serve(Limits::default(), &tools).map(drop);
            for refused in [planned.err(), served.err()] {
                let said = refused.as_ref().map(ToString::to_string).unwrap_or_default();
                assert_eq!(refused.map(|error| error.code()), code, "{said}");
                assert_eq!(said.contains("wasm32-wasip1"), code.is_some(), "{said}");
            }
        }
    }

    #[test]
    fn folder_names_stay_inside_the_folder() {
        let file = |name: &str| FileRequest { name: name.into(), blob: String::new() };
        assert!(check_names(&[file("a/b.txt"), file("c")]).is_ok());
        for bad in ["", "/a", "../a", "a//b", "a/./b", "a\\b"] {
            assert!(check_names(&[file(bad)]).is_err(), "{bad:?}");
        }
        assert!(check_names(&[file("a"), file("a")]).is_err());
    }

    #[test]
    fn a_folder_has_to_fit_in_memory_as_a_whole() {
        let file = |size| Entry { name: "a".into(), hash: String::new(), size };
        assert!(check_folder(&[file(MAX_FOLDER_BYTES - 1), file(1)]).is_ok());
        let error = check_folder(&[file(MAX_FOLDER_BYTES), file(1)]).expect_err("too large");
        assert!(error.to_string().contains("1073741825"), "{error}");
        assert!(check_folder(&[file(u64::MAX), file(1)]).is_err());
    }
}
