//! A service that several devices keep ready together: what each part of it makes, and the engines of the devices. A
//! request that went through all parts in order, on whatever devices, has one right answer.

use std::sync::Arc;

use shoal_kinds::onnx::{Part, Wire};
use shoal_kinds::{Kind, OnnxWork, Split};
use shoal_node::{MemberInput, StageAnswer, StageCommand};
use shoal_protocol::{BlobRef, CrewId, Failure, Hash, Micros, Span};

use crate::crew::CrewEvent;
use crate::random::Random;
use crate::world::{Event, Probe, World};

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
        }
    }

    pub(crate) fn split(&self) -> Split {
        if self.members == 0 { Split::Auto } else { Split::Exactly(self.members) }
    }

    /// Nobody looks into its blobs here.
    pub(crate) fn work(&self) -> Kind {
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
        OnnxWork { model, inputs, outputs, parts, wire: Wire::F32, batch: None }.into()
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
#[derive(Clone, Copy, Default)]
pub(crate) struct Stage {
    loaded: Option<Span>,
}

impl<P: Probe> World<P> {
    /// A member asks its engine.
    pub(crate) fn stage_asked(&mut self, at: usize, crew: CrewId, command: StageCommand) {
        let Some(plan) = self.scenario.split else { return };
        let mishap = self.has_faults() && self.random.chance(self.scenario.faults.mishaps);
        let took = self.random.range(500, 40_000);
        let birth = self.devices[at].birth;
        let Some(linked) = &mut self.devices[at].linked else { return };
        let (took, hangs) = (took * linked.slowness / 100, linked.hangs.0);
        let stage = linked.stages.entry(crew).or_default();
        let (answer, took) = match command {
            StageCommand::Load { epoch, parts, .. } => {
                let again = stage.loaded.replace(parts) == Some(parts);
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
            StageCommand::Turn { .. } | StageCommand::Drop { .. } => return,
        };
        let due = self.now.0.max(hangs) + took;
        self.at(due, Event::Crew(CrewEvent::Staged { device: at, birth, crew, answer }));
    }

    /// A request for the crew in which a device has the first parts.
    pub(crate) fn ask_member(
        &mut self,
        at: usize,
        crew: CrewId,
        call: shoal_protocol::Attempt,
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
