//! Reading back what an earlier run wrote.

use std::path::Path;

use rowmill_core::record::EnvelopeHead;
use rowmill_types::Problem;

use super::lines::{Lines, Next};

/// What a scan found at the end of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputScan {
    /// How many bytes of whole envelopes there are.
    pub length: u64,
    /// Whether a torn line follows; it is to be cut off.
    pub torn: bool,
    /// Whether the last envelope lacks its newline; it is to be added.
    pub lacks_newline: bool,
    /// How many envelopes there are.
    pub envelopes: u64,
    /// Whether something keeps the file from being settled: blank lines, or row numbers that do not grow.
    pub unordered: bool,
}

/// Gives the head of every envelope of the file to `saw`, in order.
///
/// # Errors
///
/// The file cannot be read, or a line is no envelope, other than a last one that was cut.
pub fn scan_output(path: &Path, mut saw: impl FnMut(EnvelopeHead)) -> Result<OutputScan, Problem> {
    let mut found = OutputScan::default();
    if !path.exists() {
        return Ok(found);
    }
    let mut lines = Lines::open(path, 0..u64::MAX, 1 << 18)?;
    let mut previous = 0;
    loop {
        match lines.next()? {
            Next::End => return Ok(found),
            Next::Torn => return Ok(OutputScan { torn: true, ..found }),
            Next::Envelope(head) => {
                found.unordered |= lines.offset != found.length || head.number <= previous;
                previous = head.number;
                found.envelopes += 1;
                found.length = lines.offset + lines.bytes.len() as u64;
                found.lacks_newline = !lines.has_newline();
                saw(head);
            }
        }
    }
}
