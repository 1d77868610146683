//! Memory for large messages, used again and again: what the system has to give anew it also has to clear, which
//! costs as much as half a copy.

use std::sync::{Mutex, MutexGuard, PoisonError};

use shoal_protocol::limit::MAX_LINK_FRAME;

/// What is smaller comes and goes without the system's help.
const SMALLEST: usize = 16 << 10;
/// A frame of a node with all heads, and one of a peer that sends more at a time.
const SMALL: usize = MAX_LINK_FRAME + 512;
const LARGE: usize = (1 << 20) + 512;
/// Kept at most: what two links have on the way, 4 MiB and 8 MiB.
const MAX_SMALL: usize = 64;
const MAX_LARGE: usize = 8;

static STOCK: Mutex<Stock> = Mutex::new(Stock { small: Vec::new(), large: Vec::new() });

struct Stock {
    small: Vec<Vec<u8>>,
    large: Vec<Vec<u8>>,
}

/// Empty, with room for at least so much.
pub(super) fn take(size: usize) -> Vec<u8> {
    if !(SMALLEST..=LARGE).contains(&size) {
        return Vec::with_capacity(size);
    }
    let is_small = size <= SMALL;
    let mut stock = stock();
    // The last one given back is the likeliest to be in a cache.
    let found = if is_small { stock.small.pop() } else { stock.large.pop() };
    drop(stock);
    found.unwrap_or_else(|| Vec::with_capacity(if is_small { SMALL } else { LARGE }))
}

/// Gives memory back.
pub(super) fn give(mut bytes: Vec<u8>) {
    bytes.clear();
    let mut stock = stock();
    match bytes.capacity() {
        SMALL if stock.small.len() < MAX_SMALL => stock.small.push(bytes),
        LARGE if stock.large.len() < MAX_LARGE => stock.large.push(bytes),
        // Freed when nobody waits for the lock any more.
        _ => drop(stock),
    }
}

fn stock() -> MutexGuard<'static, Stock> {
    STOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_used_again_if_its_size_is_usual() {
        assert_eq!(take(100).capacity(), 100);
        assert_eq!(take(LARGE + 1).capacity(), LARGE + 1);
        let mut bytes = take(MAX_LINK_FRAME);
        assert_eq!(bytes.capacity(), SMALL);
        bytes.extend([1, 2, 3]);
        give(bytes);
        assert!(take(SMALLEST).is_empty());
        assert_eq!(take(SMALL + 1).capacity(), LARGE);
        for _ in 0..3 * MAX_SMALL {
            give(Vec::with_capacity(SMALL));
        }
        assert_eq!(stock().small.len(), MAX_SMALL);
    }
}
