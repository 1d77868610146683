//! Language models, computed by the processor: a range of layers at a time, natively and in a browser.
//!
//! Weights are packed once when they are loaded (`matrix`), activations are quantised to eight bits in blocks of 32
//! on their way into quantised matrices, all sums have a fixed order. So the same model gives the same bits whole or
//! in stages, in one run or many, on any number of threads, with every [`Kernel`].
//!
//! ```no_run
//! use shoal_engine::llm::{Input, Options, Output, Row, Stage};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let file = std::fs::read("model.gguf")?;
//! let model = shoal_gguf::Model::read(file.clone(), file.len() as u64)?;
//! let options = Options { threads: 2, context: 2048, sequences: 4, kernel: None };
//! let mut read = |at: std::ops::Range<u64>| Ok(file[at.start as usize..at.end as usize].to_vec());
//! let mut stage = Stage::load(&model, model.whole(), &options, &mut read)?;
//! let prompt = [1, 42, 7];
//! let rows = [0, 1, 2].map(|at| Row { sequence: 9, position: at, wants_logits: at == 2 });
//! if let Output::Logits(logits) = stage.run(&rows, Input::Tokens(&prompt))? {
//!     println!("{} numbers, one for each token that may follow", logits.len());
//! }
//! # Ok(())
//! # }
//! ```

mod abreast;
mod attention;
mod cache;
mod compute;
mod conversations;
mod error;
#[cfg(feature = "gpu")]
pub mod gpu;
mod kernel;
mod lanes;
mod layer;
mod math;
mod matrix;
mod pool;
mod prices;
mod rests;
mod rope;
mod rounds;
mod shard;
mod stage;
#[cfg(test)]
mod testing;
mod whole;

pub use abreast::Abreast;
pub use conversations::{Conversations, Heard, Room};
pub use error::{LoadError, RunError};
pub use kernel::Kernel;
pub use rounds::{Given, READ_STEP, Rounds, Turn};
pub use shard::Shard;
pub use stage::{Input, Loading, MOST_ROWS, Options, Output, Row, Stage};
pub use whole::{Computes, ComputesLater, Holds, Outcome, Step, Whole};
