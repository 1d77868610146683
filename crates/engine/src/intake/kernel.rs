//! From WGSL text to a plan: parse, validate, choose the entry point, read its bindings.

use naga::valid::{Capabilities, GlobalUse, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, EntryPoint, GlobalVariable, Handle, Module, ShaderStage, Span};
use shoal_kinds::{Kernel, MapAsk, MapReading, Params, Pixel, Space};
use shoal_protocol::limit::MAX_KERNEL_BYTES;
use shoal_protocol::{Lane, Needs};

use super::bind::{self, Bound};
use super::params::{self, MAP_FIELDS, ParamValue, RENDER_FIELDS};
use super::source::error_at;
use super::{ElementType, IntakeError, MapPlan, RenderPlan, depth, portable, reach, words};

/// What every WebGPU device has beyond the validator's core.
const EVERYWHERE: Capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32;

pub(super) fn map(
    source: &str,
    entry: Option<&str>,
    values: &[(String, ParamValue)],
) -> Result<MapPlan, IntakeError> {
    let (module, info) = validated(source)?;
    let kernel = Checked::new(source, &module, &info, entry)?;
    map_plan(&kernel, values).map(|(plan, _)| plan)
}

/// Where the items of a map look, and how it is run therefore.
pub(super) fn map_reading(
    source: &str,
    entry: Option<&str>,
    values: &[(String, ParamValue)],
    ask: &MapAsk,
) -> Result<MapReading, IntakeError> {
    let (module, info) = validated(source)?;
    let kernel = Checked::new(source, &module, &info, entry)?;
    let (plan, bound) = map_plan(&kernel, values)?;
    let (given, declared) = (ask.inputs.len(), bound.inputs.len());
    if given != declared {
        let what = format!("the kernel reads {declared} arrays, but {given} are described");
        return Err(IntakeError::plain("bad_kernel", what));
    }
    reach::read(&kernel, &bound, &plan.kernel, ask)
}

fn map_plan(
    kernel: &Checked<'_>,
    values: &[(String, ParamValue)],
) -> Result<(MapPlan, Bound), IntakeError> {
    let [_, y, z] = kernel.entry().workgroup_size;
    if (y, z) != (1, 1) {
        let what = format!(
            "`{}` has a workgroup of {y} by {z} in y and z; a map is laid out in x only",
            kernel.entry().name
        );
        return Err(IntakeError::plain("bad_kernel", what));
    }
    let bound = bind::bind(kernel)?;
    let output = output(&bound)?.0.clone();
    let needs = kernel.needs(&bound);
    let inputs = bound.inputs.clone();
    let plan =
        MapPlan { kernel: kernel.finish(&bound, MAP_FIELDS, values)?, inputs, output, needs };
    Ok((plan, bound))
}

pub(super) fn render(
    source: &str,
    entry: Option<&str>,
    values: &[(String, ParamValue)],
) -> Result<RenderPlan, IntakeError> {
    let (module, info) = validated(source)?;
    let kernel = Checked::new(source, &module, &info, entry)?;
    if kernel.entry().workgroup_size[2] != 1 {
        let what = format!("`{}` has a workgroup deeper than 1 in z", kernel.entry().name);
        return Err(IntakeError::plain("bad_kernel", what));
    }
    let bound = bind::bind(&kernel)?;
    let (element, variable) = output(&bound)?;
    let pixel = match element.name.as_str() {
        "u32" => Pixel::Rgba8,
        "vec4<f32>" => Pixel::Rgba32Float,
        other => {
            let what = format!(
                "a render's output is array<u32> or array<vec4<f32>>, one for each pixel; this is \
                 array<{other}>"
            );
            return Err(kernel.error(*variable, &what, "not pixels"));
        }
    };
    if let Some(element) = bound.inputs.first() {
        let what =
            format!("a render has no inputs, but the kernel reads an array<{}>", element.name);
        return Err(IntakeError::plain("bad_kernel", what));
    }
    let needs = kernel.needs(&bound);
    let kernel = kernel.finish(&bound, RENDER_FIELDS, values)?;
    Ok(RenderPlan { kernel, pixel, needs })
}

/// A valid module with the entry point to be run.
pub(super) struct Checked<'a> {
    pub(super) source: &'a str,
    pub(super) module: &'a Module,
    pub(super) info: &'a ModuleInfo,
    /// Position in the module's entry points.
    index: usize,
}

