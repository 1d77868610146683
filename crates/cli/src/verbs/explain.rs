//! `shoal explain`: why things are as they are, in the coordinator's words.

use serde_json::json;

use super::Context;
use crate::args::{Explain, Subject};
use crate::fail::Fail;
use crate::show;

pub(super) async fn run(context: &Context, args: Explain) -> Result<(), Fail> {
    let client = context.client(&args.server)?;
    let path = match args.subject {
        Subject::Job(job) => format!("/api/v1/jobs/{job}/explain"),
        Subject::Item { job, item } => format!("/api/v1/jobs/{job}/explain?item={item}"),
        Subject::Node(node) => format!("/api/v1/nodes/{node}/explain"),
        Subject::Service(name) => {
            let why = client.explain_service(&name).await?;
            if context.json {
                return show::json(&why);
            }
            return why.lines.iter().try_for_each(|line| show::line(&show::harmless(line)));
        }
    };
    let lines = client.explain(&path).await?.lines;
    if context.json {
        return show::json(&json!({"lines": lines}));
    }
    lines.iter().try_for_each(|line| show::line(&show::harmless(line)))
}
