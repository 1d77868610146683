//! A kernel compiled for one device.

use std::borrow::Cow;
use std::sync::Arc;

use shoal_kinds::{Kernel, MapWork, Params, Slot, Space, Windows};
use shoal_protocol::Failure;
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BindGroupLayoutDescriptor,
    BindGroupLayoutEntry, BindingResource, BindingType, BufferBinding, BufferBindingType,
    CompilationMessageType, ComputePipeline, ComputePipelineDescriptor, Device,
    PipelineCompilationOptions, PipelineLayoutDescriptor, ShaderModule, ShaderModuleDescriptor,
    ShaderSource, ShaderStages,
};

use super::fault::{internal, text as words};
use super::fold;
use super::gpu::Core;
use super::guard::{Watched, watch};
use crate::window;

/// A compiled kernel. Cheap to clone; keep one per job.
#[derive(Clone)]
pub struct Pipeline(pub(super) Arc<Compiled>, pub(super) Option<Arc<Compiled>>);

pub(super) struct Compiled {
    pub(super) pipeline: ComputePipeline,
    layout: BindGroupLayout,
    /// Of the flag, if the kernel is watched.
    pub(super) watch: Option<BindGroupLayout>,
    /// How the kernel is shown whole arrays.
    pub(super) windows: Option<Arc<Windows>>,
    /// In binding order, as dynamic offsets are counted.
    bindings: Vec<(u32, Slot)>,
    pub(super) workgroup: [u32; 3],
    pub(super) params: Option<Params>,
}

/// The memory of one dispatch.
pub(super) struct Bound<'a> {
    pub(super) inputs: &'a [BufferBinding<'a>],
    pub(super) output: &'a BufferBinding<'a>,
    pub(super) params: Option<&'a BufferBinding<'a>>,
    /// Both for a kernel with windows.
    pub(super) place: Option<&'a BufferBinding<'a>>,
    pub(super) report: Option<&'a BufferBinding<'a>>,
}

impl Pipeline {
    pub(super) async fn new(core: &Core, kernel: &Kernel) -> Result<Pipeline, Failure> {
        let watched = match &core.guard {
            None => Ok(None),
            Some(_) => watch(&text(kernel)?, &kernel.entry),
        };
        let refused = match watched {
            Ok(None) => return Pipeline::compiled(core, kernel, None).await,
            Ok(watched) => match Pipeline::compiled(core, kernel, watched).await {
                Err(Failure::Kernel { message }) => message,
                outcome => return outcome,
            },
            Err(message) => message,
        };
        // The words for the kernel as it was written name lines. Where it is taken as it was
        // written, it is refused still: it must not run unwatched.
        let plain = Pipeline::compiled(core, kernel, None).await;
        Err(plain.err().unwrap_or(Failure::Kernel { message: words(refused) }))
    }

    /// With what brings outputs together.
    pub(super) async fn of_map(core: &Core, work: &MapWork) -> Result<Pipeline, Failure> {
        let pipeline = Pipeline::new(core, &work.kernel).await?;
        let Some(fold) = &work.fold else { return Ok(pipeline) };
        let kernel = fold::kernel(fold)?;
        // Its loops are short.
        let folding = Pipeline::compiled(core, &kernel, None).await?;
        Ok(Pipeline(pipeline.0, Some(folding.0)))
    }

    async fn compiled(
        core: &Core,
        kernel: &Kernel,
        watched: Option<Watched>,
    ) -> Result<Pipeline, Failure> {
        core.lost.check()?;
        let (module, compiled, caught) = {
            let scopes = core.scopes();
            let watch = watched.as_ref().map(|watched| watched.layout(&core.device));
            let source = match watched {
                Some(watched) => watched.source(),
                None => ShaderSource::Wgsl(text(kernel)?),
            };
            let descriptor = ShaderModuleDescriptor { label: None, source };
            let module = core.device.create_shader_module(descriptor);
            let compiled = compile(&core.device, &module, kernel, watch);
            (module, compiled, scopes.close())
        };
        match caught.await {
            Ok(()) => Ok(Pipeline(Arc::new(compiled), None)),
            // A browser's error for the module says only "invalid": the compiler's own words are
            // apart.
            Err(Failure::Kernel { message }) => {
                Err(Failure::Kernel { message: said_of(&module).await.unwrap_or(message) })
            }
            Err(failure) => Err(failure),
        }
    }
}

