//! A node at the far end of a bad line: delayed, lossy, cut in the middle. Needs root, `ip` and `tc`.

use std::process::Command;

use crate::material::program;
use crate::world::Pool;

const FLAGS: [&str; 3] = ["--no-gpu", "--cpus", "1"];

/// A network namespace with one line to this machine; gone with its test.
struct Line {
    name: String,
    /// This machine's end.
    here: String,
    address: String,
}

impl Line {
    /// `None`, said aloud, where the machine does not allow it.
    fn lay(number: u8) -> Option<Line> {
        let name = format!("shoal{}-{number}", std::process::id());
        // An interface's name has 15 letters at most.
        let here = format!("sh{}-{number}", std::process::id() % 1_000_000);
        let there = format!("{here}x");
        let [a, b] = ((std::process::id() % 60_000) as u16 + u16::from(number)).to_be_bytes();
        let (address, far) = (format!("10.{a}.{b}.1"), format!("10.{a}.{b}.2"));
        let line = Line { name, here, address };
        let laid = run("ip", &["netns", "add", &line.name])
            && run("ip", &["link", "add", &line.here, "type", "veth", "peer", "name", &there])
            && run("ip", &["link", "set", &there, "netns", &line.name])
            && run("ip", &["addr", "add", &format!("{}/30", line.address), "dev", &line.here])
            && run("ip", &["link", "set", &line.here, "up"])
            && line.inside(&["ip", "addr", "add", &format!("{far}/30"), "dev", &there])
            && line.inside(&["ip", "link", "set", &there, "up"])
            && line.inside(&["ip", "link", "set", "lo", "up"])
            && line.inside(&[
                "tc", "qdisc", "add", "dev", &there, "root", "netem", "delay", "25ms", "loss", "1%",
            ])
            && run(
                "tc",
                &[
                    "qdisc", "add", "dev", &line.here, "root", "netem", "delay", "25ms", "loss",
                    "1%",
                ],
            );
        if !laid {
            eprintln!(
                "skipped: no network namespace could be made (needs root, ip and tc with netem)"
            );
            return None;
        }
        Some(line)
    }

    fn inside(&self, command: &[&str]) -> bool {
        run("ip", &[&["netns", "exec", &self.name], command].concat())
    }

    fn cut(&self) {
        assert!(run("ip", &["link", "set", &self.here, "down"]));
    }

    fn mend(&self) {
        assert!(run("ip", &["link", "set", &self.here, "up"]));
    }

    fn enter(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.name]
    }

    /// The pool's join link as the far end sees it.
    fn link(&self, pool: &Pool) -> String {
        let (base, token) = pool.join.split_once("/join#").expect("a join link");
        let port = base.rsplit(':').next().expect("a port");
        format!("https://{}:{port}/join#{token}", self.address)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        run("ip", &["link", "del", &self.here]);
        run("ip", &["netns", "del", &self.name]);
    }
}

fn run(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|done| done.status.success())
}

fn lines(count: u64) -> String {
    (0..count).map(|i| format!("{i}\n")).collect()
}

/// What one node alone makes of the lines.
fn alone(lines: &str) -> Vec<u8> {
    let pool = Pool::start();
    let _node = pool.node("alone", &FLAGS);
    let args = ["exec", program(), "--lines", "--", "work"];
    pool.run_with(&args, lines.as_bytes()).ok().stdout
}

const ARGS: [&str; 7] = ["--lines", "--unit", "1", "--verify", "none", "--", "work"];

#[test]
fn a_node_whose_line_is_cut_is_not_waited_for() {
    let Some(line) = Line::lay(1) else { return };
    let lines = lines(40);
    let wanted = alone(&lines);
    let pool = Pool::listen("0.0.0.0:0");
    let _near = pool.node("near", &FLAGS);
    let _far = pool.node_in(&line.enter(), &line.link(&pool), "far", &FLAGS);
    let job = pool.begin(&[&["exec", program()][..], &ARGS].concat(), lines.as_bytes());
    pool.wait("the far node answered", || {
        pool.seen("far").is_some_and(|node| node["unitsDone"].as_u64() > Some(0))
    });
    line.cut();
    assert_eq!(job.end().ok().stdout, wanted);
    let round_trip = |node: &serde_json::Value| node["roundTripMs"].as_f64();
    if let Some(far) = pool.seen("far").as_ref().and_then(round_trip) {
        assert!(far >= 50.0, "the delay was measured: {far} ms");
    }
}

#[test]
fn a_line_that_comes_back_brings_its_node_back() {
    let Some(line) = Line::lay(2) else { return };
    let lines = lines(40);
    let wanted = alone(&lines);
    let pool = Pool::listen("0.0.0.0:0");
    let _far = pool.node_in(&line.enter(), &line.link(&pool), "far", &FLAGS);
    let job = pool.begin(&[&["exec", program()][..], &ARGS].concat(), lines.as_bytes());
    pool.until_done(3);
    line.cut();
    pool.wait("the silence is noticed", || {
        pool.seen("far").is_none_or(|far| {
            // It may be gone for good between two looks.
            let done = pool.run(&["explain", &format!("node:{}", far["id"])]);
            done.code != Some(0) || String::from_utf8_lossy(&done.stdout).contains("fell silent")
        })
    });
    line.mend();
    assert_eq!(job.end().ok().stdout, wanted);
}
