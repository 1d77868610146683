//! What a fresh machine lacks: system packages, Rust targets, npm packages.

use std::path::{Path, PathBuf};

use crate::shell::{Outcome, command, output, root, run, which};

const WASM_TARGETS: [&str; 3] = ["wasm32-unknown-unknown", "wasm32-wasip1", "wasm32-wasip2"];

/// A system package and how to see whether something on this machine already does its job.
struct Package {
    name: &'static str,
    what_for: &'static str,
    present: fn() -> bool,
}

static VULKAN: [Package; 2] = [
    Package { name: "libvulkan1", what_for: "finding a GPU", present: has_vulkan_loader },
    Package {
        name: "mesa-vulkan-drivers",
        what_for: "a GPU, or a CPU that plays one",
        present: has_vulkan_driver,
    },
];

static TESTS: [Package; 5] = [
    Package { name: "chromium", what_for: "the browser tests", present: || chromium().is_some() },
    Package { name: "python3-pip", what_for: "fetching conformance material", present: has_pip },
    Package { name: "python3-venv", what_for: "clients of others", present: has_venv },
    Package {
        name: "coturn",
        what_for: "the tests of STUN and TURN",
        present: || which("turnserver").is_some(),
    },
    Package {
        name: "curl",
        what_for: "the README's examples",
        present: || which("curl").is_some(),
    },
];

static COMPILER: [Package; 1] = [Package {
    name: "g++",
    what_for: "building the fuzzer",
    present: || which("c++").is_some() || std::env::var_os("CXX").is_some(),
}];

static ARM: [Package; 1] = [Package {
    name: "qemu-user",
    what_for: "the tests on ARM",
    present: || which(ARM_RUNNER).is_some(),
}];

/// Programs for ARM as they are built here: with a C library of their own, so that no compiler or library for C is
/// needed.
pub(crate) const ARM_TARGET: &str = "aarch64-unknown-linux-musl";
/// Runs them, on whichever processor it is told to play.
pub(crate) const ARM_RUNNER: &str = "qemu-aarch64";

/// Enough to build the browser part and run a pool.
pub(crate) fn for_building() -> Outcome {
    packages(VULKAN.iter())?;
    wasm_targets()?;
    npm()
}

/// Enough to run every test.
pub(crate) fn for_testing() -> Outcome {
    packages(VULKAN.iter().chain(&TESTS))?;
    wasm_targets()?;
    npm()?;
    match chromium() {
        Some(_) => Ok(()),
        None => Err("no Chromium: install it, or name one in the variable CHROMIUM".into()),
    }
}

/// The fuzzer is written in C++.
pub(crate) fn for_fuzzing() -> Outcome {
    packages(COMPILER.iter())
}

/// Whether programs for ARM can be built and run here: qemu runs programs of Linux on nothing else.
pub(crate) fn for_arm() -> Outcome<bool> {
    if !cfg!(target_os = "linux") {
        println!("setup: {ARM_RUNNER} is for Linux only, so nothing is tried on ARM");
        return Ok(false);
    }
    packages(ARM.iter())?;
    if which(ARM_RUNNER).is_none() {
        return Err(format!("no {ARM_RUNNER}: apt-get install {}", ARM[0].name));
    }
    rust_targets(&[ARM_TARGET])?;
    Ok(true)
}

/// The browser that tests drive.
pub(crate) fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let usual = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    named.or_else(|| usual.into_iter().find_map(which))
}

/// Installs what is missing where that needs no password; else says in one line what to do.
fn packages(wanted: impl Iterator<Item = &'static Package>) -> Outcome {
    let missing: Vec<&Package> = wanted.filter(|package| !(package.present)()).collect();
    if missing.is_empty() || !cfg!(target_os = "linux") {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    let list = names.join(" ");
    let Some(mut apt) = apt_get() else {
        let uses: Vec<&str> = missing.iter().map(|package| package.what_for).collect();
        println!("setup: missing for {}: apt-get install {list}", uses.join(", "));
        return Ok(());
    };
    println!("setup: apt-get install {list}");
    let Some(mut update) = apt_get() else { return Ok(()) };
    run(update.args(["update", "-qq"]))?;
    run(apt.args(["install", "-qq", "-y", "--no-install-recommends"]).args(&names))
}

/// `apt-get` with the right to install, if this user has it without being asked.
fn apt_get() -> Option<std::process::Command> {
    which("apt-get")?;
    let is_root = output(command("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    let mut apt = if is_root {
        command("apt-get")
    } else {
        let free = command("sudo").args(["-n", "true"]).output().is_ok_and(|o| o.status.success());
        if !free {
            return None;
        }
        let mut sudo = command("sudo");
        sudo.args(["-n", "apt-get"]);
        sudo
    };
    apt.env("DEBIAN_FRONTEND", "noninteractive").stdout(std::process::Stdio::null());
    Some(apt)
}

fn has_pip() -> bool {
    let asked = command("python3").args(["-m", "pip", "--version"]).output();
    asked.is_ok_and(|answer| answer.status.success())
}

fn has_venv() -> bool {
    let asked = command("python3").args(["-c", "import ensurepip, venv"]).output();
    asked.is_ok_and(|answer| answer.status.success())
}

fn has_vulkan_loader() -> bool {
    let known = command("ldconfig").arg("-p").output();
    let known = known.or_else(|_| command("/sbin/ldconfig").arg("-p").output());
    known.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).contains("libvulkan.so.1"))
}

fn has_vulkan_driver() -> bool {
    let folders = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];
    let has_files = |folder: &str| {
        std::fs::read_dir(Path::new(folder)).is_ok_and(|mut entries| entries.next().is_some())
    };
    std::env::var_os("VK_ICD_FILENAMES").is_some() || folders.into_iter().any(has_files)
}

pub(crate) fn wasm_targets() -> Outcome {
    rust_targets(&WASM_TARGETS)
}

fn rust_targets(wanted: &[&str]) -> Outcome {
    let sysroot = output(command("rustc").args(["--print", "sysroot"]))?;
    let libs = Path::new(sysroot.trim()).join("lib/rustlib");
    let missing: Vec<&str> =
        wanted.iter().copied().filter(|target| !libs.join(target).exists()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if which("rustup").is_none() {
        return Err(format!("this Rust has no standard library for {}", missing.join(", ")));
    }
    run(command("rustup").args(["target", "add"]).args(missing))
}

/// npm writes its own note of what it installed; an older one than the lock file is out of date.
fn npm() -> Outcome {
    let web = root().join("web");
    let changed = |name: &str| web.join(name).metadata().and_then(|file| file.modified()).ok();
    let installed = changed("node_modules/.package-lock.json");
    if installed.is_some() && installed >= changed("package-lock.json") {
        return Ok(());
    }
    println!("setup: npm ci");
    run(command("npm")
        .current_dir(&web)
        .args(["ci", "--no-audit", "--no-fund", "--loglevel=error"])
        .env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1"))
}
