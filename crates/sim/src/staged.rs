//! A service that several devices keep ready together: what each part of it makes, and the engines of the devices. A
//! request that went through all parts in order, on whatever devices, has one right answer. Where some of them are lost
//! it is asked again, behind what was said: recovery by replay, as the fields of [`crate::crew`] recover by checkpoints.

use std::sync::Arc;

use shoal_kinds::crew::Way;
use shoal_kinds::llm::{By, On, Summary};
use shoal_kinds::onnx::{Part, Wire};
use shoal_kinds::{Kind, LlmWork, OnnxWork, Split};
use shoal_node::{MemberInput, Passing, StageAnswer, StageCommand, Turned};
use shoal_protocol::{Attempt, BlobRef, CrewId, Epoch, Failure, Hash, Micros, Span};

use crate::abreast::{self, Abreast};
use crate::crew::CrewEvent;
use crate::random::Random;
use crate::rounds::{self, Asked, Here, Texts};
use crate::world::{Event, Probe, World};

/// Whether devices work together is drawn from what is left of the chance, and this.
const TOGETHER: u64 = 0x51de;

/// A service in parts.
#[derive(Clone, Copy, Debug)]
pub struct SplitPlan {
    pub(crate) parts: u64,
    /// So many devices; 0 for whatever is best.
    pub(crate) members: u8,
    /// Of each part.
    pub(crate) memory: u64,
    /// Bytes between two parts: many frames, or one.
    pub(crate) bytes: u64,
    /// Requests that go round and round at a time, as those of a language model do; 0 if each goes through once.
    pub(crate) rounds: u16,
    /// All devices work on each of those together.
    pub(crate) together: bool,
    /// Devices that spoil what they make do so with what they make of it.
    pub(crate) lied: bool,
}

impl SplitPlan {
    pub(crate) fn random(random: &mut Random, devices: u64) -> SplitPlan {
        let parts = random.range(2, 9);
        let most = devices.min(parts).min(5);
        let wanted = most >= 2 && random.chance(800_000);
        SplitPlan {
            parts,
            members: if wanted { random.range(2, most + 1) as u8 } else { 0 },
            memory: random.range(1, 64) << 20,
            bytes: random.range(8, 200_000),
            rounds: 0,
            together: false,
            lied: false,
        }
    }

    /// The same as a language model, in half of all worlds.
    pub(crate) fn maybe_rounds(self, random: &mut Random) -> SplitPlan {
        if random.chance(500_000) {
            let (rounds, bytes) = (random.range(1, 9) as u16, random.range(0, 4_000));
            // Of another chance, so that worlds without it are the same as ever.
            let together = Random::new(random.clone().draw() ^ TOGETHER).chance(300_000);
            return SplitPlan { rounds, bytes, together, ..self };
        }
        self
    }

    pub(crate) fn split(&self) -> Split {
        if self.members == 0 { Split::Auto } else { Split::Exactly(self.members) }
    }

    /// Nobody looks into its blobs here.
    pub(crate) fn work(&self) -> Kind {
        match self.language() {
            Some(work) => work.into(),
            None => self.model().into(),
        }
    }

    fn language(&self) -> Option<LlmWork> {
        // By tensors, a share is sixteen numbers of each row.
        let about = Summary {
            layers: self.parts as u32,
            layer_weights: vec![self.memory; self.parts as usize],
            weights: self.memory * self.parts,
            width: 16 * self.parts as u32,
            made: 64 * self.parts as u32,
            heads: self.parts as u32,
            ..Summary::default()
        };
        let model = BlobRef { hash: Hash([254; 32]), size: self.parts };
        let (context, conversations) = (64, self.rounds);
        let by = if self.together { By::Tensors } else { By::Layers };
        let (wire, split) = (Wire::F32, true);
        let on = On::Processor;
        let work = LlmWork { model, about, context, conversations, split, wire, by, on };
        (self.rounds > 0).then_some(work)
    }

    /// Texts that a device holds at a time.
    pub(crate) fn texts(&self) -> usize {
        self.language().map_or(0, |work| work.texts().into())
    }

    fn model(&self) -> OnnxWork {
        let part = |number: u64| Part {
            blob: BlobRef { hash: Hash([number as u8; 32]), size: 1 },
            inputs: Vec::new(),
            outputs: Vec::new(),
            operators: 1,
            parameters: 1,
            work: 1_000 * (1 + number % 3),
            memory: self.memory,
            out_bytes: self.bytes,
        };
        let parts = (0..self.parts).map(part).collect();
        let model = BlobRef { hash: Hash([255; 32]), size: self.parts };
        let (inputs, outputs) = Default::default();
        OnnxWork { model, inputs, outputs, parts, wire: Wire::F32, batch: None }
    }

    /// What the service answers.
    pub(crate) fn answer(&self, body: &[u8]) -> Vec<u8> {
        if self.together {
            return abreast::answer(self, body);
        }
        if self.rounds > 0 {
            return rounds::answer(self, body);
        }
        let number = u64::from_le_bytes(body.try_into().expect("a number"));
        crate::callers::answer(self.made(self.all(), number))
    }

