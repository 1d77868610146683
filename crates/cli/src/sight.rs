//! Pictures for models, and what models see in them.

use std::path::Path;

use image::{DynamicImage, ImageDecoder, ImageError, ImageReader, RgbImage};
use serde_json::{Value, json};
use shoal_api::{ModelJson, PortJson};
use shoal_kinds::onnx::{Element, Head};
use shoal_vision::{
    Detection, Fit, Form, Layout, Names, Picture, Placing, Preparation, Thresholds, detect, draw,
    top,
};

use crate::args::{FitArg, NormalizeArg, Sight, Task};
use crate::client::Sink;
use crate::fail::Fail;
use crate::tensors::Array;

/// Sides of the picture where a model takes any: what detectors and classifiers are mostly trained with.
const DETECTOR_SIDE: usize = 640;
const CLASSIFIER_SIDE: usize = 224;
/// Classes that are named.
const MOST_LIKELY: usize = 5;

/// A picture as it was opened, and where it lies in the model's input.
pub(crate) struct Seen {
    image: RgbImage,
    placing: Placing,
}

impl Seen {
    /// Where it lies is enough to read an answer; many pictures would not fit into memory.
    pub(crate) fn forget_image(&mut self) {
        self.image = RgbImage::new(0, 0);
    }
}

/// The picture as the model's input.
pub(crate) fn open(path: &Path, model: &ModelJson, sight: &Sight) -> Result<(Array, Seen), Fail> {
    let image = read(path)?;
    let (port, layout) = port(model)?;
    let mut preparation = preparation(port, layout, sight);
    preparation.layout = layout;
    let (width, height) = (image.width() as usize, image.height() as usize);
    let cannot =
        |error: &dyn std::fmt::Display| Fail::input(format!("{}: {error}", path.display()));
    let picture = Picture::new(width, height, image.as_raw()).map_err(|error| cannot(&error))?;
    let dims = preparation.shape().iter().map(|side| *side as u64).collect();
    let (element, bytes, placing) = match port.datatype.as_str() {
        "UINT8" => {
            let made = preparation.pixels(&picture).map_err(|error| cannot(&error))?;
            (Element::U8, made.values, made.placing)
        }
        "FP32" => {
            let made = preparation.numbers(&picture).map_err(|error| cannot(&error))?;
            let bytes = made.values.iter().flat_map(|number| number.to_le_bytes()).collect();
            (Element::F32, bytes, made.placing)
        }
        other => {
            let name = &port.name;
            return Err(Fail::input(format!(
                "the model's input {name} is {other}, but Shoal can turn pictures only into FP32 or UINT8; pass an .npy file with --input"
            )));
        }
    };
    let head = Head { name: port.name.clone(), element, dims };
    Ok((Array { head, bytes }, Seen { image, placing }))
}

fn read(path: &Path) -> Result<RgbImage, Fail> {
    let file = ImageReader::open(path).and_then(ImageReader::with_guessed_format);
    let file = file.map_err(|error| Fail::reading(path, &error))?;
    let no_picture = |error: ImageError| {
        Fail::input(format!("{} cannot be read as a picture: {error}", path.display()))
    };
    let mut decoder = file.into_decoder().map_err(no_picture)?;
    // Cameras note how they were held, and turn nothing.
    let turned = decoder.orientation().map_err(no_picture)?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(no_picture)?;
    image.apply_orientation(turned);
    Ok(image.into_rgb8())
}

/// The input that takes a picture: three colours, before or behind the sides.
fn port(model: &ModelJson) -> Result<(&PortJson, Layout), Fail> {
    let layout = |port: &PortJson| match port.shape[..] {
        [_, 3, _, _] => Some(Layout::Nchw),
        [_, _, _, 3] => Some(Layout::Nhwc),
        _ => None,
    };
    let mut found = model.inputs.iter().filter_map(|port| Some((port, layout(port)?)));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(Fail::input(format!(
            "{} takes no picture: no input has the shape [n, 3, height, width] or [n, height, width, 3]; pass \
             .npy files with --input",
            model.name
        ))),
        (Some(_), Some(_)) => Err(Fail::input(format!(
            "{} takes several pictures: pass .npy files with --input",
            model.name
        ))),
    }
}

fn preparation(port: &PortJson, layout: Layout, sight: &Sight) -> Preparation {
    let (height, width) = match layout {
        Layout::Nchw => (port.shape[2], port.shape[3]),
        Layout::Nhwc => (port.shape[1], port.shape[2]),
    };
    let usual = match sight.task {
        Some(Task::Detect) => DETECTOR_SIDE,
        Some(Task::Classify) | None => CLASSIFIER_SIDE,
    };
    let side = |side: i64| usize::try_from(side).unwrap_or(usual);
    let (width, height) = (side(width), side(height));
    let mut preparation = match sight.task {
        Some(Task::Detect) => Preparation::detector(width, height),
        Some(Task::Classify) => Preparation::classifier(width, height),
        None => Preparation::plain(width, height),
    };
    preparation.fit = match sight.fit {
        Some(FitArg::Letterbox) => Fit::Letterbox,
        Some(FitArg::Crop) => Fit::Crop,
        Some(FitArg::Stretch) => Fit::Stretch,
        None => preparation.fit,
    };
    let (mean, std) = match sight.normalize {
        Some(NormalizeArg::None) => ([0.0; 3], [1.0; 3]),
        Some(NormalizeArg::Imagenet) => {
            let imagenet = Preparation::classifier(width, height);
            (imagenet.mean, imagenet.std)
        }
        None => (preparation.mean, preparation.std),
    };
    Preparation { mean, std, ..preparation }
}

