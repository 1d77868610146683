//! What crews do together, over random sizes, ranks, types and orders of arrival.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod faults;
mod mesh;
// Not every test needs all of it.
#[allow(dead_code)]
#[path = "../links/world.rs"]
mod pair;
#[path = "../links/road.rs"]
mod road;
mod world;

use shoal_node::collective::*;
use world::Crew;

const WAYS: [How; 3] = [How::Tree, How::Ring, How::Mesh];
/// Sizes around a segment (a quarter MiB) and the few bytes of a barrier.
const SIZES: [usize; 7] = [0, 1, 7, 1_000, 262_152, 262_153, 600_000];

/// A crew for each number of ranks and size, each with its own seed.
fn crews() -> impl Iterator<Item = (Crew, usize)> {
    let cases = (1..=9u8).flat_map(|ranks| SIZES.map(|size| (ranks, size)));
    cases.map(|(ranks, size)| (Crew::new(u64::from(ranks) * 1_000 + size as u64, ranks), size))
}

/// Parts of different length, together about this many.
fn parts(crew: &mut Crew, size: usize) -> Vec<usize> {
    let ranks = crew.groups.len();
    (0..ranks).map(|_| crew.chance() as usize % (2 * size / ranks + 1)).collect()
}

fn dealt(whole: &[u8], parts: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = whole;
    let part = |part: &usize| {
        let (mine, others) = rest.split_at(*part);
        rest = others;
        mine.to_vec()
    };
    parts.iter().map(part).collect()
}

#[test]
fn a_broadcast_reaches_all() {
    for (mut crew, bytes) in crews() {
        for how in WAYS {
            let root = Rank(crew.chance() as u8 % crew.groups.len() as u8);
            let whole = crew.bytes(bytes);
            let data: Vec<_> = crew
                .ranks()
                .map(|rank| if rank == root { whole.clone() } else { vec![] })
                .collect();
            for got in crew.all(&Op::Broadcast { root, bytes, how }, &data) {
                assert!(got == whole);
            }
        }
    }
}

#[test]
fn scatter_deals_out_and_gather_brings_back() {
    for (mut crew, size) in crews() {
        let root = Rank(crew.chance() as u8 % crew.groups.len() as u8);
        let parts = parts(&mut crew, size);
        let whole = crew.bytes(parts.iter().sum());
        let data: Vec<_> =
            crew.ranks().map(|rank| if rank == root { whole.clone() } else { vec![] }).collect();
        let hands = crew.all(&Op::Scatter { root, parts: parts.clone() }, &data);
        assert!(hands == dealt(&whole, &parts));
        for (rank, got) in crew.all(&Op::Gather { root, parts }, &hands).into_iter().enumerate() {
            assert!(got == if rank == usize::from(root.0) { &whole[..] } else { &[] });
        }
    }
}

#[test]
fn all_gather_gives_all_to_all() {
    for (mut crew, size) in crews() {
        for how in WAYS {
            let parts = parts(&mut crew, size);
            let whole = crew.bytes(parts.iter().sum());
            let op = Op::AllGather { parts: parts.clone(), how };
            for got in crew.all(&op, &dealt(&whole, &parts)) {
                assert!(got == whole);
            }
        }
    }
}

#[test]
fn all_reduce_gives_the_same_bits_to_all_in_every_order_of_arrival() {
    let elements = [Element::F32, Element::F16, Element::Bf16, Element::I32, Element::Q8];
    for ranks in 1..=9 {
        for (at, element) in elements.into_iter().enumerate() {
            let count = [0, 1, 5, 33, 1_000, 70_000, 140_000][(usize::from(ranks) + at) % 7];
            let numbers = Crew::new(count as u64, ranks).numbers(count);
            let data: Vec<_> = numbers.iter().map(|numbers| element.encode(numbers)).collect();
            let op =
                |how| Op::AllReduce { numbers: Numbers { element, count, fold: Fold::Sum }, how };
            for how in WAYS {
                let one = Crew::new(1, ranks).all(&op(how), &data);
                let two = Crew::new(2, ranks).all(&op(how), &data);
                assert!(one.iter().chain(&two).all(|got| *got == one[0]), "{element:?} {how:?}");
                assert_sum(element, &data, &one[0], count);
            }
        }
    }
}

/// What came out is the sum to the precision of the element.
fn assert_sum(element: Element, data: &[Vec<u8>], got: &[u8], count: usize) {
    assert_eq!(got.len(), element.bytes(count));
    let given: Vec<_> = data.iter().map(|bytes| element.decode(bytes)).collect();
    for (at, got) in element.decode(got).iter().enumerate().take(count) {
        let sum: f64 = given.iter().map(|numbers| f64::from(numbers[at])).sum();
        // A sum of nine is at most 72; the last step of each type at that size.
        let most = match element {
            Element::F32 => 1e-4,
            Element::F16 => 0.04,
            Element::Bf16 => 0.3,
            Element::I32 => 0.0,
            Element::Q8 => 0.6,
        };
        assert!((f64::from(*got) - sum).abs() <= most, "{element:?} {at}: {got} for {sum}");
    }
}

