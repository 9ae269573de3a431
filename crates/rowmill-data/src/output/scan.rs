//! Reading back what an earlier run wrote.

use std::ops::ControlFlow;
use std::path::Path;

use rowmill_core::record::EnvelopeHead;
use rowmill_types::Problem;

use super::lines::{Lines, Next};
use crate::read_overlapped;

/// Heads that are handed over at once.
const BATCH: usize = 512;

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
    if !path.exists() {
        return Ok(OutputScan::default());
    }
    let lines = Lines::open(path, 0..u64::MAX, 1 << 18)?;
    let mut scan = Scan { lines, previous: 0, found: OutputScan::default(), ended: false };
    let saw_batch = |heads: Vec<EnvelopeHead>| {
        heads.into_iter().for_each(&mut saw);
        Ok(ControlFlow::Continue(()))
    };
    read_overlapped(|| scan.next_batch(), saw_batch)?;
    Ok(scan.found)
}

/// A scan that is under way.
struct Scan {
    lines: Lines,
    /// The number of the row before.
    previous: u64,
    found: OutputScan,
    ended: bool,
}

impl Scan {
    /// The next heads; `None` after the last.
    fn next_batch(&mut self) -> Result<Option<Vec<EnvelopeHead>>, Problem> {
        let mut heads = Vec::new();
        while heads.len() < BATCH && !self.ended {
            match self.lines.next()? {
                Next::End => self.ended = true,
                Next::Torn => (self.ended, self.found.torn) = (true, true),
                Next::Envelope(head) => {
                    let Self { lines, previous, found, .. } = self;
                    found.unordered |= lines.offset != found.length || head.number <= *previous;
                    *previous = head.number;
                    found.envelopes += 1;
                    found.length = lines.offset + lines.bytes.len() as u64;
                    found.lacks_newline = !lines.has_newline();
                    heads.push(head);
                }
            }
        }
        Ok((!heads.is_empty()).then_some(heads))
    }
}
