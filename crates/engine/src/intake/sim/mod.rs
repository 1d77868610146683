//! From a simulation's file to what a crew computes: which entry points make a step, how far a step
//! reaches, what a cell is.

mod bind;
mod note;

use naga::valid::ModuleInfo;
use naga::{Module, ShaderStage};
use shoal_kinds::{Pass, SimField, SimWork};
use shoal_protocol::limit::MAX_PASSES;
use shoal_protocol::{Lane, Needs};

use super::kernel::{Checked, validated};
use super::params::{self, ParamValue, SIM_FIELDS};
use super::{ElementType, IntakeError};
use bind::Slots;
use note::Notes;

/// The entry point that makes the first state.
const INIT: &str = "init";
/// The entry point that makes a picture.
const SHOW: &str = "show";
/// Bytes of a grid with its halos. Members leave, and the last one must hold all of it in one buffer:
/// real GPUs bind 1 GiB or more.
const MAX_GRID_BYTES: u64 = 1 << 30;
/// Bytes of a uniform block: WebGPU promises no more.
const MAX_PARAMS_BYTES: usize = 64 << 10;
/// Workgroups of a dispatch in one direction: WebGPU promises no more.
const MAX_GROUPS: u32 = 65_535;

/// A simulation somebody asks for. What is `None` the file says, in lines such as `// halo: 8` and
/// `// passes: advect, jacobi*20, project`, or is found.
#[derive(Clone, Debug)]
pub struct SimAsk<'a> {
    pub source: &'a str,
    pub width: u32,
    pub height: u32,
    pub steps: u64,
    pub halo: Option<u32>,
    pub passes: Option<&'a str>,
    /// Members of the parameter block that the file gives no value in `// params: feed=0.03`, or another one.
    pub params: &'a [(String, ParamValue)],
}

/// What `members`, `keep_every`, `speculate`, `first` and `reduce` are is not the kernel's business: they come out
/// as 0, `None`, `false`, `None` and `None`.
pub(super) fn check(ask: &SimAsk<'_>) -> Result<(SimWork, Needs), IntakeError> {
    let (module, info) = validated(ask.source)?;
    let notes = Notes::read(ask.source)?;
    let file = File { source: ask.source, module: &module, info: &info };
    let passes = file.passes(ask.passes.or(notes.passes))?;
    let (init, show) = (file.special(INIT)?, file.special(SHOW)?);
    let slots = bind::bind(&file, &passes, init.as_ref(), show.as_ref())?;
    let runs: u64 = passes.iter().map(|(_, pass)| u64::from(pass.times)).sum();
    let halo = match (ask.halo, notes.halo) {
        (Some(halo), _) | (None, Some(halo)) => halo,
        // The usual kernel looks at its neighbours.
        (None, None) => runs as u32,
    };
    let all: Vec<_> = passes.iter().chain(&init).chain(&show).collect();
    check_grid(ask, halo, &slots.cell, &all)?;
    let values = with_defaults(ask.params, notes.params);
    let (params, fields) = file.params(&slots, &values, ask.steps)?;
    let needs = Needs {
        buffer_bytes: grid_bytes(ask, halo, &slots.cell),
        workgroup_invocations: most(&all, |(_, pass)| pass.workgroup.iter().product()),
        workgroup_bytes: most(&all, |(kernel, _)| kernel.workgroup_bytes()),
        storage_buffers: 2,
        ..Needs::lane(Lane::Gpu)
    };
    let only = |entry: Option<Entry<'_>>| entry.map(|(_, pass)| pass);
    let work = SimWork {
        source: ask.source.to_owned(),
        width: ask.width,
        height: ask.height,
        steps: ask.steps,
        halo,
        init: only(init),
        show: only(show),
        passes: passes.into_iter().map(|(_, pass)| pass).collect(),
        first: None,
        members: 0,
        keep_every: None,
        speculate: false,
        cell_bytes: slots.cell.stride,
        lanes: slots.cell.lanes,
        scalar: slots.cell.scalar,
        slots: slots.slots,
        params,
        fields,
        reduce: None,
    };
    Ok((work, needs))
}

/// An entry point with how it is run.
type Entry<'a> = (Checked<'a>, Pass);

/// A valid module.
struct File<'a> {
    source: &'a str,
    module: &'a Module,
    info: &'a ModuleInfo,
}

