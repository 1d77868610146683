//! `shoal model add URL`: models that are fetched from a web server, which may lie, break off or change its mind.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::onnx_file::negative_part;
use crate::world::{Pool, Process};

/// The SHA-256 of `negative_part`, as another program found it.
const SHA256: &str = "97cfebcd7a14ac42c4e92707ed5e211558532ac53e806aacc064068c219d477a";
const NOTHING: [PathBuf; 0] = [];

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    path: String,
    range: Option<usize>,
    if_range: Option<String>,
}

/// A web server that answers as its test says.
struct Site {
    base: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Site {
    /// `answer` is also told how many requests came before.
    fn start(answer: impl Fn(usize, &Asked, &mut TcpStream) + Send + Sync + 'static) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (heard, answer) = (asked.clone(), Arc::new(answer));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (heard, answer) = (heard.clone(), answer.clone());
                thread::spawn(move || {
                    let Some(request) = read(&stream) else { return };
                    let before = {
                        let mut heard = heard.lock().expect("no panic");
                        heard.push(request.clone());
                        heard.len() - 1
                    };
                    answer(before, &request, &mut stream);
                });
            }
        });
        Site { base, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.base)
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut asked = Asked { path, range: None, if_range: None };
    for line in lines {
        let line = line.ok()?;
        match line.split_once(": ") {
            Some(("range", range)) => {
                asked.range = range.trim_start_matches("bytes=").trim_end_matches('-').parse().ok();
            }
            Some(("if-range", tag)) => asked.if_range = Some(tag.to_owned()),
            Some(_) => {}
            None => return Some(asked),
        }
    }
    None
}

fn head(to: &mut TcpStream, status: &str, length: usize, more: &str) {
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{more}\r\n");
    let _ = to.write_all(head.as_bytes());
}

/// A server as it should be, of one file with one tag, which ends each answer after so many bytes.
fn serve(file: &[u8], tag: &str, most: usize, asked: &Asked, to: &mut TcpStream) {
    let same = asked.if_range.as_deref().is_none_or(|wanted| wanted == tag);
    let from = asked.range.filter(|_| same).unwrap_or(0);
    let etag = format!("etag: {tag}\r\n");
    if from >= file.len() {
        let range = format!("content-range: bytes */{}\r\n", file.len());
        return head(to, "416 Range Not Satisfiable", 0, &range);
    }
    match from {
        0 => head(to, "200 OK", file.len(), &etag),
        _ => {
            let (last, all) = (file.len() - 1, file.len());
            let range = format!("{etag}content-range: bytes {from}-{last}/{all}\r\n");
            head(to, "206 Partial Content", file.len() - from, &range);
        }
    }
    let _ = to.write_all(&file[from..file.len().min(from.saturating_add(most))]);
}

fn own(pool: &Pool) -> Process {
    let key = pool.key.clone();
    pool.node("own", &["--no-gpu", "--key", &key])
}

/// What is kept of downloads: none unless one began.
fn kept(pool: &Pool) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(pool.folder.path("data").join("downloads"));
    folder.expect("a folder for downloads").flatten().map(|file| file.path()).collect()
}

#[test]
fn a_model_from_the_web_is_fetched_through_broken_connections_and_its_hash_is_checked() {
    let pool = Pool::start();
    let _node = own(&pool);
    let site = Site::start(|_, asked, to| serve(&negative_part(), "\"v1\"", 50, asked, to));
    let url = site.url("files/neg.onnx?token=secret");
    let wrong = "0".repeat(64);
    let done = pool.run(&["model", "add", &url, "--sha256", &wrong]);
    done.fails(2, &["neg.onnx has the SHA-256 ", SHA256, &wrong]);
    assert_eq!(kept(&pool), NOTHING);
    let before = site.asked().len();
    assert!(before >= 2, "it took more than one connection");
    let told = pool.run(&["model", "add", &url, "--sha256", &SHA256.to_uppercase()]).ok();
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("3 operators") && told.contains("ready on own"), "{told}");
    assert!(told.contains("shoal infer neg "), "{told}");
    assert_eq!(kept(&pool), NOTHING);
    let asked = site.asked().split_off(before);
    let at = |range: Option<usize>| {
        let if_range = range.map(|_| "\"v1\"".to_owned());
        Asked { path: "/files/neg.onnx?token=secret".into(), range, if_range }
    };
    let expected =
        (0..negative_part().len()).step_by(50).map(|from| at(Some(from).filter(|at| *at > 0)));
    assert_eq!(asked, expected.collect::<Vec<_>>());
    // A file that is here already is held against its hash as well.
    let file = pool.folder.file("whole.onnx", negative_part());
    pool.run(&["model", "add", &file, "--sha256", &wrong]).fails(2, &["whole.onnx", "SHA-256"]);
    let done = pool.run(&["model", "add", &file, "--sha256", "abc"]);
    done.fails(2, &["64 hexadecimal digits"]);
}

