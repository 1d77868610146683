//! What is done around a model's run for requests with pictures: pixels become the model's input, and what a detector says
//! becomes boxes. Whichever engine runs the model, it gets plain tensors and gives plain tensors.

use std::borrow::Cow;

use shoal_kinds::OnnxWork;
use shoal_kinds::onnx::sight::{Fit, Normalize, PicturePort, Pictured, Placed, Seeking};
use shoal_kinds::onnx::tensor::{pack, unpack, unpack_asked};
use shoal_kinds::onnx::{Element, Head, Tensor};
use shoal_vision::{Layout, Picture, Placing, Preparation, Thresholds, detect};

/// A request whose tensors are what the model takes.
pub(super) struct Seen<'a> {
    heads: Vec<Head>,
    bytes: Vec<Cow<'a, [u8]>>,
    seeking: Option<Seeking>,
    /// As it came, if nothing had to be made.
    plain: Option<&'a [u8]>,
}

/// A tensor of a request, as it came or as it was made of a picture.
pub(super) type Given<'a> = (Head, Cow<'a, [u8]>);

impl<'a> Seen<'a> {
    /// Reads a request and makes the model's inputs of its pictures, or says why that cannot be.
    pub(super) fn open(work: &OnnxWork, request: &'a [u8]) -> Result<Seen<'a>, String> {
        let (tensors, sight) = unpack_asked(request).map_err(|error| error.to_string())?;
        let sent: Vec<Head> = tensors.iter().map(|tensor| tensor.head.clone()).collect();
        let heads = sight.heads(work, &sent).map_err(|misfit| misfit.to_string())?;
        work.takes(&heads).map_err(|misfit| misfit.to_string())?;
        let (mut bytes, mut placing) = (Vec::with_capacity(tensors.len()), None);
        for tensor in tensors {
            let name = &tensor.head.name;
            let port = work.inputs.iter().find(|port| port.name == *name);
            let picture = sight.of(name);
            let takes = picture.zip(port).and_then(|(picture, port)| port.picture(picture.fit));
            let Some((picture, takes)) = picture.zip(takes) else {
                bytes.push(Cow::Borrowed(tensor.bytes));
                continue;
            };
            let (made, place) = made(picture, takes, &tensor)?;
            bytes.push(Cow::Owned(made));
            placing = Some(place);
        }
        let plain = sight.is_nothing().then_some(request);
        let sought = sight.boxes.zip(placing);
        let seeking = sought.map(|(boxes, place)| Seeking { boxes, placed: placed(&place) });
        Ok(Seen { heads, bytes, seeking, plain })
    }

    pub(super) fn heads(&self) -> &[Head] {
        &self.heads
    }

    /// What an engine is asked: packed tensors.
    pub(super) fn request(&self) -> Cow<'a, [u8]> {
        if let Some(plain) = self.plain {
            return Cow::Borrowed(plain);
        }
        let tensors = self.heads.iter().zip(&self.bytes);
        let tensors = tensors.map(|(head, bytes)| Tensor { head: head.clone(), bytes });
        Cow::Owned(pack(&tensors.collect::<Vec<_>>()))
    }

    /// What an engine is asked, if that is not what came, and what is to be found in its answer.
    pub(super) fn into_made(self) -> (Option<Vec<u8>>, Option<Seeking>) {
        let made = if self.plain.is_some() { None } else { Some(self.request().into_owned()) };
        (made, self.seeking)
    }

    /// The tensors themselves, for a part of a model, and what its last part is to look for.
    pub(super) fn into_parts(self) -> (Vec<Given<'a>>, Option<Seeking>) {
        (self.heads.into_iter().zip(self.bytes).collect(), self.seeking)
    }

    /// An engine's answer as it was asked for.
    pub(super) fn told(&self, answer: Vec<u8>) -> Result<Vec<u8>, String> {
        match &self.seeking {
            Some(seeking) => found(seeking, &answer),
            None => Ok(answer),
        }
    }
}

/// What a detector found, from all that it says.
pub(super) fn found(seeking: &Seeking, answer: &[u8]) -> Result<Vec<u8>, String> {
    let Seeking { boxes: asked, placed } = seeking;
    let outputs = unpack(answer).map_err(|error| error.to_string())?;
    let Some(Tensor { head, bytes }) = outputs.first() else {
        return Err("the model has no outputs, so it finds nothing".into());
    };
    let Head { name, element, dims } = head;
    if *element != Element::F32 {
        return Err(format!("the model's output {name:?} is {element}: boxes are float32"));
    }
    let (numbers, _) = bytes.as_chunks::<4>();
    let numbers: Vec<f32> = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
    let shape: Vec<usize> = dims.iter().map(|dim| *dim as usize).collect();
    let thresholds = Thresholds { score: asked.score, overlap: asked.overlap };
    let classes = asked.classes.map(|count| count as usize);
    let found = detect(&shape, &numbers, classes, &placing(placed), thresholds)
        .map_err(|error| error.to_string())?;
    let row = |one: &shoal_vision::Detection| {
        [one.left, one.top, one.right, one.bottom, one.score, one.class as f32]
    };
    let bytes: Vec<u8> = found.iter().flat_map(row).flat_map(f32::to_le_bytes).collect();
    let dims = vec![1, found.len() as u64, 6];
    let head = Head { name: name.clone(), element: Element::F32, dims };
    Ok(pack(&[Tensor { head, bytes: &bytes }]))
}

/// As it is said to other parts of a model.
fn placed(placing: &Placing) -> Placed {
    let Placing { width, height, scale_x, scale_y, left, top } = *placing;
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    Placed { width: side(width), height: side(height), scale_x, scale_y, left, top }
}

fn placing(placed: &Placed) -> Placing {
    let Placed { width, height, scale_x, scale_y, left, top } = *placed;
    Placing { width: width as usize, height: height as usize, scale_x, scale_y, left, top }
}

/// The model's input, made of a picture, and where the picture lies in it.
fn made(
    picture: &Pictured,
    takes: PicturePort,
    tensor: &Tensor<'_>,
) -> Result<(Vec<u8>, Placing), String> {
    let side = |side: u64| usize::try_from(side).unwrap_or(usize::MAX);
    let (width, height) = (side(takes.width), side(takes.height));
    let [_, down, across, _] = tensor.head.dims[..] else {
        return Err("a picture has four dimensions".into());
    };
    let pixels = Picture::new(side(across), side(down), tensor.bytes);
    let pixels = pixels.map_err(|error| error.to_string())?;
    let fit = match picture.fit {
        Fit::Letterbox => shoal_vision::Fit::Letterbox,
        Fit::Crop => shoal_vision::Fit::Crop,
        Fit::Stretch => shoal_vision::Fit::Stretch,
    };
    let range = match picture.normalize {
        Normalize::None => Preparation::plain(width, height),
        Normalize::Imagenet => Preparation::classifier(width, height),
    };
    let layout = if takes.planes { Layout::Nchw } else { Layout::Nhwc };
    let preparation = Preparation { fit, layout, ..range };
    if takes.floats {
        let made = preparation.numbers(&pixels).map_err(|error| error.to_string())?;
        return Ok((made.values.iter().flat_map(|n| n.to_le_bytes()).collect(), made.placing));
    }
    let made = preparation.pixels(&pixels).map_err(|error| error.to_string())?;
    Ok((made.values, made.placing))
}
