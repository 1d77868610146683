//! Tensors of a file on their way to the GPU.

use shoal_gguf::{Role, TensorInfo};

use super::form::BLOCK;
use super::product::Raw;
use crate::llm::error::LoadError;

/// What a layer may have.
const OF_LAYERS: [Role; 17] = [
    Role::AttentionNorm,
    Role::Query,
    Role::QueryBias,
    Role::QueryNorm,
    Role::Key,
    Role::KeyBias,
    Role::KeyNorm,
    Role::ValueOf,
    Role::ValueBias,
    Role::Out,
    Role::OutBias,
    Role::PostAttentionNorm,
    Role::FeedNorm,
    Role::Gate,
    Role::Up,
    Role::Down,
    Role::PostFeedNorm,
];

/// As the file has it.
pub(super) struct Tensor {
    pub(super) info: TensorInfo,
    pub(super) bytes: Vec<u8>,
}

/// Each is taken once by who needs it.
#[derive(Default)]
pub(super) struct Tensors(Vec<Tensor>);

impl Tensors {
    pub(super) fn put(&mut self, info: &TensorInfo, bytes: &[u8]) -> Result<(), LoadError> {
        let expected = info.at.end - info.at.start;
        if bytes.len() as u64 != expected {
            let (name, found) = (info.name.clone(), bytes.len() as u64);
            return Err(LoadError::Length { name, expected, found });
        }
        self.0.push(Tensor { info: info.clone(), bytes: bytes.into() });
        Ok(())
    }

    pub(super) fn take(&mut self, info: Option<&TensorInfo>) -> Option<Tensor> {
        let name = &info?.name;
        let at = self.0.iter().position(|tensor| tensor.info.name == *name)?;
        Some(self.0.swap_remove(at))
    }

    /// Whether all of a layer is here.
    pub(super) fn has_layer(&self, model: &shoal_gguf::Model, layer: u32) -> bool {
        let mut wanted = OF_LAYERS.iter().filter_map(|role| model.of_layer(layer, *role));
        wanted.all(|info| self.0.iter().any(|tensor| tensor.info.name == info.name))
    }
}

impl Tensor {
    pub(super) fn numbers(&self) -> Result<Vec<f32>, LoadError> {
        let name = || self.info.name.clone();
        let expected = self.info.at.end - self.info.at.start;
        let length =
            || LoadError::Length { name: name(), expected, found: self.bytes.len() as u64 };
        let numbers = self.info.ty.numbers(&self.bytes).ok_or_else(length)?;
        match numbers.iter().all(|number| number.is_finite()) {
            true => Ok(numbers),
            false => Err(LoadError::NotFinite { name: name() }),
        }
    }

    pub(super) fn raw(&self) -> Raw<'_> {
        // Only numbers that are not quantised can have others; zeros fill them up.
        let columns = (self.info.dims[0] as usize).next_multiple_of(BLOCK);
        let rows = self.bytes.chunks_exact(self.info.row_bytes() as usize).collect();
        Raw { ty: self.info.ty, columns, rows }
    }
}