#[cfg(unix)]
#[test]
fn what_was_fetched_before_an_interrupt_is_not_fetched_again_unless_the_file_changed() {
    use crate::process::signal;
    let pool = Pool::start();
    let _node = own(&pool);
    let site = Site::start(|before, asked, to| {
        let tag =
            if asked.path.contains("changes") && before % 2 == 1 { "\"v2\"" } else { "\"v1\"" };
        serve(&negative_part(), tag, if before % 2 == 0 { 70 } else { usize::MAX }, asked, to);
        if before % 2 == 0 {
            // Alive, but silent.
            thread::sleep(Duration::from_secs(60));
        }
    });
    for (requests, name) in [(2, "stays"), (4, "changes")] {
        let url = site.url(&format!("{name}.onnx"));
        let began = pool.begin(&["model", "add", &url], b"");
        pool.wait("70 bytes are here", || {
            let folder = pool.folder.path("data").join("downloads");
            let mut files = std::fs::read_dir(folder).into_iter().flatten().flatten();
            files.any(|file| file.metadata().is_ok_and(|file| file.len() == 70))
        });
        pool.run(&["model", "add", &url]).fails(1, &["another command is fetching", &url]);
        signal("-INT", began.id());
        began.end().fails(130, &["interrupted", "the same command goes on from there"]);
        pool.run(&["model", "add", &url]).ok();
        assert_eq!(kept(&pool), NOTHING);
        let last = site.asked().pop().expect("a request");
        assert_eq!((last.range, last.if_range.as_deref()), (Some(70), Some("\"v1\"")));
        let fetched = pool.run(&["models"]).ok().stdout;
        assert!(String::from_utf8_lossy(&fetched).contains(name), "{name} is there");
        assert_eq!(site.asked().len(), requests, "one before the interrupt, one after it");
    }
}

#[test]
fn what_is_no_model_is_refused_before_all_of_it_is_fetched() {
    /// A large file, of which the client should see little.
    const LARGE: usize = 256 << 20;
    let pool = Pool::start();
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let site = Site::start(move |_, asked, to| match asked.path.as_str() {
        "/page.onnx" => {
            head(to, "200 OK", 15, "content-type: text/html; charset=utf-8\r\n");
            let _ = to.write_all(b"<!DOCTYPE html>");
        }
        "/pointer.gguf" => {
            serve(b"version https://git-lfs.github.com/spec/v1\n", "\"a\"", 99, asked, to)
        }
        "/empty.gguf" => serve(b"", "\"a\"", 99, asked, to),
        "/huge.onnx" => head(to, "200 OK", 3 << 30, ""),
        "/shut.gguf" => head(to, "403 Forbidden", 0, ""),
        "/round.gguf" => head(to, "302 Found", 0, "location: /round.gguf\r\n"),
        "/noise.gguf" | "/broken.gguf" => {
            head(to, "200 OK", LARGE, "");
            let begin: &[u8] =
                if asked.path == "/noise.gguf" { b"noise" } else { b"GGUF\x03\0\0\0" };
            let mut bytes = vec![0xff; 1 << 16];
            bytes[..begin.len()].copy_from_slice(begin);
            while to.write_all(&bytes).is_ok() {
                counted.fetch_add(bytes.len(), Ordering::Relaxed);
                bytes.fill(0xff);
            }
        }
        _ => head(to, "404 Not Found", 0, ""),
    });
    let add = |path: &str| pool.run(&["model", "add", &site.url(path)]);
    add("gone.gguf").fails(2, &["/gone.gguf", "404 Not Found", "is the address right?"]);
    add("shut.gguf").fails(2, &["403 Forbidden", "login"]);
    add("page.onnx").fails(2, &["/page.onnx", "web page"]);
    add("pointer.gguf").fails(2, &["is not a GGUF model", "Git LFS pointer"]);
    add("huge.onnx").fails(2, &["3.00 GiB", "at most 2.00 GiB"]);
    add("round.gguf").fails(1, &["/round.gguf", "without an end"]);
    for (path, said) in [
        ("noise.gguf", "begins with the bytes 6e 6f 69 73 65"),
        ("broken.gguf", "the file's tensors are 18446744073709551615"),
    ] {
        sent.store(0, Ordering::Relaxed);
        add(path).fails(2, &[path, said]);
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent < LARGE / 4, "{path}: {sent} bytes were sent");
    }
    pool.run(&["model", "add", "ftp://host/a.gguf"]).fails(2, &["ftp://host/a.gguf", "https://"]);
    let unused = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
    let nobody = format!("http://{unused}/a.gguf");
    pool.run(&["model", "add", &nobody]).fails(1, &["cannot fetch", &nobody, "refused"]);
    assert_eq!(kept(&pool), NOTHING);
}
