//! Jobs and nodes as tables.

use std::time::{SystemTime, UNIX_EPOCH};

use comfy_table::{Cell, CellAlignment, Table, presets};
use shoal_api::{ConditionJson, JobJson, LeftNodeJson, NodeJson, StateJson, TrustJson, TrustsJson};

use super::text::{count, duration, size};

/// Columns wide enough to tell apart; longer names are cut.
const NAME_CHARS: usize = 32;

pub(crate) fn jobs(jobs: &[JobJson]) -> String {
    if jobs.is_empty() {
        return "no jobs yet; try: shoal map KERNEL.wgsl DATA.npy -o OUT.npy".into();
    }
    let mut table =
        table(&["JOB", "NAME", "KIND", "STATE", "DONE", "CHECKED", "RATE", "TOOK", "NODES"]);
    for job in jobs {
        let percent = job.items_done as f64 * 100.0 / job.items.max(1) as f64;
        let state = match (&job.state, job.able_nodes) {
            (StateJson::Running, 0) => "waiting".to_owned(),
            (state, _) => state.word().to_owned(),
        };
        let rate = if job.rate > 0.0 { format!("{}/s", count(job.rate)) } else { String::new() };
        table.add_row([
            right(job.id.to_string()),
            Cell::new(short(&job.name)),
            Cell::new(&job.kind),
            Cell::new(state),
            right(format!("{percent:.0}% of {}", count(job.items as f64))),
            right(checked(job)),
            right(rate),
            right(took(job).map(duration).unwrap_or_default()),
            right(job.shares.len().to_string()),
        ]);
    }
    table.to_string()
}

/// Two models side by side, a row for each engine.
pub(crate) fn compared(rows: &[[String; 5]]) -> String {
    let mut table = table(&["ENGINE", "BEFORE", "AFTER", "LARGEST DIFFERENCE", "SAME CLASS"]);
    for [engine, before, after, difference, agreement] in rows {
        table.add_row([
            Cell::new(engine),
            right(before.clone()),
            right(after.clone()),
            right(difference.clone()),
            right(agreement.clone()),
        ]);
    }
    table.to_string()
}

/// What each form of tensors between devices costs and changes.
pub(crate) fn forms(rows: &[[String; 4]]) -> String {
    let mut table = table(&["WIRE", "SENT PER ITEM", "LARGEST DIFFERENCE", "SAME CLASS"]);
    for [wire, sent, difference, agreement] in rows {
        table.add_row([
            Cell::new(wire),
            right(sent.clone()),
            right(difference.clone()),
            right(agreement.clone()),
        ]);
    }
    table.to_string()
}

pub(crate) fn nodes(nodes: &[NodeJson]) -> String {
    if nodes.is_empty() {
        return "no nodes in the pool; start one with `shoal up`, or open the join link on a device".into();
    }
    let mut table = table(&[
        "NODE", "NAME", "KIND", "GPU", "CPU", "MEMORY", "LOAD", "RATE", "JOB", "UNITS", "FAILED",
        "TRUST", "AWAY", "STATE",
    ]);
    for node in nodes {
        let gpu = match &node.gpu {
            Some(gpu) if gpu.software => format!("{} (software)", gpu.name),
            Some(gpu) => gpu.name.clone(),
            None => "none".into(),
        };
        let load = if node.paused { "paused".into() } else { format!("{}%", node.load) };
        let rate = if node.rate > 0.0 { format!("{}/s", count(node.rate)) } else { String::new() };
        table.add_row([
            right(node.id.to_string()),
            Cell::new(short(&node.name)),
            Cell::new(node.kind.word()),
            Cell::new(short(&gpu)),
            right(node.cpu_slots.to_string()),
            right(size(node.memory)),
            right(load),
            right(rate),
            right(node.job.map(|job| job.to_string()).unwrap_or_default()),
            right(node.units_done.to_string()),
            right(node.units_failed.to_string()),
            Cell::new(trust(node.trusted, &node.trust)),
            right(node.round_trip_ms.map(|ms| duration(ms / 1000.0)).unwrap_or_default()),
            Cell::new(condition(&node.condition)),
        ]);
    }
    table.to_string()
}

