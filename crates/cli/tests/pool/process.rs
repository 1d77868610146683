//! Processes of the real binary, and the folders they work in, each ended with its test.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Nothing here takes long, but a loaded machine may.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// A folder that goes with its test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("shoal-test-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and gives its path as text.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("a file for the test");
        path.display().to_string()
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("a result")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process of `shoal` that is killed with its test.
pub(crate) struct Process {
    child: Child,
    /// Locked, so that a pool can be asked from several threads.
    lines: Mutex<Receiver<String>>,
}

impl Process {
    pub(crate) fn start(args: &[&str]) -> Process {
        Process::spawn(shoal(args))
    }

    pub(crate) fn spawn(mut command: Command) -> Process {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("shoal starts");
        let stdout = child.stdout.take().expect("a pipe");
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Process { child, lines: Mutex::new(lines) }
    }

    /// The next JSON line of its stdout that `wanted` accepts.
    pub(crate) fn line(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let lines = self.lines.lock().expect("nobody panicked");
            let line = lines.recv_timeout(left).expect("a line in time");
            let value: Value = serde_json::from_str(&line).expect("a JSON line");
            if wanted(&value) {
                return value;
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// As `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    /// Processes it has started itself.
    #[cfg(target_os = "linux")]
    pub(crate) fn children(&self) -> Vec<u32> {
        // Each thread has its own. One may end meanwhile, and its children are another's then.
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("threads");
        let lists =
            tasks.flatten().map(|task| std::fs::read_to_string(task.path().join("children")));
        let text = lists.flatten().collect::<Vec<_>>().join(" ");
        text.split_whitespace().map(|id| id.parse().expect("a number")).collect()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client command on its way.
pub(crate) struct Running {
    child: Child,
    stdout: thread::JoinHandle<Vec<u8>>,
    stderr: thread::JoinHandle<Vec<u8>>,
}

impl Running {
    pub(crate) fn start(args: &[&str], env: &[(&str, &str)], stdin: &[u8]) -> Running {
        let mut command = shoal(args);
        command.envs(env.iter().copied());
        Running::spawn(command, stdin)
    }

    pub(crate) fn spawn(mut command: Command, stdin: &[u8]) -> Running {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("shoal starts");
        let mut to = child.stdin.take().expect("a pipe");
        let bytes = stdin.to_vec();
        thread::spawn(move || {
            let _ = to.write_all(&bytes);
        });
        let stdout = collect(child.stdout.take().expect("a pipe"));
        let stderr = collect(child.stderr.take().expect("a pipe"));
        Running { child, stdout, stderr }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub(crate) fn end(mut self) -> Done {
        let stdout = self.stdout.join().expect("no panic");
        let stderr = self.stderr.join().expect("no panic");
        let status = self.child.wait().expect("ended");
        Done { code: status.code(), stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() }
    }
}

/// What a process has written so far.
#[cfg(target_os = "linux")]
pub(crate) struct Seen(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

#[cfg(target_os = "linux")]
impl Seen {
    pub(crate) fn of(mut from: impl Read + Send + 'static) -> Seen {
        let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let written = seen.clone();
        thread::spawn(move || {
            let mut piece = [0; 1024];
            while let Ok(count @ 1..) = from.read(&mut piece) {
                written.lock().expect("no panic").extend_from_slice(&piece[..count]);
            }
        });
        Seen(seen)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no panic")).into_owned()
    }
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// How a client command ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Done {
    #[track_caller]
    pub(crate) fn ok(self) -> Done {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    /// Ended with this code and an error that speaks of all of these.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, wanted: &[&str]) -> Done {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        for wanted in wanted {
            assert!(self.stderr.contains(wanted), "{:?} is not in:\n{}", wanted, self.stderr);
        }
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|_| {
            panic!("no JSON: {} {}", String::from_utf8_lossy(&self.stdout), self.stderr)
        })
    }
}

/// Sends a signal, such as `-STOP`, to a process of the test.
#[cfg(unix)]
pub(crate) fn signal(signal: &str, process: u32) {
    let status = Command::new("kill").args([signal, &process.to_string()]).status();
    assert!(status.expect("kill").success());
}

/// The binary that is tested.
pub(crate) const SHOAL: &str = env!("CARGO_BIN_EXE_shoal");

pub(crate) fn shoal(args: &[&str]) -> Command {
    let mut command = Command::new(SHOAL);
    command.args(args).env_remove("SHOAL_URL").env_remove("SHOAL_KEY").env_remove("SHOAL_DATA");
    command.env_remove("SHOAL_ONNXRUNTIME");
    command
}
