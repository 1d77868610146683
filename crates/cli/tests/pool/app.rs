//! Native applications that share buffers, over links that real nodes make for them.

use std::path::Path;
use std::thread;

use serde_json::json;
use shoal_app::{Code, Event, Handle, Options, Peer, Pool as App, Right, Rights};

use crate::process::SHOAL;
use crate::world::{Folder, Pool};

fn join(link: &str, data: &Path, relay_only: bool) -> App {
    let data = Some(data.to_path_buf());
    let options = Options { shoal: SHOAL.into(), data, relay_only, ..Options::new(link) };
    App::join_with(&options).expect("it joins")
}

/// Two applications, of which the first called.
struct Two {
    caller: Peer,
    called: Peer,
    /// In this order they end.
    _apps: [App; 2],
    _pool: Pool,
}

fn two(relay_only: bool) -> Two {
    let pool = Pool::start();
    let folder = |name: &str| pool.folder.path(name);
    let apps =
        [join(&pool.join, &folder("a"), relay_only), join(&pool.join, &folder("b"), relay_only)];
    let caller = apps[0].connect(apps[1].node()).expect("they meet");
    let called = apps[1].accept().expect("somebody calls");
    assert_eq!((caller.node(), called.node()), (apps[1].node(), apps[0].node()));
    Two { caller, called, _apps: apps, _pool: pool }
}

fn given(peer: &Peer) -> Handle {
    loop {
        if let Event::Said(mut value) = peer.next().expect("the peer is there") {
            return serde_json::from_value(value["buffer"].take()).expect("a handle");
        }
    }
}

#[test]
fn applications_share_a_buffer_and_write_to_it() {
    for relay_only in [false, true] {
        let Two { caller, called, .. } = &two(relay_only);
        let bytes: Vec<u8> = (0..3 << 20).map(|n: u32| (n % 251) as u8).collect();
        let rights = Rights::of(&[Right::Read, Right::Write]);
        let handle = caller.export(bytes.clone(), rights, "many").expect("a handle");
        caller.say(json!({ "buffer": handle })).expect("it is said");
        let import = called.import(given(called)).expect("a handle of this peer");
        assert!(called.pull(import).expect("its bytes") == bytes, "other bytes arrived");

        let changed: Vec<u8> = bytes.iter().map(|byte| byte ^ 0xff).collect();
        assert_eq!(called.push(import, changed.clone(), Some(1)).expect("it is taken"), 2);
        let stale = called.push(import, bytes.clone(), Some(1)).expect_err("it is stale");
        assert_eq!(stale.code, Code::Stale);
        let written = Event::Written { buffer: handle.buffer, version: 2 };
        assert_eq!(caller.next().expect("what was written"), written);
        assert!(caller.exported(&handle).expect("it is there") == (2, changed));

        caller.replace(&handle, bytes.clone()).expect("the same size");
        // It hears of its own version too.
        while called.next().expect("news") != (Event::Newer { import, version: 3 }) {}
        assert!(called.pull(import).expect("its bytes") == bytes);
        caller.revoke(&handle).expect("it was exported");
        let refused = called.pull(import).expect_err("it was taken back");
        assert_eq!(refused.code, Code::UnknownHandle);
    }
}

#[test]
fn whoever_ends_is_noticed_and_can_be_called_again() {
    let pool = Pool::start();
    let one = join(&pool.join, &pool.folder.path("one"), false);
    let other = join(&pool.join, &pool.folder.path("other"), false);
    for _ in 0..2 {
        let waits = thread::scope(|scope| {
            let accepted = scope.spawn(|| other.accept().expect("somebody calls"));
            let caller = one.connect(other.node()).expect("they meet");
            let called = accepted.join().expect("no panic");
            drop(caller);
            called
        });
        let error = waits.next().expect_err("nobody is there");
        assert_eq!(error.code, Code::PeerGone);
    }
    let nobody = one.connect(4_000_000).err().expect("there is none");
    assert_eq!(nobody.code, Code::NotMet);
    // The pool goes: everything says so, and nothing hangs.
    let peer = one.connect(other.node()).expect("they meet");
    drop(other);
    assert_eq!(peer.next().expect_err("it left").code, Code::PeerGone);
}

#[test]
fn a_link_that_leads_nowhere_says_why() {
    let here = Folder::new();
    let shoal = SHOAL.into();
    let options =
        Options { shoal, data: Some(here.path("data")), ..Options::new("this is no link") };
    let error = App::join_with(&options).err().expect("it cannot join");
    assert_eq!(error.code, Code::NoMesh);
    assert!(error.message.contains("this is no link"), "{error}");
    let missing = Options { shoal: here.path("no such program"), ..options };
    let error = App::join_with(&missing).err().expect("it cannot start");
    assert!(error.message.contains("SHOAL_BIN"), "{error}");
}
