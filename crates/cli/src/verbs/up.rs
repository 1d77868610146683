//! `shoal up`: a coordinator and a node of this machine in one process, and one small job to show
//! that it works.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use serde_json::{Value, json};
use shoal_api::{
    CommonRequest, JobRequest, MapInputRequest, MapRequest, NodeJson, NoopRequest, WorkRequest,
};
use shoal_host::{JoinLink, Options};
use tokio::sync::watch;

use super::join::{as_text, caution};
use super::policy::signature;
use super::serve::{Links, Serving, begin, ended, open, stop_on_signal, wait};
use super::{Context, owner};
use crate::args::{Lend, Up};
use crate::client::{Client, Source, verdict};
use crate::fail::Fail;
use crate::place::{self, Target};
use crate::{keys, show};

/// The small job: squares, by a kernel anyone can read.
const DEMO: &str = "\
@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&output) {
        output[id.x] = input[id.x] * input[id.x];
    }
}
";
const DEMO_ITEMS: u32 = 1000;
/// A node on the same machine joins in well under a second, unless its GPU driver is slow.
const NODE_PATIENCE: Duration = Duration::from_secs(30);
const DEMO_SECONDS: f64 = 60.0;
/// What the node may take to leave when the pool stops.
const GOODBYE: Duration = Duration::from_secs(2);

pub(super) async fn run(context: &Context, args: Up) -> Result<(), Fail> {
    let data = context.data_folder()?;
    let coordinator = open(data.clone(), &args.listen)?;
    let links = Links::of(&coordinator, &data);
    let stop = stop_on_signal();
    // The coordinator outlives the node, so that the node can say goodbye.
    let (close, closed) = watch::channel(false);
    let serving = begin(coordinator, &data, closed).await;
    let node = (!args.no_node).then(|| {
        let link = JoinLink::with_key(&links.urls.join_local, links.key.clone());
        let (data, lend) = (data.clone(), args.lend.clone());
        tokio::spawn(lend_this_machine(context.json, link, data, lend, stop.clone()))
    });
    let greeted = greet(context, &args, &links, &data, stop.clone()).await;
    if greeted.is_ok() {
        until_end(&serving, stop).await;
    }
    if let Some(mut node) = node
        && tokio::time::timeout(GOODBYE, &mut node).await.is_err()
    {
        node.abort();
    }
    let _ = close.send(true);
    let ended = ended(serving).await;
    greeted.and(ended)
}

/// Until the user or a fault stops it.
async fn until_end(serving: &Serving, stop: watch::Receiver<bool>) {
    let mut stop = std::pin::pin!(wait(stop));
    while !serving.is_finished() {
        if tokio::time::timeout(Duration::from_millis(500), &mut stop).await.is_ok() {
            return;
        }
    }
}

async fn lend_this_machine(
    json: bool,
    link: Result<JoinLink, shoal_host::Fail>,
    data: PathBuf,
    lend: Lend,
    stop: watch::Receiver<bool>,
) {
    let told = async {
        let link = link?;
        let base = link.base.clone();
        let first_seen = show::first_seen;
        let beside = Some(place::beside(&data, &base));
        let lend = lend.into();
        let options = Options { link, data, lend, talks: None, first_seen, beside };
        let ran = shoal_host::run(options, stop, move |notice| {
            caution(json, &notice);
            let text = as_text(&base, &notice);
            tracing::info!("{text}");
            // Programs read one document from `up`; people see whose work their machine does.
            if notice.is_about_work() && !json {
                let _ = show::line(&text);
            }
        });
        Ok::<(), Fail>(ran.await?)
    };
    if let Err(fail) = told.await {
        // The pool goes on without this machine's help.
        fail.report(json);
    }
}

