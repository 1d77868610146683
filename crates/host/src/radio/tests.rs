//! Two radios of one machine: they find each other, talk, and notice when the other is gone, by streams and by channels.

use std::collections::BTreeMap;
use std::time::Duration;

use shoal_protocol::{CrewId, NodeId};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use super::{Heard, News, Order, Radio};

pub(super) const A: (CrewId, NodeId) = (CrewId(1), NodeId(1));
pub(super) const B: (CrewId, NodeId) = (CrewId(1), NodeId(2));
/// A test that hangs must end; none waits this long.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Pair {
    pub(super) one: Radio,
    pub(super) from_one: Receiver<Heard>,
    pub(super) two: Radio,
    pub(super) from_two: Receiver<Heard>,
}

impl Pair {
    async fn connect(streams: bool) -> Pair {
        let start = || Radio::with(Vec::new(), streams);
        let pair = timeout(PATIENCE, Pair::between(start(), start())).await.expect("connected");
        pair.takes_stream(streams).await;
        pair
    }

    async fn between(one: (Radio, Receiver<Heard>), two: (Radio, Receiver<Heard>)) -> Pair {
        Pair::through(one, two, |words| words).await
    }

    /// Node 1 calls node 2; what their radios say travels as it would by relay, and is changed on its way.
    pub(super) async fn through(
        (one, from_one): (Radio, Receiver<Heard>),
        (two, from_two): (Radio, Receiver<Heard>),
        mut change: impl FnMut(Vec<u8>) -> Vec<u8>,
    ) -> Pair {
        two.order(Order::Listen(A));
        one.order(Order::Dial(B));
        let mut pair = Pair { one, from_one, two, from_two };
        let mut up = (false, false);
        while up != (true, true) {
            tokio::select! {
                Some(heard) = pair.from_one.recv() => match pair.one.present(heard) {
                    Some((_, News::Words(words))) => pair.two.order(Order::Hear(A, change(words))),
                    Some((peer, News::Up)) => up.0 = peer == B,
                    Some(other) => panic!("{other:?}"),
                    // Of an earlier call.
                    None => {}
                },
                Some(heard) = pair.from_two.recv() => match pair.two.present(heard) {
                    Some((_, News::Words(words))) => pair.one.order(Order::Hear(B, change(words))),
                    Some((peer, News::Up)) => up.1 = peer == A,
                    Some(other) => panic!("{other:?}"),
                    None => {}
                },
            }
        }
        pair
    }

    /// Both take this way. The news that a way is there comes just before it is used.
    pub(super) async fn takes_stream(&self, expected: bool) {
        let of = |radio: &Radio, peer| {
            let call = radio.calls().present.get(&peer).copied().unwrap_or_default();
            // Nobody hears an empty frame.
            radio.outboxes.pass(peer, call, Vec::new()).is_none()
        };
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if (of(&self.one, B), of(&self.two, A)) == (expected, expected) {
                return;
            }
        }
        panic!("they do not both take the way they should: by stream {expected}");
    }
}

#[tokio::test]
async fn a_thousand_frames_go_both_ways() {
    for streams in [true, false] {
        a_thousand_frames(Pair::connect(streams).await).await;
    }
}

async fn a_thousand_frames(mut pair: Pair) {
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
                match next(events).await.news {
                    News::Frame(bytes) => {
                        assert_eq!(bytes, frame(n));
                        *heard.entry(side).or_default() += 1;
                        break;
                    }
                    News::Words(..) => {}
                    other @ (News::Up | News::Down) => panic!("{other:?}"),
                }
            }
        }
    }
    assert_eq!(heard, BTreeMap::from([(1, 1000), (2, 1000)]));
}

/// A link that was made anew must hear nothing of the channel of the one before.
#[tokio::test]
async fn of_an_earlier_call_nothing_is_passed_on() {
    let mut pair = Pair::connect(true).await;
    pair.one.order(Order::Send(B, vec![1; 100]));
    let stale = loop {
        let heard = next(&mut pair.from_two).await;
        if matches!(heard.news, News::Frame(_)) {
            break heard;
        }
    };
    let (peer, call) = (stale.peer, stale.call);
    let of_before = |news| Heard { peer, call, news };
    assert!(matches!(pair.two.present(of_before(News::Up)), Some((A, News::Up))));
    for order in [Order::Listen(A), Order::Dial(A), Order::Hang(A)] {
        pair.two.order(order);
        for news in [News::Up, News::Down, News::Frame(vec![1]), News::Words(vec![1])] {
            assert!(pair.two.present(of_before(news)).is_none());
        }
    }
    assert!(pair.two.present(stale).is_none());
}

/// However many frames and words wait.
#[tokio::test]
async fn hanging_up_is_heard_when_much_waits() {
    for streams in [true, false] {
        let mut pair = Pair::connect(streams).await;
        for _ in 0..2 * super::MAX_WAITING {
            pair.one.order(Order::Send(B, vec![1]));
            pair.one.order(Order::Hear(B, vec![1]));
        }
        pair.one.order(Order::Hang(B));
        while !matches!(next(&mut pair.from_two).await.news, News::Down) {}
    }
}

#[tokio::test]
async fn a_radio_that_hangs_up_is_noticed() {
    for streams in [true, false] {
        let mut pair = Pair::connect(streams).await;
        drop(pair.one);
        down(&mut pair.from_two).await;
    }
}

/// A process that is killed says nothing: silence must be enough.
#[test]
fn a_radio_that_dies_without_a_word_is_noticed() {
    let (mortal, immortal) = (runtime(), runtime());
    let one = mortal.block_on(async { Radio::with(Vec::new(), false) });
    let two = immortal.block_on(async { Radio::with(Vec::new(), false) });
    let connect = async { timeout(PATIENCE, Pair::between(one, two)).await };
    let mut pair = immortal.block_on(connect).expect("connected");
    mortal.shutdown_background();
    immortal.block_on(down(&mut pair.from_two));
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().expect("a runtime")
}

pub(super) async fn next(events: &mut Receiver<Heard>) -> Heard {
    timeout(PATIENCE, events.recv()).await.expect("in time").expect("an event")
}

pub(super) async fn down(events: &mut Receiver<Heard>) {
    loop {
        let Heard { peer, news, .. } = next(events).await;
        match news {
            News::Down => return assert_eq!(peer, A),
            News::Words(..) => {}
            other @ (News::Up | News::Frame(..)) => panic!("{other:?}"),
        }
    }
}