impl<'a> Checked<'a> {
    pub(super) fn new(
        source: &'a str,
        module: &'a Module,
        info: &'a ModuleInfo,
        entry: Option<&str>,
    ) -> Result<Checked<'a>, IntakeError> {
        Checked::at(source, module, info, choose(module, entry)?)
    }

    /// With the entry point at a position, which is a compute one.
    pub(super) fn at(
        source: &'a str,
        module: &'a Module,
        info: &'a ModuleInfo,
        index: usize,
    ) -> Result<Checked<'a>, IntakeError> {
        let kernel = Checked { source, module, info, index };
        portable::check(&kernel)?;
        Ok(kernel)
    }

    pub(super) fn entry(&self) -> &'a EntryPoint {
        &self.module.entry_points[self.index]
    }

    pub(super) fn uses(&self, variable: Handle<GlobalVariable>) -> bool {
        !self.usage(variable).is_empty()
    }

    pub(super) fn usage(&self, variable: Handle<GlobalVariable>) -> GlobalUse {
        self.info.get_entry_point(self.index)[variable]
    }

    /// Bytes of the `var<workgroup>`s the entry point uses.
    pub(super) fn workgroup_bytes(&self) -> u32 {
        self.module
            .global_variables
            .iter()
            .filter(|(handle, it)| it.space == AddressSpace::WorkGroup && self.uses(*handle))
            .map(|(_, it)| self.module.types[it.ty].inner.size(self.module.to_ctx()))
            // WebGPU counts each variable in steps of 16 bytes.
            .fold(0u32, |sum, size| sum.saturating_add(size.saturating_add(15) & !15))
    }

    fn needs(&self, bound: &Bound) -> Needs {
        let storage = bound.bindings.iter().filter(|binding| binding.space != Space::Uniform);
        Needs {
            workgroup_invocations: self.entry().workgroup_size.iter().product(),
            workgroup_bytes: self.workgroup_bytes(),
            storage_buffers: storage.count() as u32,
            ..Needs::lane(Lane::Gpu)
        }
    }

    fn finish(
        &self,
        bound: &Bound,
        fields: &[(&str, shoal_kinds::Field)],
        values: &[(String, ParamValue)],
    ) -> Result<Kernel, IntakeError> {
        let params = match bound.params {
            Some((ty, variable)) => {
                let name = bind::name(&self.module.global_variables[variable]);
                let fields: Vec<_> = fields
                    .iter()
                    .map(|&(name, field)| params::Filled { name, field, shape: params::U32 })
                    .collect();
                let (bytes, places) = params::fill(self.module, ty, name, &fields, values)?;
                Some(Params { bytes, places })
            }
            None => params::none_wanted(values).map(|()| None)?,
        };
        Ok(Kernel {
            source: self.source.to_owned(),
            entry: self.entry().name.clone(),
            workgroup: self.entry().workgroup_size,
            bindings: bound.bindings.clone(),
            params,
            windows: None,
        })
    }
}

pub(super) fn validated(source: &str) -> Result<(Module, ModuleInfo), IntakeError> {
    if source.len() > MAX_KERNEL_BYTES {
        let size = source.len();
        let what = format!("the kernel has {size} bytes; at most {MAX_KERNEL_BYTES} are taken");
        return Err(IntakeError::plain("bad_kernel", what));
    }
    no_extensions(source)?;
    depth::check(source)?;
    let module = naga::front::wgsl::parse_str(source).map_err(|error| {
        let (span, label) = error.labels().next().unzip();
        let notes: String = error.notes().map(|note| format!("\nnote: {note}")).collect();
        let mut found = error_at(source, span, error.message(), label.unwrap_or(""));
        found.message.push_str(&notes);
        found
    })?;
    let mut validator = Validator::new(ValidationFlags::all(), EVERYWHERE);
    let info = validator.validate(&module).map_err(|error| {
        let (span, label) = error.spans().next().cloned().unzip();
        let label = words::label(label.as_deref().unwrap_or(""));
        error_at(source, span, &words::reasons(error.as_inner()), label)
    })?;
    Ok((module, info))
}

/// Extensions are what not every device has, whatever they are. They stand before all else.
fn no_extensions(source: &str) -> Result<(), IntakeError> {
    let (mut at, mut in_comment) = (0, false);
    for line in source.split_inclusive('\n') {
        let code = line.trim_start();
        let start = at + line.len() - code.len();
        at += line.len();
        if in_comment || code.starts_with("/*") {
            in_comment = !code.contains("*/");
            continue;
        }
        if let Some((name, _)) = code.strip_prefix("enable ").and_then(|it| it.split_once(';')) {
            let what = format!("`{}` is an extension that not every device has", name.trim());
            let span = Span::new(start as u32, (start + "enable".len()) as u32);
            return Err(error_at(source, Some(span), &what, "leave it out"));
        }
    }
    Ok(())
}

fn choose(module: &Module, entry: Option<&str>) -> Result<usize, IntakeError> {
    let all: Vec<_> = module
        .entry_points
        .iter()
        .enumerate()
        .filter(|(_, point)| point.stage == ShaderStage::Compute)
        .collect();
    let names = all.iter().map(|(_, p)| format!("`{}`", p.name)).collect::<Vec<_>>().join(", ");
    let problem = match (entry, all.as_slice()) {
        (_, []) => "the kernel has no compute entry point; expected a function with @compute and \
             @workgroup_size"
            .to_owned(),
        (None, [(index, _)]) => return Ok(*index),
        (None, _) => {
            format!("the kernel has several entry points, {names}: say which one is to be run")
        }
        (Some(wanted), _) => match all.iter().find(|(_, point)| point.name == wanted) {
            Some((index, _)) => return Ok(*index),
            None => format!("the kernel has no compute entry point `{wanted}`; it has {names}"),
        },
    };
    Err(IntakeError::plain("bad_kernel", problem))
}

fn output(bound: &Bound) -> Result<&(ElementType, Handle<GlobalVariable>), IntakeError> {
    bound.output.as_ref().ok_or_else(|| {
        let what = "the kernel has no output; expected one such as \
                    `@group(0) @binding(1) var<storage, read_write> output: array<f32>`";
        IntakeError::plain("bad_kernel", what)
    })
}
