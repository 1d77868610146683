//! `shoal count`: how often a value is among numbers. The example of CONTRIBUTING.md.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use shoal_api::{JobRequest, WorkRequest};
use shoal_engine::intake::ElementType;
use shoal_kinds::count::CountRequest;

use super::{Context, common, finished, policy};
use crate::args::{JobArgs, Server};
use crate::arrays::file;
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::show;

/// Count how often a number occurs in an array
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  shoal count data.npy --value 7")]
pub(crate) struct Count {
    /// An array of u32 numbers
    #[arg(value_name = "FILE.npy")]
    file: PathBuf,
    /// The number to look for
    #[arg(long, value_name = "N")]
    value: u32,
    #[command(flatten)]
    pub(super) job: JobArgs,
    #[command(flatten)]
    pub(super) server: Server,
}

pub(super) async fn run(
    context: &Context,
    args: Count,
    interrupts: &Interrupts,
) -> Result<(), Fail> {
    let began = Instant::now();
    let number = ElementType { name: "u32".into(), scalar: "u32".into(), lanes: 1, stride: 4 };
    let (source, _) = file::open(&args.file, None, "input", &number)?;
    let client = context.client(&args.server)?;
    let blob = client.upload(&source, &show::Bytes::hidden()).await?;
    let mut common = common(&args.file, &args.job)?;
    policy::add_rules(context, &client, &args.job.policy, &mut common).await?;
    let work = WorkRequest::Count(CountRequest { blob: blob.hash, value: args.value });
    let job = context.run(&client, &JobRequest { common, work }, interrupts).await?;

    let mut bytes = Vec::new();
    let add = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok(())
    };
    client.result(job.id, &show::Bytes::hidden(), add).await?;
    let count: u64 = bytes
        .chunks_exact(4)
        .map(|four| u64::from(u32::from_le_bytes([four[0], four[1], four[2], four[3]])))
        .sum();
    if context.json {
        return show::json(&json!({"job": job, "count": count}));
    }
    show::line(&count.to_string())?;
    finished(context, &job, None, began, &format!("{} numbers", source.size() / 4))
}
