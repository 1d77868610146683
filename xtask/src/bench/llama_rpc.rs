//! llama.cpp with its layers on several workers of this machine (its RPC backend), beside our nodes. Its packages contain no
//! such workers, and building them takes many minutes: it is measured where somebody has built them.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::report::{Report, most};
use super::{Plan, number};
use crate::shell::{Outcome, command, output};

/// The folder with llama.cpp's worker and `llama-bench`, built from the sources in PyPI's llama-cpp-python
/// (`vendor/llama.cpp`) by cmake with `-DGGML_RPC=ON -DLLAMA_BUILD_TOOLS=ON`.
const FOLDER: &str = "SHOAL_LLAMA_CPP";
/// What the worker is called, in newer versions and in older ones.
const WORKERS: [&str; 2] = ["ggml-rpc-server", "rpc-server"];
/// Tokens of an answer.
const TOKENS: &str = "160";
const FIRST_PORT: u16 = 50_152;
/// How long a worker may take to listen.
const PATIENCE: Duration = Duration::from_secs(20);

/// A worker, until it is dropped.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Tokens a second of one conversation with one, two and three workers of one thread each.
pub(super) fn beside(plan: &Plan, model: &Path, report: &mut Report) -> Outcome {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        report.note(format!("llama.cpp's RPC was not measured: {FOLDER} names no folder with it"));
        return Ok(());
    };
    for workers in 1..=3 {
        let mut found = Vec::new();
        for round in 1..=plan.rounds {
            plan.say(&format!("round {round}: llama.cpp with {workers} workers"));
            found.push(measure(&folder, model, workers)?);
        }
        report.peer(&format!("llamaCppRpc.workers{workers}PerSecond"), most(&found));
    }
    report.note("llama.cpp RPC: workers with one thread each, asked by llama-bench, not over HTTP");
    Ok(())
}

fn measure(folder: &Path, model: &Path, workers: u16) -> Outcome<f64> {
    let places: Vec<String> =
        (0..workers).map(|at| format!("127.0.0.1:{}", FIRST_PORT + at)).collect();
    let _workers: Vec<Worker> =
        places.iter().map(|place| start(folder, place)).collect::<Outcome<_>>()?;
    let mut bench = command(folder.join("llama-bench"));
    bench.arg("-m").arg(model).args(["-p", "0", "-n", TOKENS, "-t", "1", "-ngl", "99", "-r", "1"]);
    let text = output(bench.args(["--rpc", &places.join(","), "-o", "json"]))?;
    let found: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| format!("llama-bench: {error}"))?;
    number(&found[0], "avg_ts")
}

fn start(folder: &Path, place: &str) -> Outcome<Worker> {
    let (host, port) = place.split_once(':').ok_or("no port")?;
    let program = WORKERS.iter().map(|name| folder.join(name)).find(|path| path.exists());
    let program = program.ok_or_else(|| {
        format!("{FOLDER}: there is no {} in {}", WORKERS.join(" and no "), folder.display())
    })?;
    let mut server = command(program);
    server.args(["-H", host, "-p", port, "-t", "1"]).stdout(Stdio::null()).stderr(Stdio::null());
    let child = server.spawn().map_err(|error| format!("llama.cpp's worker: {error}"))?;
    let worker = Worker(child);
    let began = Instant::now();
    while TcpStream::connect(place).is_err() {
        if began.elapsed() > PATIENCE {
            return Err(format!("the worker at {place} does not listen"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(worker)
}
