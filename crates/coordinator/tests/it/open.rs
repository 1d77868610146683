//! What stops a coordinator from starting is said clearly.

use std::net::TcpListener;

use shoal_coordinator::{Coordinator, Faults, OpenError};

use crate::world::{TempDir, World, open, open_patiently, options};

fn error(result: Result<Coordinator, OpenError>) -> OpenError {
    match result {
        Ok(_) => panic!("expected an error"),
        Err(error) => error,
    }
}

#[test]
fn a_port_in_use_is_named_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap();
    let dir = TempDir::new();
    let error = error(Coordinator::open(options(dir.path(), &addr.to_string())));
    let text = error.to_string();
    assert!(text.contains(&addr.port().to_string()) && text.contains("--listen"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_is_held_by_one_coordinator_at_a_time() {
    let world = World::start();
    let error = error(open(world.dir.path()));
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    assert!(error.to_string().contains("another running coordinator"));
    let dir = world.stop().await;
    open(dir.path()).unwrap();
}

#[test]
fn a_secret_that_can_be_guessed_is_told_and_kept() {
    for name in ["key", "token"] {
        let dir = TempDir::new();
        drop(open(dir.path()).unwrap());
        let path = dir.path().join(name);
        std::fs::write(&path, "short\n").unwrap();
        let text = error(open(dir.path())).to_string();
        assert!(text.contains(path.to_str().unwrap()) && text.contains("at least 8"), "{text}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "short\n");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_open_to_others_is_closed() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new();
    std::fs::create_dir_all(dir.path()).unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    drop(open(dir.path()).unwrap());
    let mode = std::fs::metadata(dir.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_newer_database_is_not_touched() {
    let dir = TempDir::new();
    drop(open(dir.path()).unwrap());
    let path = dir.path().join("shoal.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(db);
    let error = error(open(dir.path()));
    assert!(matches!(error, OpenError::NewerDatabase { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("update this program"));
}

#[test]
fn an_older_database_is_not_touched() {
    let dir = TempDir::new();
    drop(open(dir.path()).unwrap());
    let path = dir.path().join("shoal.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA user_version = 1").unwrap();
    drop(db);
    let error = error(open(dir.path()));
    assert!(matches!(error, OpenError::OlderDatabase { found: 1, .. }), "{error}");
    assert!(error.to_string().contains("older Shoal"), "{error}");
}

#[test]
fn a_database_that_another_program_holds_is_told() {
    let dir = TempDir::new();
    drop(open(dir.path()).unwrap());
    let tool = rusqlite::Connection::open(dir.path().join("shoal.db")).unwrap();
    tool.execute_batch("BEGIN EXCLUSIVE; CREATE TABLE other (x)").unwrap();
    let error = error(open(dir.path()));
    assert!(error.to_string().contains("another program holds it"), "{error}");
    drop(tool);
    open_patiently(dir.path(), &Faults::default());
}

#[test]
fn a_signing_key_that_is_none_is_told_and_kept() {
    let dir = TempDir::new();
    drop(open(dir.path()).unwrap());
    let path = dir.path().join("coordinator.key");
    assert_eq!(std::fs::read(&path).unwrap().len(), 32);
    std::fs::write(&path, "short").unwrap();
    let text = error(open(dir.path())).to_string();
    assert!(text.contains("coordinator.key") && text.contains("signing key has 32"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), b"short");
}

#[test]
fn a_file_that_is_no_database_is_told() {
    let dir = TempDir::new();
    std::fs::create_dir_all(dir.path()).unwrap();
    std::fs::write(
        dir.path().join("shoal.db"),
        "not a database, but long enough to be read as one".repeat(40),
    )
    .unwrap();
    let error = error(open(dir.path()));
    assert!(matches!(error, OpenError::Database { .. }), "{error}");
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let dir = TempDir::new();
    std::fs::write(dir.path(), "a file").unwrap();
    let error = error(open(&dir.path().join("below")));
    assert!(error.to_string().contains("below"), "{error}");
    std::fs::remove_file(dir.path()).unwrap();
}

#[test]
fn a_bad_certificate_says_how_to_get_a_new_one() {
    let dir = TempDir::new();
    drop(open(dir.path()).unwrap());
    std::fs::write(dir.path().join("cert.pem"), "nothing").unwrap();
    let error = error(open(dir.path()));
    assert!(error.to_string().contains("remove cert.pem"), "{error}");
}

#[test]
fn links_name_the_port_the_key_and_the_token() {
    let dir = TempDir::new();
    let coordinator = open(dir.path()).unwrap();
    let urls = coordinator.urls();
    assert!(urls.local.starts_with("http://127.0.0.1:"));
    assert!(urls.lan.is_empty());
    assert_eq!(urls.dashboard, format!("{}/#key={}", urls.local, coordinator.key()));
    assert_eq!(urls.join, format!("{}/join#{}", urls.local, coordinator.token()));
    drop(coordinator);
    let coordinator = Coordinator::open(options(dir.path(), "0.0.0.0:0")).unwrap();
    let urls = coordinator.urls();
    assert!(urls.local.starts_with("http://127.0.0.1:"));
    for url in &urls.lan {
        assert!(url.starts_with("https://") && urls.join.starts_with("https://"));
    }
}
