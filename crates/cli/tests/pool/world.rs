//! A small world for tests: a coordinator, its nodes and its clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) use crate::process::{Done, Folder, PATIENCE, Process, Running, shoal};

/// A coordinator with its own data folder.
pub(crate) struct Pool {
    pub(crate) process: Process,
    pub(crate) folder: Folder,
    pub(crate) join: String,
    pub(crate) url: String,
    pub(crate) key: String,
}

impl Pool {
    pub(crate) fn start() -> Pool {
        Pool::listen("127.0.0.1:0")
    }

    pub(crate) fn listen(address: &str) -> Pool {
        Pool::with(address, &[])
    }

    /// The same with more to say to the coordinator.
    pub(crate) fn with(address: &str, flags: &[&str]) -> Pool {
        let folder = Folder::new();
        let (process, links) = serve(&folder, address, flags);
        let text = |name: &str| links[name].as_str().expect("a link").to_owned();
        Pool { process, join: text("joinLocal"), url: text("url"), key: text("key"), folder }
    }

    /// A pool with one node.
    pub(crate) fn with_node() -> (Pool, Process) {
        let pool = Pool::start();
        let node = pool.node("first", &[]);
        (pool, node)
    }

    /// A node that has joined.
    pub(crate) fn node(&self, name: &str, flags: &[&str]) -> Process {
        self.node_by(&self.join, name, flags)
    }

    /// The same by another link.
    pub(crate) fn node_by(&self, link: &str, name: &str, flags: &[&str]) -> Process {
        self.node_in(&[], link, name, flags)
    }

    /// The same started by another command, such as one that changes the network.
    pub(crate) fn node_in(
        &self,
        before: &[&str],
        link: &str,
        name: &str,
        flags: &[&str],
    ) -> Process {
        let data = self.folder.path(name).display().to_string();
        let mut args = vec!["join", link, "--json", "--data", &data, "--node-name", name];
        args.extend(flags);
        let node = Process::spawn(wrapped(before, shoal(&args)));
        let offers = node.line(|line| line["event"] == "offers");
        let has_gpu = offers["gpu"].is_string() || flags.contains(&"--no-gpu");
        assert!(has_gpu, "these tests need a Vulkan driver, a software one will do: {offers}");
        node.line(|line| line["event"] == "joined");
        node
    }

    /// Runs a client verb to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.run_with(args, b"")
    }

    pub(crate) fn run_with(&self, args: &[&str], stdin: &[u8]) -> Done {
        self.begin(args, stdin).end()
    }

    /// Starts a client verb that is waited for later.
    pub(crate) fn begin(&self, args: &[&str], stdin: &[u8]) -> Running {
        let data = self.folder.path("data").display().to_string();
        Running::start(args, &[("SHOAL_DATA", &data)], stdin)
    }

    /// Asked for directly, as [`Pool::seen`]: a process for each look would take the cores from those who compute.
    pub(crate) fn job(&self, number: u64) -> Option<Value> {
        let jobs = self.ask("GET /api/v1/jobs", "");
        let jobs = jobs["jobs"].as_array().cloned().unwrap_or_default();
        jobs.into_iter().find(|job| job["id"] == number)
    }

    /// A node by its name, as the coordinator shows it.
    pub(crate) fn seen(&self, name: &str) -> Option<Value> {
        let nodes = self.ask("GET /api/v1/nodes", "");
        let nodes = nodes["nodes"].as_array().cloned().unwrap_or_default();
        nodes.into_iter().find(|node| node["name"] == name)
    }

    /// What the relay counted.
    pub(crate) fn relay(&self) -> Value {
        self.ask("GET /api/v1/pool", "")["relay"].take()
    }

    /// What the coordinator's API says to this; nothing where it has nothing to say.
    pub(crate) fn ask(&self, what: &str, body: &str) -> Value {
        self.ask_with(what, "", body).1
    }

    /// The same with more lines in the head, and the head of the answer.
    pub(crate) fn ask_with(&self, what: &str, more: &str, body: &str) -> (String, Value) {
        let (head, body) = self.answer(what, more, body);
        assert!(head.starts_with("HTTP/1.1 20"), "{head} {body}");
        let said =
            if body.is_empty() { Value::Null } else { serde_json::from_str(&body).expect("JSON") };
        (head, said)
    }

    /// Head and body of an answer, whatever it says.
    pub(crate) fn answer(&self, what: &str, more: &str, body: &str) -> (String, String) {
        let place = self.url.trim_start_matches("http://");
        let mut socket = TcpStream::connect(place).expect("the coordinator");
        let (key, length) = (&self.key, body.len());
        let request = format!(
            "{what} HTTP/1.1\r\nhost: {place}\r\nauthorization: Bearer {key}\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        socket.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
        (head.into(), body.into())
    }

    /// What `shoal explain` says, as one text.
    pub(crate) fn explain(&self, subject: &str) -> String {
        let done = self.run(&["explain", subject]).ok();
        String::from_utf8(done.stdout).expect("text")
    }

    /// Waits until job 1 has done at least so many items.
    pub(crate) fn until_done(&self, items: u64) {
        self.until(|job| job["itemsDone"].as_u64() >= Some(items));
    }

    /// Waits until job 1 is as wanted.
    pub(crate) fn until(&self, wanted: impl Fn(&Value) -> bool) {
        self.wait("job 1", || self.job(1).is_some_and(|job| wanted(&job)));
    }

    /// Looks again and again until it is so.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < deadline, "not in time: {what}; job 1 is {:?}", self.job(1));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The coordinator killed with -9 and started again on the same folder and port.
    pub(crate) fn crash_and_restart(&mut self) {
        self.process.kill();
        self.restart();
    }

    /// Started again after it was killed.
    pub(crate) fn restart(&mut self) {
        let address = self.url.trim_start_matches("http://").to_owned();
        let (process, links) = serve(&self.folder, &address, &[]);
        assert_eq!(links["key"], self.key.as_str(), "the key is kept");
        self.process = process;
    }
}

fn serve(folder: &Folder, listen: &str, flags: &[&str]) -> (Process, Value) {
    let data = folder.path("data").display().to_string();
    let args = ["serve", "--json", "--listen", listen, "--data", &data];
    let process = Process::start(&[&args, flags].concat());
    let links = process.line(|line| line["url"].is_string());
    (process, links)
}

/// A command started through another.
fn wrapped(before: &[&str], command: std::process::Command) -> std::process::Command {
    let [first, rest @ ..] = before else { return command };
    let mut outer = std::process::Command::new(first);
    outer.args(rest).arg(command.get_program()).args(command.get_args());
    for (name, _) in command.get_envs() {
        outer.env_remove(name);
    }
    outer
}
