//! Joining neighbours into words, the best pair first: what both families of vocabularies do.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;

/// Nobody stands there any more.
const NONE: usize = usize::MAX;

struct Node<T> {
    what: T,
    before: usize,
    after: usize,
    gone: bool,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pair<R> {
    rank: R,
    /// Of two as good, the left one goes first.
    left: core::cmp::Reverse<usize>,
    right: usize,
    /// Which of the states of its two sides it was made for.
    age: (u32, u32),
}

/// Joins neighbours until no pair is left. `rank` says how good a pair is, the highest first, and what it becomes.
pub(crate) fn join<T: Copy, R: Ord>(
    row: impl Iterator<Item = T>,
    rank: impl Fn(T, T) -> Option<(R, T)>,
) -> Vec<T> {
    let mut nodes: Vec<Node<T>> = row
        .enumerate()
        .map(|(at, what)| Node { what, before: at.wrapping_sub(1), after: at + 1, gone: false })
        .collect();
    let count = nodes.len();
    if let Some(last) = nodes.last_mut() {
        last.after = NONE;
    }
    let mut ages = alloc::vec![0u32; count];
    let mut heap = BinaryHeap::new();
    let offer = |heap: &mut BinaryHeap<Pair<R>>, nodes: &[Node<T>], ages: &[u32], left: usize| {
        let Some(right) = nodes.get(left).map(|node| node.after).filter(|at| *at != NONE) else {
            return;
        };
        if let Some((rank, _)) = rank(nodes[left].what, nodes[right].what) {
            let age = (ages[left], ages[right]);
            heap.push(Pair { rank, left: core::cmp::Reverse(left), right, age });
        }
    };
    for left in 0..count {
        offer(&mut heap, &nodes, &ages, left);
    }
    while let Some(Pair { left: core::cmp::Reverse(left), right, age, .. }) = heap.pop() {
        let fresh = !nodes[left].gone && !nodes[right].gone && age == (ages[left], ages[right]);
        if !fresh {
            continue;
        }
        let Some((_, joined)) = rank(nodes[left].what, nodes[right].what) else { continue };
        let after = nodes[right].after;
        nodes[left].what = joined;
        nodes[left].after = after;
        nodes[right].gone = true;
        ages[left] += 1;
        if let Some(next) = nodes.get_mut(after) {
            next.before = left;
        }
        offer(&mut heap, &nodes, &ages, left);
        let before = nodes[left].before;
        if before != NONE {
            offer(&mut heap, &nodes, &ages, before);
        }
    }
    nodes.into_iter().filter(|node| !node.gone).map(|node| node.what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_pair_goes_first_and_of_equals_the_left_one() {
        let rank = |left: u32, right: u32| match (left, right) {
            (1, 1) => Some((5, 2)),
            (2, 1) => Some((1, 3)),
            (1, 2) => Some((9, 4)),
            _ => None,
        };
        assert_eq!(join([1, 1, 1].into_iter(), rank), [3]);
        assert_eq!(join([1, 1, 1, 1, 1].into_iter(), rank), [2, 3]);
        assert_eq!(join([1, 0, 1, 1].into_iter(), rank), [1, 0, 2]);
        assert_eq!(join([0; 0].into_iter(), rank), [0; 0]);
    }
}
