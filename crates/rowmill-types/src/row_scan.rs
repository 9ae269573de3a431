//! The fast way to find the fields of a row: one pass over the text that validates it and records the positions of
//! names and values, without decoding anything.

use std::ops::Range;

use crate::FieldSpan;

/// The maximum nesting of values before the slower parser takes over.
const MAX_DEPTH: u32 = 64;

/// The fields of the JSON object in `text`, including repeated names.
///
/// `None` means that the slower parser must be used: the text is invalid, or has escapes in a name, a surrogate, or
/// very deep nesting.
pub(crate) fn scan_object(text: &str) -> Option<Vec<FieldSpan>> {
    let mut scan = ObjectScanner { bytes: text.as_bytes(), at: 0 };
    scan.skip_space();
    scan.take(b'{')?;
    scan.skip_space();
    let mut fields = Vec::with_capacity(8);
    if scan.take(b'}').is_none() {
        loop {
            let name = scan.plain_string()?;
            scan.skip_space();
            scan.take(b':')?;
            scan.skip_space();
            let start = scan.at;
            scan.value(0)?;
            fields.push(FieldSpan::with_plain_name(name, start..scan.at));
            if scan.closes(b'}')? {
                break;
            }
        }
    }
    scan.skip_space();
    (scan.at == scan.bytes.len()).then_some(fields)
}

struct ObjectScanner<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl ObjectScanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, expected: u8) -> Option<()> {
        if self.peek()? == expected {
            self.at += 1;
            return Some(());
        }
        None
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// After an item: `true` at the `close` of its container, `false` at the next item.
    fn closes(&mut self, close: u8) -> Option<bool> {
        self.skip_space();
        let byte = self.peek()?;
        self.at += 1;
        if byte == close {
            return Some(true);
        }
        if byte == b',' {
            self.skip_space();
            return Some(false);
        }
        None
    }

    fn value(&mut self, depth: u32) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' => self.container(b'}', depth),
            b'[' => self.container(b']', depth),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn container(&mut self, close: u8, depth: u32) -> Option<()> {
        if depth == MAX_DEPTH {
            return None;
        }
        self.at += 1;
        self.skip_space();
        if self.take(close).is_some() {
            return Some(());
        }
        loop {
            if close == b'}' {
                self.string()?;
                self.skip_space();
                self.take(b':')?;
                self.skip_space();
            }
            self.value(depth + 1)?;
            if self.closes(close)? {
                return Some(());
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        if !self.bytes.get(self.at..)?.starts_with(word) {
            return None;
        }
        self.at += word.len();
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// A string without escapes; the range between its quotes.
    fn plain_string(&mut self) -> Option<Range<usize>> {
        self.take(b'"')?;
        let start = self.at;
        self.skip_plain();
        let end = self.at;
        self.take(b'"')?;
        Some(start..end)
    }

    fn string(&mut self) -> Option<()> {
        self.take(b'"')?;
        loop {
            self.skip_plain();
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        match self.bytes.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                let digits = self.bytes.get(self.at + 2..self.at + 6)?;
                let surrogate = matches!(digits, [b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F', ..]);
                if surrogate || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                self.at += 6;
            }
            _ => return None,
        }
        Some(())
    }

    /// Continues to the next quote, backslash or control character, eight bytes at a time.
    fn skip_plain(&mut self) {
        const ONES: u64 = u64::MAX / 255;
        const HIGHS: u64 = ONES * 0x80;
        // Marks the zero bytes of a word; exact up to the first one.
        let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
        while let Some((chunk, _)) = self.bytes.get(self.at..).and_then(<[u8]>::split_first_chunk::<8>) {
            let word = u64::from_le_bytes(*chunk);
            let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
            let found =
                control | zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
            if found != 0 {
                self.at += (found.trailing_zeros() / 8) as usize;
                return;
            }
            self.at += 8;
        }
        while let Some(byte) = self.peek() {
            if byte < 0x20 || byte == b'"' || byte == b'\\' {
                return;
            }
            self.at += 1;
        }
    }
}