/// Shows that it works, then how others join.
async fn greet(
    context: &Context,
    args: &Up,
    links: &Links,
    data: &Path,
    stop: watch::Receiver<bool>,
) -> Result<(), Fail> {
    let target = Target {
        url: links.urls.local.clone(),
        key: links.key.clone(),
        patience: None,
        beside: None,
    };
    let client = Client::new(&target, data)?;
    let demo = async {
        if args.no_node || args.no_demo { Ok(None) } else { demo(&client, data).await.map(Some) }
    };
    let demo = tokio::select! {
        demo = demo => demo,
        () = wait(stop) => return Ok(()),
    };
    if context.json {
        let mut all = links.as_json();
        all["demo"] = match demo {
            Ok(demo) => demo.map_or(Value::Null, |demo| demo.json),
            Err(fail) => fail.as_json(),
        };
        return show::json(&all);
    }
    match demo {
        Ok(Some(demo)) => show::line(&demo.text)?,
        Ok(None) => {}
        // A pool without its first job is still a pool; others may join and compute.
        Err(fail) => drop(fail.report(false)),
    }
    show::line("")?;
    links.print()?;
    show::line(&qr(&links.urls.join))?;
    show::line("Open the join link on any device to lend it. Ctrl-C stops the pool.")
}

struct Demo {
    text: String,
    json: Value,
}

async fn demo(client: &Client, data: &Path) -> Result<Demo, Fail> {
    let node = first_node(client).await?;
    let began = Instant::now();
    let Some(gpu) = node.gpu else {
        let common = CommonRequest { name: Some("hello".into()), ..CommonRequest::default() };
        let work = WorkRequest::Noop(NoopRequest { items: 1000 });
        let request = JobRequest { common, work };
        let job = verdict(client.submit(&request, Some(DEMO_SECONDS)).await?, false)?;
        let took = show::duration(began.elapsed().as_secs_f64());
        let text = format!(
            "first job: 1000 empty units on {} in {took} (it has no GPU, so kernels wait for a \
             node with one)",
            node.name
        );
        return Ok(Demo { text, json: json!({"job": job, "node": node.name, "gpu": null}) });
    };
    let input: Vec<u8> = (0..DEMO_ITEMS).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let blob = client.upload(&Source::Memory(input.into()), &show::Bytes::hidden()).await?;
    let signed = keys::submitter(data)?.sign_code(DEMO.as_bytes());
    let common = CommonRequest {
        name: Some("hello squares".into()),
        owner: Some(owner(None)),
        signature: Some(signature(&signed)),
        ..CommonRequest::default()
    };
    let work = WorkRequest::Map(MapRequest {
        wgsl: DEMO.into(),
        inputs: vec![MapInputRequest { blob: blob.hash, ..MapInputRequest::default() }],
        ..MapRequest::default()
    });
    let request = JobRequest { common, work };
    let job = verdict(client.submit(&request, Some(DEMO_SECONDS)).await?, false)?;
    let mut bytes = Vec::new();
    client
        .result(job.id, &show::Bytes::hidden(), |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })
        .await?;
    let (values, _) = bytes.as_chunks::<4>();
    let values: Vec<f32> = values.iter().map(|value| f32::from_le_bytes(*value)).collect();
    let took = show::duration(began.elapsed().as_secs_f64());
    let software = if gpu.software { ", a software GPU" } else { "" };
    let start: Vec<String> = values.iter().take(6).map(f32::to_string).collect();
    let last = values.last().copied().unwrap_or_default();
    let text = format!(
        "first job: {DEMO_ITEMS} squares on {} ({}{software}) in {took}: {} … {last}",
        node.name,
        gpu.name,
        start.join(" ")
    );
    let json =
        json!({"job": job, "node": node.name, "gpu": gpu, "first": values.get(..6), "last": last});
    Ok(Demo { text, json })
}

async fn first_node(client: &Client) -> Result<NodeJson, Fail> {
    let deadline = Instant::now() + NODE_PATIENCE;
    loop {
        if let Some(node) = client.nodes(false).await?.nodes.first().cloned() {
            return Ok(node);
        }
        if Instant::now() > deadline {
            return Err(Fail::world("no_node", "this machine's own node did not join"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A code for a phone's camera; nothing if the link is too long for one.
fn qr(link: &str) -> String {
    match QrCode::new(link) {
        Ok(code) => {
            let picture = code.render::<Dense1x2>().quiet_zone(true).build();
            if !std::io::stdout().is_terminal() {
                return picture;
            }
            // Black on white whatever the terminal's colours are: cameras want it so.
            let line = |line: &str| format!("\x1b[30;107m{line}\x1b[0m\n");
            picture.lines().map(line).collect()
        }
        Err(_) => String::new(),
    }
}
