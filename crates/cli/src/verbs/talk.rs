//! `shoal talk`: a node that lends nothing and measures its links to others, on order, or carries for an application.

use shoal_host::{JoinLink, Lend, Notice, Options, Talks};

use super::Context;
use super::serve::stop_on_signal;
use crate::args::Talk;
use crate::fail::Fail;
use crate::show;

pub(super) async fn run(context: &Context, args: Talk) -> Result<(), Fail> {
    let lend = Lend { direct: !args.no_direct, ..Lend::nothing() };
    let talks = if args.pipe { Talks::Carries } else { Talks::Measures };
    let link = JoinLink::parse(&args.url)?;
    let (data, first_seen) = (context.data_folder()?, show::first_seen);
    let options = Options { link, data, lend, talks: Some(talks), first_seen, beside: None };
    let ran = shoal_host::run(options, stop_on_signal(), |notice| {
        if let (Notice::Joined { node }, Talks::Measures) = (notice, talks) {
            // Whoever started it may be gone.
            let _ = show::json(&serde_json::json!({ "node": node }));
        }
    });
    Ok(ran.await?)
}
