//! Work that takes what other work leaves of the processors.

use std::process::{Command, Stdio};

/// Puts this thread, and all that it starts from now on, behind everything else on the machine. False where the system has
/// no such thing for a thread.
pub(super) fn give_way() -> bool {
    let Some(thread) = this_thread() else { return false };
    let mut renice = Command::new("renice");
    renice.args(["-n", LAST, "-p", &thread]).stdout(Stdio::null()).stderr(Stdio::null());
    renice.status().is_ok_and(|end| end.success())
}

/// Everything else goes first.
const LAST: &str = "19";

/// As Linux numbers it; what a thread starts has its priority.
fn this_thread() -> Option<String> {
    let path = std::fs::read_link("/proc/thread-self").ok()?;
    Some(path.file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the system says of the priority of a program that is started now.
    fn priority() -> String {
        let out = Command::new("nice").output().map(|out| out.stdout).unwrap_or_default();
        String::from_utf8_lossy(&out).trim().to_owned()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn only_what_this_thread_starts_gives_way() {
        let before = priority();
        let aside = std::thread::spawn(|| give_way().then(priority)).join().ok().flatten();
        assert_eq!(aside.as_deref(), Some(LAST));
        assert_eq!(priority(), before);
    }
}
