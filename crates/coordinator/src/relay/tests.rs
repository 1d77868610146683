//! What waits, by which way, and how much of it.

use super::*;

const MEGABYTE: usize = 1 << 20;

fn frame(size: usize) -> Parcel {
    let mut bytes = Parcel::room(size);
    bytes.resize(bytes.len() + size, 7);
    Parcel::frame(bytes)
}

/// Ends whose nodes take nothing.
fn stalled(relay: &Relay, count: u64) -> Vec<Arc<Outlet>> {
    let open = |conn| {
        let outlet = Arc::new(Outlet::new(Conn(conn), None));
        relay.opened(&outlet);
        outlet
    };
    (1..=count).map(open).collect()
}

fn post(relay: &Relay, to: &Outlet, from: u64, size: usize) -> Posted {
    let mut frame = frame(size);
    frame.count_in(&relay.0.load);
    to.post(Conn(from), frame)
}

#[test]
fn who_holds_most_gives_way_when_all_hold_too_much() {
    let relay = Relay::default();
    let ends = stalled(&relay, 3);
    for (end, frames) in ends.iter().zip([24, 4, 1]) {
        for from in 0..frames {
            let posted = post(&relay, end, 100 + from, MEGABYTE);
            assert_eq!(posted, Posted::Taken { by_quic: false });
        }
    }
    assert!(relay.0.load.bytes() > 29 * MEGABYTE);
    relay.shed(30 * MEGABYTE);
    assert_eq!(relay.counts().shed, 0, "there is room");
    relay.shed(18 * MEGABYTE);
    assert!(relay.0.load.bytes() <= 18 * MEGABYTE);
    assert_eq!(relay.counts().shed, 12, "of the largest, half of 24");
    assert!(ends[1].held() > 4 * MEGABYTE && ends[2].held() > MEGABYTE);
    // All else that counts is gone with whoever held it.
    ends.iter().for_each(|end| end.close());
    assert_eq!(relay.0.load.bytes(), 0);
    relay.shed(0);
}

#[tokio::test]
async fn what_waits_goes_with_the_way_and_counts_until_it_is_there() {
    let relay = Relay::default();
    let end = stalled(&relay, 1).remove(0);
    post(&relay, &end, 9, MEGABYTE);
    let (first, over) = end.open_quic().unwrap();
    assert_eq!(post(&relay, &end, 9, 1000), Posted::Taken { by_quic: true });
    let (second, _over) = end.open_quic().unwrap();
    assert!(over.await.is_err(), "the newest way counts");
    let mut batch = Vec::new();
    assert!(!end.quic_frames(&first, &mut batch).await);
    assert!(end.quic_frames(&second, &mut batch).await);
    assert_eq!((batch.len(), batch[0].payload().len()), (1, 1000));
    end.close_quic(&first);
    assert_eq!(post(&relay, &end, 9, 10), Posted::Taken { by_quic: true });
    end.close_quic(&second);
    assert_eq!(post(&relay, &end, 9, 10), Posted::Taken { by_quic: false });
    let before = relay.0.load.bytes();
    assert!(before > MEGABYTE + 1000);
    drop(batch);
    assert!(relay.0.load.bytes() < before, "a frame on its way counts");
    end.close();
    assert!(end.open_quic().is_none());
    assert_eq!(relay.0.load.bytes(), 0);
}

#[tokio::test]
async fn two_ways_hold_no_more_than_one() {
    let relay = Relay::default();
    let end = stalled(&relay, 1).remove(0);
    let fill =
        |end: &Outlet| (0..).take_while(|_| post(&relay, end, 9, MEGABYTE) != Posted::Full).count();
    assert_eq!(fill(&end), 4, "a pair's share");
    let (way, _over) = end.open_quic().unwrap();
    assert_eq!(fill(&end), 0);
    end.close_quic(&way);
    assert_eq!(fill(&end), 0);
}