/// What a model found.
pub(crate) enum Found {
    Boxes { boxes: Vec<Detection>, names: Names, picture: Seen },
    Classes(Vec<(String, f32)>),
}

impl Found {
    /// Reads the model's first output.
    pub(crate) fn read(
        outputs: &[Array],
        picture: Seen,
        task: Task,
        sight: &Sight,
    ) -> Result<Found, Fail> {
        let output = outputs.first().ok_or_else(|| Fail::input("the model has no outputs"))?;
        if output.head.element != Element::F32 {
            let Head { name, element, .. } = &output.head;
            let message = format!("the model's output {name} is {element}: expected float32");
            return Err(Fail::input(message));
        }
        let (numbers, _) = output.bytes.as_chunks::<4>();
        let numbers: Vec<f32> = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
        let labels = sight.labels.as_deref().map(labels).transpose()?;
        match task {
            Task::Classify => {
                let dims = &output.head.dims;
                if dims.last().is_none_or(|last| *last != numbers.len() as u64) {
                    let message =
                        format!("the model's output has the shape {dims:?}: expected [1, classes]");
                    return Err(Fail::input(message));
                }
                let names = labels.unwrap_or_default();
                let likely = top(&numbers, MOST_LIKELY);
                let named =
                    |one: shoal_vision::Likely| (names.of(one.class).into(), one.probability);
                Ok(Found::Classes(likely.into_iter().map(named).collect()))
            }
            Task::Detect => {
                let bad = |error: shoal_vision::BoxesError| Fail::input(error.to_string());
                let shape: Vec<usize> = output.head.dims.iter().map(|dim| *dim as usize).collect();
                let known = labels.as_ref().map(Names::count);
                let form = Form::of(&shape, known).map_err(bad)?;
                let thresholds = Thresholds { score: sight.score, overlap: sight.overlap };
                let boxes = detect(&shape, &numbers, known, &picture.placing, thresholds);
                let names = labels.unwrap_or_else(|| Names::for_count(form.classes));
                Ok(Found::Boxes { boxes: boxes.map_err(bad)?, names, picture })
            }
        }
    }

    /// One line for each.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            Found::Classes(classes) => classes
                .iter()
                .map(|(name, part)| format!("{:5.1} %  {name}", part * 100.0))
                .collect(),
            Found::Boxes { boxes, .. } if boxes.is_empty() => vec!["nothing found".into()],
            Found::Boxes { boxes, names, .. } => {
                let line = |one: &Detection| {
                    let Detection { class, score, left, top, right, bottom } = one;
                    format!(
                        "{score:.2}  {} from {left:.0},{top:.0} to {right:.0},{bottom:.0}",
                        names.of(*class)
                    )
                };
                boxes.iter().map(line).collect()
            }
        }
    }

    pub(crate) fn json(&self) -> Value {
        match self {
            Found::Classes(classes) => {
                let one = |(name, part): &(String, f32)| json!({"name": name, "probability": part});
                json!({"classes": classes.iter().map(one).collect::<Vec<_>>()})
            }
            Found::Boxes { boxes, names, .. } => {
                let one = |found: &Detection| {
                    let Detection { class, score, left, top, right, bottom } = found;
                    json!({"class": class, "name": names.of(*class), "score": score, "box": [left, top, right, bottom]})
                };
                json!({"boxes": boxes.iter().map(one).collect::<Vec<_>>()})
            }
        }
    }

    /// In a line.
    pub(crate) fn words(&self) -> String {
        match self {
            Found::Classes(classes) => {
                let one = |(name, part): &(String, f32)| format!("{:.1} % {name}", part * 100.0);
                classes.iter().map(one).collect::<Vec<_>>().join(", ")
            }
            Found::Boxes { boxes, .. } if boxes.is_empty() => "nothing found".into(),
            Found::Boxes { boxes, names, .. } => {
                let one =
                    |found: &Detection| format!("{:.2} {}", found.score, names.of(found.class));
                boxes.iter().map(one).collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Writes the picture with its boxes, read again from where it was.
    pub(crate) fn draw_again(&self, from: &Path, to: &Path) -> Result<(), Fail> {
        let Found::Boxes { boxes, names, .. } = self else { return Ok(()) };
        draw_into(read(from)?, boxes, names, to)
    }

    /// Writes the picture with its boxes.
    pub(crate) fn save(self, path: &Path) -> Result<(), Fail> {
        let Found::Boxes { boxes, names, picture } = self else {
            return Err(Fail::input("-o writes the picture of --task detect"));
        };
        draw_into(picture.image, &boxes, &names, path)
    }
}

fn draw_into(
    mut image: RgbImage,
    boxes: &[Detection],
    names: &Names,
    path: &Path,
) -> Result<(), Fail> {
    let (width, height) = (image.width() as usize, image.height() as usize);
    draw(width, height, &mut image, boxes, names)
        .map_err(|error| Fail::world("internal", error.to_string()))?;
    let mut png = std::io::Cursor::new(Vec::new());
    image
        .write_to(&mut png, image::ImageFormat::Png)
        .map_err(|error| Fail::world("internal", format!("cannot make a PNG: {error}")))?;
    let mut sink = Sink::create(path)?;
    sink.write(png.get_ref())?;
    sink.finish()
}

/// One name a line, or what Ultralytics writes into its models.
fn labels(path: &Path) -> Result<Names, Fail> {
    let text = std::fs::read_to_string(path).map_err(|error| Fail::reading(path, &error))?;
    let text = text.trim();
    let parsed = if text.starts_with(['{', '[']) {
        Names::parse(text)
    } else {
        let list: Vec<&str> = text.lines().map(str::trim).collect();
        Names::parse(&json!(list).to_string())
    };
    parsed.map_err(|error| Fail::input(format!("{}: {error}", path.display())))
}
