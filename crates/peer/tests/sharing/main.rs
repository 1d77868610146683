//! Buffers shared between two applications: what they do, and what is refused.

mod pair;

use pair::Pair;
use shoal_peer::{Code, Connection, Handle, Import, Output, PeerError, Right, Rights};

const ALL: [Right; 2] = [Right::Read, Right::Write];

fn numbers(count: u32, factor: u32) -> Vec<u8> {
    (0..count).flat_map(|at| at.wrapping_mul(factor).to_le_bytes()).collect()
}

fn shared(pair: &mut Pair, bytes: Vec<u8>, rights: &[Right]) -> (Handle, Import) {
    let handle = pair.owner.export(bytes, Rights::of(rights), "numbers").expect("exported");
    let import = pair.guest.import(handle.clone()).expect("imported");
    (handle, import)
}

/// What became of the last thing the guest asked for.
fn outcome(pair: &mut Pair) -> Result<u64, PeerError> {
    pair.run();
    let last = pair.guest_heard.iter().rev().find_map(|output| match output {
        Output::Done { version, .. } => Some(Ok(*version)),
        Output::Failed { error, .. } => Some(Err(error.clone())),
        Output::Send { .. }
        | Output::Opened(_)
        | Output::Said(_)
        | Output::Newer { .. }
        | Output::Written { .. }
        | Output::Closed(_) => None,
    });
    last.expect("an outcome")
}

fn code(outcome: Result<u64, PeerError>) -> Code {
    outcome.expect_err("it was refused").code
}

#[test]
fn versions_travel_both_ways_whatever_the_order_of_channels() {
    for seed in 0..8 {
        let mut pair = Pair::new(seed);
        let (handle, import) = shared(&mut pair, numbers(3 << 18, 1), &ALL);
        pair.guest.pull(import).expect("asked");
        assert_eq!(outcome(&mut pair), Ok(1), "seed {seed}");
        assert_eq!(pair.guest.copy(import).expect("a copy").bytes(), numbers(3 << 18, 1));

        pair.owner.replace(&handle, numbers(3 << 18, 2)).expect("replaced");
        pair.run();
        assert_eq!(pair.guest_heard.last(), Some(&Output::Newer { import, version: 2 }));
        pair.guest.pull(import).expect("asked");
        assert_eq!(outcome(&mut pair), Ok(2));

        pair.guest.push(import, numbers(3 << 18, 3), Some(2)).expect("asked");
        assert_eq!(outcome(&mut pair), Ok(3));
        let written = Output::Written { buffer: handle.buffer, version: 3 };
        assert_eq!(pair.owner_heard.last(), Some(&written));
        let (version, bytes) = pair.owner.exported(&handle).expect("exported");
        assert_eq!((version, bytes), (3, numbers(3 << 18, 3).as_slice()));
        let copy = pair.guest.copy(import).expect("a copy");
        assert_eq!((copy.version(), copy.newest(), copy.hash().len()), (3, 3, 64));
    }
}

#[test]
fn rights_are_the_owners_to_check() {
    let mut pair = Pair::new(1);
    let (handle, read_only) = shared(&mut pair, vec![1; 8], &[Right::Read]);
    let (_, write_only) = shared(&mut pair, vec![1; 8], &[Right::Write]);
    pair.guest.push(read_only, vec![2; 8], None).expect("asked");
    let refused = outcome(&mut pair).expect_err("refused");
    assert_eq!(refused.code, Code::Denied);
    assert_eq!(refused.message, "buffer 1 (\"numbers\"): no right to write; granted: read");
    pair.guest.pull(write_only).expect("asked");
    assert_eq!(code(outcome(&mut pair)), Code::Denied);
    pair.guest.push(write_only, vec![3; 8], None).expect("asked");
    assert_eq!(outcome(&mut pair), Ok(2));
    let run = shoal_peer::RunThere {
        code: "",
        entry_point: "main",
        workgroups: [1; 3],
        buffers: &[(0, 0, &handle)],
    };
    pair.guest.run(&run).expect("asked");
    assert_eq!(code(outcome(&mut pair)), Code::Capability);

    pair.owner.revoke(&handle).expect("taken back");
    pair.guest.pull(read_only).expect("asked");
    assert_eq!(code(outcome(&mut pair)), Code::UnknownHandle);
    let now = pair.guest.pull(read_only).expect_err("it is known by now");
    assert_eq!(now.code, Code::UnknownHandle);
    assert_eq!(pair.owner.exported(&handle).expect_err("gone").code, Code::UnknownHandle);
}

#[test]
fn handles_survive_json_and_belong_to_one_connection() {
    let mut pair = Pair::new(2);
    let (handle, _) = shared(&mut pair, vec![1; 8], &ALL);
    let text = serde_json::to_string(&handle).expect("json");
    assert!(text.contains("\"type\":\"gpu-buffer\"") && text.contains("[\"read\",\"write\"]"));
    assert_eq!(serde_json::from_str::<Handle>(&text).expect("a handle"), handle);
    // The owner itself cannot import what is its own, nor can anybody use another's handle.
    assert_eq!(pair.owner.import(handle).expect_err("its own").code, Code::UnknownHandle);
    let mut other = Pair::new(3);
    let (mut forged, _) = shared(&mut other, vec![9; 8], &ALL);
    forged.buffer = 7;
    let import = pair.guest.import(forged).expect("looks like one");
    pair.guest.pull(import).expect("asked");
    assert_eq!(code(outcome(&mut pair)), Code::UnknownHandle);
}

