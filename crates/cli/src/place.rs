//! Where things are on this machine: the data folder, and the coordinator that runs from it.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use shoal_host::{Beside, Neighbour, base_url};

use crate::args::Server;
use crate::fail::{Fail, plain};

/// What a running coordinator leaves in its data folder for clients on the same machine.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Running {
    pub(crate) url: String,
    pub(crate) key: String,
    pub(crate) pid: u32,
    /// Proves that the folder can be read. Older coordinators have no such word.
    #[serde(default)]
    pub(crate) beside: Option<String>,
}

/// A coordinator and the key to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) key: String,
    /// How long its absence is waited for, if the user says so.
    pub(crate) patience: Option<Duration>,
    /// The coordinator's data folder, if it is on this machine.
    pub(crate) beside: Option<Neighbour>,
}

/// The data folder: what was given, else the platform's place for application data.
pub(crate) fn data_folder(given: Option<&Path>) -> Result<PathBuf, Fail> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    platform_data().map(|base| base.join("shoal")).ok_or_else(|| {
        Fail::input("cannot find your home folder: name a data folder with --data DIR")
    })
}

fn platform_data() -> Option<PathBuf> {
    let from = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || env::home_dir().filter(|home| !home.as_os_str().is_empty());
    if cfg!(windows) {
        from("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        home().map(|home| home.join("Library/Application Support"))
    } else {
        from("XDG_DATA_HOME").or_else(|| home().map(|home| home.join(".local/share")))
    }
}

/// Which coordinator to talk to: the flags' or environment's, else the one running on this machine.
pub(crate) fn target(server: &Server, data: Option<&Path>) -> Result<Target, Fail> {
    let folder = data_folder(data)?;
    let at = |url: String, key| {
        let beside = neighbour(&folder, &url);
        Target { url, key, patience: server.patience, beside }
    };
    if let (Some(url), Some(key)) = (&server.url, &server.key) {
        return Ok(at(base_url(url)?, key.clone()));
    }
    let running = running(&folder)?;
    match (&server.url, running) {
        (None, Some(running)) => {
            let key = server.key.clone().unwrap_or(running.key);
            Ok(at(base_url(&running.url)?, key))
        }
        (Some(url), running) => {
            let url = base_url(url)?;
            match running {
                Some(running) if base_url(&running.url)? == url => Ok(at(url, running.key)),
                _ => Err(Fail::input(format!(
                    "no key for {url}: give it with --key or SHOAL_KEY (`shoal up` prints it in \
                     the dashboard link)"
                ))),
            }
        }
        (None, None) => Err(Fail::input(format!(
            "no coordinator is running on this machine (looked in {}): start one with `shoal up`, \
             or give --url and --key",
            folder.display()
        ))),
    }
}

/// The coordinator that says it runs from this folder.
pub(crate) fn running(folder: &Path) -> Result<Option<Running>, Fail> {
    let path = folder.join("running.json");
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Fail::input(format!("cannot read {}: {}", path.display(), plain(&error))));
        }
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| Fail::input(format!("{} is damaged: {error}", path.display())))
}

/// The folder of the coordinator at an address, if it runs from this one.
pub(crate) fn neighbour(folder: &Path, url: &str) -> Option<Neighbour> {
    let running = running(folder).ok().flatten()?;
    let word = running.beside.filter(|_| base_url(&running.url).is_ok_and(|its| its == url))?;
    Some(Neighbour { folder: folder.to_owned(), word })
}

/// The same as a node asks for it: anew whenever it joins.
pub(crate) fn beside(folder: &Path, url: &str) -> Beside {
    let (folder, url) = (folder.to_owned(), url.to_owned());
    Arc::new(move || neighbour(&folder, &url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_coordinator_the_way_out_is_named() {
        let empty = Server { url: None, key: None, patience: None };
        let Err(Fail::Input { message, .. }) = target(&empty, Some(Path::new("/nonexistent")))
        else {
            panic!("there is no coordinator");
        };
        assert!(message.contains("shoal up") && message.contains("/nonexistent"), "{message}");
    }
}
