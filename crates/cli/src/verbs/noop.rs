//! `shoal noop`: units without content, for measuring the pool itself.

use std::time::Instant;

use serde_json::json;
use shoal_api::{CommonRequest, JobRequest, NoopRequest, WorkRequest};

use super::{Context, owner};
use crate::args::Noop;
use crate::client::verdict;
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::show;

pub(super) async fn run(
    context: &Context,
    args: Noop,
    interrupts: &Interrupts,
) -> Result<(), Fail> {
    let client = context.client(&args.server)?;
    let common = CommonRequest {
        name: Some("noop".into()),
        owner: Some(owner(None)),
        unit: Some(args.unit),
        ..CommonRequest::default()
    };
    let work = WorkRequest::Noop(NoopRequest { items: args.items });
    let request = JobRequest { common, work };
    if args.repeat == 1 {
        let began = Instant::now();
        let job = context.run(&client, &request, interrupts).await?;
        let seconds = began.elapsed().as_secs_f64();
        let units = args.items.div_ceil(args.unit);
        let rate = units as f64 / seconds;
        if context.json {
            return show::json(
                &json!({"job": job, "seconds": seconds, "units": units, "unitsPerSecond": rate}),
            );
        }
        return show::line(&format!(
            "{units} units in {}: {}/s",
            show::duration(seconds),
            show::count(rate)
        ));
    }
    let mut millis = Vec::with_capacity(args.repeat as usize);
    for _ in 0..args.repeat {
        let began = Instant::now();
        let mut job = client.submit(&request, Some(10.0)).await?;
        if !job.state.has_ended() {
            job = client.until_end(job, &show::Quiet).await?;
        }
        verdict(job, false)?;
        millis.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    millis.sort_by(f64::total_cmp);
    let at = |share: f64| millis[((millis.len() - 1) as f64 * share) as usize];
    let (p50, p90, p99) = (at(0.5), at(0.9), at(0.99));
    if context.json {
        return show::json(
            &json!({"jobs": args.repeat, "p50Millis": p50, "p90Millis": p90, "p99Millis": p99}),
        );
    }
    show::line(&format!("{} jobs: p50 {p50:.3} ms, p90 {p90:.3} ms, p99 {p99:.3} ms", args.repeat))
}
