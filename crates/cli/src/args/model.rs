//! `shoal model`, `models` and `infer`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use shoal_protocol::Hash;

use super::{JobArgs, Server, help, work};

/// Add or remove an ONNX or GGUF model that nodes keep ready
#[derive(Debug, Args)]
#[command(after_help = help::MODEL)]
pub(crate) struct Model {
    #[command(subcommand)]
    pub(crate) what: ModelVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelVerb {
    Add(Box<ModelAdd>),
    Rm(ModelRm),
    Quantize(Box<ModelQuantize>),
}

/// Make a smaller model with 8-bit numbers, and compare it with the original
#[derive(Debug, Args)]
#[command(after_help = help::QUANTIZE)]
pub(crate) struct ModelQuantize {
    /// The ONNX file
    #[arg(value_name = "MODEL.onnx")]
    pub(crate) file: PathBuf,
    /// Typical inputs: an .npy file with one in each row, or a folder of pictures; may be repeated if the model has
    /// several inputs. Without it only matrix products become smaller
    #[arg(long, value_name = "[NAME=]PATH")]
    pub(crate) calibrate: Vec<String>,
    /// Use the data only to compare: scales are found anew in every run
    #[arg(long)]
    pub(crate) dynamic: bool,
    /// Where the new model goes
    #[arg(short, long, value_name = "OUT.onnx")]
    pub(crate) output: PathBuf,
    /// A Python that has onnxruntime and onnx [default: Shoal's own if it was made, else python3]
    #[arg(long, value_name = "PROGRAM", conflicts_with = "install")]
    pub(crate) python: Option<PathBuf>,
    /// Make a Python environment with onnxruntime and onnx in the data folder first
    #[arg(long)]
    pub(crate) install: bool,
    /// What the model does with the pictures
    #[arg(long, requires = "calibrate")]
    pub(crate) task: Option<Task>,
    /// How pictures are brought to the model's size [default: as for infer]
    #[arg(long, requires = "calibrate")]
    pub(crate) fit: Option<FitArg>,
    /// How pixels become numbers [default: as for infer]
    #[arg(long, requires = "calibrate")]
    pub(crate) normalize: Option<NormalizeArg>,
}

/// Check an ONNX or GGUF file, store it, and keep it ready on nodes
#[derive(Debug, Args)]
#[command(after_help = help::MODEL)]
pub(crate) struct ModelAdd {
    /// The ONNX or GGUF file, with its weights inside, or its address on the web (http or https)
    #[arg(value_name = "FILE|URL")]
    pub(crate) file: PathBuf,
    /// The SHA-256 that the file must have
    #[arg(long, value_name = "HEX", value_parser = work::sha256)]
    pub(crate) sha256: Option<Hash>,
    /// What clients call it: letters, digits, "-", "_" and "." [default: the file's name]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Who it runs for, as donors see it [default: your user name]
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Number of nodes that keep it ready while there is memory
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) least: u16,
    /// Number of nodes that may keep it ready when requests are waiting
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) most: u16,
    /// Seconds without work after which a node above --least is released
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) idle: u64,
    /// Tokens of a conversation with a language model [default: 4096, or less if the model was made for less]
    #[arg(long, value_name = "TOKENS")]
    pub(crate) context: Option<u32>,
    /// Conversations with a language model that a node holds at a time [default: 4]
    #[arg(long, value_name = "N")]
    pub(crate) conversations: Option<u16>,
    /// Let other people's nodes run it too; nobody checks their answers
    #[arg(long)]
    pub(crate) strangers: bool,
    /// How many nodes share the model, each with some of its parts: a number, never, or auto (several if no node has
    /// the memory for all of it, or if several answer sooner) [default: auto for language models, never for others]
    #[arg(long, value_name = "N")]
    pub(crate) split: Option<String>,
    /// Have a language model computed by a GPU. Some words may then differ from device to device, and one device has
    /// all of the model
    #[arg(long)]
    pub(crate) gpu: bool,
    #[command(flatten, next_help_heading = "With --split")]
    pub(crate) between: Between,
    /// Seconds to wait until a node has it ready
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) wait: u64,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// How a model is split
#[derive(Debug, Args)]
pub(crate) struct Between {
    /// The shape of an input that the file leaves open, in full; may be repeated
    #[arg(long, value_name = "NAME=1x3x224x224", value_parser = work::name_and_shape)]
    pub(crate) shape: Vec<(String, Vec<u64>)>,
    /// What each device has of a language model: some of its layers, so that a token goes from device to device, or some
    /// rows of every matrix (tensors), so that all devices compute each layer together; only for native nodes with very
    /// little network delay between them [default: layers]
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<ByArg>,
    /// How numbers travel between the devices [default: f32]; only f32 keeps a language model's words exactly
    #[arg(long, value_name = "FORM")]
    pub(crate) wire: Option<WireArg>,
    /// Typical inputs to try every form on: an .npy file with one in each row, or a folder of pictures; may be
    /// repeated if the model has several inputs. Without --wire, Shoal only shows the effect and does not add the model
    #[arg(long, value_name = "[NAME=]PATH")]
    pub(crate) calibrate: Vec<String>,
    /// What the model does with the pictures
    #[arg(long, requires = "calibrate")]
    pub(crate) task: Option<Task>,
    /// How pictures are brought to the model's size [default: as for infer]
    #[arg(long, requires = "calibrate")]
    pub(crate) fit: Option<FitArg>,
    /// How pixels become numbers [default: as for infer]
    #[arg(long, requires = "calibrate")]
    pub(crate) normalize: Option<NormalizeArg>,
}

