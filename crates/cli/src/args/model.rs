//! `shoal model`, `models` and `infer`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Server, help, work};

/// Add or remove an ONNX model that nodes keep ready
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
}

/// Check an ONNX file, store it, and keep it ready on nodes
#[derive(Debug, Args)]
#[command(after_help = help::MODEL)]
pub(crate) struct ModelAdd {
    /// The ONNX file, with its weights inside
    pub(crate) file: PathBuf,
    /// What clients call it: letters, digits, "-", "_" and "." [default: the file's name]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Number of nodes that always keep it ready
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) least: u16,
    /// Number of nodes that may keep it ready when requests are waiting
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) most: u16,
    /// Seconds without work after which a node beyond the least is released
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) idle: u64,
    /// Let other people's nodes run it too; nobody checks their answers
    #[arg(long)]
    pub(crate) strangers: bool,
    /// Seconds to wait until a node has it ready
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) wait: u64,
    #[command(flatten)]
    pub(crate) server: Server,
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

/// Run a model on tensors from .npy files, or on a picture
#[derive(Debug, Args)]
#[command(after_help = help::INFER)]
pub(crate) struct Infer {
    /// The model's name
    pub(crate) name: String,
    /// An .npy file for the input NAME; may be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = work::name_and_value, conflicts_with = "image")]
    pub(crate) input: Vec<(String, String)>,
    /// A folder for the outputs, one .npy file for each; with --task detect, a PNG file for the picture with its boxes
    /// [default: only print]
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sight: Sight,
    /// Seconds to wait for the answer
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    pub(crate) deadline: f64,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// A picture, and what to make of the answer
#[derive(Debug, Args)]
pub(crate) struct Sight {
    /// A PNG or JPEG picture for the model's only picture input
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Option<PathBuf>,
    /// What the model does: find things in the picture, or say what it shows
    #[arg(long, requires = "image")]
    pub(crate) task: Option<Task>,
    /// How the picture is brought to the model's size [default: letterbox to detect, crop to classify, else stretch]
    #[arg(long, requires = "image")]
    pub(crate) fit: Option<FitArg>,
    /// How pixels become numbers: 0 to 1, or by ImageNet's mean and deviation [default: imagenet to classify, else none]
    #[arg(long, requires = "image")]
    pub(crate) normalize: Option<NormalizeArg>,
    /// The names of the classes, one a line
    #[arg(long, value_name = "FILE", requires = "task")]
    pub(crate) labels: Option<PathBuf>,
    /// The least score of a box
    #[arg(long, value_name = "PART", default_value_t = 0.25)]
    pub(crate) score: f32,
    /// How much two boxes of one class may overlap
    #[arg(long, value_name = "PART", default_value_t = 0.45)]
    pub(crate) overlap: f32,
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
