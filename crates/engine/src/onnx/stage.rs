//! Some parts of a model that stand side by side: one member's share of a chain. They run as one model, joined when they
//! are loaded, so that nothing between them is copied and the engine fuses operators across their bounds.

use std::borrow::Cow;

use bytes::Bytes;
use shoal_kinds::OnnxWork;
use shoal_kinds::onnx::sight::Seeking;
use shoal_kinds::onnx::tensor::{pack, unpack};
use shoal_kinds::onnx::{Head, Leg, Port, Tensor, Wire, wire};
use shoal_protocol::{BlobRef, Failure, Span};

use super::sight::{self, Seen};
use super::{Memory, Model, Threads, refused, unable};

/// Parts of a model that can run at once.
pub struct Stage {
    model: Model,
    /// These parts as a model of their own.
    own: OnnxWork,
    leg: Leg,
    wire: Wire,
    /// The whole model, where requests come in as clients sent them.
    asked: Option<OnnxWork>,
    /// Whether what leaves is the answer.
    is_last: bool,
}

type Named<'a> = (Head, Cow<'a, [u8]>);

impl Stage {
    /// Loads the files of these parts, in their order.
    pub fn load(
        files: Vec<Vec<u8>>,
        work: &OnnxWork,
        span: Span,
        threads: &Threads,
    ) -> Result<Stage, Failure> {
        Stage::load_within(files, work, span, (threads, &Memory::unlimited()))
    }

    /// The same, counted in this memory.
    pub fn load_within(
        files: Vec<Vec<u8>>,
        work: &OnnxWork,
        span: Span,
        means: (&Threads, &Memory),
    ) -> Result<Stage, Failure> {
        let Some(leg) = work.leg(span).filter(|_| files.len() as u64 == span.len) else {
            let (parts, found) = (work.parts.len(), files.len());
            return Err(unable(format!(
                "{found} files for the parts {span} of a model that has {parts}"
            )));
        };
        let own = OnnxWork {
            model: BlobRef { size: files.iter().map(|file| file.len() as u64).sum(), ..work.model },
            inputs: leg.takes.clone(),
            outputs: leg.gives.clone(),
            parts: Vec::new(),
            wire: Wire::F32,
            batch: None,
        };
        let file = joined(files, &leg.gives)?;
        Ok(Stage {
            model: Model::load_beside(file, &own, means, |_| None)?,
            own,
            leg,
            wire: work.wire,
            asked: (span.start == 0).then(|| work.clone()),
            is_last: span.end() == work.parts.len() as u64,
        })
    }

    /// From what enters to what leaves. The first stage takes requests as clients send them, the last one gives answers;
    /// what is between only stages read.
    pub fn run(&self, entered: &[u8]) -> Result<Vec<u8>, Failure> {
        let (tensors, seeking) = self.entered(entered)?;
        let taken = chosen(&tensors, &self.own.inputs);
        let made = self.model.run(&self.own, &pack(&taken))?;
        let made = unpack(&made).map_err(refused)?;
        // Later stages need what only passes, in the order they expect.
        let passed = tensors.iter().map(|(head, bytes)| Tensor { head: head.clone(), bytes });
        let all: Vec<Tensor<'_>> = made.into_iter().chain(passed).collect();
        let mut leaves = Vec::with_capacity(self.leg.leaves.len());
        for port in &self.leg.leaves {
            let found = all.iter().find(|tensor| tensor.head.name == port.name);
            let missing = || refused(format!("the stage lost the tensor {:?}", port.name));
            leaves.push(found.ok_or_else(missing)?.clone());
        }
        if !self.is_last {
            return Ok(wire::send(&leaves, self.wire, seeking.as_ref()));
        }
        let answer = pack(&leaves);
        match seeking {
            Some(seeking) => sight::found(&seeking, &answer).map_err(refused),
            None => Ok(answer),
        }
    }

    /// The tensors, and what the last stage is to look for in its outputs.
    fn entered<'a>(&self, bytes: &'a [u8]) -> Result<(Vec<Named<'a>>, Option<Seeking>), Failure> {
        let Some(work) = &self.asked else {
            let wire::Arrived { tensors, seeking } =
                wire::receive(bytes, &self.leg.enters).map_err(refused)?;
            return Ok((tensors, seeking));
        };
        Seen::open(work, bytes).map(Seen::into_parts).map_err(refused)
    }
}

fn chosen<'a>(tensors: &'a [Named<'_>], ports: &[Port]) -> Vec<Tensor<'a>> {
    let is_taken = |head: &Head| ports.iter().any(|port| port.name == head.name);
    let taken = tensors.iter().filter(|(head, _)| is_taken(head));
    taken.map(|(head, bytes)| Tensor { head: head.clone(), bytes }).collect()
}

/// One file of them all.
fn joined(files: Vec<Vec<u8>>, gives: &[Port]) -> Result<Vec<u8>, Failure> {
    let mut slices = Vec::with_capacity(files.len());
    for file in files {
        let read = shoal_onnx::Model::read(Bytes::from(file));
        slices.push(read.map_err(|error| unable(format!("a part of the model: {error}")))?);
    }
    let gives: Vec<&str> = gives.iter().map(|port| port.name.as_str()).collect();
    let joined = shoal_onnx::Model::join(&slices, &gives);
    let joined = joined.map_err(|error| unable(format!("the parts of the model: {error}")))?;
    Ok(joined.to_bytes().into())
}
