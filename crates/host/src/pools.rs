//! The pool this node is in: where its coordinator is, whom it trusts there, and who it is itself. And all pools this
//! machine has lent itself to: each address with the coordinator's key seen there first. A challenge that names
//! another key is another pool's, passed on to be answered in this node's name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use shoal_protocol::{Identity, PublicKey, Signature};
use tokio::sync::mpsc;

use super::beside::Beside;
use super::gpu::Access;
use super::identity::{self, HeldKey};
use super::session::Session;
use super::wire::Origin;
use super::{Event, JoinLink, socket};
use crate::fail::{Fail, plain};
use crate::keys;
use crate::tls::{FirstSeen, Trust};

const FILE: &str = "pools.json";

type Pools = BTreeMap<String, String>;

pub(super) struct Pool {
    link: JoinLink,
    data: PathBuf,
    origin: Origin,
    trust: Trust,
    /// Who this node is in this pool.
    kept: HeldKey,
    session: Session,
    /// Finds the coordinator's data folder, if it may be on this machine.
    beside: Option<Beside>,
}

impl Pool {
    /// With an identity of the data folder that no other process uses.
    pub(super) fn new(
        link: JoinLink,
        data: PathBuf,
        first: FirstSeen,
        beside: Option<Beside>,
    ) -> Result<Pool, Fail> {
        let kept = identity::take(&data, &link.base)?;
        let trust = Trust::new(&data, &link.base, link.pin, first);
        let origin = Origin::new(&link.base, trust.config()?)
            .ok_or_else(|| Fail::input(format!("{} is not an address", link.base)))?;
        Ok(Pool { link, data, origin, trust, kept, session: Session::default(), beside })
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn token(&self) -> &str {
        &self.link.token
    }

    pub(super) fn identity(&self) -> Identity {
        self.kept.identity()
    }

    /// 1 for the first node of its folder, 2 for one that runs beside it, …
    pub(super) fn number(&self) -> usize {
        self.kept.number
    }

    /// Where programs of this node get their folders.
    pub(super) fn work(&self) -> PathBuf {
        self.data.join(format!("node-{}", self.kept.number))
    }

    /// Where blobs of this pool are kept.
    pub(super) fn shelf(&self) -> PathBuf {
        self.data.join(self.kept.shelf())
    }

    pub(super) fn sign(&self, statement: &[u8]) -> Signature {
        self.kept.key.sign(statement)
    }

    /// Whether a challenge is this pool's own.
    pub(super) fn check(&self, coordinator: &PublicKey) -> Result<(), Fail> {
        check(&self.data, &self.link.base, coordinator)
    }

    /// Opens a socket; the loop hears what became of it.
    pub(super) fn connect(&self, to_loop: mpsc::Sender<Event>) {
        let (origin, url) = (self.origin.clone(), self.link.socket_url());
        tokio::spawn(async move {
            let event = match socket::connect(origin, url).await {
                Ok(socket) => Event::Opened(socket),
                Err(reason) => Event::NotOpened(reason),
            };
            // The loop may have ended meanwhile.
            let _ = to_loop.send(event).await;
        });
    }

    /// This node joined: how its threads and its GPU process get at bytes.
    pub(super) fn joined(&self, token: String, shelf: Option<String>) -> Access {
        let beside = self.beside.as_ref().and_then(|find| find());
        self.session.set(&token, beside.clone());
        let pin = self.trust.seen().map(|seen| seen.to_string());
        Access { base: self.link.base.clone(), token, pin, shelf, beside }
    }
}

/// Whether the coordinator at `base` is the one seen there first, which it is if it is the first.
pub(super) fn check(data: &Path, base: &str, key: &PublicKey) -> Result<(), Fail> {
    let path = data.join(FILE);
    let cannot = |error: io::Error| {
        let message = format!("cannot use {}: {}", path.display(), plain(&error));
        Fail::world("data_folder", message)
    };
    let mut file = keys::open(&path).map_err(cannot)?;
    // Nodes beside each other must not undo what the other wrote.
    let _ = file.lock();
    let mut pools = read(&mut file).map_err(cannot)?;
    let found = key.to_string();
    match pools.get(base) {
        Some(seen) if *seen == found => Ok(()),
        Some(seen) => Err(Fail::world(
            "untrusted",
            format!(
                "{base} speaks for another coordinator than before (expected the key {seen}, found \
                 {found}): if it was set up anew, remove its line from {}; else it asks this machine to \
                 sign for somebody else",
                path.display()
            ),
        )),
        None => {
            pools.insert(base.into(), found);
            write(&mut file, &pools).map_err(cannot)
        }
    }
}

/// Where nodes of this folder have been.
pub(super) fn bases(data: &Path) -> Vec<String> {
    let pools = File::open(data.join(FILE)).and_then(|mut file| read(&mut file));
    pools.map(|pools| pools.into_keys().collect()).unwrap_or_default()
}

fn read(file: &mut File) -> io::Result<Pools> {
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    if text.is_empty() {
        return Ok(Pools::new());
    }
    // Forgetting whom to expect where must be somebody's choice.
    serde_json::from_slice(&text).map_err(|error| {
        io::Error::other(format!("it is damaged ({error}); remove it to start over"))
    })
}

fn write(file: &mut File, pools: &Pools) -> io::Result<()> {
    let text = serde_json::to_vec_pretty(pools).map_err(io::Error::other)?;
    file.rewind()?;
    // Pools are only added, so that the new text is the longer one.
    file.write_all(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_coordinator_of_an_address_is_the_only_one() {
        let data = std::env::temp_dir().join(format!("shoal-pools-{}", std::process::id()));
        std::fs::create_dir_all(&data).expect("a folder");
        let check = |base: &str, key: u8| check(&data, base, &PublicKey([key; 32]));
        check("https://one", 1).expect("the first");
        check("https://one", 1).expect("the same");
        check("https://two", 2).expect("another place");
        for _ in 0..2 {
            let Err(Fail::World { message, .. }) = check("https://one", 2) else {
                panic!("another")
            };
            assert!(message.contains("pools.json") && message.contains("remove"), "{message}");
        }
        assert_eq!(bases(&data), ["https://one", "https://two"]);
        std::fs::write(data.join(FILE), "{").expect("damaged");
        let Err(Fail::World { message, .. }) = check("https://one", 1) else { panic!("damaged") };
        assert!(message.contains("damaged"), "{message}");
        std::fs::remove_dir_all(&data).expect("removed");
    }
}