#[test]
fn on_a_mesh_sums_are_in_the_order_of_ranks() {
    let mut crew = Crew::new(5, 7);
    let (element, count) = (Element::F32, 1_000);
    let numbers = crew.numbers(count);
    let data: Vec<_> = numbers.iter().map(|numbers| element.encode(numbers)).collect();
    let op = Op::AllReduce { numbers: Numbers { element, count, fold: Fold::Sum }, how: How::Mesh };
    let got = element.decode(&crew.all(&op, &data)[0]);
    for (at, got) in got.iter().enumerate() {
        let sum = numbers.iter().map(|numbers| numbers[at]).reduce(|sum, number| sum + number);
        assert_eq!(got.to_bits(), sum.unwrap().to_bits());
    }
}

#[test]
fn reduce_gives_the_fold_to_the_root_alone() {
    for ranks in 1..=9 {
        for how in WAYS {
            for (fold, expected) in [(Fold::Least, 0), (Fold::Most, i32::from(ranks) - 1)] {
                let mut crew = Crew::new(3, ranks);
                let data = crew.ranks().map(|rank| i32::from(rank.0).to_le_bytes().repeat(50));
                let data: Vec<_> = data.collect();
                let root = Rank(ranks / 2);
                let numbers = Numbers { element: Element::I32, count: 50, fold };
                let got = crew.all(&Op::Reduce { root, numbers, how }, &data);
                for (rank, got) in got.into_iter().enumerate() {
                    let copies = if rank == usize::from(root.0) { 50 } else { 0 };
                    assert_eq!(got, expected.to_le_bytes().repeat(copies));
                }
            }
        }
    }
}

#[test]
fn nobody_passes_a_barrier_before_all_are_there() {
    for ranks in 2..=9 {
        let mut crew = Crew::new(ranks.into(), ranks);
        let last = Rank(crew.chance() as u8 % ranks);
        for rank in crew.ranks().filter(|rank| *rank != last) {
            crew.begin(rank, &Op::Barrier, &[]);
        }
        crew.settle();
        assert!(crew.done.iter().all(Vec::is_empty), "{last:?} of {ranks} is not there");
        crew.begin(last, &Op::Barrier, &[]);
        crew.settle();
        assert!(crew.done.iter().all(|done| done.len() == 1));
    }
}

#[test]
fn several_operations_run_at_a_time_and_ranks_may_be_far_ahead() {
    for seed in 0..20 {
        let mut crew = Crew::new(seed, 5);
        let numbers = Numbers { element: Element::I32, count: 40, fold: Fold::Sum };
        let ops: Vec<_> = (0..30)
            .map(|at| match at % 3 {
                0 => Op::AllReduce { numbers, how: WAYS[at / 3 % 3] },
                1 => Op::Barrier,
                _ => Op::AllGather { parts: vec![4; 5], how: How::Ring },
            })
            .collect();
        let mut begun = [0; 5];
        while begun.iter().any(|begun| *begun < ops.len()) || !crew.on_the_way.is_empty() {
            let rank = Rank(crew.chance() as u8 % 5);
            let next = &mut begun[usize::from(rank.0)];
            if !crew.chance().is_multiple_of(3) || *next == ops.len() {
                crew.step();
                continue;
            }
            let op = &ops[*next];
            *next += 1;
            let data = match op {
                Op::AllReduce { .. } => i32::from(rank.0).to_le_bytes().repeat(40),
                Op::AllGather { .. } => vec![rank.0; 4],
                _ => vec![],
            };
            crew.begin(rank, op, &data);
        }
        for done in &mut crew.done {
            done.sort();
            assert_eq!(done.len(), ops.len());
            assert_eq!(done[0].1, 10i32.to_le_bytes().repeat(40));
            assert_eq!(done[2].1, [[0; 4], [1; 4], [2; 4], [3; 4], [4; 4]].concat());
        }
    }
}

#[test]
fn a_ring_and_a_mesh_send_no_more_than_they_must() {
    let (element, count, ranks) = (Element::F32, 400_000, 4);
    for how in [How::Ring, How::Mesh] {
        let mut crew = Crew::new(1, ranks);
        let data: Vec<_> =
            crew.numbers(count).iter().map(|numbers| element.encode(numbers)).collect();
        crew.all(
            &Op::AllReduce { numbers: Numbers { element, count, fold: Fold::Sum }, how },
            &data,
        );
        let least = 2 * (usize::from(ranks) - 1) * element.bytes(count) / usize::from(ranks);
        assert!(
            crew.sent.iter().all(|sent| (least..least + 200).contains(sent)),
            "{:?} of {least}",
            crew.sent
        );
    }
}
