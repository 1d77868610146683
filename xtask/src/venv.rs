//! Python programs of others, each set in an environment of its own that is made once.

use std::path::PathBuf;

use crate::shell::{Outcome, command, run, target, write};

pub(crate) struct Venv {
    /// The folder's name.
    pub(crate) name: &'static str,
    /// What is installed from PyPI.
    pub(crate) packages: &'static [&'static str],
}

impl Venv {
    pub(crate) fn python(&self) -> PathBuf {
        self.folder().join("bin/python")
    }

    /// Whether the environment is there, with these packages.
    pub(crate) fn is_ready(&self) -> bool {
        std::fs::read_to_string(self.mark()).is_ok_and(|list| list == self.list())
    }

    /// Makes the environment if it is not there.
    pub(crate) fn install(&self) -> Outcome {
        if self.is_ready() {
            return Ok(());
        }
        run(command("python3").args(["-m", "venv"]).arg(self.folder()))?;
        let pip = self.folder().join("bin/pip");
        run(command(pip).args(["install", "--quiet"]).args(self.packages))?;
        write(&self.mark(), self.list())
    }

    fn folder(&self) -> PathBuf {
        target().join(self.name)
    }

    fn mark(&self) -> PathBuf {
        self.folder().join("shoal-ready")
    }

    fn list(&self) -> String {
        self.packages.join("\n")
    }
}
