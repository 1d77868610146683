//! The pools this machine has lent itself to: each address with the coordinator's key seen there first. A
//! challenge that names another key is another pool's, passed on to be answered in this node's name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use shoal_protocol::PublicKey;

use crate::fail::{Fail, plain};
use crate::keys;

const FILE: &str = "pools.json";

type Pools = BTreeMap<String, String>;

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
