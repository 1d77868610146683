//! Counts the primes up to the number on each line of stdin.
//!
//!     seq 1000 | shoal exec examples/programs/target/primes.wasm --lines

use std::io::BufRead;
use std::process::ExitCode;

/// A sieve of this size takes 12 MB; larger numbers are refused, not attempted.
const MOST: usize = 100_000_000;

fn main() -> ExitCode {
    for line in std::io::stdin().lock().lines() {
        let line = match line {
            Ok(line) => line,
            Err(error) => return refuse(&error.to_string()),
        };
        match line.trim().parse() {
            Ok(limit) if limit <= MOST => println!("{}", primes_up_to(limit)),
            Ok(_) => return refuse(&format!("{} is over {MOST}", line.trim())),
            Err(_) => return refuse(&format!("`{}` is not a number from 0", line.trim())),
        }
    }
    ExitCode::SUCCESS
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("primes: {why}");
    ExitCode::from(2)
}

/// The sieve of Eratosthenes over odd numbers, one bit each.
fn primes_up_to(limit: usize) -> usize {
    if limit < 2 {
        return 0;
    }
    // Bit i stands for 2 i + 1; bit 0 (the number 1) is never looked at.
    let odds = limit.div_ceil(2);
    let mut composite = vec![0_u64; odds.div_ceil(64)];
    let mut count = 1;
    for i in 1..odds {
        if composite[i / 64] >> (i % 64) & 1 == 1 {
            continue;
        }
        count += 1;
        let prime = 2 * i + 1;
        // Smaller multiples have a smaller factor. Not `prime * prime`, which 32 bits may not hold.
        if prime > limit / prime {
            continue;
        }
        let mut multiple = prime * prime / 2;
        while multiple < odds {
            composite[multiple / 64] |= 1 << (multiple % 64);
            multiple += prime;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::primes_up_to;

    #[test]
    fn known_counts() {
        let known = [(0, 0), (1, 0), (2, 1), (3, 2), (10, 4), (100, 25), (1_000_000, 78_498)];
        for (limit, count) in known {
            assert_eq!(primes_up_to(limit), count, "up to {limit}");
        }
    }
}
