//! Reads back what an earlier run wrote.

use std::ops::ControlFlow;
use std::path::Path;

use rowmill_core::record::EnvelopeHead;
use rowmill_types::Problem;

use super::lines::{OutputLine, OutputLines};
use crate::read_on_second_thread;

/// How many heads are handed over at once.
const BATCH: usize = 512;

/// What a scan found in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputScan {
    /// The length of the complete envelopes, in bytes.
    pub length: u64,
    /// Whether a torn line follows, which must be cut off.
    pub torn: bool,
    /// Whether the last envelope lacks its newline, which must be added.
    pub lacks_newline: bool,
    /// The number of envelopes.
    pub envelopes: u64,
    /// Whether the file is not settled: blank lines, or row numbers that do not increase.
    pub unordered: bool,
}

/// Passes the head of every envelope of the file to `saw`, in order.
///
/// # Errors
///
/// The file cannot be read, or a line other than a torn last one is not an envelope.
pub fn scan_output(path: &Path, mut saw: impl FnMut(EnvelopeHead)) -> Result<OutputScan, Problem> {
    if !path.exists() {
        return Ok(OutputScan::default());
    }
    let lines = OutputLines::open(path, 0..u64::MAX, 1 << 18)?;
    let mut scan = OutputScanner { lines, previous: 0, found: OutputScan::default(), ended: false };
    let saw_batch = |heads: Vec<EnvelopeHead>| {
        heads.into_iter().for_each(&mut saw);
        Ok(ControlFlow::Continue(()))
    };
    read_on_second_thread(|| scan.next_batch(), saw_batch)?;
    Ok(scan.found)
}

/// A scan in progress.
struct OutputScanner {
    lines: OutputLines,
    /// The number of the previous row.
    previous: u64,
    found: OutputScan,
    ended: bool,
}

impl OutputScanner {
    /// The next heads; `None` after the last.
    fn next_batch(&mut self) -> Result<Option<Vec<EnvelopeHead>>, Problem> {
        let mut heads = Vec::new();
        while heads.len() < BATCH && !self.ended {
            match self.lines.next()? {
                OutputLine::End => self.ended = true,
                OutputLine::Torn => (self.ended, self.found.torn) = (true, true),
                OutputLine::Envelope(head) => {
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
