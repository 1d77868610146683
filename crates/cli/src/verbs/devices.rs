//! Which devices can keep a new model ready, and how far they are with it.

use std::collections::BTreeSet;

use shoal_api::{AbleJson, ServiceJson};

use super::Context;
use crate::client::Client;
use crate::fail::Fail;
use crate::show;

/// Devices of each sort that are named; the rest is counted.
const MOST_NAMED: usize = 8;

/// Asks which devices can have it, and says so.
pub(super) async fn able(
    context: &Context,
    client: &Client,
    name: &str,
) -> Result<Vec<AbleJson>, Fail> {
    let devices = client.explain_service(name).await?.devices.clone();
    if !context.json {
        told(&devices).iter().try_for_each(|line| show::line(&show::harmless(line)))?;
    }
    Ok(devices)
}

fn told(devices: &[AbleJson]) -> Vec<String> {
    let mut lines = Vec::new();
    for (can, words) in
        [("whole", "can run it"), ("parts", "can run parts of it"), ("nothing", "cannot run it")]
    {
        let its = || devices.iter().filter(|one| one.can == can);
        lines.extend(its().take(MOST_NAMED).map(|AbleJson { name, why, engines, .. }| {
            let engines = match can {
                "nothing" => String::new(),
                _ if engines.is_empty() => String::new(),
                _ => format!(" with {}", engines.join(" or ")),
            };
            let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            format!("  {name} {words}{engines}{why}")
        }));
        let more = its().count().saturating_sub(MOST_NAMED);
        if more > 0 {
            lines.push(format!("  {more} more {words}"));
        }
    }
    lines
}

/// What is shown while devices fetch and load it.
pub(super) struct Loading {
    is_silent: bool,
    bar: show::Bytes,
    /// Devices that were told of, once each, as those that get it ready and as those that fetch it.
    told: BTreeSet<u64>,
    fetching: BTreeSet<u64>,
}

impl Loading {
    pub(super) fn new(context: &Context) -> Loading {
        let (told, fetching) = Default::default();
        Loading { is_silent: context.json, bar: show::Bytes::hidden(), told, fetching }
    }

    pub(super) fn show(&mut self, service: &ServiceJson) -> Result<(), Fail> {
        if self.is_silent {
            return Ok(());
        }
        let (mut here, mut all) = (0, 0);
        for replica in service.replicas.iter().filter(|replica| !replica.ready) {
            let name = show::harmless(&replica.name);
            if let (Some(fetched), Some(needed)) = (replica.fetched_bytes, replica.needed_bytes) {
                (here, all) = (here + fetched, all + needed);
                if self.fetching.insert(replica.node) {
                    self.bar.clear();
                    show::line(&format!("  {name} fetches {}", show::size(needed)))?;
                    self.bar = show::Bytes::new("fetching", needed);
                }
            } else if self.told.insert(replica.node) {
                self.bar.clear();
                show::line(&format!("  {name} gets it ready"))?;
            }
        }
        self.bar.expect(all);
        self.bar.set(here);
        let over = service.replicas.iter().all(|replica| replica.ready);
        if over {
            self.bar.clear();
        }
        Ok(())
    }
}
