//! What a model's front asks: a process that computes, started again when it breaks, a few times.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use shoal_engine::onnx::{Engine, Reliance, Trouble};

use super::find::Accelerate;
use super::worker::{Opened, WORKER};
use crate::child::{LOAD_WITHIN, Process, Word};

/// The library, as it was found.
pub(crate) struct Accelerator {
    library: PathBuf,
    threads: u16,
    opened: Opened,
    /// A process that has no model, if there is one: loading the library takes longer than loading a model.
    spare: Mutex<Option<Process>>,
    /// Whether it is asked without being timed against the built-in engine.
    pub(crate) preferred: bool,
}

impl Accelerator {
    /// Looks whether the library can be loaded, in a process of its own. None if there is none.
    pub(crate) fn open(
        accelerate: &Accelerate,
        threads: u16,
        preferred: bool,
    ) -> Option<Result<Accelerator, String>> {
        let library = accelerate.library()?;
        let named = |why: String| format!("{}: {why}", library.display());
        if !library.is_file() {
            return Some(Err(named("no such file".into())));
        }
        Some(start(&library, threads).map_err(named).map(|(process, opened)| {
            let spare = Mutex::new(Some(process));
            Accelerator { library, threads, opened, spare, preferred }
        }))
    }

    pub(crate) fn version(&self) -> &str {
        &self.opened.version
    }

    /// Hardware it may compute with, beside processors.
    pub(crate) fn providers(&self) -> &[String] {
        &self.opened.providers
    }

    /// As people know it.
    pub(crate) fn name(&self) -> String {
        format!("ONNX Runtime {}", self.opened.version)
    }

    /// Loads a model, in a process of its own. A request may take half of `limit`, so that the built-in engine has the
    /// other half.
    pub(crate) fn load(
        self: &Arc<Self>,
        file: Bytes,
        limit: Duration,
    ) -> Result<Arc<dyn Engine>, String> {
        let process = self.started(&file)?;
        let shared = Shared {
            accelerator: self.clone(),
            file,
            most: limit / 2,
            is_ready: AtomicBool::new(true),
            state: Mutex::new(State { process: Some(process), reliance: Reliance::default() }),
        };
        Ok(Arc::new(Remote(Arc::new(shared))))
    }

    fn started(&self, file: &[u8]) -> Result<Process, String> {
        let mut process = match self.spare().take() {
            Some(spare) if spare.is_alive() => spare,
            _ => start(&self.library, self.threads)?.0,
        };
        match process.ask(Word::Model, file, LOAD_WITHIN) {
            Ok(_) => Ok(process),
            Err(Trouble::Refused(why)) => {
                *self.spare() = Some(process);
                Err(why)
            }
            Err(Trouble::Broken(why)) => Err(why),
        }
    }

    fn spare(&self) -> MutexGuard<'_, Option<Process>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process that has loaded the library.
fn start(library: &Path, threads: u16) -> Result<(Process, Opened), String> {
    let threads = threads.to_string();
    let words = [OsStr::new(WORKER), library.as_os_str(), OsStr::new(&threads)];
    let (process, opened) = Process::start("ONNX Runtime", &words)?;
    let opened = postcard::from_bytes(&opened).map_err(|error| error.to_string())?;
    Ok((process, opened))
}

/// One model.
struct Remote(Arc<Shared>);

struct Shared {
    accelerator: Arc<Accelerator>,
    /// Loaded again into the next process.
    file: Bytes,
    /// What a run may take at most.
    most: Duration,
    is_ready: AtomicBool,
    state: Mutex<State>,
}

struct State {
    process: Option<Process>,
    reliance: Reliance,
}

impl Engine for Remote {
    fn run(&self, request: &[u8]) -> Result<Vec<u8>, Trouble> {
        let mut state = self.0.state();
        let limit = state.reliance.limit(request.len(), self.0.most);
        let Some(process) = &mut state.process else {
            return Err(Trouble::Broken("it is starting again".into()));
        };
        let began = Instant::now();
        let answer = process.ask(Word::Request, request, limit);
        match &answer {
            Ok(_) => state.reliance.took(began.elapsed(), request.len()),
            Err(Trouble::Refused(_)) => {}
            Err(Trouble::Broken(_)) => self.0.start_again(&mut state),
        }
        answer
    }

    fn is_ready(&self) -> bool {
        self.0.is_ready.load(Ordering::Relaxed)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let mut spare = self.accelerator.spare();
        if let Some(process) = self.state().process.take()
            && spare.is_none()
        {
            *spare = Some(process);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody waits for it: the built-in engine answers meanwhile.
    fn start_again(self: &Arc<Self>, state: &mut State) {
        state.process = None;
        self.is_ready.store(false, Ordering::Relaxed);
        state.reliance.broke();
        if !state.reliance.goes_on() {
            return;
        }
        let weak = Arc::downgrade(self);
        thread::spawn(move || revive(&weak));
    }
}

fn revive(weak: &Weak<Shared>) {
    let Some((accelerator, file)) =
        weak.upgrade().map(|shared| (shared.accelerator.clone(), shared.file.clone()))
    else {
        return;
    };
    let process = accelerator.started(&file);
    // The model may have been dropped meanwhile, and the process goes with it.
    let Some(shared) = weak.upgrade() else { return };
    match process {
        Ok(process) => {
            shared.state().process = Some(process);
            shared.is_ready.store(true, Ordering::Relaxed);
        }
        Err(why) => tracing::warn!("{} does not start again: {why}", accelerator.name()),
    }
}
