//! Parts of services that this node keeps ready in crews: what the members ask of the engine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use shoal_engine::onnx::{self, Memory, Stage, Threads};
use shoal_node::{JobInfo, Passing, StageAnswer, StageCommand};
use shoal_protocol::{Attempt, CrewId, Epoch, Failure, Micros, Span};

use super::courier::Courier;
use super::languages::{Made, Part};

/// What all working threads share.
pub(super) struct Stages {
    /// By crew: the parts that it wants, and once they are loaded, those.
    crews: Mutex<BTreeMap<CrewId, CrewParts>>,
    threads: Threads,
    memory: Memory,
    slots: u16,
    /// What times are counted from.
    began: Instant,
}

struct CrewParts {
    parts: Span,
    loaded: Option<Loaded>,
}

#[derive(Clone)]
enum Loaded {
    Model(Arc<Stage>),
    Language(Arc<Part>),
}

impl Stages {
    pub(super) fn new(slots: u16, memory: Memory) -> Stages {
        let (crews, threads) = (Mutex::default(), Threads::new(slots.into()));
        Stages { crews, threads, memory, slots, began: Instant::now() }
    }

    /// The crew wants these parts, and no others: what else was loaded for it goes before those come.
    pub(super) fn want(&self, crew: CrewId, parts: Span) {
        let mut crews = self.crews();
        if crews.get(&crew).is_none_or(|kept| kept.parts != parts) {
            crews.insert(crew, CrewParts { parts, loaded: None });
        }
    }

    /// Nobody wants that request any more. Nothing waits for it.
    pub(super) fn forget(&self, crew: CrewId, call: Attempt) {
        if let Some(Loaded::Language(part)) = self.loaded(crew) {
            part.forget(call);
        }
    }

    /// This node is not in the crew any more.
    pub(super) fn leave(&self, crew: CrewId) {
        self.crews().remove(&crew);
    }

    /// Does what a member asks, on a thread that may take its time. `Drop` has no answer: what is begun is short.
    pub(super) fn perform(
        &self,
        courier: &mut Courier,
        crew: CrewId,
        command: &StageCommand,
        info: &JobInfo,
    ) -> Option<StageAnswer> {
        match command {
            StageCommand::Load { epoch, parts, .. } => {
                let epoch = *epoch;
                // Behind the first epoch a member was lost, and perhaps answers with it.
                courier.hurry(epoch > Epoch(1));
                let loaded = self.load(courier, crew, *parts, info);
                courier.hurry(false);
                Some(match loaded {
                    Ok(()) => StageAnswer::Loaded { epoch },
                    Err(failure) => StageAnswer::Failed { epoch, failure },
                })
            }
            StageCommand::Run { epoch, call, input } => {
                let (epoch, call, began) = (*epoch, *call, Instant::now());
                Some(match self.run(crew, input) {
                    Ok(output) => {
                        let took = Micros(began.elapsed().as_micros() as u64);
                        StageAnswer::Made { epoch, call, output, took }
                    }
                    Err(failure) => StageAnswer::NotMade { epoch, call, failure },
                })
            }
            StageCommand::Turn { epoch, items } => Some(self.turn(crew, *epoch, items)),
            StageCommand::Drop { call, .. } => {
                self.forget(crew, *call);
                None
            }
        }
    }

    fn load(
        &self,
        courier: &mut Courier,
        crew: CrewId,
        parts: Span,
        info: &JobInfo,
    ) -> Result<(), Failure> {
        if let Some(loaded) = self.loaded(crew) {
            if let Loaded::Language(part) = loaded {
                part.clear();
            }
            return Ok(());
        }
        let unable = |message: String| Failure::Unable { message };
        let loaded = if let Some(work) = info.work.language() {
            let part = Part::load(courier, work, parts, usize::from(self.slots).max(1))?;
            Loaded::Language(Arc::new(part))
        } else {
            let work = onnx::model(&info.work);
            let work = work.ok_or_else(|| unable("this node keeps parts of models only".into()))?;
            let range = parts.start as usize..parts.end() as usize;
            let wanted = work.parts.get(range);
            let wanted = wanted.ok_or_else(|| unable(format!("the model has no parts {parts}")))?;
            let files = wanted.iter().map(|part| courier.shared(part.blob).map(Into::into));
            let files = files.collect::<Result<Vec<_>, Failure>>()?;
            let means = (&self.threads, &self.memory);
            Loaded::Model(Arc::new(Stage::load_within(files, work, parts, means)?))
        };
        // Meanwhile it may be over, or want others.
        if let Some(kept) = self.crews().get_mut(&crew).filter(|kept| kept.parts == parts) {
            kept.loaded = Some(loaded);
        }
        Ok(())
    }

    /// What is loaded for the crew, of the parts that it wants.
    fn loaded(&self, crew: CrewId) -> Option<Loaded> {
        self.crews().get(&crew).and_then(|kept| kept.loaded.clone())
    }

    fn run(&self, crew: CrewId, input: &[u8]) -> Result<Vec<u8>, Failure> {
        match self.loaded(crew) {
            Some(Loaded::Model(stage)) => stage.run(input),
            Some(Loaded::Language(_)) | None => Err(not_loaded()),
        }
    }

    fn turn(&self, crew: CrewId, epoch: Epoch, items: &[Passing]) -> StageAnswer {
        let now = self.began.elapsed().as_micros() as u64;
        if let Some(Loaded::Language(part)) = self.loaded(crew) {
            let Made { turned: made, took, usual } = part.turn(items, now);
            let took = Micros(took.as_micros() as u64);
            return StageAnswer::Turned { epoch, made, took, usual };
        }
        let made = items.iter().map(|item| (item.call, Err(not_loaded()))).collect();
        let (took, usual) = (Micros(0), false);
        StageAnswer::Turned { epoch, made, took, usual }
    }

    fn crews(&self) -> MutexGuard<'_, BTreeMap<CrewId, CrewParts>> {
        self.crews.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_loaded() -> Failure {
    Failure::DeviceLost { message: "these parts are not loaded any more".into() }
}

/// What a member hears that asked for something that cannot be done; nothing where it waits for nothing.
pub(super) fn failed(command: &StageCommand, failure: Failure) -> Option<StageAnswer> {
    match command {
        StageCommand::Load { epoch, .. } => Some(StageAnswer::Failed { epoch: *epoch, failure }),
        StageCommand::Run { epoch, call, .. } => {
            Some(StageAnswer::NotMade { epoch: *epoch, call: *call, failure })
        }
        StageCommand::Turn { epoch, items } => {
            let made = items.iter().map(|item| (item.call, Err(failure.clone()))).collect();
            let (took, usual) = (Micros(0), false);
            Some(StageAnswer::Turned { epoch: *epoch, made, took, usual })
        }
        StageCommand::Drop { .. } => None,
    }
}
