//! Where things are on this machine: the data folder, and the coordinator that runs from it.

use std::env;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::args::Server;
use crate::fail::{Fail, plain};

/// What a running coordinator leaves in its data folder for clients on the same machine.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Running {
    pub(crate) url: String,
    pub(crate) key: String,
    pub(crate) pid: u32,
}

/// A coordinator and the key to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) key: String,
}

/// The data folder: what was given, else the platform's place for application data.
pub(crate) fn data_folder(given: Option<&Path>) -> Result<PathBuf, Fail> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    platform_data().map(|base| base.join("shoal")).ok_or_else(|| {
        Fail::input("this machine names no home folder: say where to keep data with --data DIR")
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
    if let (Some(url), Some(key)) = (&server.url, &server.key) {
        return Ok(Target { url: base_url(url)?, key: key.clone() });
    }
    let folder = data_folder(data)?;
    let running = running(&folder)?;
    match (&server.url, running) {
        (None, Some(running)) => {
            let key = server.key.clone().unwrap_or(running.key);
            Ok(Target { url: base_url(&running.url)?, key })
        }
        (Some(url), running) => {
            let url = base_url(url)?;
            match running {
                Some(running) if base_url(&running.url)? == url => {
                    Ok(Target { url, key: running.key })
                }
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

/// A coordinator's address without path, query or fragment: dashboard and join links work as URL
/// too.
pub(crate) fn base_url(text: &str) -> Result<String, Fail> {
    let bad = || {
        Fail::input(format!(
            "{text:?} is no coordinator's URL: expected one such as http://127.0.0.1:7420"
        ))
    };
    let text = text.trim();
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = reqwest::Url::parse(&with_scheme).map_err(|_| bad())?;
    let host = url.host_str().unwrap_or_default();
    if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
        return Err(bad());
    }
    let origin = url.origin().ascii_serialization();
    // A coordinator answers plain http to its own machine only.
    match origin.strip_prefix("http://") {
        Some(rest) if !is_loopback(host) => Ok(format!("https://{}", with_port(rest, &url))),
        _ => Ok(origin),
    }
}

/// Plain http on its usual port means that port, not the usual one of https.
fn with_port(authority: &str, url: &reqwest::Url) -> String {
    if url.port().is_some() { authority.into() } else { format!("{authority}:80") }
}

pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_link_of_a_coordinator_names_it() {
        let cases = [
            ("http://127.0.0.1:7420", "http://127.0.0.1:7420"),
            ("http://127.0.0.1:7420/#key=abc", "http://127.0.0.1:7420"),
            ("https://pool.example/join#tok", "https://pool.example"),
            ("localhost:7420", "http://localhost:7420"),
            ("http://[::1]:7420/", "http://[::1]:7420"),
            ("http://192.168.1.20:7420/join", "https://192.168.1.20:7420"),
            ("http://pool.example", "https://pool.example:80"),
        ];
        for (given, wanted) in cases {
            assert_eq!(base_url(given).expect(given), wanted);
        }
        for bad in ["", "ftp://x", "http://", "http://a b"] {
            assert!(base_url(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn without_a_coordinator_the_way_out_is_named() {
        let empty = Server { url: None, key: None };
        let Err(Fail::Input { message, .. }) = target(&empty, Some(Path::new("/nonexistent")))
        else {
            panic!("there is no coordinator");
        };
        assert!(message.contains("shoal up") && message.contains("/nonexistent"), "{message}");
    }
}
