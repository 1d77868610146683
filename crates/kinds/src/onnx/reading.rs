//! A request of the Open Inference Protocol as it comes: first its JSON, then the bytes of its tensors, in pieces of any
//! size, each of which goes straight to where it stays.

use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::inference::{Inference, InferenceError, RequestJson, Source};
use super::sight::{Pictured, Sight};
use super::tensor::{Head, MOST_TENSORS, Packing, asked_behind};

/// A request whose JSON was read.
pub struct Reading {
    asked: Inference,
    packing: Packing,
    /// Of tensors that are not packed yet, in their order.
    sources: VecDeque<Source>,
    /// Bytes of the last one that was begun, and those of them that are still to come.
    expected: usize,
    missing: usize,
    /// Bytes behind the last one.
    over: usize,
}

impl Reading {
    /// Reads the JSON. So many bytes come behind it, as far as that is known: no more is reserved, whatever the JSON says.
    pub fn open(json: &[u8], coming: usize) -> Result<Reading, InferenceError> {
        let bad = |error: serde_json::Error| InferenceError::Json(error.to_string());
        let request: RequestJson = serde_json::from_slice(json).map_err(bad)?;
        if request.inputs.len() > MOST_TENSORS || request.outputs.len() > MOST_TENSORS {
            return Err(InferenceError::TooMany);
        }
        let mut sight = Sight { pictures: Vec::new(), boxes: request.parameters.boxes()? };
        let (mut heads, mut sources) = (Vec::new(), VecDeque::new());
        let (mut here, mut behind) = (0, 0usize);
        for input in request.inputs {
            if let Some(fit) = input.parameters.pixels {
                let (name, normalize) = (input.name.clone(), input.parameters.normalize);
                sight.pictures.push(Pictured { name, fit, normalize });
            }
            let (head, source) = input.open()?;
            match &source {
                Source::Here(bytes) => here += bytes.len(),
                Source::Behind(size) => behind = behind.saturating_add(*size),
            }
            heads.push(head);
            sources.push_back(source);
        }
        let named: Vec<&Head> = heads.iter().collect();
        let room = here + behind.min(coming);
        let packing = Packing::new(&named, &asked_behind(&sight), (room, Vec::new()));
        let asked = Inference {
            id: request.id,
            packed: Vec::new(),
            sight,
            heads,
            outputs: request.outputs.into_iter().map(Into::into).collect(),
            binary: request.parameters.binary_data_output.unwrap_or(false),
        };
        let mut reading = Reading { asked, packing, sources, expected: 0, missing: 0, over: 0 };
        reading.take(&[]);
        Ok(reading)
    }

    /// The next bytes behind the JSON.
    pub fn take(&mut self, mut bytes: &[u8]) {
        loop {
            let (own, rest) = bytes.split_at(self.missing.min(bytes.len()));
            self.packing.add(own);
            self.missing -= own.len();
            bytes = rest;
            if self.missing > 0 {
                return;
            }
            match self.sources.pop_front() {
                Some(Source::Here(made)) => {
                    self.packing.begin();
                    self.packing.add(&made);
                }
                Some(Source::Behind(size)) => {
                    self.packing.begin();
                    (self.expected, self.missing) = (size, size);
                }
                None => {
                    self.over += bytes.len();
                    return;
                }
            }
        }
    }

    /// All have come.
    pub fn done(self) -> Result<Inference, InferenceError> {
        let Reading { mut asked, packing, sources, expected, missing, over } = self;
        if missing > 0 {
            let at = asked.heads.len() - sources.len() - 1;
            let Head { name, dims: shape, .. } = asked.heads.swap_remove(at);
            let found = expected - missing;
            return Err(InferenceError::Bytes { name, shape, expected, found });
        }
        if over > 0 {
            return Err(InferenceError::LeftOver(over));
        }
        asked.packed = packing.packed();
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::super::asking;
    use super::super::tensor::{Element, Tensor};
    use super::*;
    use alloc::vec;

    #[test]
    fn a_request_is_the_same_in_pieces_of_any_size() {
        let head = |name: &str, dims: &[u64]| Head {
            name: name.into(),
            element: Element::U8,
            dims: dims.into(),
        };
        let bytes: Vec<u8> = (0..100).collect();
        let tensors = [
            Tensor { head: head("a", &[37]), bytes: &bytes[..37] },
            Tensor { head: head("none", &[0]), bytes: &[] },
            Tensor { head: head("b", &[3, 21]), bytes: &bytes[37..] },
        ];
        let (body, length) = asking::write(&tensors);
        let (json, behind) = body.split_at(length);
        let whole = super::super::inference::read(&body, Some(length)).expect("a request");
        for piece in [1, 7, 16, 37, 38, 99, 100] {
            let mut reading = Reading::open(json, 0).expect("its JSON");
            behind.chunks(piece).for_each(|bytes| reading.take(bytes));
            assert_eq!(reading.done().as_ref(), Ok(&whole), "{piece} at a time");
        }
        let mut reading = Reading::open(json, usize::MAX).expect("its JSON");
        reading.take(&behind[..40]);
        let short = reading.done().expect_err("60 bytes are missing").to_string();
        let expected = "the input \"b\" has the shape [3, 21], which takes 63 bytes: found 3";
        assert_eq!(short, expected);
        let mut reading = Reading::open(json, behind.len()).expect("its JSON");
        reading.take(&[behind, &[1, 2]].concat());
        assert_eq!(reading.done(), Err(InferenceError::LeftOver(2)));
    }

    #[test]
    fn numbers_in_the_json_and_bytes_behind_it_stand_in_the_order_of_the_inputs() {
        let json = br#"{"inputs":[
            {"name":"a","shape":[1],"datatype":"UINT8","data":[1]},
            {"name":"b","shape":[2],"datatype":"UINT8","parameters":{"binary_data_size":2}},
            {"name":"c","shape":[1],"datatype":"UINT8","data":[4]}]}"#;
        let mut reading = Reading::open(json, 2).expect("its JSON");
        reading.take(&[2, 3]);
        let asked = reading.done().expect("all of it");
        let tensors = super::super::tensor::unpack(&asked.packed).expect("tensors");
        let bytes: Vec<_> = tensors.iter().map(|tensor| tensor.bytes.to_vec()).collect();
        assert_eq!(bytes, [vec![1], vec![2, 3], vec![4]]);
    }
}
