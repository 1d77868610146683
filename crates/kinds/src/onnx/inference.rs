//! The Open Inference Protocol, version 2: tensors as JSON, or as bytes behind the JSON (its binary extension).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::reading::Reading;
use super::sight::{Boxes, Fit, Normalize, Sight};
use super::tensor::{Element, Head, MOST_TENSORS, Tensor, TensorError, unpack};

/// Letters of a wrong number in an error.
const MOST_SHOWN: usize = 40;

/// What detectors are usually run with.
const USUAL_SCORE: f32 = 0.25;
const USUAL_OVERLAP: f32 = 0.45;

/// What somebody asks of a model.
#[derive(Debug, PartialEq)]
pub struct Inference {
    pub id: Option<String>,
    pub heads: Vec<Head>,
    /// What is asked beside the model's run.
    pub sight: Sight,
    /// All inputs, as they travel.
    pub packed: Vec<u8>,
    /// Outputs that are asked for; all of them if none is named.
    pub(super) outputs: Vec<Wanted>,
    /// Whether those that do not say it come as bytes.
    pub(super) binary: bool,
}

#[derive(Debug, PartialEq)]
pub(super) struct Wanted {
    name: String,
    binary: Option<bool>,
}

impl From<OutputJson> for Wanted {
    fn from(output: OutputJson) -> Wanted {
        Wanted { name: output.name, binary: output.parameters.binary_data }
    }
}

/// Why it is no request, or no answer can be made of what came back.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InferenceError {
    #[error("the request is not valid JSON: {0}")]
    Json(String),
    #[error(
        "the header Inference-Header-Content-Length says {length}, but the body has {body} bytes"
    )]
    HeadLength { length: usize, body: usize },
    #[error("there are more than {MOST_TENSORS} tensors")]
    TooMany,
    #[error("the input {name:?} has the datatype {found:?}: expected one of {expected}")]
    Datatype { name: String, found: String, expected: String },
    #[error("the input {name:?} has neither \"data\" nor \"binary_data_size\"")]
    NoData { name: String },
    #[error("the input {name:?} is FP16, which JSON cannot hold: send it as bytes")]
    Half { name: String },
    #[error(
        "the input {name:?} has the shape {shape:?}, which takes {expected} bytes: found {found}"
    )]
    Bytes { name: String, shape: Vec<u64>, expected: usize, found: usize },
    #[error("the input {name:?} has the shape {shape:?}, which no memory can hold")]
    Shape { name: String, shape: Vec<u64> },
    #[error(
        "the input {name:?} has the shape {shape:?}, which takes {expected} numbers: found {found}"
    )]
    Count { name: String, shape: Vec<u64>, expected: usize, found: usize },
    #[error("number {at} of the input {name:?} is {found}: expected {element}")]
    Number { name: String, at: usize, found: String, element: Element },
    #[error("the parameter \"{name}\" is {found}: expected a number from 0 to 1")]
    Part { name: &'static str, found: f32 },
    #[error("{0} bytes are left over after the inputs")]
    LeftOver(usize),
    #[error("the model has no output {name:?}, only {known}")]
    NoOutput { name: String, known: String },
    #[error("the answer cannot be read: {0}")]
    Answer(TensorError),
}

#[derive(Deserialize)]
pub(super) struct RequestJson {
    #[serde(default)]
    pub(super) id: Option<String>,
    pub(super) inputs: Vec<InputJson>,
    #[serde(default)]
    pub(super) outputs: Vec<OutputJson>,
    #[serde(default)]
    pub(super) parameters: Parameters,
}

/// A tensor of a request, or of an answer.
#[derive(Deserialize)]
pub(super) struct InputJson {
    pub(super) name: String,
    shape: Vec<u64>,
    datatype: String,
    #[serde(default)]
    data: Option<Value>,
    #[serde(default)]
    pub(super) parameters: Parameters,
}

/// Where the bytes of a tensor are.
pub(super) enum Source {
    /// So many, behind the JSON.
    Behind(usize),
    /// Made of its numbers.
    Here(Vec<u8>),
}

#[derive(Deserialize)]
pub(super) struct OutputJson {
    name: String,
    #[serde(default)]
    parameters: Parameters,
}

