//! The last output of a server, for messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

const LINES: usize = 12;
const LINE_BYTES: usize = 400;

/// The last lines of a growing text. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct OutputTail {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl OutputTail {
    /// Adds a line; a long one is truncated.
    pub(super) fn push(&self, line: &[u8]) {
        let cut = line.get(..LINE_BYTES).unwrap_or(line);
        let text = String::from_utf8_lossy(cut).trim_end().to_owned();
        if text.is_empty() {
            return;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }

    /// The lines, if there are any.
    pub(super) fn text(&self) -> Option<String> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        (!lines.is_empty()).then(|| lines.make_contiguous().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept_and_long_ones_are_cut() {
        let tail = OutputTail::default();
        assert_eq!(tail.text(), None);
        for number in 0..100 {
            tail.push(format!("line {number}\r\n").as_bytes());
        }
        tail.push(b"  \n");
        tail.push(&[b'x'; 1000]);
        let text = tail.text().unwrap();
        assert_eq!(text.lines().count(), LINES);
        assert!(text.starts_with("line 89\n"), "{text}");
        assert!(text.ends_with(&format!("\n{}", "x".repeat(LINE_BYTES))));
    }
}
