//! How this machine's battery is, where the system tells: Linux lists power supplies as folders of
//! small files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use shoal_node::Input;
use shoal_protocol::Condition;

use super::{Host, Notice};

/// Batteries change by a percent in a minute; looking costs some microseconds.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Where power supplies are listed. Tests list their own.
const PLACE: &str = "/sys/class/power_supply";
const PLACE_VARIABLE: &str = "SHOAL_POWER_SUPPLY";

/// Looks at the battery now and then.
pub(super) struct Power {
    place: PathBuf,
    pauses_below: u8,
    next: Instant,
    condition: Condition,
    is_paused: bool,
}

impl Power {
    /// `None` where no battery is known.
    pub(super) fn new(pauses_below: u8) -> Option<Power> {
        let place = std::env::var_os(PLACE_VARIABLE).map_or_else(|| PLACE.into(), PathBuf::from);
        battery(&place)?;
        let condition = Condition::default();
        let (next, is_paused) = (Instant::now(), false);
        Some(Power { place, pauses_below, next, condition, is_paused })
    }

    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// What is new since the last look.
    fn look(&mut self, now: Instant) -> (Option<Condition>, Option<bool>) {
        self.next = now + LOOK_EVERY;
        let Some(Battery { percent, charging }) = battery(&self.place) else {
            return (None, None);
        };
        let battery_percent = Some(percent);
        let condition = Condition { battery_percent, charging, ..Condition::default() };
        let is_paused = !charging && percent < self.pauses_below;
        let is_new = std::mem::replace(&mut self.condition, condition) != condition;
        let turned = std::mem::replace(&mut self.is_paused, is_paused) != is_paused;
        (is_new.then_some(condition), turned.then_some(is_paused))
    }
}

impl Host<'_> {
    pub(super) fn look_at_power(&mut self) {
        let now = Instant::now();
        let Some(power) = self.power.as_mut().filter(|power| power.next() <= now) else { return };
        let (condition, pause) = power.look(now);
        if let Some(condition) = condition {
            self.input(Input::Condition(condition));
        }
        if let Some(paused) = pause {
            (self.notify)(if paused { Notice::Paused } else { Notice::Resumed });
            self.input(Input::Pause(paused));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Battery {
    percent: u8,
    /// Or full, or held at some charge: in any case not emptying.
    charging: bool,
}

/// All batteries of the machine as one; those of mice and headsets do not count.
fn battery(place: &Path) -> Option<Battery> {
    let found: Vec<Battery> =
        fs::read_dir(place).ok()?.flatten().filter_map(|entry| one(&entry.path())).collect();
    let count = u32::try_from(found.len()).ok().filter(|count| *count > 0)?;
    let sum: u32 = found.iter().map(|battery| u32::from(battery.percent)).sum();
    let percent = u8::try_from(sum / count).unwrap_or(100);
    Some(Battery { percent, charging: found.iter().all(|battery| battery.charging) })
}

fn one(supply: &Path) -> Option<Battery> {
    let word = |name: &str| fs::read_to_string(supply.join(name)).ok();
    let is = |name: &str, wanted: &str| word(name).is_some_and(|text| text.trim() == wanted);
    if !is("type", "Battery") || is("scope", "Device") {
        return None;
    }
    let percent = word("capacity")?.trim().parse::<u8>().ok()?.min(100);
    Some(Battery { percent, charging: !is("status", "Discharging") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(place: &Path, supply: &str, files: &[(&str, &str)]) {
        let folder = place.join(supply);
        fs::create_dir_all(&folder).expect("a folder");
        for (name, text) in files {
            fs::write(folder.join(name), format!("{text}\n")).expect("a file");
        }
    }

    #[test]
    fn batteries_count_together_and_a_mouse_s_does_not() {
        let place = std::env::temp_dir().join(format!("shoal-power-{}", std::process::id()));
        assert_eq!(battery(&place), None);
        write(&place, "AC", &[("type", "Mains"), ("online", "1")]);
        write(&place, "mouse", &[("type", "Battery"), ("scope", "Device"), ("capacity", "5")]);
        assert_eq!(battery(&place), None);
        write(&place, "BAT0", &[("type", "Battery"), ("capacity", "80"), ("status", "Full")]);
        assert_eq!(battery(&place), Some(Battery { percent: 80, charging: true }));
        let other = [("type", "Battery"), ("capacity", "20"), ("status", "Discharging")];
        write(&place, "BAT1", &other);
        assert_eq!(battery(&place), Some(Battery { percent: 50, charging: false }));
        write(&place, "BAT1", &[("capacity", "garbage")]);
        assert_eq!(battery(&place), Some(Battery { percent: 80, charging: true }));
        fs::remove_dir_all(&place).expect("removed");
    }
}
