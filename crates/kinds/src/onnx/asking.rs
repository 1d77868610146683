//! The Open Inference Protocol from the side of a client: tensors go and come as bytes behind the JSON.

use alloc::string::ToString;
use alloc::vec::Vec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::inference::{InferenceError, InputJson};
use super::tensor::{Head, Tensor};

#[derive(Deserialize)]
struct AnswerJson {
    outputs: Vec<InputJson>,
}

/// A request's body, and the length of its JSON.
pub fn write(tensors: &[Tensor<'_>]) -> (Vec<u8>, usize) {
    let input = |tensor: &Tensor<'_>| -> Value {
        let Head { name, element, dims } = &tensor.head;
        let parameters = json!({ "binary_data_size": tensor.bytes.len() });
        json!({ "name": name, "shape": dims, "datatype": element.wire_name(), "parameters": parameters })
    };
    let inputs: Vec<Value> = tensors.iter().map(input).collect();
    let parameters = json!({ "binary_data_output": true });
    let mut body = json!({ "inputs": inputs, "parameters": parameters }).to_string().into_bytes();
    let head = body.len();
    tensors.iter().for_each(|tensor| body.extend_from_slice(tensor.bytes));
    (body, head)
}

/// The tensors of an answer; `head` is the length of its JSON where bytes follow.
pub fn read(body: &[u8], head: Option<usize>) -> Result<Vec<(Head, Vec<u8>)>, InferenceError> {
    let length = head.unwrap_or(body.len());
    let wrong = InferenceError::HeadLength { length, body: body.len() };
    let (json, mut bytes) = body.split_at_checked(length).ok_or(wrong)?;
    let bad = |error: serde_json::Error| InferenceError::Json(error.to_string());
    let answer: AnswerJson = serde_json::from_slice(json).map_err(bad)?;
    answer.outputs.into_iter().map(|output| output.read(&mut bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Element, inference};
    use super::*;
    use alloc::vec;

    #[test]
    fn what_a_client_writes_is_read_and_answered_and_read_again() {
        let head = |name: &str| Head { name: name.into(), element: Element::I64, dims: vec![1, 2] };
        let (a, b) = ([7; 16], [9; 16]);
        let tensors =
            [Tensor { head: head("a"), bytes: &a }, Tensor { head: head("b"), bytes: &b }];
        let (body, length) = write(&tensors);
        let asked = inference::read(&body, Some(length)).expect("a request");
        assert_eq!(asked.heads, [head("a"), head("b")]);
        let written = inference::write("m", &asked, &asked.packed).expect("an answer");
        let body = [&written.json[..], &written.behind.concat()].concat();
        let again = read(&body, written.head()).expect("the same tensors");
        assert_eq!(again, [(head("a"), a.to_vec()), (head("b"), b.to_vec())]);
        assert!(read(&body, Some(body.len() + 1)).is_err());
    }
}
