//! The names of requests, and what is derived from them.

use xxhash_rust::xxh3::xxh3_64;

/// Names the run, the row and the turn.
pub(crate) fn key(run: &str, row: u64, turn: u32) -> String {
    let mut digits = itoa::Buffer::new();
    let mut key = String::with_capacity(run.len() + 24);
    key.push_str(run);
    key.push('-');
    key.push_str(digits.format(row));
    key.push('-');
    key.push_str(digits.format(turn));
    key
}

/// A number from 0 to 1 that differs between rows and tries, so that rows that
/// failed together do not come back together.
pub(crate) fn jitter(key: &str, attempt: u32) -> f64 {
    let mixed = xxh3_64(key.as_bytes()).wrapping_add(u64::from(attempt).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (xxh3_64(&mixed.to_le_bytes()) >> 11) as f64 / (1u64 << 53) as f64
}