impl<'a> File<'a> {
    fn passes(&self, said: Option<&str>) -> Result<Vec<Entry<'a>>, IntakeError> {
        let listed = match said {
            Some(list) => note::passes(list)?,
            None => self.plain_entries().map(|name| (name, 1)).collect(),
        };
        if listed.is_empty() {
            return Err(bad("the kernel has no pass; expected a function with @compute and \
                 @workgroup_size(8, 8) that writes `next`"));
        }
        let runs: u64 = listed.iter().map(|(_, times)| u64::from(*times)).sum();
        if runs > MAX_PASSES as u64 {
            return Err(bad(format!("a step has {runs} passes; at most {MAX_PASSES} are taken")));
        }
        listed.into_iter().map(|(name, times)| self.pass(name, times)).collect()
    }

    /// Compute entry points without a special name, in the order of the file.
    fn plain_entries(&self) -> impl Iterator<Item = &'a str> {
        let compute = self.module.entry_points.iter().filter(|it| it.stage == ShaderStage::Compute);
        compute.map(|it| it.name.as_str()).filter(|name| ![INIT, SHOW].contains(name))
    }

    fn pass(&self, name: &str, times: u32) -> Result<Entry<'a>, IntakeError> {
        if [INIT, SHOW].contains(&name) {
            return Err(bad(format!(
                "`{name}` is run by itself, not in a step: leave it out of the passes"
            )));
        }
        match self.entry(name, times)? {
            Some(entry) => Ok(entry),
            None => {
                let known: Vec<_> = self.plain_entries().map(|it| format!("`{it}`")).collect();
                let known = known.join(", ");
                let is_function = self
                    .module
                    .functions
                    .iter()
                    .any(|(_, function)| function.name.as_deref() == Some(name));
                Err(bad(match is_function {
                    true => format!(
                        "the pass `{name}` is a function, but no compute entry point: it \
                         lacks @compute and @workgroup_size"
                    ),
                    false => format!("the kernel has no pass `{name}`; it has {known}"),
                }))
            }
        }
    }

    fn special(&self, name: &str) -> Result<Option<Entry<'a>>, IntakeError> {
        self.entry(name, 1)
    }

    fn entry(&self, name: &str, times: u32) -> Result<Option<Entry<'a>>, IntakeError> {
        let points = &self.module.entry_points;
        let found =
            points.iter().position(|it| it.name == name && it.stage == ShaderStage::Compute);
        let Some(index) = found else {
            return Ok(None);
        };
        let kernel = Checked::at(self.source, self.module, self.info, index)?;
        let workgroup = kernel.entry().workgroup_size;
        if workgroup[2] != 1 {
            return Err(bad(format!("`{name}` has a workgroup deeper than 1 in z")));
        }
        Ok(Some((kernel, Pass { entry: name.to_owned(), workgroup, times })))
    }

    fn params(
        &self,
        slots: &Slots,
        values: &[(String, ParamValue)],
        steps: u64,
    ) -> Result<params::Block<SimField>, IntakeError> {
        let (ty, variable) = slots.params;
        let name = super::bind::name(&self.module.global_variables[variable]);
        let (bytes, fields) = params::fill(self.module, ty, name, SIM_FIELDS, values)?;
        if bytes.len() > MAX_PARAMS_BYTES {
            let size = bytes.len();
            let what = format!("the parameters take {size} bytes; at most {MAX_PARAMS_BYTES} fit");
            return Err(IntakeError::plain("bad_params", what));
        }
        let counts = fields.iter().any(|(field, _)| *field == SimField::Step);
        if counts && steps > u64::from(u32::MAX) {
            return Err(bad(format!("{steps} steps are more than `step`, a u32, counts")));
        }
        Ok((bytes, fields))
    }
}

fn check_grid(
    ask: &SimAsk<'_>,
    halo: u32,
    cell: &ElementType,
    entries: &[&Entry<'_>],
) -> Result<(), IntakeError> {
    let SimAsk { width, height, steps, .. } = *ask;
    if width == 0 || height == 0 {
        return Err(bad(format!("a grid of {width} by {height} cells has none")));
    }
    if steps == 0 {
        return Err(bad("0 steps were asked for; expected at least 1"));
    }
    if halo == 0 {
        return Err(bad(
            "the halo is 0 rows; expected how far the passes of a step reach together",
        ));
    }
    if halo > height {
        return Err(bad(format!(
            "the halo is {halo} rows, more than the grid's {height}: use a higher grid"
        )));
    }
    let bytes = grid_bytes(ask, halo, cell);
    if bytes > MAX_GRID_BYTES {
        let (each, mib) = (cell.stride, bytes >> 20);
        return Err(bad(format!(
            "a grid of {width} by {height} cells of {each} bytes with a halo of {halo} rows takes {mib} \
             MiB; at most {} fit one device's buffer, and each member must be able to go on alone",
            MAX_GRID_BYTES >> 20
        )));
    }
    // Checked for the whole with both halos: a band never has more.
    let rows = height + 2 * halo;
    let too_many = entries.iter().find(|(_, pass)| {
        let [x, y, _] = pass.workgroup.map(|size| size.max(1));
        width.div_ceil(x) > MAX_GROUPS || rows.div_ceil(y) > MAX_GROUPS
    });
    match too_many {
        None => Ok(()),
        Some((_, pass)) => Err(bad(format!(
            "`{}` needs more than {MAX_GROUPS} workgroups in a row for this grid: use a larger workgroup",
            pass.entry
        ))),
    }
}

/// The grid with a halo on either side, as one member alone has it.
fn grid_bytes(ask: &SimAsk<'_>, halo: u32, cell: &ElementType) -> u64 {
    let rows = u64::from(ask.height) + 2 * u64::from(halo);
    // A cell is at most some kilobytes, so that only saturation is wrong, and that is refused.
    rows.saturating_mul(u64::from(ask.width)).saturating_mul(u64::from(cell.stride))
}

/// The values given, and those of the file that were not.
fn with_defaults(
    given: &[(String, ParamValue)],
    defaults: Vec<(String, ParamValue)>,
) -> Vec<(String, ParamValue)> {
    let left = defaults.into_iter().filter(|(name, _)| !given.iter().any(|(it, _)| it == name));
    given.iter().cloned().chain(left).collect()
}

fn most(entries: &[&Entry<'_>], of: impl Fn(&Entry<'_>) -> u32) -> u32 {
    entries.iter().map(|entry| of(entry)).max().unwrap_or(0)
}

fn bad(message: impl Into<String>) -> IntakeError {
    IntakeError::plain("bad_kernel", message)
}

#[cfg(test)]
mod tests;