/// Others are for other servers.
#[derive(Default, Deserialize)]
pub(super) struct Parameters {
    #[serde(default)]
    binary_data_size: Option<usize>,
    #[serde(default)]
    binary_data: Option<bool>,
    #[serde(default)]
    pub(super) binary_data_output: Option<bool>,
    /// Of an input: its tensor is a picture, and how that becomes one of the model's size.
    #[serde(default)]
    pub(super) pixels: Option<Fit>,
    #[serde(default)]
    pub(super) normalize: Normalize,
    /// Of a request: the answer is what a detector found.
    #[serde(default)]
    boxes: bool,
    #[serde(default)]
    score: Option<f32>,
    #[serde(default)]
    overlap: Option<f32>,
    #[serde(default)]
    classes: Option<u32>,
}

impl Parameters {
    pub(super) fn boxes(&self) -> Result<Option<Boxes>, InferenceError> {
        if !self.boxes {
            return Ok(None);
        }
        let part = |name, given: Option<f32>, usual| match given.unwrap_or(usual) {
            part if (0.0..=1.0).contains(&part) => Ok(part),
            found => Err(InferenceError::Part { name, found }),
        };
        let score = part("score", self.score, USUAL_SCORE)?;
        let overlap = part("overlap", self.overlap, USUAL_OVERLAP)?;
        Ok(Some(Boxes { score, overlap, classes: self.classes }))
    }
}

#[derive(Serialize)]
struct AnswerJson<'a> {
    model_name: &'a str,
    model_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    outputs: Vec<Map<String, Value>>,
}

/// Reads a request that is all there; `head` is the length of its JSON where bytes follow.
pub fn read(body: &[u8], head: Option<usize>) -> Result<Inference, InferenceError> {
    let length = head.unwrap_or(body.len());
    let wrong = InferenceError::HeadLength { length, body: body.len() };
    let (json, bytes) = body.split_at_checked(length).ok_or(wrong)?;
    let mut reading = Reading::open(json, bytes.len())?;
    reading.take(bytes);
    reading.done()
}

impl InputJson {
    /// With its bytes, taken from those behind the JSON or made of its numbers.
    pub(super) fn read(self, bytes: &mut &[u8]) -> Result<(Head, Vec<u8>), InferenceError> {
        let (head, source) = self.open()?;
        let size = match source {
            Source::Here(made) => return Ok((head, made)),
            Source::Behind(size) => size,
        };
        let Some((own, rest)) = bytes.split_at_checked(size) else {
            let Head { name, dims: shape, .. } = head;
            let found = bytes.len();
            return Err(InferenceError::Bytes { name, shape, expected: size, found });
        };
        *bytes = rest;
        Ok((head, own.into()))
    }

    /// With where its bytes are: as many as its shape says.
    pub(super) fn open(self) -> Result<(Head, Source), InferenceError> {
        let InputJson { name, shape, datatype, data, parameters } = self;
        let Some(element) = Element::of_wire(&datatype) else {
            let known: Vec<_> = Element::ALL.iter().map(|element| element.wire_name()).collect();
            let expected = known.join(", ");
            return Err(InferenceError::Datatype { name, found: datatype, expected });
        };
        let head = Head { name, element, dims: shape };
        let Some(expected) = head.bytes() else {
            return Err(InferenceError::Shape { name: head.name, shape: head.dims });
        };
        match parameters.binary_data_size {
            Some(size) if size == expected => return Ok((head, Source::Behind(size))),
            Some(found) => {
                let (name, shape) = (head.name, head.dims);
                return Err(InferenceError::Bytes { name, shape, expected, found });
            }
            None => {}
        }
        let Some(data) = data else { return Err(InferenceError::NoData { name: head.name }) };
        if element == Element::F16 {
            return Err(InferenceError::Half { name: head.name });
        }
        let mut made = Vec::with_capacity(expected.min(data_size(&data, element)));
        write_numbers(&data, &head, &mut made)?;
        if made.len() != expected {
            let (expected, found) = (expected / element.bytes(), made.len() / element.bytes());
            let (name, shape) = (head.name, head.dims);
            return Err(InferenceError::Count { name, shape, expected, found });
        }
        Ok((head, Source::Here(made)))
    }
}

