//! Parts of services that this node keeps ready in crews: what the members ask of the engine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use shoal_engine::onnx::{Stage, Threads, model};
use shoal_node::{JobInfo, StageAnswer, StageCommand};
use shoal_protocol::{CrewId, Failure, Micros, Span};

use super::courier::Courier;

/// What all working threads share.
pub(super) struct Stages {
    /// By crew: the parts that it wants, and once they are loaded, those.
    crews: Mutex<BTreeMap<CrewId, Kept>>,
    threads: Threads,
}

struct Kept {
    parts: Span,
    stage: Option<Arc<Stage>>,
}

impl Stages {
    pub(super) fn new(slots: u16) -> Stages {
        Stages { crews: Mutex::default(), threads: Threads::new(slots.into()) }
    }

    /// The crew wants these parts, and no others: what else was loaded for it goes before those come.
    pub(super) fn want(&self, crew: CrewId, parts: Span) {
        let mut crews = self.crews();
        if crews.get(&crew).is_none_or(|kept| kept.parts != parts) {
            crews.insert(crew, Kept { parts, stage: None });
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
                Some(match self.load(courier, crew, *parts, info) {
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
            StageCommand::Drop { .. } => None,
        }
    }

    fn load(
        &self,
        courier: &mut Courier,
        crew: CrewId,
        parts: Span,
        info: &JobInfo,
    ) -> Result<(), Failure> {
        if self.crews().get(&crew).is_some_and(|kept| kept.parts == parts && kept.stage.is_some()) {
            return Ok(());
        }
        let unable = |message: String| Failure::Unable { message };
        let work = model(&info.work);
        let work = work.ok_or_else(|| unable("this node keeps parts of models only".into()))?;
        let range = parts.start as usize..parts.end() as usize;
        let wanted = work.parts.get(range);
        let wanted = wanted.ok_or_else(|| unable(format!("the model has no parts {parts}")))?;
        let files = wanted.iter().map(|part| courier.shared(part.blob).map(Into::into));
        let files = files.collect::<Result<Vec<_>, Failure>>()?;
        let stage = Arc::new(Stage::load(files, work, parts, &self.threads)?);
        // Meanwhile it may be over, or want others.
        if let Some(kept) = self.crews().get_mut(&crew).filter(|kept| kept.parts == parts) {
            kept.stage = Some(stage);
        }
        Ok(())
    }

    fn run(&self, crew: CrewId, input: &[u8]) -> Result<Vec<u8>, Failure> {
        let stage = self.crews().get(&crew).and_then(|kept| kept.stage.clone());
        let lost = || Failure::DeviceLost { message: "these parts are not loaded any more".into() };
        stage.ok_or_else(lost)?.run(input)
    }

    fn crews(&self) -> MutexGuard<'_, BTreeMap<CrewId, Kept>> {
        self.crews.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a member hears that asked for something that cannot be done; nothing where it waits for nothing.
pub(super) fn failed(command: &StageCommand, failure: Failure) -> Option<StageAnswer> {
    match command {
        StageCommand::Load { epoch, .. } => Some(StageAnswer::Failed { epoch: *epoch, failure }),
        StageCommand::Run { epoch, call, .. } => {
            Some(StageAnswer::NotMade { epoch: *epoch, call: *call, failure })
        }
        StageCommand::Drop { .. } => None,
    }
}
