//! `shoal talk`: a node that lends nothing and measures its links to others, on order, or carries for an application.

use super::Context;
use super::serve::stop_on_signal;
use crate::args::{Lend, Talk};
use crate::fail::Fail;
use crate::node_host::{self, JoinLink, Notice, Options, Talks};
use crate::show;

pub(super) async fn run(context: &Context, args: Talk) -> Result<(), Fail> {
    let lend = Lend {
        no_gpu: true,
        no_direct: args.no_direct,
        cpus: Some(0),
        node_name: None,
        only: Vec::new(),
        never: Vec::new(),
        battery_below: 0,
    };
    let talks = if args.pipe { Talks::Carries } else { Talks::Measures };
    let link = JoinLink::parse(&args.url)?;
    let options = Options { link, data: context.data_folder()?, lend, talks: Some(talks) };
    node_host::run(options, stop_on_signal(), |notice| {
        if let (Notice::Joined { node }, Talks::Measures) = (notice, talks) {
            // Whoever started it may be gone.
            let _ = show::json(&serde_json::json!({ "node": node }));
        }
    })
    .await
}
