//! Pictures in a request and boxes in its answer: what a node does for whoever asks, so that pixels travel instead of
//! floats, and what was found instead of all that a detector says.

use alloc::vec;
use alloc::vec::Vec;
use alloc::{format, string::String};
use serde::{Deserialize, Serialize};

use super::tensor::{Element, Head};
use super::work::{Misfit, OnnxWork, Port, Side};

/// Sides of the picture where a model takes any: what detectors and classifiers are mostly trained with.
const DETECTOR_SIDE: u64 = 640;
const CLASSIFIER_SIDE: u64 = 224;
/// Red, green, blue.
const CHANNELS: u64 = 3;

/// What is done to a request before the model runs, and to its answer afterwards. Nothing, if it is the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sight {
    pub pictures: Vec<Pictured>,
    pub boxes: Option<Boxes>,
}

/// An input that comes as the pixels of a picture: `uint8[1, height, width, 3]`, of any size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pictured {
    /// The input's name.
    pub name: String,
    pub fit: Fit,
    pub normalize: Normalize,
}

/// How a picture of any shape becomes one of the model's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    Letterbox,
    Crop,
    Stretch,
}

/// The range of the numbers, for models that take floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// From 0 to 1.
    #[default]
    None,
    /// By ImageNet's mean and deviation.
    Imagenet,
}

/// The first output is a detector's, and the answer is what was found: `float32[1, n, 6]`, the best first. Each is left, top,
/// right and bottom in the pixels of the picture that was sent, score, class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Boxes {
    pub score: f32,
    pub overlap: f32,
    /// How many classes there are, if whoever asks knows.
    pub classes: Option<u32>,
}

/// What the last slice of a model must know to find boxes: the first one saw the picture, and says this along the way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seeking {
    pub boxes: Boxes,
    pub placed: Placed,
}

/// Where a picture lies in a model's input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// The picture's own size.
    pub width: u32,
    pub height: u32,
    pub scale_x: f32,
    pub scale_y: f32,
    pub left: f32,
    pub top: f32,
}

/// What an input takes that is given a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PicturePort {
    pub width: u64,
    pub height: u64,
    /// Whether all red comes first, then green, then blue; otherwise pixel by pixel.
    pub planes: bool,
    pub floats: bool,
}

impl Sight {
    pub fn is_nothing(&self) -> bool {
        self.pictures.is_empty() && self.boxes.is_none()
    }

    pub fn of(&self, name: &str) -> Option<&Pictured> {
        self.pictures.iter().find(|picture| picture.name == name)
    }

    /// Tensors as the model gets them: pictures in its own size and type. Refused if something is no picture, or the
    /// model takes none.
    pub fn heads(&self, work: &OnnxWork, heads: &[Head]) -> Result<Vec<Head>, Misfit> {
        if self.boxes.is_some() && self.pictures.len() != 1 {
            return Err(Misfit::BoxesOfWhat { pictures: self.pictures.len() });
        }
        let seen = |head: &Head| match self.of(&head.name) {
            None => Ok(head.clone()),
            Some(picture) => picture.seen(work, head),
        };
        heads.iter().map(seen).collect()
    }
}

impl Pictured {
    fn seen(&self, work: &OnnxWork, head: &Head) -> Result<Head, Misfit> {
        let name = || self.name.clone();
        let Some(port) = work.inputs.iter().find(|port| port.name == self.name) else {
            let known = work.inputs.iter().map(|port| port.name.clone()).collect();
            return Err(Misfit::Unknown { name: name(), known });
        };
        let Some(takes) = port.picture(self.fit) else {
            return Err(Misfit::NoPicture { name: name(), expected: format!("{port}") });
        };
        if head.element != Element::U8 {
            let (found, expected) = (head.element, Element::U8);
            return Err(Misfit::Type { name: name(), found, expected });
        }
        if !matches!(head.dims[..], [1, height, width, CHANNELS] if height > 0 && width > 0) {
            let (found, expected) = (head.dims.clone(), "uint8[1xheightxwidthx3]".into());
            return Err(Misfit::Shape { name: name(), found, expected });
        }
        let dims = match takes.planes {
            true => vec![1, CHANNELS, takes.height, takes.width],
            false => vec![1, takes.height, takes.width, CHANNELS],
        };
        Ok(Head { name: name(), element: port.element, dims })
    }
}

