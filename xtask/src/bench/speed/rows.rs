//! The rows for the measurements: about 150 bytes each, all different.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::TaskFailure;

const OPENINGS: [&str; 5] = [
    "Arrived on time and works as described",
    "The handle broke after a week of light use",
    "Nicer than the picture, though a little small",
    "I would not buy it again at this price",
    "Does one thing and does it well",
];

/// Writes `count` rows as JSON lines.
pub(super) fn write(path: &Path, count: u64) -> Result<(), TaskFailure> {
    let mut out = BufWriter::new(File::create(path)?);
    for number in 1..=count {
        let opening = OPENINGS[(number % 5) as usize];
        writeln!(
            out,
            r#"{{"id":"review-{number}","product":"kettle {}","review":"{opening}; the seller answered after {} days and sent part {}."}}"#,
            number % 97,
            number % 13,
            number * 7919 % 100_003,
        )?;
    }
    Ok(out.flush()?)
}
