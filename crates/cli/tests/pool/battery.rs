//! A node on battery: it says so, pauses when the charge is low, and goes on when it is charged.

use crate::material::program;
use crate::world::{Folder, Pool};

#[test]
fn a_low_battery_pauses_the_node_and_charging_resumes_it() {
    let supplies = Folder::new();
    std::fs::create_dir_all(supplies.path("BAT0")).expect("a folder");
    let battery = |percent: &str, status: &str| {
        supplies.file("BAT0/status", status);
        supplies.file("BAT0/capacity", percent);
        supplies.file("BAT0/type", "Battery");
    };
    battery("80", "Discharging");
    let pool = Pool::start();
    let place = format!("SHOAL_POWER_SUPPLY={}", supplies.path("").display());
    let flags = ["--no-gpu", "--battery-below", "25"];
    let node = pool.node_in(&["env", &place], &pool.join, "laptop", &flags);
    let seen = |wanted: fn(&serde_json::Value) -> bool| {
        pool.wait("the laptop's state", || pool.seen("laptop").is_some_and(|node| wanted(&node)));
    };
    seen(|node| node["condition"]["batteryPercent"] == 80 && node["paused"] == false);
    battery("24", "Discharging");
    node.line(|line| line["event"] == "paused");
    seen(|node| node["condition"]["batteryPercent"] == 24 && node["paused"] == true);
    battery("24", "Charging");
    node.line(|line| line["event"] == "resumed");
    assert_eq!(pool.run_with(&["exec", program(), "--lines"], b"a\n").ok().stdout, b"A\n");
    seen(|node| node["condition"]["charging"] == true && node["paused"] == false);
}
