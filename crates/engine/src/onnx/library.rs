//! ONNX Runtime, from a shared library that is loaded at run time. It is the code of others, and whoever loads it must be
//! a process that may end at any moment.

use std::borrow::Cow;
use std::ffi::CStr;
use std::path::Path;

use bytemuck::{AnyBitPattern, NoUninit};
use half::f16;
use half::slice::{HalfBitsSliceExt as _, HalfFloatSliceExt as _};
use ort::environment::Environment;
use ort::ep::{self, ExecutionProvider as _, ExecutionProviderDispatch};
use ort::session::{self, SessionInputValue};
use ort::value::{DynValue, PrimitiveTensorElementType, Tensor as Owned, TensorRef};
use shoal_kinds::onnx::tensor::{pack_into, unpack};
use shoal_kinds::onnx::{Element, Head, Tensor};

/// The library, which stays loaded.
pub struct Library {
    version: String,
    environment: Environment,
    providers: Vec<Provider>,
}

/// Hardware that the library was built for, beside processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provider {
    Cuda,
    CoreMl,
    DirectMl,
}

impl Provider {
    const ALL: [Provider; 3] = [Provider::Cuda, Provider::CoreMl, Provider::DirectMl];

    fn name(self) -> &'static str {
        match self {
            Provider::Cuda => "cuda",
            Provider::CoreMl => "coreml",
            Provider::DirectMl => "directml",
        }
    }

    fn is_offered(self) -> bool {
        let offered = match self {
            Provider::Cuda => ep::CUDA::is_available(),
            Provider::CoreMl => ep::CoreML::is_available(),
            Provider::DirectMl => ep::DirectML::is_available(),
        };
        offered.unwrap_or(false)
    }

    fn dispatch(self) -> ExecutionProviderDispatch {
        match self {
            Provider::Cuda => ep::CUDA::default().build(),
            Provider::CoreMl => ep::CoreML::default().build(),
            Provider::DirectMl => ep::DirectML::default().build(),
        }
    }
}

impl Library {
    pub fn open(path: &Path) -> Result<Library, String> {
        let builder = ort::init_from(path).map_err(|error| error.to_string())?;
        let builder = builder.with_name("shoal").with_telemetry(false);
        let environment = builder.build().map_err(|error| error.to_string())?;
        let providers = Provider::ALL.into_iter().filter(|provider| provider.is_offered());
        let version = version(path).unwrap_or_else(|| "unknown".into());
        Ok(Library { version, environment, providers: providers.collect() })
    }

    /// As the library says it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The hardware it may compute with, beside processors.
    pub fn providers(&self) -> Vec<&'static str> {
        self.providers.iter().map(|provider| provider.name()).collect()
    }

    /// Loads a model, which then runs in so many threads.
    pub fn load(&self, file: &[u8], threads: usize) -> Result<Session, String> {
        let said = |error: ort::Error<_>| error.to_string();
        let providers: Vec<_> = self.providers.iter().map(|it| it.dispatch()).collect();
        let mut builder = session::Session::builder(&self.environment)
            .map_err(|error| error.to_string())?
            .with_intra_threads(threads)
            .map_err(said)?
            .with_inter_threads(1)
            .map_err(said)?
            // Threads that wait by spinning would take the processors from other work of the node.
            .with_intra_op_spinning(false)
            .map_err(said)?
            .with_execution_providers(providers)
            .map_err(said)?;
        let session = builder.commit_from_memory(file).map_err(|error| error.to_string())?;
        let outputs = session.outputs().iter().map(|output| output.name().to_owned()).collect();
        Ok(Session { session, outputs, said: Vec::new() })
    }
}

/// The version of a library that is loaded already.
#[expect(unsafe_code, reason = "`ort` has this text, but does not give it")]
fn version(path: &Path) -> Option<String> {
    // SAFETY: `ort` has just loaded this library and called this function of it with this type. The text is the
    // library's own, and the library stays loaded.
    let text = unsafe {
        let library = libloading::Library::new(path).ok()?;
        type GetApiBase = unsafe extern "C" fn() -> *const ort::sys::OrtApiBase;
        let base = library.get::<GetApiBase>(b"OrtGetApiBase").ok()?().as_ref()?;
        CStr::from_ptr((base.GetVersionString)())
    };
    text.to_str().ok().map(String::from)
}

/// A model that the library has loaded.
pub struct Session {
    session: session::Session,
    outputs: Vec<String>,
    /// The last answer, whose memory is used again: fresh memory costs more than the copy into it.
    said: Vec<u8>,
}

impl Session {
    /// Packed tensors in, packed tensors out. Numbers are read where they lie.
    pub fn run(&mut self, request: &[u8]) -> Result<&[u8], String> {
        let tensors = unpack(request).map_err(|error| error.to_string())?;
        let mut inputs: Vec<(Cow<'_, str>, SessionInputValue<'_>)> =
            Vec::with_capacity(tensors.len());
        for Tensor { head, bytes } in &tensors {
            let value = taken(head, bytes).map_err(|why| format!("{:?}: {why}", head.name))?;
            inputs.push((Cow::Owned(head.name.clone()), value));
        }
        let values = self.session.run(inputs).map_err(|error| error.to_string())?;
        let mut answers = Vec::with_capacity(self.outputs.len());
        for name in &self.outputs {
            let value = values.get(name).ok_or_else(|| format!("no output {name:?}"))?;
            answers.push(given(name, value).map_err(|why| format!("{name:?}: {why}"))?);
        }
        let tensors = answers.iter().map(|(head, bytes)| Tensor { head: head.clone(), bytes });
        pack_into(&tensors.collect::<Vec<_>>(), &mut self.said);
        Ok(&self.said)
    }
}

