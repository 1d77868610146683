//! A node at the far end of a bad line: delayed, lossy where the kernel can do
//! that, and cut in the middle. Needs root and `ip`.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use crate::material::{lines, program, worked_alone};
use crate::relay::Relay;
use crate::world::Pool;

const FLAGS: [&str; 3] = ["--no-gpu", "--cpus", "1"];

/// Each way.
const DELAY: Duration = Duration::from_millis(25);

/// A network namespace with one line to this machine; gone with its test.
struct Line {
    name: String,
    /// This machine's end.
    here: String,
    address: String,
    /// The kernel delays and loses packets; otherwise a relay only delays them.
    is_lossy: bool,
}

impl Line {
    /// `None`, said aloud with the reason, where the machine does not allow it.
    fn lay(number: u8) -> Option<Line> {
        let name = format!("shoal{}-{number}", std::process::id());
        // An interface's name has 15 letters at most.
        let here = format!("sh{}-{number}", std::process::id() % 1_000_000);
        let there = format!("{here}x");
        let [a, b] = (0xc800 | (std::process::id() as u16) << 2 | u16::from(number)).to_be_bytes();
        let (address, far) = (format!("10.{a}.{b}.1"), format!("10.{a}.{b}.2"));
        let mut line = Line { name, here, address, is_lossy: false };
        if let Err(reason) = line.connect(&there, &far) {
            // Past the test harness, which keeps what tests that pass say to itself.
            let _ = writeln!(std::io::stderr(), "skipped: no network namespace: {reason}");
            return None;
        }
        line.is_lossy = run("tc", &shape(&line.here))
            .and_then(|()| line.inside(&[&["tc"][..], &shape(&there)].concat()))
            .is_ok();
        if !line.is_lossy {
            eprintln!("this kernel has no netem: the line is delayed by a relay and loses nothing");
        }
        Some(line)
    }

    fn connect(&self, there: &str, far: &str) -> Result<(), String> {
        run("ip", &["netns", "add", &self.name])?;
        run("ip", &["link", "add", &self.here, "type", "veth", "peer", "name", there])?;
        run("ip", &["link", "set", there, "netns", &self.name])?;
        run("ip", &["addr", "add", &format!("{}/30", self.address), "dev", &self.here])?;
        run("ip", &["link", "set", &self.here, "up"])?;
        self.inside(&["ip", "addr", "add", &format!("{far}/30"), "dev", there])?;
        self.inside(&["ip", "link", "set", there, "up"])?;
        self.inside(&["ip", "link", "set", "lo", "up"])
    }

    fn inside(&self, command: &[&str]) -> Result<(), String> {
        run("ip", &[&["netns", "exec", &self.name], command].concat())
    }

    fn cut(&self) {
        run("ip", &["link", "set", &self.here, "down"]).expect("cut");
    }

    fn mend(&self) {
        run("ip", &["link", "set", &self.here, "up"]).expect("mended");
    }

    fn enter(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.name]
    }

    /// The pool's join link as the far end sees it, and what stands in between.
    fn link(&self, pool: &Pool) -> (String, Option<Relay>) {
        let (base, token) = pool.join.split_once("/join#").expect("a join link");
        let port = base.rsplit(':').next().expect("a port");
        let upstream = format!("127.0.0.1:{port}").parse().expect("an address");
        let relay = (!self.is_lossy).then(|| Relay::start(&self.address, upstream, DELAY));
        let place = relay
            .as_ref()
            .map_or(format!("{}:{port}", self.address), |relay| relay.address.to_string());
        (format!("https://{place}/join#{token}"), relay)
    }
}

fn shape(end: &str) -> [&str; 10] {
    ["qdisc", "add", "dev", end, "root", "netem", "delay", "25ms", "loss", "1%"]
}

impl Drop for Line {
    fn drop(&mut self) {
        let _ = run("ip", &["link", "del", &self.here]);
        let _ = run("ip", &["netns", "del", &self.name]);
    }
}

/// Or why not.
fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let command = format!("{program} {}", args.join(" "));
    let done = Command::new(program).args(args).output();
    let done = done.map_err(|error| format!("{command}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&done.stderr).trim()))
}

const ARGS: [&str; 7] = ["--lines", "--unit", "1", "--verify", "none", "--", "work"];

#[test]
fn a_node_whose_line_is_cut_costs_no_answer() {
    let Some(line) = Line::lay(1) else { return };
    let lines = lines(40);
    let wanted = worked_alone(&lines);
    let pool = Pool::listen("0.0.0.0:0");
    let _near = pool.node("near", &FLAGS);
    let (link, _relay) = line.link(&pool);
    let _far = pool.node_in(&line.enter(), &link, "far", &FLAGS);
    let job = pool.begin(&[&["exec", program()][..], &ARGS].concat(), lines.as_bytes());
    pool.wait("the far node answered, and its distance is known", || {
        pool.seen("far").is_some_and(|node| {
            // Twice the delay at least, whatever else the machine does.
            node["unitsDone"].as_u64() > Some(0) && node["roundTripMs"].as_f64() >= Some(50.0)
        })
    });
    line.cut();
    assert_eq!(job.end().ok().stdout, wanted);
}

#[test]
fn a_line_that_comes_back_brings_its_node_back() {
    let Some(line) = Line::lay(2) else { return };
    let lines = lines(40);
    let wanted = worked_alone(&lines);
    let pool = Pool::listen("0.0.0.0:0");
    let (link, _relay) = line.link(&pool);
    let _far = pool.node_in(&line.enter(), &link, "far", &FLAGS);
    let job = pool.begin(&[&["exec", program()][..], &ARGS].concat(), lines.as_bytes());
    pool.until_done(3);
    line.cut();
    pool.wait("the silence is noticed", || {
        pool.seen("far").is_none_or(|far| {
            // It may be gone for good between two looks.
            let done = pool.run(&["explain", &format!("node:{}", far["id"])]);
            done.code != Some(0) || String::from_utf8_lossy(&done.stdout).contains("gone silent")
        })
    });
    line.mend();
    assert_eq!(job.end().ok().stdout, wanted);
}