/// Devices that are not connected.
pub(crate) fn left(nodes: &[LeftNodeJson]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let mut table = table(&["LEFT", "NAME", "KIND", "UNITS", "FAILED", "TRUST", "LAST SEEN"]);
    for node in nodes {
        let ago = duration(now.saturating_sub(node.last_seen) as f64 / 1000.0);
        table.add_row([
            right(node.id.to_string()),
            Cell::new(short(&node.name)),
            Cell::new(node.kind.word()),
            right(node.units_done.to_string()),
            right(node.units_failed.to_string()),
            Cell::new(trust(node.trusted, &node.trust)),
            right(format!("{ago} ago")),
        ]);
    }
    table.to_string()
}

/// How many units another device checked, of those done; how many were left to your own; how many are
/// being checked.
fn checked(job: &JobJson) -> String {
    let mut text = format!("{} of {}", job.units_checked, job.units_done);
    for (count, what) in [(job.units_own, "own"), (job.units_checking, "now")] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text
}

/// Whether a node is believed.
fn trust(is_own: bool, trust: &TrustsJson) -> String {
    if is_own {
        return "own".into();
    }
    let lanes = [("GPU", trust.gpu), ("CPU", trust.cpu)];
    let said = lanes.iter().filter(|(_, trust)| *trust != TrustJson::default());
    let said = said.map(|(lane, trust)| match (trust.barred, trust.wrong) {
        (true, _) => format!("{lane} barred"),
        (false, 0) => format!("{lane} {} right in a row", trust.streak),
        (false, wrong) => format!("{lane} {wrong} wrong, then {} right", trust.streak),
    });
    let said: Vec<_> = said.collect();
    if said.is_empty() { "new".into() } else { said.join(", ") }
}

fn condition(condition: &ConditionJson) -> String {
    let mut parts = Vec::new();
    if !condition.visible {
        parts.push("hidden".to_owned());
    }
    if let Some(percent) = condition.battery_percent {
        let how = if condition.charging { "charging" } else { "battery" };
        parts.push(format!("{how} {percent}%"));
    }
    if condition.metered {
        parts.push("metered".to_owned());
    }
    parts.join(", ")
}

/// From the first lease to the end, or to nothing if it still runs.
fn took(job: &JobJson) -> Option<f64> {
    let (from, to) = (job.started.unwrap_or(job.submitted), job.ended?);
    Some(to.saturating_sub(from) as f64 / 1000.0)
}

fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(head);
    table
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Names come from other people: control characters could move the cursor of this terminal.
fn short(name: &str) -> String {
    let clean = name.chars().map(|c| if c.is_control() { '?' } else { c });
    let mut text: String = clean.take(NAME_CHARS + 1).collect();
    if text.chars().count() > NAME_CHARS {
        text = text.chars().take(NAME_CHARS - 1).collect();
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_and_condition_are_told_in_words() {
        let new = NodeJson { condition: fine(), ..NodeJson::default() };
        assert_eq!(trust(new.trusted, &new.trust), "new");
        assert_eq!(trust(true, &new.trust), "own");
        let gpu = TrustJson { wrong: 3, barred: true, ..TrustJson::default() };
        let cpu = TrustJson { streak: 12, veteran: true, ..TrustJson::default() };
        let liar = NodeJson { trust: TrustsJson { gpu, cpu }, ..NodeJson::default() };
        assert_eq!(trust(liar.trusted, &liar.trust), "GPU barred, CPU 12 right in a row");
        let tab =
            ConditionJson { visible: false, battery_percent: Some(40), metered: true, ..fine() };
        assert_eq!(condition(&tab), "hidden, battery 40%, metered");
        assert_eq!(condition(&new.condition), "");
    }

    fn fine() -> ConditionJson {
        ConditionJson { visible: true, ..ConditionJson::default() }
    }

    #[test]
    fn your_own_units_are_not_counted_as_checked() {
        let done = || JobJson { units_done: 11, ..JobJson::default() };
        assert_eq!(checked(&JobJson { units_own: 11, ..done() }), "0 of 11, 11 own");
        let mixed = JobJson {
            units_checked: 4,
            units_own: 5,
            units_unchecked: 2,
            units_checking: 3,
            ..done()
        };
        assert_eq!(checked(&mixed), "4 of 11, 5 own, 3 now");
        assert_eq!(checked(&JobJson { units_unchecked: 11, ..done() }), "0 of 11");
    }

    #[test]
    fn names_cannot_move_the_cursor() {
        assert_eq!(short("a\x1b[2Jb"), "a?[2Jb");
        assert_eq!(short(&"x".repeat(99)).chars().count(), NAME_CHARS);
    }
}
