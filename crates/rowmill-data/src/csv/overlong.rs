//! Records that are longer than the limit, and where reading resumes after them.
//!
//! Such a record is skipped in constant memory. Its quotes determine where it ends. A quote that was never
//! closed would swallow the rest of the input, so lines that look like records of this input end it as well.

use memchr::{memchr, memchr_iter};

/// This many consecutive lines must look like records: a single one may be part of a long text.
const LINES: usize = 8;
/// How many bytes ahead are examined.
const AHEAD: usize = 1 << 20;

/// How a record ended that is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverlongEnd {
    /// Where its quotes end it.
    Ended,
    /// Inside quotes, before this line of the input, with which records resume.
    StrayQuote { next_line: u64 },
    /// Inside quotes, at the end of the input.
    Unclosed,
}

/// Which part of a record is skipped next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SkippedPart {
    /// The rest of a line.
    Line,
    /// The text after a line end inside quotes.
    LineStart,
}

/// Whether records resume at a given position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordStart {
    Here,
    NotHere,
    /// More input is needed to decide.
    Unknown,
}

/// Whether the input has more bytes than are in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MoreInput {
    MayCome,
    None,
}

/// What the records of an input look like.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordForm {
    pub(super) delimiter: u8,
    pub(super) columns: usize,
}

impl RecordForm {
    /// Whether the bytes, which start a line, start a record: the next lines must have as many columns as the
    /// header, and no quotes. A line of one column could be any text, so it proves nothing.
    pub(super) fn resumption(self, bytes: &[u8], rest: MoreInput) -> RecordStart {
        if self.columns < 2 {
            return RecordStart::NotHere;
        }
        let ahead = bytes.get(..AHEAD).unwrap_or(bytes);
        let mut left = ahead;
        for line in 0..LINES {
            let Some(end) = memchr(b'\n', left) else {
                return match rest {
                    _ if ahead.len() < bytes.len() => RecordStart::NotHere,
                    MoreInput::MayCome if self.may_fit(left) => RecordStart::Unknown,
                    MoreInput::None if self.fits(left) || (left.is_empty() && line > 0) => RecordStart::Here,
                    _ => RecordStart::NotHere,
                };
            };
            if !self.fits(left.get(..end).unwrap_or_default()) {
                return RecordStart::NotHere;
            }
            left = left.get(end + 1..).unwrap_or_default();
        }
        RecordStart::Here
    }

    fn fits(self, line: &[u8]) -> bool {
        self.may_fit(line) && memchr_iter(self.delimiter, line).count() + 1 == self.columns
    }

    /// Whether the available part of a line could still belong to a record.
    fn may_fit(self, line: &[u8]) -> bool {
        memchr(b'"', line).is_none() && memchr_iter(self.delimiter, line).count() < self.columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: RecordForm = RecordForm { delimiter: b',', columns: 3 };

    #[test]
    fn several_lines_with_the_columns_of_the_header_begin_a_record() {
        let lines = "a,b,c\r\n".repeat(LINES);
        assert_eq!(FORM.resumption(lines.as_bytes(), MoreInput::MayCome), RecordStart::Here);
        assert_eq!(FORM.resumption(b"a,b,c\n1,2,3", MoreInput::None), RecordStart::Here);
        assert_eq!(FORM.resumption(b"a,b,c\n", MoreInput::None), RecordStart::Here);
        assert_eq!(FORM.resumption(b"a,b,c\n1,2", MoreInput::MayCome), RecordStart::Unknown);
    }

    #[test]
    fn other_lines_and_those_of_one_column_begin_none() {
        for bytes in [&b"a,b\n"[..], b"a,b,c,d\n", b"a,\"b\",c\n", b"a,b,c\n\n1,2,3\n", b"a,b,c\n1,2", b""] {
            assert_eq!(FORM.resumption(bytes, MoreInput::None), RecordStart::NotHere, "{bytes:?}");
        }
        let one = RecordForm { columns: 1, ..FORM };
        assert_eq!(one.resumption(b"a\nb\n", MoreInput::None), RecordStart::NotHere);
        let far = [&b"a,b,c\n"[..], &vec![b'x'; AHEAD]].concat();
        assert_eq!(FORM.resumption(&far, MoreInput::MayCome), RecordStart::NotHere);
    }
}
