//! A process and all that it started.

use std::collections::BTreeMap;
use std::process::Command;

/// Ends it and all that it started, and names them, so that one sees what hung.
pub(super) fn end(pid: u32) {
    let all = running();
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        family.extend(all.iter().filter(|(_, each)| each.parent == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    for pid in &family {
        if let Some(each) = all.get(pid) {
            println!("  {pid} {}", each.words.chars().take(200).collect::<String>());
        }
    }
    // Parents first: they would start what ended anew.
    let family = family.iter().map(u32::to_string);
    let _ = Command::new("kill").arg("-KILL").args(family).status();
}

struct Running {
    parent: u32,
    words: String,
}

/// All processes of this machine by number.
fn running() -> BTreeMap<u32, Running> {
    let listed = Command::new("ps").args(["-eo", "pid=,ppid=,args="]).output();
    let listed = listed.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    let process = |line: &str| {
        let mut words = line.split_whitespace();
        let pid = words.next()?.parse().ok()?;
        let parent = words.next()?.parse().ok()?;
        let words = words.collect::<Vec<_>>().join(" ");
        Some((pid, Running { parent, words }))
    };
    listed.unwrap_or_default().lines().filter_map(process).collect()
}