/// What a list may become at least, so that nobody reserves more than was sent.
fn data_size(data: &Value, element: Element) -> usize {
    data.as_array().map_or(1, Vec::len).saturating_mul(element.bytes())
}

/// Lists may be flat or nested as the shape is: the order is the same.
fn write_numbers(data: &Value, head: &Head, made: &mut Vec<u8>) -> Result<(), InferenceError> {
    if let Value::Array(list) = data {
        return list.iter().try_for_each(|one| write_numbers(one, head, made));
    }
    let number = number(data, head.element).ok_or_else(|| InferenceError::Number {
        name: head.name.clone(),
        at: made.len() / head.element.bytes(),
        found: shown_short(data),
        element: head.element,
    })?;
    made.extend_from_slice(&number[..head.element.bytes()]);
    Ok(())
}

/// Somebody's words, in so far as an error shows them.
fn shown_short(data: &Value) -> String {
    if data.is_object() {
        return "an object".into();
    }
    data.to_string().chars().take(MOST_SHOWN).collect()
}

/// The bytes of a number; those beyond its type are zero.
fn number(data: &Value, element: Element) -> Option<[u8; 8]> {
    let mut bytes = [0; 8];
    let mut put = |from: &[u8]| bytes[..from.len()].copy_from_slice(from);
    let whole = || data.as_i64();
    match element {
        // What is too large for it must not become infinite unseen.
        Element::F32 => {
            let number = data.as_f64()? as f32;
            put(&number.is_finite().then_some(number)?.to_le_bytes());
        }
        Element::F64 => put(&data.as_f64()?.to_le_bytes()),
        Element::U8 => put(&u8::try_from(whole()?).ok()?.to_le_bytes()),
        Element::I8 => put(&i8::try_from(whole()?).ok()?.to_le_bytes()),
        Element::U16 => put(&u16::try_from(whole()?).ok()?.to_le_bytes()),
        Element::I16 => put(&i16::try_from(whole()?).ok()?.to_le_bytes()),
        Element::U32 => put(&u32::try_from(whole()?).ok()?.to_le_bytes()),
        Element::I32 => put(&i32::try_from(whole()?).ok()?.to_le_bytes()),
        Element::U64 => put(&data.as_u64()?.to_le_bytes()),
        Element::I64 => put(&whole()?.to_le_bytes()),
        Element::Bool => put(&[u8::from(data.as_bool().or_else(|| Some(whole()? != 0))?)]),
        Element::F16 => return None,
    }
    Some(bytes)
}

/// An answer's body: its JSON, and tensors behind it, where they lie.
#[derive(Debug, PartialEq)]
pub struct Written<'a> {
    pub json: Vec<u8>,
    pub behind: Vec<&'a [u8]>,
}

impl Written<'_> {
    /// The length of the JSON if bytes follow it.
    pub fn head(&self) -> Option<usize> {
        (!self.behind.is_empty()).then_some(self.json.len())
    }
}

/// Writes an answer from what came back.
pub fn write<'a>(
    model: &str,
    asked: &Inference,
    packed: &'a [u8],
) -> Result<Written<'a>, InferenceError> {
    let tensors = unpack(packed).map_err(InferenceError::Answer)?;
    let chosen = asked.chosen(&tensors)?;
    let mut behind = Vec::new();
    let outputs = chosen.iter().map(|(tensor, binary)| {
        let Head { name, element, dims } = &tensor.head;
        let mut output = Map::new();
        output.insert("name".into(), name.as_str().into());
        output.insert("datatype".into(), element.wire_name().into());
        output.insert("shape".into(), dims.as_slice().into());
        // JSON has no halves, and no numbers that are none.
        let data = if *binary { None } else { shown(tensor) };
        match data {
            Some(data) => output.insert("data".into(), data),
            None => {
                behind.push(tensor.bytes);
                let size = json!({ "binary_data_size": tensor.bytes.len() });
                output.insert("parameters".into(), size)
            }
        };
        output
    });
    let outputs = outputs.collect();
    let id = asked.id.as_deref();
    let answer = AnswerJson { model_name: model, model_version: "1", id, outputs };
    let json = serde_json::to_vec(&answer).map_err(|e| InferenceError::Json(e.to_string()))?;
    Ok(Written { json, behind })
}

