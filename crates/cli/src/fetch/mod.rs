//! Models from the web: `shoal model add URL`. What was fetched stays in the data folder until the model is added, so that
//! a try that was interrupted is gone on with.

mod download;
mod head;
mod part;

use std::io::Read;
use std::path::{Path, PathBuf};

use reqwest::Url;
use sha2::{Digest, Sha256};
use shoal_protocol::Hash;

use crate::fail::Fail;
use crate::show;
use download::Download;
use part::Part;

/// The folder of what is being fetched, below the data folder.
const FOLDER: &str = "downloads";
/// Read at a time for the hash.
const CHUNK: usize = 1 << 20;

/// A file that is all here.
pub(crate) struct Fetched {
    pub(crate) path: PathBuf,
    /// The file's name on the web, without its ending.
    pub(crate) name: String,
    part: Part,
}

impl Fetched {
    /// It is needed no more.
    pub(crate) fn remove(self) {
        self.part.remove();
    }
}

/// The address, if a file was named by one.
pub(crate) fn address(file: &Path) -> Result<Option<Url>, Fail> {
    let Some((scheme, _)) = file.to_str().and_then(|text| text.split_once("://")) else {
        return Ok(None);
    };
    let text = file.display();
    if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
        let message = format!("{text}: expected a file, or an address with http:// or https://");
        return Err(Fail::input(message));
    }
    let url = Url::parse(&text.to_string());
    url.map(Some).map_err(|error| Fail::input(format!("{text} is not a web address: {error}")))
}

/// Fetches a model, or the rest of one.
pub(crate) async fn fetch(
    url: &Url,
    data: &Path,
    sha256: Option<Hash>,
    quiet: bool,
) -> Result<Fetched, Fail> {
    let name = name(url)?;
    let part = Part::open(&data.join(FOLDER), &name, url)?;
    let mut download = Download::new(url, part, sha256.is_some(), quiet)?;
    let outcome = download.run().await;
    let part = download.part();
    match outcome {
        Ok(()) => {}
        // Whoever asks again begins anew: what is here is of no use.
        Err(head::Wrong::File(fail)) => {
            part.remove();
            return Err(fail);
        }
        Err(head::Wrong::World(fail)) => {
            if part.have == 0 {
                part.remove();
            }
            return Err(fail);
        }
    }
    let path = part.path.clone();
    if let Some(wanted) = sha256
        && let Err(fail) = check_aside(&path, shown(url), wanted).await
    {
        part.remove();
        return Err(fail);
    }
    Ok(Fetched { path, name, part })
}

/// Off the main thread, so that an interrupt is heard while a large file is read.
async fn check_aside(path: &Path, called: String, wanted: Hash) -> Result<(), Fail> {
    let path = path.to_path_buf();
    let checked = tokio::task::spawn_blocking(move || check(&path, &called, wanted)).await;
    checked.unwrap_or_else(|error| Err(Fail::world("internal", error.to_string())))
}

/// Holds a file against the hash that its user expects.
pub(crate) fn check(path: &Path, called: &str, wanted: Hash) -> Result<(), Fail> {
    let failed = |error: std::io::Error| Fail::reading(path, &error);
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut hash = Sha256::default();
    let mut bytes = vec![0; CHUNK];
    loop {
        match file.read(&mut bytes).map_err(failed)? {
            0 => break,
            count => hash.update(&bytes[..count]),
        }
    }
    let found = Hash(hash.finalize().into());
    if found == wanted {
        return Ok(());
    }
    let message = format!("{called} has the SHA-256 {found}, but --sha256 says {wanted}");
    Err(Fail::Input { code: "wrong_hash".into(), message })
}

/// An address as it is shown: what may be secret in it is left out.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // They fail only for addresses without a host, which have neither.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

fn name(url: &Url) -> Result<String, Fail> {
    let last = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    let stem = last.rsplit_once('.').map_or(last, |(stem, _)| stem);
    let kept = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let stem: String = stem.chars().map(kept).collect();
    if stem.trim_matches(['-', '.']).is_empty() {
        let message = format!("{} names no file: expected the address of a model", shown(url));
        return Err(Fail::input(message));
    }
    Ok(stem)
}

fn progress(have: u64, total: Option<u64>) -> String {
    match total {
        Some(total) => format!("{} of {}", show::size(have), show::size(total)),
        None => show::size(have),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        address(Path::new(text)).expect("an address").expect("not a file")
    }

    #[test]
    fn addresses_are_told_from_files_and_named_after_their_last_part() {
        assert!(address(Path::new("models/yolo.onnx")).expect("a file").is_none());
        let found = url("https://me:secret@models.example/a/SmolLM2-135M.Q4_1.gguf?token=secret");
        assert_eq!(name(&found).expect("a name"), "SmolLM2-135M.Q4_1");
        assert_eq!(shown(&found), "https://models.example/a/SmolLM2-135M.Q4_1.gguf");
        assert_eq!(name(&url("HTTP://host/a%20b.onnx")).expect("a name"), "a-20b");
        assert!(name(&url("http://host/")).is_err());
        for wrong in ["ftp://host/a.gguf", "http://", "https://host:port/a.gguf"] {
            assert!(address(Path::new(wrong)).is_err(), "{wrong}");
        }
    }
}