impl Port {
    /// What is made of a picture for this input; none if it takes no pictures.
    pub fn picture(&self, fit: Fit) -> Option<PicturePort> {
        let usual = match fit {
            Fit::Letterbox => DETECTOR_SIDE,
            Fit::Crop | Fit::Stretch => CLASSIFIER_SIDE,
        };
        let side = |side: &Side| match side {
            Side::Fixed(number) => *number,
            Side::Open(_) => usual,
        };
        let (planes, height, width) = match self.dims.as_deref()? {
            [_, Side::Fixed(CHANNELS), height, width] => (true, side(height), side(width)),
            [_, height, width, Side::Fixed(CHANNELS)] => (false, side(height), side(width)),
            _ => return None,
        };
        let floats = self.element == Element::F32;
        let takes = floats || self.element == Element::U8;
        takes.then_some(PicturePort { width, height, planes, floats })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::Wire;
    use alloc::string::ToString;
    use shoal_protocol::{BlobRef, Hash};

    fn detector(dims: [Side; 4]) -> OnnxWork {
        let images = Port { name: "images".into(), element: Element::F32, dims: Some(dims.into()) };
        let model = BlobRef { hash: Hash([0; 32]), size: 1 };
        let (outputs, parts, wire) = (Vec::new(), Vec::new(), Wire::F32);
        OnnxWork { model, inputs: vec![images], outputs, batch: None, parts, wire }
    }

    fn pixels(dims: &[u64]) -> Head {
        Head { name: "images".into(), element: Element::U8, dims: dims.into() }
    }

    fn sight(name: &str) -> Sight {
        let picture =
            Pictured { name: name.into(), fit: Fit::Letterbox, normalize: Normalize::None };
        Sight { pictures: vec![picture], boxes: None }
    }

    #[test]
    fn a_picture_of_any_size_becomes_the_models_input() {
        let open = |name: &str| Side::Open(name.into());
        let work = detector([open("n"), Side::Fixed(3), Side::Fixed(320), open("width")]);
        let seen = sight("images").heads(&work, &[pixels(&[1, 48, 64, 3])]).expect("a picture");
        assert_eq!(seen[0].dims, [1, 3, 320, 640]);
        assert_eq!(work.takes(&seen), Ok(()));
    }

    #[test]
    fn what_is_no_picture_is_refused_with_what_was_expected() {
        let fixed = Side::Fixed;
        let work = detector([fixed(1), fixed(3), fixed(32), fixed(32)]);
        let says = |sight: &Sight, head: Head| {
            sight.heads(&work, &[head]).map_err(|misfit| misfit.to_string())
        };
        let check = |sight: &Sight, head: Head, words: &str| {
            assert_eq!(says(sight, head), Err(words.into()));
        };
        check(
            &sight("images"),
            pixels(&[1, 3, 32, 32]),
            "the input \"images\" has the shape [1, 3, 32, 32]: expected uint8[1xheightxwidthx3]",
        );
        check(
            &sight("images"),
            pixels(&[1, 0, 32, 3]),
            "the input \"images\" has the shape [1, 0, 32, 3]: expected uint8[1xheightxwidthx3]",
        );
        let floats = Head { element: Element::F32, ..pixels(&[1, 32, 32, 3]) };
        check(&sight("images"), floats, "the input \"images\" is float32: expected uint8");
        let boxes = Boxes { score: 0.25, overlap: 0.45, classes: None };
        let nothing = Sight { pictures: Vec::new(), boxes: Some(boxes) };
        check(
            &nothing,
            pixels(&[1]),
            "boxes are found in one picture: the request has 0 inputs with \"pixels\"",
        );
        let flat = detector([fixed(1), fixed(4), fixed(32), fixed(32)]);
        let error = sight("images").heads(&flat, &[pixels(&[1, 8, 8, 3])]).expect_err("no colours");
        assert_eq!(
            error.to_string(),
            "the input \"images\" takes no picture: it is float32[1x4x32x32]"
        );
    }
}