impl Inference {
    /// The outputs that are asked for, and whether as bytes.
    fn chosen<'a, 'b>(
        &self,
        tensors: &'a [Tensor<'b>],
    ) -> Result<Vec<(&'a Tensor<'b>, bool)>, InferenceError> {
        if self.outputs.is_empty() {
            return Ok(tensors.iter().map(|tensor| (tensor, self.binary)).collect());
        }
        let find = |wanted: &Wanted| {
            let found = tensors.iter().find(|tensor| tensor.head.name == wanted.name);
            let found = found.map(|tensor| (tensor, wanted.binary.unwrap_or(self.binary)));
            found.ok_or_else(|| {
                let known: Vec<_> = tensors.iter().map(|t| t.head.name.as_str()).collect();
                InferenceError::NoOutput { name: wanted.name.clone(), known: known.join(", ") }
            })
        };
        self.outputs.iter().map(find).collect()
    }
}

/// A tensor as a flat list; none if JSON cannot hold it.
fn shown(tensor: &Tensor<'_>) -> Option<Value> {
    fn list<T, const N: usize>(
        bytes: &[u8],
        read: fn([u8; N]) -> T,
        show: fn(T) -> Option<Value>,
    ) -> Option<Value> {
        let (numbers, _) = bytes.as_chunks::<N>();
        numbers
            .iter()
            .map(|number| show(read(*number)))
            .collect::<Option<Vec<_>>>()
            .map(Value::Array)
    }
    let float = |number: f64| serde_json::Number::from_f64(number).map(Value::Number);
    let bytes = tensor.bytes;
    match tensor.head.element {
        // As short as it can be said, so that it is the same float again.
        Element::F32 => list(bytes, f32::from_le_bytes, |n| {
            let shortest = n.is_finite().then(|| n.to_string().parse().ok())??;
            serde_json::Number::from_f64(shortest).map(Value::Number)
        }),
        Element::F64 => list(bytes, f64::from_le_bytes, float),
        Element::U8 => list(bytes, u8::from_le_bytes, |n| Some(n.into())),
        Element::I8 => list(bytes, i8::from_le_bytes, |n| Some(n.into())),
        Element::U16 => list(bytes, u16::from_le_bytes, |n| Some(n.into())),
        Element::I16 => list(bytes, i16::from_le_bytes, |n| Some(n.into())),
        Element::U32 => list(bytes, u32::from_le_bytes, |n| Some(n.into())),
        Element::I32 => list(bytes, i32::from_le_bytes, |n| Some(n.into())),
        Element::U64 => list(bytes, u64::from_le_bytes, |n| Some(n.into())),
        Element::I64 => list(bytes, i64::from_le_bytes, |n| Some(n.into())),
        Element::Bool => list(bytes, u8::from_le_bytes, |n| Some((n != 0).into())),
        Element::F16 => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sight::Pictured;
    use super::super::tensor::{pack, unpack_asked};
    use super::*;
    use alloc::vec;

    fn says(body: &str) -> String {
        read(body.as_bytes(), None).expect_err("it is wrong").to_string()
    }

    fn input(rest: &str) -> String {
        alloc::format!("{{\"inputs\":[{{\"name\":\"x\",{rest}}}]}}")
    }

    #[test]
    fn numbers_flat_or_nested_and_bytes_are_the_same_tensor() {
        let flat = input(r#""shape":[2,2],"datatype":"FP32","data":[1,2,3,4.5]"#);
        let nested = input(r#""shape":[2,2],"datatype":"FP32","data":[[1,2],[3,4.5]]"#);
        let flat = read(flat.as_bytes(), None).expect("it is right");
        assert_eq!(read(nested.as_bytes(), None), Ok(flat));
        let json = input(r#""shape":[2,2],"datatype":"FP32","parameters":{"binary_data_size":16}"#);
        let bytes: Vec<u8> = [1f32, 2., 3., 4.5].iter().flat_map(|n| n.to_le_bytes()).collect();
        let body = [json.as_bytes(), &bytes].concat();
        let binary = read(&body, Some(json.len())).expect("it is right");
        assert_eq!(unpack(&binary.packed).expect("tensors")[0].bytes, bytes);
    }

    #[test]
    fn wrong_requests_are_told_what_was_expected() {
        let text = says(&input(r#""shape":[3],"datatype":"FP32","data":[1,2]"#));
        assert!(text.ends_with("takes 3 numbers: found 2"), "{text}");
        let text = says(&input(r#""shape":[1],"datatype":"UINT8","data":[300]"#));
        assert_eq!(text, "number 0 of the input \"x\" is 300: expected uint8");
        let text = says(&input(r#""shape":[1],"datatype":"FP32","data":[1e39]"#));
        assert!(text.ends_with("expected float32"), "{text}");
        let text = says(&input(r#""shape":[1],"datatype":"FLOAT","data":[3]"#));
        assert!(text.contains("expected one of FP32, FP16"), "{text}");
        let text = says(&input(r#""shape":[18446744073709551615,9],"datatype":"FP64","data":[]"#));
        assert!(text.ends_with("which no memory can hold"), "{text}");
        let text = says(&input(r#""shape":[1],"datatype":"FP32""#));
        assert!(text.contains("neither"), "{text}");
        assert!(says("[1]").starts_with("the request is not valid JSON"));
        let left = read(br#"{"inputs":[]}1234"#, Some(13));
        assert_eq!(left, Err(InferenceError::LeftOver(4)));
        assert!(read(b"{}", Some(9)).is_err());
    }

    #[test]
    fn pictures_come_with_how_they_are_fitted_and_boxes_with_what_counts_as_found() {
        let json = r#"{"inputs":[{"name":"x","shape":[1,1,1,3],"datatype":"UINT8","data":[1,2,3],
            "parameters":{"pixels":"letterbox"}}],"parameters":{"boxes":true,"score":0.5}}"#;
        let asked = read(json.as_bytes(), None).expect("it is right");
        let (fit, normalize) = (Fit::Letterbox, Normalize::None);
        let pictures = vec![Pictured { name: "x".into(), fit, normalize }];
        let boxes = Some(Boxes { score: 0.5, overlap: USUAL_OVERLAP, classes: None });
        assert_eq!(asked.sight, Sight { pictures, boxes });
        let (_, sight) = unpack_asked(&asked.packed).expect("tensors");
        assert_eq!(sight, asked.sight);
        let text = says(r#"{"inputs":[],"parameters":{"boxes":true,"overlap":7}}"#);
        assert_eq!(text, "the parameter \"overlap\" is 7: expected a number from 0 to 1");
        let text =
            says(&input(r#""shape":[1],"datatype":"UINT8","parameters":{"pixels":"round"}"#));
        assert!(text.contains("expected one of `letterbox`, `crop`, `stretch`"), "{text}");
    }

    #[test]
    fn answers_come_as_they_were_asked_for() {
        let head = |name: &str| Head { name: name.into(), element: Element::F32, dims: vec![1] };
        let (a, b) = (0.1f32.to_le_bytes(), f32::NAN.to_le_bytes());
        let packed =
            pack(&[Tensor { head: head("a"), bytes: &a }, Tensor { head: head("b"), bytes: &b }]);
        let ask = |text: &str| read(text.as_bytes(), None).expect("it is right");
        let one = ask(r#"{"id":"7","inputs":[],"outputs":[{"name":"a"}]}"#);
        let written = write("m", &one, &packed).expect("an answer");
        assert_eq!(written.head(), None);
        let text = String::from_utf8(written.json).expect("JSON");
        assert!(text.contains(r#""id":"7""#) && text.contains(r#""data":[0.1]"#), "{text}");
        let both = ask(r#"{"inputs":[],"parameters":{"binary_data_output":true}}"#);
        let written = write("m", &both, &packed).expect("an answer");
        assert_eq!(written.head(), Some(written.json.len()), "bytes follow");
        assert_eq!(written.behind, [a, b]);
        // What is no number is no JSON either.
        let nan = ask(r#"{"inputs":[],"outputs":[{"name":"b"}]}"#);
        assert!(write("m", &nan, &packed).expect("an answer").head().is_some());
        let other = ask(r#"{"inputs":[],"outputs":[{"name":"c"}]}"#);
        let error = write("m", &other, &packed).expect_err("there is none").to_string();
        assert_eq!(error, "the model has no output \"c\", only a, b");
    }
}