#[test]
fn a_write_onto_an_older_version_is_refused() {
    let mut pair = Pair::new(4);
    let (handle, import) = shared(&mut pair, vec![1; 8], &ALL);
    pair.owner.replace(&handle, vec![2; 8]).expect("replaced");
    pair.guest.push(import, vec![3; 8], Some(1)).expect("asked");
    assert_eq!(code(outcome(&mut pair)), Code::Stale);
    // Also if it became old while it was on its way.
    let (handle, import) = shared(&mut pair, vec![1; 4 << 20], &ALL);
    pair.guest.push(import, vec![3; 4 << 20], Some(1)).expect("asked");
    for _ in 0..4 {
        pair.step();
    }
    pair.owner.replace(&handle, vec![2; 4 << 20]).expect("replaced");
    assert_eq!(code(outcome(&mut pair)), Code::Stale);
    assert_eq!(pair.owner.exported(&handle).expect("exported"), (2, &[2; 4 << 20][..]));
    assert_eq!(pair.guest.push(import, vec![0; 3], None).expect_err("size").code, Code::Size);
}

#[test]
fn no_more_is_on_the_way_than_the_window_holds() {
    let mut pair = Pair::new(5);
    let (_, import) = shared(&mut pair, numbers(8 << 20, 7), &ALL);
    pair.guest.pull(import).expect("asked");
    let mut most = 0;
    while pair.step() {
        most = most.max(pair.waiting());
    }
    assert!(most <= (8 << 20) + (1 << 20), "{most} bytes on the way");
    assert_eq!(pair.guest.copy(import).expect("a copy").bytes(), numbers(8 << 20, 7));
}

#[test]
fn a_peer_that_goes_in_the_middle_fails_what_was_asked_and_tears_nothing() {
    let mut pair = Pair::new(6);
    let (handle, import) = shared(&mut pair, vec![1; 4 << 20], &ALL);
    pair.guest.pull(import).expect("asked");
    assert_eq!(outcome(&mut pair), Ok(1));
    pair.owner.replace(&handle, vec![2; 4 << 20]).expect("replaced");
    pair.guest.pull(import).expect("asked");
    for _ in 0..6 {
        pair.step();
    }
    pair.owner.close();
    let error = outcome(&mut pair).expect_err("it is gone");
    assert_eq!(
        (error.code, error.message.as_str()),
        (Code::PeerGone, "node 1 closed the connection")
    );
    assert_eq!(pair.guest_heard.last(), Some(&Output::Closed(error.clone())));
    assert_eq!(pair.guest.pull(import), Err(error));
    let copy = pair.guest.copy(import).expect("what was here stays");
    assert_eq!((copy.version(), copy.bytes()), (1, &[1; 4 << 20][..]));

    let mut pair = Pair::new(7);
    pair.guest.lost("it left the pool");
    pair.run();
    assert!(matches!(pair.guest_heard.last(), Some(Output::Closed(_))));
}

#[test]
fn garbage_closes_the_connection_and_never_panics() {
    let words = [
        "",
        "{}",
        "[]",
        "{\"is\":\"read\"}",
        "{\"is\":\"none\"}",
        "{\"is\":\"hello\",\"version\":9}",
        "{\"is\":\"part\",\"id\":1,\"toOwner\":true,\"offset\":18446744073709551615,\"last\":true,\"version\":1,\"hash\":\"\"}",
        "{\"is\":\"took\",\"id\":1,\"fromOwner\":true,\"bytes\":18446744073709551615}",
        "{\"is\":\"write\",\"id\":1,\"size\":8,\"onto\":-9,\"buffer\":1,\"token\":\"\"}",
    ];
    for text in words {
        let mut message = (text.len() as u32).to_le_bytes().to_vec();
        message.extend(text.as_bytes());
        for cut in 0..message.len() {
            fresh().hear(1, &message[..cut]);
        }
        for at in 0..message.len() {
            let mut other = message.clone();
            other[at] ^= 1 << (at % 8);
            fresh().hear(1, &other);
        }
        fresh().hear(1, &message);
    }
    let mut connection = fresh();
    connection.hear(1, &[9, 0, 0, 0, b'{']);
    let outputs: Vec<_> = std::iter::from_fn(|| connection.poll_output()).collect();
    assert!(matches!(outputs.last(), Some(Output::Closed(error)) if error.code == Code::Protocol));
}

fn fresh() -> Connection {
    let mut connection = Connection::new(shoal_peer::Config::new(1, 2, [0; 32]));
    connection.export(vec![0; 8], Rights::of(&ALL), "").expect("exported");
    connection
}
