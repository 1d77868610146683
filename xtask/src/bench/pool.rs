//! A pool of real processes for a benchmark, in a folder that goes with it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::shell::{Outcome, command, make_dir, not_started, output, shoal, target};

/// The coordinator's folder in that of the pool.
const COORDINATOR: &str = "coordinator";

/// What a coordinator writes into its data folder once it can be reached.
#[derive(Deserialize)]
pub(super) struct Running {
    pub(super) url: String,
    pub(super) key: String,
    pub(super) join: String,
}

pub(super) struct Pool {
    folder: PathBuf,
    /// The coordinator is the first.
    children: Vec<Child>,
    pub(super) running: Running,
}

impl Pool {
    /// A coordinator alone, on a free port of this machine.
    pub(super) fn start() -> Outcome<Pool> {
        Pool::start_with(&[])
    }

    /// The same with more to say to the coordinator.
    pub(super) fn start_with(flags: &[&str]) -> Outcome<Pool> {
        let folder = target().join("bench").join(std::process::id().to_string());
        let _ = std::fs::remove_dir_all(&folder);
        make_dir(&folder)?;
        let (serve, running) = serve(&folder, "127.0.0.1:0", flags)?;
        Ok(Pool { folder, children: vec![serve], running })
    }

    /// The coordinator as it is after a power cut: killed, and started again on the same data.
    pub(super) fn crash(&mut self) -> Outcome {
        let Some(coordinator) = self.children.first_mut() else { return Ok(()) };
        coordinator.kill().map_err(|error| format!("the coordinator: {error}"))?;
        coordinator.wait().map_err(|error| format!("the coordinator: {error}"))?;
        let place = self.place().to_owned();
        // The old note would say that it is up already.
        let _ = std::fs::remove_file(note(&self.folder));
        let (serve, running) = serve(&self.folder, &place, &[])?;
        self.children[0] = serve;
        self.running = running;
        Ok(())
    }

    /// Host and port.
    pub(super) fn place(&self) -> &str {
        self.running.url.trim_start_matches("http://")
    }

    /// What lets a node in.
    pub(super) fn token(&self) -> &str {
        self.running.join.split_once('#').map_or("", |(_, token)| token)
    }

    /// Adds a native node and waits until the coordinator counts it.
    pub(super) fn add_node(&mut self, args: &[&str]) -> Outcome {
        self.add_node_on(None, args)
    }

    /// The same, kept on these cores: a list as `taskset` takes it.
    pub(super) fn add_node_on(&mut self, cores: Option<&str>, args: &[&str]) -> Outcome {
        let data = self.folder.join(format!("node-{}", self.children.len()));
        let link = self.running.join.clone();
        let mut words = vec!["join", link.as_str()];
        words.extend(args);
        self.children.push(spawn(cores, &data, &words)?);
        self.wait_for_last()
    }

    /// Adds a native node of the operator's that shares the coordinator's folder, as that of `shoal up` does.
    pub(super) fn add_own_node(&mut self) -> Outcome {
        let (data, at) = (self.data(), &self.running);
        let words = ["join", at.url.as_str(), "--key", at.key.as_str()];
        self.children.push(spawn(None, &data, &words)?);
        self.wait_for_last()
    }

    fn wait_for_last(&self) -> Outcome {
        let number = self.children.len() - 1;
        wait_for("a node", || {
            let text = output(self.client(&["nodes", "--json"]).stderr(Stdio::null())).ok()?;
            let nodes: serde_json::Value = serde_json::from_str(&text).ok()?;
            nodes["nodes"].as_array().filter(|nodes| nodes.len() >= number).map(|_| ())
        })
    }

    /// The coordinator's folder.
    pub(super) fn data(&self) -> PathBuf {
        self.folder.join(COORDINATOR)
    }

    /// A file that goes with the pool.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A client verb of this pool.
    pub(super) fn client(&self, words: &[&str]) -> Command {
        let mut client = command(shoal());
        client.args(words).args(["--url", &self.running.url, "--key", &self.running.key]);
        client
    }

    /// Its native nodes' processes.
    pub(super) fn nodes(&self) -> impl Iterator<Item = u32> {
        self.children.iter().skip(1).map(Child::id)
    }

    /// Seconds of processor time the coordinator has taken so far.
    pub(super) fn coordinator_cpu(&self) -> Option<f64> {
        cpu(self.children.first()?.id())
    }

    /// The same of all native nodes together.
    pub(super) fn nodes_cpu(&self) -> Option<f64> {
        self.nodes().map(cpu).sum()
    }

    /// Bytes of memory the coordinator has now.
    pub(super) fn coordinator_memory(&self) -> Option<f64> {
        let pid = self.children.first()?.id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024.0)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Already gone is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Seconds of processor time a process has taken so far.
fn cpu(process: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in brackets may hold blanks; user and system time are the 12th and 13th after it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}

/// A coordinator that can be reached.
fn serve(folder: &Path, place: &str, flags: &[&str]) -> Outcome<(Child, Running)> {
    let words = [&["serve", "--listen", place], flags].concat();
    let serve = spawn(None, &folder.join(COORDINATOR), &words)?;
    let note = note(folder);
    let running = wait_for("the coordinator", || {
        std::fs::read_to_string(&note).ok().and_then(|text| serde_json::from_str(&text).ok())
    })?;
    Ok((serve, running))
}

fn note(folder: &Path) -> PathBuf {
    folder.join(COORDINATOR).join("running.json")
}

fn spawn(cores: Option<&str>, data: &Path, words: &[&str]) -> Outcome<Child> {
    let program = shoal();
    let mut child = roomy(if cores.is_some() { Path::new("taskset") } else { &program });
    if let Some(cores) = cores {
        child.args(["-c", cores]).arg(&program);
    }
    child.args(words).arg("--data").arg(data).env_remove("SHOAL_LOG");
    child.stdin(Stdio::null()).stdout(Stdio::null());
    child.spawn().map_err(|error| not_started(&child, &error))
}

/// A program with as many open files as this user may have: every node is one.
pub(super) fn roomy(program: &Path) -> Command {
    let mut sh = command("sh");
    sh.args(["-c", "ulimit -n \"$(ulimit -Hn)\"; exec \"$0\" \"$@\""]).arg(program);
    sh
}

/// Asks again and again, for at most twenty seconds.
fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> Outcome<T> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        if let Some(answer) = ask() {
            return Ok(answer);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(format!("{what} did not come up within 20 s"))
}