    /// What these parts make of a number: each another one, so that none may be left out, and none come first.
    pub(crate) fn made(&self, parts: Span, number: u64) -> u64 {
        (parts.start..parts.end()).fold(number, |number, part| {
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(part + 1).rotate_left(17)
        })
    }

    pub(crate) fn all(&self) -> Span {
        Span::new(0, self.parts)
    }
}

/// A device's parts.
#[derive(Clone, Default)]
pub(crate) struct Stage {
    loaded: Option<Span>,
    texts: Texts,
    abreast: Abreast,
}

impl<P: Probe> World<P> {
    /// A member asks its engine.
    pub(crate) fn stage_asked(&mut self, at: usize, crew: CrewId, command: StageCommand) {
        let Some(plan) = self.scenario.split else { return };
        if let StageCommand::Turn { epoch, items } = command {
            return self.stage_turned(at, crew, epoch, &items);
        }
        let mishap = self.has_faults() && self.random.chance(self.scenario.faults.mishaps);
        let took = self.random.range(500, 40_000);
        let birth = self.devices[at].birth;
        let Some(linked) = &mut self.devices[at].linked else { return };
        let (took, hangs) = (took * linked.slowness / 100, linked.hangs.0);
        let stage = linked.stages.entry(crew).or_default();
        let (answer, took) = match command {
            StageCommand::Load { epoch, parts, .. } => {
                let again = stage.loaded.replace(parts) == Some(parts);
                (stage.texts, stage.abreast) = Default::default();
                let failure = Failure::Fetch { message: "a mishap".into() };
                let answer = match mishap && !again {
                    true => StageAnswer::Failed { epoch, failure },
                    false => StageAnswer::Loaded { epoch },
                };
                (answer, if again { 1 } else { 5 * took })
            }
            StageCommand::Run { epoch, call, .. } if mishap => {
                let failure = Failure::Internal { message: "a mishap".into() };
                (StageAnswer::NotMade { epoch, call, failure }, took)
            }
            StageCommand::Run { epoch, call, input } => {
                let parts = stage.loaded.expect("a request before anything was loaded");
                let output = run(&plan, parts, &input);
                (StageAnswer::Made { epoch, call, output, took: Micros(took) }, took)
            }
            StageCommand::Drop { call, .. } => {
                stage.texts.forget(call);
                return stage.abreast.forget(call);
            }
            StageCommand::Turn { .. } => return,
        };
        let due = self.now.0.max(hangs) + took;
        self.at(due, Event::Crew(CrewEvent::Staged { device: at, birth, crew, answer }));
    }

    /// Some requests go through a device's parts once more. What does not follow is a fault of somebody's, unless
    /// something failed by chance before.
    fn stage_turned(&mut self, at: usize, crew: CrewId, epoch: Epoch, items: &[Passing]) {
        let Some(plan) = self.scenario.split else { return };
        let mishaps = if self.has_faults() { self.scenario.faults.mishaps } else { 0 };
        let (birth, took) = (self.devices[at].birth, self.random.range(500, 6_000));
        let lies = self.lies_of(at);
        let Some(linked) = &mut self.devices[at].linked else { return };
        let (took, hangs) = (took * linked.slowness / 100, linked.hangs.0);
        let stage = linked.stages.entry(crew).or_default();
        let parts = stage.loaded.expect("a round before anything was loaded");
        let here = Here { plan, parts, lies };
        let mut made: Vec<Turned> = Vec::new();
        self.report.rounds += items.len() as u64;
        for item in items {
            let begins = here.is_first() && item.way == Way::Asked;
            self.report.resumed += u64::from(begins && Asked::read(&item.bytes).goes_on());
            if self.random.chance(mishaps) {
                self.callers.failed_by_chance(item.call);
                made.push((item.call, Err(Failure::Internal { message: "a mishap".into() })));
                continue;
            }
            let outs = match plan.together {
                true => stage.abreast.turn(here, item),
                false => stage.texts.turn(here, item),
            };
            if let Err(why) = &outs {
                self.callers.refused(item.call, why);
            }
            made.push((item.call, outs.map_err(|message| Failure::Internal { message })));
        }
        let (took, due) = (Micros(took), self.now.0.max(hangs) + took);
        let answer = StageAnswer::Turned { epoch, made, took, usual: true };
        self.at(due, Event::Crew(CrewEvent::Staged { device: at, birth, crew, answer }));
    }

    /// A request for the crew in which a device has the first parts.
    pub(crate) fn ask_member(
        &mut self,
        at: usize,
        crew: CrewId,
        call: Attempt,
        body: Arc<Vec<u8>>,
    ) {
        self.tell_member(at, crew, MemberInput::Ask { call, body });
    }
}

/// What comes in first is what was asked, what goes out last is the answer.
fn run(plan: &SplitPlan, parts: Span, input: &[u8]) -> Vec<u8> {
    let number = u64::from_le_bytes(input[..8].try_into().expect("a number"));
    let between = plan.bytes.max(8) as usize;
    let expected = if parts.start == 0 { 8 } else { between };
    assert_eq!(input.len(), expected, "a member got what was not meant for it");
    let made = plan.made(parts, number);
    if parts.end() == plan.parts {
        return crate::callers::answer(made);
    }
    let mut bytes = vec![made as u8; between];
    bytes[..8].copy_from_slice(&made.to_le_bytes());
    bytes
}
