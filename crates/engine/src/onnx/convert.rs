//! Between tensors as they travel and values as rten has them.

use std::fmt;

use rten::Value;
use rten_tensor::prelude::*;
use shoal_kinds::onnx::tensor::f16;
use shoal_kinds::onnx::{Element, Head, Port, Tensor};

/// Whether tensors of this type can be taken and given.
pub(super) fn computes_with(element: Element) -> bool {
    match element {
        Element::F32 | Element::F16 | Element::I8 | Element::U8 | Element::Bool => true,
        Element::I16 | Element::U16 | Element::I32 | Element::U32 => true,
        Element::I64 | Element::U64 => true,
        // It would lose half of its digits.
        Element::F64 => false,
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
    match head.element {
        Element::F32 => shaped(&dims, numbers(bytes, f32::from_le_bytes)),
        Element::F16 => shaped(&dims, numbers(bytes, |half| f16::from_le_bytes(half).to_f32())),
        Element::I32 => shaped(&dims, numbers(bytes, i32::from_le_bytes)),
        Element::U8 => shaped(&dims, bytes.to_vec()),
        Element::I8 => shaped(&dims, numbers(bytes, i8::from_le_bytes)),
        Element::Bool => shaped(&dims, bytes.iter().map(|byte| i32::from(*byte != 0)).collect()),
        Element::U16 => shaped(&dims, numbers(bytes, |n| i32::from(u16::from_le_bytes(n)))),
        Element::I16 => shaped(&dims, numbers(bytes, |n| i32::from(i16::from_le_bytes(n)))),
        Element::U32 => shaped(&dims, fitting(head, numbers(bytes, u32::from_le_bytes))?),
        Element::I64 => shaped(&dims, fitting(head, numbers(bytes, i64::from_le_bytes))?),
        Element::U64 => shaped(&dims, fitting(head, numbers(bytes, u64::from_le_bytes))?),
        Element::F64 => Err(no_such()),
    }
}

/// Whole numbers of 32 bits, if that is all they need.
fn fitting<T: Copy + fmt::Display + TryInto<i32>>(
    head: &Head,
    wide: Vec<T>,
) -> Result<Vec<i32>, String> {
    let fits = |number: T| {
        number.try_into().map_err(|_| {
            format!("the input {:?} holds {number}, which does not fit into 32 bits", head.name)
        })
    };
    wide.into_iter().map(fits).collect()
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
    let (shape, bytes) = match (value, port.element) {
        (Value::FloatTensor(found), Element::F32) => {
            (found.shape().to_vec(), written(found.iter(), |n| n.to_le_bytes()))
        }
        (Value::FloatTensor(found), Element::F16) => {
            let halves = written(found.iter(), |n| f16::from_f32(*n).to_le_bytes());
            (found.shape().to_vec(), halves)
        }
        (Value::Int8Tensor(found), Element::I8) => {
            (found.shape().to_vec(), written(found.iter(), |n| n.to_le_bytes()))
        }
        (Value::UInt8Tensor(found), Element::U8) => {
            (found.shape().to_vec(), written(found.iter(), |n| [*n]))
        }
        (Value::Int32Tensor(found), element) => {
            (found.shape().to_vec(), whole(port, element, found.iter().copied())?)
        }
        (_, element) => return Err(not_given(port, element)),
    };
    let dims = shape.iter().map(|dim| *dim as u64).collect();
    Ok((Head { name: port.name.clone(), element: port.element, dims }, bytes))
}

/// Whole numbers as this type has them. One that it does not have came of wrapping round, which the engine does elsewhere.
fn whole(
    port: &Port,
    element: Element,
    numbers: impl ExactSizeIterator<Item = i32>,
) -> Result<Vec<u8>, String> {
    fn narrow<T: TryFrom<i32>, const N: usize>(
        port: &Port,
        numbers: impl ExactSizeIterator<Item = i32>,
        write: fn(T) -> [u8; N],
    ) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::with_capacity(numbers.len() * N);
        for number in numbers {
            let narrow = T::try_from(number).map_err(|_| {
                let Port { name, element, .. } = port;
                format!("the output {name:?} came out as {number}, which is no {element}")
            })?;
            bytes.extend(write(narrow));
        }
        Ok(bytes)
    }
    match element {
        Element::I32 => narrow(port, numbers, i32::to_le_bytes),
        Element::I64 => narrow(port, numbers, i64::to_le_bytes),
        Element::I16 => narrow(port, numbers, i16::to_le_bytes),
        Element::U16 => narrow(port, numbers, u16::to_le_bytes),
        Element::U32 => narrow(port, numbers, u32::to_le_bytes),
        Element::U64 => narrow(port, numbers, u64::to_le_bytes),
        Element::Bool => Ok(numbers.map(|number| u8::from(number != 0)).collect()),
        Element::F32 | Element::F16 | Element::F64 | Element::I8 | Element::U8 => {
            Err(not_given(port, element))
        }
    }
}

fn not_given(port: &Port, element: Element) -> String {
    let name = &port.name;
    format!("the output {name:?} should be {element}, which the built-in engine does not give")
}

fn written<'a, T: 'a, const N: usize>(
    numbers: impl Iterator<Item = &'a T>,
    write: fn(&T) -> [u8; N],
) -> Vec<u8> {
    numbers.flat_map(write).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_kinds::onnx::Side;

    /// There and back, as a model that changes nothing would do it.
    fn through(element: Element, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let count = (bytes.len() / element.bytes()) as u64;
        let head = Head { name: "x".into(), element, dims: vec![count] };
        let value = taken(&Tensor { head: head.clone(), bytes })?;
        let port = Port { name: "x".into(), element, dims: Some(vec![Side::Fixed(count)]) };
        let (given, bytes) = given(&port, &value)?;
        assert_eq!(given, head);
        Ok(bytes)
    }

    #[test]
    fn tensors_of_every_type_but_one_come_out_as_they_went_in() {
        for element in Element::ALL.iter().copied().filter(|element| computes_with(*element)) {
            // Zero and one, as this type writes them.
            let one = match element {
                Element::F32 => 1f32.to_le_bytes().to_vec(),
                Element::F16 => f16::ONE.to_le_bytes().to_vec(),
                Element::U8
                | Element::I8
                | Element::U16
                | Element::I16
                | Element::U32
                | Element::I32
                | Element::U64
                | Element::I64
                | Element::Bool
                | Element::F64 => [&[1][..], &vec![0; element.bytes() - 1]].concat(),
            };
            let bytes = [vec![0; element.bytes()], one].concat();
            assert_eq!(through(element, &bytes), Ok(bytes), "{element}");
        }
        let why = through(Element::F64, &[0; 8]).expect_err("too many digits");
        assert!(why.contains("float64"), "{why}");
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused_and_named() {
        let large = u32::MAX.to_le_bytes();
        let why = through(Element::U32, &large).expect_err("33 bits with a sign");
        assert_eq!(why, "the input \"x\" holds 4294967295, which does not fit into 32 bits");
        assert_eq!(through(Element::I16, &(-7i16).to_le_bytes()), Ok((-7i16).to_le_bytes().into()));
        let port = Port { name: "y".into(), element: Element::U16, dims: None };
        let below = Value::from_shape(&[1], vec![-1i32]).expect("one number");
        let why = given(&port, &below).expect_err("it has no sign");
        assert_eq!(why, "the output \"y\" came out as -1, which is no uint16");
    }
}