fn taken<'a>(head: &Head, bytes: &'a [u8]) -> Result<SessionInputValue<'a>, String> {
    let dims: Result<Vec<i64>, _> = head.dims.iter().map(|dim| i64::try_from(*dim)).collect();
    let dims = dims.map_err(|error| error.to_string())?;
    match head.element {
        Element::F32 => view::<f32>(dims, bytes),
        Element::F64 => view::<f64>(dims, bytes),
        Element::U8 => view::<u8>(dims, bytes),
        Element::I8 => view::<i8>(dims, bytes),
        Element::U16 => view::<u16>(dims, bytes),
        Element::I16 => view::<i16>(dims, bytes),
        Element::U32 => view::<u32>(dims, bytes),
        Element::I32 => view::<i32>(dims, bytes),
        Element::U64 => view::<u64>(dims, bytes),
        Element::I64 => view::<i64>(dims, bytes),
        Element::F16 => {
            let bits: Vec<u16> = copied(bytes);
            let halves: &[f16] = bits.reinterpret_cast();
            own(dims, halves.to_vec())
        }
        Element::Bool => own(dims, bytes.iter().map(|byte| *byte != 0).collect()),
    }
}

fn view<T>(dims: Vec<i64>, bytes: &[u8]) -> Result<SessionInputValue<'_>, String>
where
    T: PrimitiveTensorElementType + AnyBitPattern + NoUninit + std::fmt::Debug + 'static,
{
    match bytemuck::try_cast_slice::<u8, T>(bytes) {
        Ok(numbers) => TensorRef::from_array_view((dims, numbers))
            .map(SessionInputValue::from)
            .map_err(|error| error.to_string()),
        // They lie where this machine reads no such numbers.
        Err(_) => own(dims, copied::<T>(bytes)),
    }
}

fn copied<T: AnyBitPattern>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

fn own<T>(dims: Vec<i64>, numbers: Vec<T>) -> Result<SessionInputValue<'static>, String>
where
    T: PrimitiveTensorElementType + Clone + std::fmt::Debug + 'static,
{
    let tensor = Owned::from_array((dims, numbers)).map_err(|error| error.to_string())?;
    Ok(SessionInputValue::from(tensor))
}

/// What came out, as its bytes lie in the library's memory.
// The types are another crate's list, which may grow.
#[allow(clippy::wildcard_enum_match_arm)]
fn given<'a>(name: &str, value: &'a DynValue) -> Result<(Head, Cow<'a, [u8]>), String> {
    use ort::value::TensorElementType as Type;
    let Some(element) = value.dtype().tensor_type() else { return Err("no tensor".into()) };
    let (element, (dims, bytes)) = match element {
        Type::Float32 => (Element::F32, lying::<f32>(value)?),
        Type::Float64 => (Element::F64, lying::<f64>(value)?),
        Type::Uint8 => (Element::U8, lying::<u8>(value)?),
        Type::Int8 => (Element::I8, lying::<i8>(value)?),
        Type::Uint16 => (Element::U16, lying::<u16>(value)?),
        Type::Int16 => (Element::I16, lying::<i16>(value)?),
        Type::Uint32 => (Element::U32, lying::<u32>(value)?),
        Type::Int32 => (Element::I32, lying::<i32>(value)?),
        Type::Uint64 => (Element::U64, lying::<u64>(value)?),
        Type::Int64 => (Element::I64, lying::<i64>(value)?),
        Type::Float16 => {
            let (shape, halves) = extracted::<f16>(value)?;
            let bits: &[u16] = halves.reinterpret_cast();
            (Element::F16, (shape, Cow::Borrowed(bytemuck::cast_slice(bits))))
        }
        Type::Bool => {
            let (shape, flags) = extracted::<bool>(value)?;
            (Element::Bool, (shape, Cow::Borrowed(bytemuck::cast_slice(flags))))
        }
        other => return Err(format!("{other:?}, which no answer carries")),
    };
    Ok((Head { name: name.into(), element, dims }, bytes))
}

type Lying<'a> = (Vec<u64>, Cow<'a, [u8]>);

fn lying<T>(value: &DynValue) -> Result<Lying<'_>, String>
where
    T: PrimitiveTensorElementType + NoUninit,
{
    let (dims, numbers) = extracted::<T>(value)?;
    Ok((dims, Cow::Borrowed(bytemuck::cast_slice(numbers))))
}

fn extracted<T: PrimitiveTensorElementType>(value: &DynValue) -> Result<(Vec<u64>, &[T]), String> {
    let (shape, numbers) = value.try_extract_tensor::<T>().map_err(|error| error.to_string())?;
    let dims: Result<_, _> = shape.iter().map(|dim| u64::try_from(*dim)).collect();
    Ok((dims.map_err(|_| format!("the shape {shape:?}"))?, numbers))
}
