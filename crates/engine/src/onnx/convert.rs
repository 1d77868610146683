//! Between tensors as they travel and values as rten has them.

use rten::Value;
use rten_tensor::prelude::*;
use shoal_kinds::onnx::{Element, Head, Port, Tensor};

/// Whether tensors of this type can be taken and given.
pub(super) fn computes_with(element: Element) -> bool {
    match element {
        Element::F32 | Element::I32 | Element::U8 | Element::I8 | Element::Bool | Element::I64 => {
            true
        }
        Element::F16 | Element::F64 | Element::U16 | Element::I16 | Element::U32 | Element::U64 => {
            false
        }
    }
}

/// A tensor as the engine takes it, or why it cannot.
pub(super) fn taken(tensor: &Tensor<'_>) -> Result<Value, String> {
    let Tensor { head, bytes } = tensor;
    let dims: Result<Vec<usize>, _> = head.dims.iter().map(|dim| usize::try_from(*dim)).collect();
    let dims = dims.map_err(|_| format!("the input {:?} is too large", head.name))?;
    let no_such = || {
        let (name, element) = (&head.name, head.element);
        format!("the input {name:?} is {element}, which the built-in engine does not compute with")
    };
    let too_large = |value: i64| {
        format!("the input {:?} holds {value}, which does not fit into 32 bits", head.name)
    };
    match head.element {
        Element::F32 => shaped(&dims, numbers(bytes, f32::from_le_bytes)),
        Element::I32 => shaped(&dims, numbers(bytes, i32::from_le_bytes)),
        Element::U8 => shaped(&dims, bytes.to_vec()),
        Element::I8 => shaped(&dims, numbers(bytes, i8::from_le_bytes)),
        Element::Bool => shaped(&dims, bytes.iter().map(|byte| i32::from(*byte != 0)).collect()),
        Element::I64 => {
            let wide: Vec<i64> = numbers(bytes, i64::from_le_bytes);
            let narrow = wide.into_iter().map(|n| i32::try_from(n).map_err(|_| too_large(n)));
            shaped(&dims, narrow.collect::<Result<_, _>>()?)
        }
        Element::F16 | Element::F64 | Element::U16 | Element::I16 | Element::U32 | Element::U64 => {
            Err(no_such())
        }
    }
}

fn shaped<T>(dims: &[usize], numbers: Vec<T>) -> Result<Value, String>
where
    Value: From<rten_tensor::Tensor<T>>,
{
    Value::from_shape(dims, numbers).map_err(|error| error.to_string())
}

fn numbers<T, const N: usize>(bytes: &[u8], read: fn([u8; N]) -> T) -> Vec<T> {
    let (numbers, _) = bytes.as_chunks::<N>();
    numbers.iter().map(|number| read(*number)).collect()
}

/// What the engine computed, as the model declares it.
pub(super) fn given(port: &Port, value: &Value) -> Result<(Head, Vec<u8>), String> {
    let (dims, bytes) = match (value, port.element) {
        (Value::FloatTensor(found), Element::F32) => {
            (dims(found.shape()), written(found.iter(), |n| n.to_le_bytes()))
        }
        (Value::Int32Tensor(found), Element::I32) => {
            (dims(found.shape()), written(found.iter(), |n| n.to_le_bytes()))
        }
        (Value::Int32Tensor(found), Element::I64) => {
            (dims(found.shape()), written(found.iter(), |n| i64::from(*n).to_le_bytes()))
        }
        (Value::Int32Tensor(found), Element::Bool) => {
            (dims(found.shape()), written(found.iter(), |n| [u8::from(*n != 0)]))
        }
        (Value::Int8Tensor(found), Element::I8) => {
            (dims(found.shape()), written(found.iter(), |n| n.to_le_bytes()))
        }
        (Value::UInt8Tensor(found), Element::U8) => {
            (dims(found.shape()), written(found.iter(), |n| [*n]))
        }
        _ => {
            let (name, element) = (&port.name, port.element);
            return Err(format!(
                "the output {name:?} should be {element}, which the built-in engine does not give"
            ));
        }
    };
    Ok((Head { name: port.name.clone(), element: port.element, dims }, bytes))
}

fn dims(shape: &[usize]) -> Vec<u64> {
    shape.iter().map(|dim| *dim as u64).collect()
}

fn written<'a, T: 'a, const N: usize>(
    numbers: impl Iterator<Item = &'a T>,
    write: fn(&T) -> [u8; N],
) -> Vec<u8> {
    numbers.flat_map(write).collect()
}
