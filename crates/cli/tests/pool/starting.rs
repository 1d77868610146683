//! Starting, joining and asking when something is in the way.

use crate::world::{Folder, Pool, Running, shoal};

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let folder = Folder::new();
    let data = folder.path("data").display().to_string();
    let args = ["serve", "--listen", &address, "--data", &data];
    let port = address.rsplit(':').next().expect("a port").to_owned();
    Running::start(&args, &[], b"").end().fails(1, &[&port, "in use", "--listen"]);
    let json = [&args[..], &["--json"]].concat();
    Running::start(&json, &[], b"").end().fails(1, &["\"port_in_use\""]);
}

#[test]
fn a_data_folder_in_use_is_named() {
    let pool = Pool::start();
    let data = pool.folder.path("data").display().to_string();
    let args = ["serve", "--listen", "127.0.0.1:0", "--data", &data];
    Running::start(&args, &[], b"").end().fails(1, &["another running coordinator", "--data"]);
}

#[test]
fn a_wrong_key_or_token_or_nobody_there() {
    let pool = Pool::start();
    let args = ["jobs", "--url", &pool.url, "--key", "wrong"];
    Running::start(&args, &[], b"").end().fails(2, &["refuses this key", "--key"]);
    let folder = Folder::new();
    let data = folder.path("data").display().to_string();
    let link = format!("{}/join#wrong", pool.url);
    let args = ["join", &link, "--no-gpu", "--data", &data];
    Running::start(&args, &[], b"").end().fails(2, &["token is wrong"]);
    let args = ["join", &pool.url, "--own", "--no-gpu", "--data", &data];
    Running::start(&args, &[("SHOAL_KEY", "wrong")], b"").end().fails(2, &["API key is wrong"]);
    let args = ["jobs", "--data", &data];
    Running::start(&args, &[], b"").end().fails(2, &["no coordinator is running", "shoal up"]);
    let args = ["jobs", "--url", "http://127.0.0.1:9", "--key", "k", "--patience", "0"];
    Running::start(&args, &[], b"").end().fails(1, &["cannot reach", "refused"]);
}

#[test]
fn up_runs_a_job_and_tells_how_to_join() {
    let folder = Folder::new();
    let data = folder.path("data").display().to_string();
    let args = ["up", "--json", "--listen", "127.0.0.1:0", "--data", &data];
    let mut up = shoal(&args)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("shoal starts");
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(up.stdout.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut stdout, &mut line).expect("a line");
    let said: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(said["demo"]["job"]["state"], "done", "{said}");
    assert_eq!(said["demo"]["last"], 998_001.0, "{said}");
    let join = said["join"].as_str().expect("a link");
    assert!(join.contains("/join#"), "{join}");
    #[cfg(unix)]
    {
        let id = up.id().to_string();
        let status = std::process::Command::new("kill").args(["-INT", &id]).status();
        assert!(status.expect("kill").success());
        assert!(up.wait().expect("ended").success(), "Ctrl-C stops it cleanly");
        assert!(!folder.path("data/running.json").exists());
    }
    let _ = up.kill();
    let _ = up.wait();
}

#[test]
fn looking_at_an_empty_pool() {
    let pool = Pool::start();
    assert_eq!(pool.run(&["jobs", "--json"]).ok().json()["jobs"], serde_json::json!([]));
    assert_eq!(pool.run(&["nodes", "--json"]).ok().json()["nodes"], serde_json::json!([]));
    assert!(pool.run(&["jobs"]).ok().stdout.starts_with(b"no jobs yet"));
    pool.run(&["watch", "7"]).fails(2, &["7"]);
    pool.run(&["cancel", "7"]).fails(2, &["7"]);
}
