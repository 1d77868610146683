//! Cutting a model into parts when a service of it is asked for that several devices keep together.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::plan::OnnxError;
use super::split::{MOST_PARTS, Part};
use super::tensor::MOST_TENSORS;
use super::{COPIES, OnnxWork, Port, Wire};
use crate::plan::{PlanError, Tools, read_whole};

/// How a model is to be cut.
#[derive(Clone, Copy, Debug)]
pub struct CutAsk<'a> {
    /// The shapes of inputs that the file leaves open.
    pub shapes: &'a BTreeMap<String, Vec<u64>>,
    /// Parts at most.
    pub most: usize,
}

/// What whoever cuts models made of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutPlan {
    /// Of the whole, with every dimension fixed: parts are made for these shapes.
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub parts: Vec<CutPart>,
}

/// A part before it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutPart {
    pub file: Vec<u8>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub operators: u32,
    pub parameters: u64,
    pub work: u64,
    /// What values take while it runs.
    pub peak_bytes: u64,
    pub out_bytes: u64,
}

impl CutPart {
    /// What it takes of a device.
    fn memory(&self) -> u64 {
        (self.file.len() as u64).saturating_mul(COPIES).saturating_add(self.peak_bytes)
    }
}

/// Cuts a model and stores its parts. Nothing is stored unless all of them can be.
pub(super) fn cut(
    work: OnnxWork,
    shapes: &BTreeMap<String, Vec<u64>>,
    wire: Wire,
    tools: &Tools<'_>,
) -> Result<OnnxWork, PlanError> {
    let file = read_whole(tools.store, work.model)?;
    let ask = CutAsk { shapes, most: MOST_PARTS };
    let CutPlan { inputs, outputs, parts } = tools.intake.parts(&file, &ask)?;
    drop(file);
    if parts.len() < 2 {
        return Err(OnnxError::Indivisible.into());
    }
    let ports = parts.iter().flat_map(|part| [&part.inputs, &part.outputs]);
    if let Some(ports) = ports.into_iter().find(|ports| ports.len() > MOST_TENSORS) {
        let (found, most) = (ports.len(), MOST_TENSORS);
        return Err(OnnxError::TooManyPorts { what: "tensors between parts", found, most }.into());
    }
    let mut stored = Vec::with_capacity(parts.len());
    for part in parts {
        let blob = tools.store.put(&part.file).map_err(PlanError::Disk)?;
        let memory = part.memory();
        let CutPart { inputs, outputs, operators, parameters, work, out_bytes, .. } = part;
        stored.push(Part { blob, inputs, outputs, operators, parameters, work, memory, out_bytes });
    }
    Ok(OnnxWork { inputs, outputs, parts: stored, wire, ..work })
}
