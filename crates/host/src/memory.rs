//! How much memory this machine has.

use std::fs;
use std::process::Command;

/// Where nobody tells: what the smallest machines of today have.
const UNKNOWN: u64 = 2 << 30;

/// Bytes this process may use: the machine's, or less in a container.
pub(crate) fn installed() -> u64 {
    let total = fs::read_to_string("/proc/meminfo").ok().and_then(|text| from_meminfo(&text));
    let total = total.or_else(from_sysctl).unwrap_or(UNKNOWN);
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|text| text.trim().parse::<u64>().ok());
    limit.map_or(total, |limit| limit.min(total))
}

fn from_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// On macOS and the BSDs.
fn from_sysctl() -> Option<u64> {
    let said = Command::new("sysctl").args(["-n", "hw.memsize"]).output().ok()?;
    String::from_utf8(said.stdout).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_from_meminfo() {
        let text = "MemTotal:       16302048 kB\nMemFree:          221912 kB\n";
        assert_eq!(from_meminfo(text), Some(16_302_048 * 1024));
        assert_eq!(from_meminfo("MemFree: 1 kB"), None);
        assert!(installed() > 0);
    }
}
