//! Crews whose frames go by QUIC, and by socket again when that is lost: the field is the same.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::proxy::Proxy;
use crate::sim::{Crew, undisturbed};
use crate::world::{Folder, shoal};

const RELAYED: &[&str] = &["--no-direct"];

fn bytes(relay: &Value, way: &str) -> u64 {
    let count = |direction: &str| relay[way][direction].as_u64().expect("a count");
    count("in") + count("out")
}

#[test]
fn frames_of_a_relayed_crew_go_by_quic() {
    let crew = Crew::by(2, |pool, n| pool.node(&format!("n{n}"), RELAYED));
    crew.begin(2).end().ok();
    assert!(crew.field() == undisturbed());
    let relay = crew.pool.relay();
    assert!(relay["quicOpened"].as_u64() >= Some(2), "{relay}");
    // Only what was said before the ways were open went by socket.
    assert!(bytes(&relay, "quic") > 0, "{relay}");
}

#[test]
fn a_line_that_is_cut_in_the_middle_changes_nothing_but_the_way() {
    let lines = Mutex::new(Vec::new());
    let crew = Crew::by(2, |pool, n| {
        let line = Line::to(&pool.url);
        let proxy = Proxy::turns_quic(&pool.join, line.port);
        let node = pool.node_by(&proxy.link, &format!("n{n}"), RELAYED);
        lines.lock().expect("no panic").push((line, proxy));
        node
    });
    let job = crew.begin(2);
    crew.until_kept(2);
    crew.pool.wait("frames by QUIC", || bytes(&crew.pool.relay(), "quic") > 0);
    lines.lock().expect("no panic").iter().for_each(|(line, _)| line.cut());
    let cut = crew.pool.relay();
    crew.pool.wait("frames by socket", || {
        bytes(&crew.pool.relay(), "socket") > bytes(&cut, "socket") + 10_000
    });
    job.end().ok();
    assert!(crew.field() == undisturbed());
}

#[test]
fn a_port_that_is_taken_is_named_and_done_without() {
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let folder = Folder::new();
    let data = folder.path("data").display().to_string();
    let mut child = shoal(&["serve", "--json", "--listen", &address, "--data", &data])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("shoal starts");
    let (mut line, mut links) = (String::new(), String::new());
    let said = child.stderr.take().expect("a pipe");
    BufReader::new(said).read_line(&mut line).expect("a line");
    let printed = child.stdout.take().expect("a pipe");
    BufReader::new(printed).read_line(&mut links).expect("links");
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(line.starts_with("no QUIC: UDP port") && line.contains("in use"), "{line}");
    assert!(links.contains(&address), "{links}");
}

/// Passes datagrams between one node and the coordinator until it is cut. Nobody is told of that.
struct Line {
    port: u16,
    cut: Arc<AtomicBool>,
}

impl Line {
    /// To the UDP port with the same number as the coordinator's port.
    fn to(url: &str) -> Line {
        let near = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
        let far = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
        far.connect(url.trim_start_matches("http://")).expect("an address");
        let line = Line { port: near.local_addr().expect("a port").port(), cut: Arc::default() };
        let client = Arc::new(Mutex::new(None));
        let (cut, from, to, seen) = (line.cut.clone(), near.clone(), far.clone(), client.clone());
        pass(&from.clone(), cut, move |bytes, source| {
            *seen.lock().expect("no panic") = Some(source);
            to.send(bytes)
        });
        pass(&far, line.cut.clone(), move |bytes, _| match *client.lock().expect("no panic") {
            Some(client) => near.send_to(bytes, client),
            None => Ok(0),
        });
        line
    }

    fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }
}

/// Ends with the test's process, or soon after the line is cut.
fn pass(
    from: &Arc<UdpSocket>,
    cut: Arc<AtomicBool>,
    send: impl Fn(&[u8], std::net::SocketAddr) -> std::io::Result<usize> + Send + 'static,
) {
    let from = from.clone();
    from.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    std::thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        while !cut.load(Ordering::Relaxed) {
            if let Ok((length, source)) = from.recv_from(&mut bytes) {
                let _ = send(&bytes[..length], source);
            }
        }
    });
}