fn compile(
    device: &Device,
    module: &ShaderModule,
    kernel: &Kernel,
    watch: Option<BindGroupLayout>,
) -> Compiled {
    let mut bindings = kernel.bindings.clone();
    bindings.sort_by_key(|binding| binding.index);
    let entries: Vec<_> = bindings
        .iter()
        .map(|binding| BindGroupLayoutEntry {
            binding: binding.index,
            visibility: ShaderStages::COMPUTE,
            ty: BindingType::Buffer {
                ty: match binding.space {
                    Space::Uniform => BufferBindingType::Uniform,
                    Space::StorageRead => BufferBindingType::Storage { read_only: true },
                    Space::StorageReadWrite => BufferBindingType::Storage { read_only: false },
                },
                has_dynamic_offset: is_dynamic(binding.slot),
                min_binding_size: None,
            },
            count: None,
        })
        .collect();
    let layout = device
        .create_bind_group_layout(&BindGroupLayoutDescriptor { label: None, entries: &entries });
    let groups: Vec<_> =
        [Some(&layout), watch.as_ref()].into_iter().filter(Option::is_some).collect();
    let pipeline_layout = device.create_pipeline_layout(&PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &groups,
        immediate_size: 0,
    });
    let pipeline = device.create_compute_pipeline(&ComputePipelineDescriptor {
        label: None,
        layout: Some(&pipeline_layout),
        module,
        entry_point: Some(&kernel.entry),
        compilation_options: PipelineCompilationOptions::default(),
        cache: None,
    });
    Compiled {
        pipeline,
        layout,
        watch,
        bindings: bindings.iter().map(|binding| (binding.index, binding.slot)).collect(),
        workgroup: kernel.workgroup.map(|size| size.max(1)),
        params: kernel.params.clone(),
        windows: kernel.windows.clone().map(Arc::new),
    }
}

/// The text that is compiled.
fn text(kernel: &Kernel) -> Result<Cow<'_, str>, Failure> {
    window::text(kernel).map_err(|problem| internal(format!("the kernel's windows: {problem}")))
}

/// Output and parameters move from tile to tile, so that all tiles share one bind group.
fn is_dynamic(slot: Slot) -> bool {
    match slot {
        Slot::Input(_) | Slot::Place | Slot::Report => false,
        Slot::Output | Slot::Params => true,
    }
}

/// The errors of the device's compiler, with line and column.
async fn said_of(module: &ShaderModule) -> Option<String> {
    let info = module.get_compilation_info().await;
    let lines: Vec<String> = info
        .messages
        .iter()
        .filter(|message| message.message_type == CompilationMessageType::Error)
        .map(|message| match message.location {
            Some(at) => format!("{}:{}: {}", at.line_number, at.line_position, message.message),
            None => message.message.clone(),
        })
        .collect();
    (!lines.is_empty()).then(|| words(lines.join("\n")))
}

impl Compiled {
    pub(super) fn bind(
        &self,
        device: &Device,
        inputs: &[BufferBinding<'_>],
        output: &BufferBinding<'_>,
        params: Option<&BufferBinding<'_>>,
    ) -> Result<BindGroup, Failure> {
        self.bind_all(device, &Bound { inputs, output, params, place: None, report: None })
    }

    pub(super) fn bind_all(
        &self,
        device: &Device,
        bound: &Bound<'_>,
    ) -> Result<BindGroup, Failure> {
        let resource = |slot| match slot {
            Slot::Input(at) => bound.inputs.get(at as usize).cloned(),
            Slot::Output => Some(bound.output.clone()),
            Slot::Params => bound.params.cloned(),
            Slot::Place => bound.place.cloned(),
            Slot::Report => bound.report.cloned(),
        };
        let entries = self
            .bindings
            .iter()
            .map(|&(binding, slot)| {
                let buffer = resource(slot)
                    .ok_or_else(|| internal(format!("nothing to bind at {binding}, {slot:?}")))?;
                Ok(BindGroupEntry { binding, resource: BindingResource::Buffer(buffer) })
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        Ok(device.create_bind_group(&BindGroupDescriptor {
            label: None,
            layout: &self.layout,
            entries: &entries,
        }))
    }

    /// The dynamic offsets in the order the device wants them.
    pub(super) fn offsets(&self, output: u32, params: u32) -> Vec<u32> {
        self.bindings
            .iter()
            .filter_map(|(_, slot)| match slot {
                Slot::Input(_) | Slot::Place | Slot::Report => None,
                Slot::Output => Some(output),
                Slot::Params => Some(params),
            })
            .collect()
    }
}
