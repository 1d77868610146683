//! Jobs and nodes as tables.

use comfy_table::{Cell, CellAlignment, Table, presets};

use super::text::{count, duration};
use crate::client::api::{Job, Node, State};

/// Columns wide enough to tell apart; longer names are cut.
const NAME_CHARS: usize = 32;

pub(crate) fn jobs(jobs: &[Job]) -> String {
    if jobs.is_empty() {
        return "no jobs yet; try: shoal map KERNEL.wgsl DATA.npy -o OUT.npy".into();
    }
    let mut table = table(&["JOB", "NAME", "KIND", "STATE", "DONE", "RATE", "TOOK", "NODES"]);
    for job in jobs {
        let percent = job.items_done as f64 * 100.0 / job.items.max(1) as f64;
        let state = match (&job.state, job.able_nodes) {
            (State::Running, 0) => "waiting".to_owned(),
            (state, _) => state.name().to_owned(),
        };
        let rate = if job.rate > 0.0 { format!("{}/s", count(job.rate)) } else { String::new() };
        table.add_row([
            right(job.id.to_string()),
            Cell::new(short(&job.name)),
            Cell::new(&job.kind),
            Cell::new(state),
            right(format!("{percent:.0}% of {}", count(job.items as f64))),
            right(rate),
            right(took(job).map(duration).unwrap_or_default()),
            right(job.shares.len().to_string()),
        ]);
    }
    table.to_string()
}

pub(crate) fn nodes(nodes: &[Node]) -> String {
    if nodes.is_empty() {
        return "no nodes in the pool; `shoal up` and the join link bring some".into();
    }
    let mut table =
        table(&["NODE", "NAME", "KIND", "GPU", "CPU", "LOAD", "RATE", "JOB", "UNITS", "FAILED"]);
    for node in nodes {
        let gpu = match &node.gpu {
            Some(gpu) if gpu.software => format!("{} (software)", gpu.name),
            Some(gpu) => gpu.name.clone(),
            None => "none".into(),
        };
        let load = if node.paused { "paused".into() } else { format!("{:.0}%", node.load) };
        let rate = if node.rate > 0.0 { format!("{}/s", count(node.rate)) } else { String::new() };
        table.add_row([
            right(node.id.to_string()),
            Cell::new(short(&node.name)),
            Cell::new(&node.kind),
            Cell::new(short(&gpu)),
            right(node.cpu_slots.to_string()),
            right(load),
            right(rate),
            right(node.job.map(|job| job.to_string()).unwrap_or_default()),
            right(node.units_done.to_string()),
            right(node.units_failed.to_string()),
        ]);
    }
    table.to_string()
}

/// From the first lease to the end, or to nothing if it still runs.
fn took(job: &Job) -> Option<f64> {
    let (from, to) = (job.started.or(job.submitted)?, job.ended?);
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
    fn names_cannot_move_the_cursor() {
        assert_eq!(short("a\x1b[2Jb"), "a?[2Jb");
        assert_eq!(short(&"x".repeat(99)).chars().count(), NAME_CHARS);
    }
}