/// Remove a model
#[derive(Debug, Args)]
#[command(after_help = help::MODEL)]
pub(crate) struct ModelRm {
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// List models, what they take and give, and the nodes that keep them ready
#[derive(Debug, Args)]
#[command(after_help = help::MODELS)]
pub(crate) struct Models {
    #[command(flatten)]
    pub(crate) server: Server,
}

/// Run a model on tensors from .npy files or on a picture, or on many of them at once
#[derive(Debug, Args)]
#[command(after_help = help::INFER)]
pub(crate) struct Infer {
    /// The model's name; with --batch or --images also an .onnx file
    pub(crate) model: String,
    /// An .npy file for the input NAME; may be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = work::name_and_value, conflicts_with = "picture")]
    pub(crate) input: Vec<(String, String)>,
    /// An .npy file of many inputs, one in each row, which all nodes share; NAME is needed if the model has several
    /// inputs, and then it may be repeated. Arrays of --input are split in the same way
    #[arg(long, value_name = "[NAME=]FILE", conflicts_with = "picture")]
    pub(crate) batch: Vec<String>,
    /// A folder for the outputs, one .npy file for each; with --batch and one output, also an .npy file; with --task
    /// detect, a PNG file for the picture with its boxes; with --images, a .jsonl file or a folder [default: only print]
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sight: Sight,
    /// Seconds to wait for the answer
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    pub(crate) deadline: f64,
    #[command(flatten, next_help_heading = "With --batch or --images")]
    pub(crate) job: JobArgs,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// A picture, and what to make of the answer
#[derive(Clone, Debug, Args)]
pub(crate) struct Sight {
    /// A PNG or JPEG picture for the model's only picture input
    #[arg(long, value_name = "FILE", group = "picture")]
    pub(crate) image: Option<PathBuf>,
    /// Many pictures, or folders of them, which all nodes share
    #[arg(long, value_name = "PATH", num_args = 1.., group = "picture", requires = "task")]
    pub(crate) images: Vec<PathBuf>,
    /// What the model does: find things in the picture, or say what it shows
    #[arg(long, requires = "picture")]
    pub(crate) task: Option<Task>,
    /// How the picture is brought to the model's size [default: letterbox to detect, crop to classify, else stretch]
    #[arg(long, requires = "picture")]
    pub(crate) fit: Option<FitArg>,
    /// How pixels become numbers: 0 to 1, or by ImageNet's mean and deviation [default: imagenet to classify, else none]
    #[arg(long, requires = "picture")]
    pub(crate) normalize: Option<NormalizeArg>,
    /// The names of the classes, one a line
    #[arg(long, value_name = "FILE", requires = "task")]
    pub(crate) labels: Option<PathBuf>,
    /// The lowest score of a box
    #[arg(long, value_name = "PART", default_value_t = 0.25)]
    pub(crate) score: f32,
    /// How much two boxes of one class may overlap
    #[arg(long, value_name = "PART", default_value_t = 0.45)]
    pub(crate) overlap: f32,
}

impl Sight {
    /// Only how pictures become numbers.
    pub(crate) fn preparing(
        task: Option<Task>,
        fit: Option<FitArg>,
        normalize: Option<NormalizeArg>,
    ) -> Sight {
        let (image, images, labels) = (None, Vec::new(), None);
        Sight { image, images, task, fit, normalize, labels, score: 0.0, overlap: 0.0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Task {
    Detect,
    Classify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FitArg {
    /// All of it, with grey margins
    Letterbox,
    /// Its middle
    Crop,
    Stretch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NormalizeArg {
    None,
    Imagenet,
}

/// What each device has of a language model that several share
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByArg {
    Layers,
    Tensors,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WireArg {
    /// As they are
    F32,
    /// Half the bytes
    F16,
    /// A bit more than a quarter of the bytes: 8 bits each, with a scale for every 64
    Int8,
}
