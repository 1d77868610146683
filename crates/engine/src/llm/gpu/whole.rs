//! A whole model on a GPU, as conversations ask it: natively whoever asks waits, in a browser it is awaited.

use super::stage::GpuStage;
use crate::llm::stage::{Input, Output};
use crate::llm::whole::{ComputesLater, Holds, Step, parted, rows_of};

pub struct GpuWhole {
    stage: GpuStage,
}

impl GpuWhole {
    /// The stage must have all layers: others give no numbers.
    pub fn new(stage: GpuStage) -> GpuWhole {
        GpuWhole { stage }
    }

    /// Kernels that are started for one token.
    pub fn dispatches(&self) -> usize {
        self.stage.dispatches()
    }

    /// Computes a token once, copies it and forgets both: what a driver has no memory for, or cannot compile, turns up with
    /// the first run.
    pub async fn tried(&mut self) -> Result<(), String> {
        let trial = [Step { sequence: TRIAL, position: 0, tokens: vec![0], wants: 1 }];
        ComputesLater::run(self, &trial).await?;
        if self.stage.sequences() > 1 {
            let copied = self.stage.copy_prefix(TRIAL, TRIAL_COPY, 1).await;
            copied.map_err(|error| error.to_string())?;
            self.drop_sequence(TRIAL_COPY);
        }
        self.drop_sequence(TRIAL);
        Ok(())
    }
}

/// Sequences that nobody else has.
const TRIAL: u64 = u64::MAX;
const TRIAL_COPY: u64 = TRIAL - 1;

impl ComputesLater for GpuWhole {
    async fn run(&mut self, steps: &[Step]) -> Result<Vec<Option<Vec<f32>>>, String> {
        let (rows, tokens) = rows_of(steps);
        let output = self.stage.run(&rows, Input::Tokens(&tokens)).await;
        match output.map_err(|error| error.to_string())? {
            Output::Logits(numbers) => Ok(parted(steps, &numbers, self.stage.words())),
            Output::Hidden(_) => {
                Err("the engine gave no logits: it has not all of the model".into())
            }
        }
    }
}

impl Holds for GpuWhole {
    fn drop_sequence(&mut self, sequence: u64) {
        self.stage.drop_sequence(sequence);
    }

    fn truncate(&mut self, sequence: u64, length: u32) -> Result<(), String> {
        self.stage.truncate(sequence, length).map_err(|error| error.to_string())
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn copy_prefix(&mut self, from: u64, to: u64, length: u32) -> Result<(), String> {
        waited(self.stage.copy_prefix(from, to, length)).map_err(|error| error.to_string())
    }

    /// A browser says only later whether it copied, so the positions are computed there.
    #[cfg(target_arch = "wasm32")]
    fn copy_prefix(&mut self, _: u64, _: u64, _: u32) -> Result<(), String> {
        Err("a browser says only later whether it copied".into())
    }

    fn is_lost(&self) -> bool {
        self.stage.is_lost()
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::{ComputesLater, GpuWhole};
    use crate::llm::whole::{Computes, Step};

    impl Computes for GpuWhole {
        fn run(&mut self, steps: &[Step]) -> Result<Vec<Option<Vec<f32>>>, String> {
            waited(ComputesLater::run(self, steps))
        }
    }

    /// Waits for what a GPU does. Natively all waiting is in the calls themselves, so that one look is almost always enough.
    pub fn waited<F: Future>(future: F) -> F::Output {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub use native::waited;
