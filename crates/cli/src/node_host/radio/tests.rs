//! Two radios of one machine: they find each other, talk, and notice when the other is gone.

use std::collections::BTreeMap;
use std::time::Duration;

use shoal_protocol::{CrewId, NodeId};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use super::{Heard, Order, Radio};

const A: (CrewId, NodeId) = (CrewId(1), NodeId(1));
const B: (CrewId, NodeId) = (CrewId(1), NodeId(2));
/// A test that hangs must end; none waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

struct Pair {
    one: Radio,
    from_one: Receiver<Heard>,
    two: Radio,
    from_two: Receiver<Heard>,
}

impl Pair {
    async fn connect() -> Pair {
        Pair::between(Radio::start(), Radio::start()).await
    }

    /// Node 1 calls node 2; what their radios say travels as it would by relay.
    async fn between(
        (one, from_one): (Radio, Receiver<Heard>),
        (two, from_two): (Radio, Receiver<Heard>),
    ) -> Pair {
        two.order(Order::Listen(A));
        one.order(Order::Dial(B));
        let mut pair = Pair { one, from_one, two, from_two };
        let mut up = (false, false);
        while up != (true, true) {
            tokio::select! {
                Some(heard) = pair.from_one.recv() => match heard {
                    Heard::Words(_, words) => pair.two.order(Order::Hear(A, words)),
                    Heard::Up(peer) => up.0 = peer == B,
                    Heard::Down(_) | Heard::Frame(..) => panic!("{heard:?}"),
                },
                Some(heard) = pair.from_two.recv() => match heard {
                    Heard::Words(_, words) => pair.one.order(Order::Hear(B, words)),
                    Heard::Up(peer) => up.1 = peer == A,
                    Heard::Down(_) | Heard::Frame(..) => panic!("{heard:?}"),
                },
            }
        }
        pair
    }
}

#[tokio::test]
async fn a_thousand_frames_go_both_ways() {
    let mut pair = timeout(PATIENCE, Pair::connect()).await.expect("connected");
    let frame = |n: u32| {
        let mut frame = vec![n as u8; if n.is_multiple_of(10) { 60_000 } else { 500 }];
        frame[..4].copy_from_slice(&n.to_le_bytes());
        frame
    };
    // Not more under way than a link would have: what does not fit is dropped by design.
    let mut heard: BTreeMap<u8, u32> = BTreeMap::new();
    for n in 0..1000 {
        pair.one.order(Order::Send(B, frame(n)));
        pair.two.order(Order::Send(A, frame(n)));
        for (side, events) in [(1, &mut pair.from_one), (2, &mut pair.from_two)] {
            loop {
                match timeout(PATIENCE, events.recv()).await.expect("in time").expect("an event") {
                    Heard::Frame(_, bytes) => {
                        assert_eq!(bytes, frame(n));
                        *heard.entry(side).or_default() += 1;
                        break;
                    }
                    Heard::Words(..) => {}
                    other @ (Heard::Up(_) | Heard::Down(_)) => panic!("{other:?}"),
                }
            }
        }
    }
    assert_eq!(heard, BTreeMap::from([(1, 1000), (2, 1000)]));
}

#[tokio::test]
async fn a_radio_that_hangs_up_is_noticed() {
    let mut pair = timeout(PATIENCE, Pair::connect()).await.expect("connected");
    drop(pair.one);
    down(&mut pair.from_two).await;
}

/// A process that is killed says nothing: silence must be enough.
#[test]
fn a_radio_that_dies_without_a_word_is_noticed() {
    let (mortal, immortal) = (runtime(), runtime());
    let one = mortal.block_on(async { Radio::start() });
    let two = immortal.block_on(async { Radio::start() });
    let connect = async { timeout(PATIENCE, Pair::between(one, two)).await };
    let mut pair = immortal.block_on(connect).expect("connected");
    mortal.shutdown_background();
    immortal.block_on(down(&mut pair.from_two));
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().expect("a runtime")
}

async fn down(events: &mut Receiver<Heard>) {
    loop {
        match timeout(PATIENCE, events.recv()).await.expect("in time").expect("an event") {
            Heard::Down(peer) => return assert_eq!(peer, A),
            Heard::Words(..) => {}
            other @ (Heard::Up(_) | Heard::Frame(..)) => panic!("{other:?}"),
        }
    }
}
