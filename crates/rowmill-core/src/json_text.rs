//! Reformats JSON text without parsing it into values, so that number text and key order are preserved.
//!
//! The layouts are those of Python's `json.dumps(…, ensure_ascii=False)`. All functions expect *valid* JSON; other text
//! does not panic, but the output is unspecified.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr2};

/// A text that can be appended to: a `String`, or the bytes of a file to be written.
pub trait TextBuffer {
    /// Appends `text`.
    fn push_text(&mut self, text: &str);
}

impl TextBuffer for String {
    fn push_text(&mut self, text: &str) {
        self.push_str(text);
    }
}

impl TextBuffer for Vec<u8> {
    fn push_text(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
}

/// Appends `json` without whitespace between tokens.
///
/// ```
/// # use rowmill_core::json_text::write_compact;
/// let mut out = String::new();
/// write_compact(r#"{ "a" : [1.50, "caf\u00e9"] }"#, &mut out);
/// assert_eq!(out, r#"{"a":[1.50,"café"]}"#);
/// ```
pub fn write_compact(json: &str, out: &mut impl TextBuffer) {
    respace(json, JsonLayout::Compact, 0, out);
}

/// Appends `json` with `, ` between items and `: ` after names, on one line.
///
/// ```
/// # use rowmill_core::json_text::write_spaced;
/// let mut out = String::new();
/// write_spaced(r#"{"a":[1.50,null]}"#, &mut out);
/// assert_eq!(out, r#"{"a": [1.50, null]}"#);
/// ```
pub fn write_spaced(json: &str, out: &mut impl TextBuffer) {
    respace(json, JsonLayout::Spaced, 0, out);
}

/// Appends `json` over several lines, indented by `step` spaces per level.
///
/// ```
/// # use rowmill_core::json_text::write_indented;
/// let mut out = String::new();
/// write_indented(r#"{"a":[1,[]]}"#, &mut out, 2);
/// assert_eq!(out, "{\n  \"a\": [\n    1,\n    []\n  ]\n}");
/// ```
pub fn write_indented(json: &str, out: &mut impl TextBuffer, step: usize) {
    write_indented_at(json, out, step, 0);
}

/// Like [`write_indented`], for a value that is nested `depth` levels deep already.
pub(crate) fn write_indented_at(json: &str, out: &mut impl TextBuffer, step: usize, depth: usize) {
    respace(json, JsonLayout::Indented { step }, depth, out);
}

/// Lines are not indented deeper than this many levels: deeply nested text would grow with the square of its depth.
const DEEPEST_INDENT: usize = 64;

/// Starts a line indented for `depth`.
pub(crate) fn start_indented_line(out: &mut impl TextBuffer, step: usize, depth: usize) {
    const SPACES: &str = "                                ";
    out.push_text("\n");
    let mut left = step * depth.min(DEEPEST_INDENT);
    while left > 0 {
        let now = left.min(SPACES.len());
        out.push_text(part(SPACES, 0..now));
        left -= now;
    }
}

/// Appends `text` as a JSON string, escaping only what JSON requires.
pub fn write_string(text: &str, out: &mut impl TextBuffer) {
    out.push_text("\"");
    let mut left = text;
    loop {
        let plain = plain_bytes(left.as_bytes());
        out.push_text(part(left, 0..plain));
        let Some(special) = left.as_bytes().get(plain) else { break };
        push_escaped(char::from(*special), out);
        left = part(left, plain + 1..left.len());
    }
    out.push_text("\"");
}

/// Like [`write_string`], for bytes that are checked to be UTF-8 only after more has been written: checking many short
/// texts together takes a fraction of the time. The output is UTF-8 if `bytes` are.
///
/// ```
/// # use rowmill_core::json_text::write_string_bytes;
/// let mut out = Vec::new();
/// write_string_bytes("café\n".as_bytes(), &mut out);
/// assert_eq!(out, r#""café\n""#.as_bytes());
/// ```
pub fn write_string_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut left = bytes;
    loop {
        let (plain, rest) = left.split_at_checked(plain_bytes(left)).unwrap_or((left, &[]));
        out.extend_from_slice(plain);
        let Some((special, after)) = rest.split_first() else { break };
        push_escaped(char::from(*special), out);
        left = after;
    }
    out.push(b'"');
}

/// The number of bytes before the first one that a JSON string must escape.
fn plain_bytes(bytes: &[u8]) -> usize {
    // Without a branch per byte, many are examined in one step.
    let (blocks, _) = bytes.as_chunks::<32>();
    let block =
        blocks.iter().position(|block| block.iter().fold(false, |found, byte| found | is_special(*byte)));
    let start = 32 * block.unwrap_or(blocks.len());
    let rest = bytes.get(start..).unwrap_or_default();
    let (words, tail) = rest.as_chunks::<8>();
    let word = words.iter().position(|word| has_special(*word));
    if word.is_none() && bytes.last_chunk::<8>().is_some_and(|last| !has_special(*last)) {
        return bytes.len();
    }
    let passed = 8 * word.unwrap_or(words.len());
    let rest = rest.get(passed..).unwrap_or(tail);
    start + passed + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len())
}

fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// Whether a byte among these must be escaped.
fn has_special(bytes: [u8; 8]) -> bool {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES * 0x80;
    let word = u64::from_le_bytes(bytes);
    // Marks every byte that is less than `bound`; zero if there is none.
    let less = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & HIGHS;
    let quote = less(word ^ (ONES * u64::from(b'"')), 1);
    let backslash = less(word ^ (ONES * u64::from(b'\\')), 1);
    (less(word, 0x20) | quote | backslash) != 0
}

/// The decoded text of a JSON string, or `None` if `json` is not a string.
///
/// An unpaired surrogate, which no text can contain, becomes U+FFFD.
#[must_use]
pub fn decode_string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    let mut out = String::with_capacity(inner.len());
    unescape(inner, &mut out, |unit, out| match unit {
        EscapeUnit::Char(decoded) => out.push(decoded),
        EscapeUnit::Lone(_) => out.push(char::REPLACEMENT_CHARACTER),
    });
    Some(Cow::Owned(out))
}

#[derive(Clone, Copy)]
enum JsonLayout {
    Compact,
    Spaced,
    Indented { step: usize },
}

fn respace(json: &str, layout: JsonLayout, depth: usize, out: &mut impl TextBuffer) {
    let bytes = json.as_bytes();
    let mut depth = depth;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => at += 1,
            b'"' => {
                let end = string_end(bytes, at);
                rewrite_string(part(json, at..end), out);
                at = end;
            }
            b'{' | b'[' => {
                let next = after_space(bytes, at + 1);
                if let Some(b'}' | b']') = bytes.get(next) {
                    out.push_text(if byte == b'{' { "{}" } else { "[]" });
                    at = next + 1;
                } else {
                    depth += 1;
                    out.push_text(part(json, at..at + 1));
                    break_line(layout, depth, out);
                    at = next;
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                break_line(layout, depth, out);
                out.push_text(part(json, at..at + 1));
                at += 1;
            }
            b',' => {
                out.push_text(if matches!(layout, JsonLayout::Spaced) { ", " } else { "," });
                break_line(layout, depth, out);
                at += 1;
            }
            b':' => {
                out.push_text(if matches!(layout, JsonLayout::Compact) { ":" } else { ": " });
                at += 1;
            }
            _ => {
                let end = scalar_end(bytes, at);
                out.push_text(part(json, at..end));
                at = end;
            }
        }
    }
}

fn break_line(layout: JsonLayout, depth: usize, out: &mut impl TextBuffer) {
    if let JsonLayout::Indented { step } = layout {
        start_indented_line(out, step, depth);
    }
}

/// The end of the string that opens at `start`, including its closing quote.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match memchr2(b'"', b'\\', rest) {
            Some(found) if rest.get(found) == Some(&b'"') => return at + found + 1,
            Some(found) => at += found + 2,
            None => return bytes.len(),
        }
    }
}

/// The end of the number or word that begins at `start`. At least one byte further.
fn scalar_end(bytes: &[u8], start: usize) -> usize {
    let ends = |byte: &u8| {
        matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b'{' | b'}' | b'[' | b']' | b'"')
    };
    let rest = bytes.get(start + 1..).unwrap_or_default();
    start + 1 + rest.iter().position(ends).unwrap_or(rest.len())
}

fn after_space(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    start + rest.iter().take_while(|byte| space(byte)).count()
}

/// Appends a JSON string without unnecessary escapes.
fn rewrite_string(json: &str, out: &mut impl TextBuffer) {
    if memchr(b'\\', json.as_bytes()).is_none() {
        out.push_text(json);
        return;
    }
    unescape(json, out, |unit, out| match unit {
        EscapeUnit::Char(decoded) => push_escaped(decoded, out),
        EscapeUnit::Lone(code) => out.push_text(&format!("\\u{code:04x}")),
    });
}

/// Appends one character, escaped if JSON requires it.
fn push_escaped(decoded: char, out: &mut impl TextBuffer) {
    match decoded {
        '"' => out.push_text("\\\""),
        '\\' => out.push_text("\\\\"),
        '\n' => out.push_text("\\n"),
        '\r' => out.push_text("\\r"),
        '\t' => out.push_text("\\t"),
        '\u{8}' => out.push_text("\\b"),
        '\u{c}' => out.push_text("\\f"),
        control if u32::from(control) < 0x20 => out.push_text(&format!("\\u{:04x}", u32::from(control))),
        other => out.push_text(other.encode_utf8(&mut [0; 4])),
    }
}

/// The value of one escape.
enum EscapeUnit {
    Char(char),
    /// An unpaired surrogate.
    Lone(u16),
}

/// Copies `text` and passes each escape in it to `escape`. Invalid escapes are copied.
fn unescape<B: TextBuffer>(text: &str, out: &mut B, escape: impl Fn(EscapeUnit, &mut B)) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr(b'\\', bytes.get(at..).unwrap_or_default()) {
        let start = at + found;
        match read_escape(bytes.get(start + 1..).unwrap_or_default()) {
            Some((unit, length)) => {
                out.push_text(part(text, copied..start));
                escape(unit, out);
                at = start + 1 + length;
                copied = at;
            }
            None => at = start + 1,
        }
    }
    out.push_text(part(text, copied..text.len()));
}

/// Parses what follows a backslash, and returns its length in bytes.
fn read_escape(bytes: &[u8]) -> Option<(EscapeUnit, usize)> {
    let decoded = match bytes.first()? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return read_unicode_escape(bytes),
        _ => return None,
    };
    Some((EscapeUnit::Char(decoded), 1))
}

fn read_unicode_escape(bytes: &[u8]) -> Option<(EscapeUnit, usize)> {
    let first = hex(bytes.get(1..5)?)?;
    let second = match bytes.get(5..7) {
        Some(b"\\u") => bytes.get(7..11).and_then(hex),
        _ => None,
    };
    if let Some(Ok(pair)) = second.and_then(|second| char::decode_utf16([first, second]).next())
        && pair.len_utf16() == 2
    {
        return Some((EscapeUnit::Char(pair), 11));
    }
    let single = char::from_u32(u32::from(first)).map_or(EscapeUnit::Lone(first), EscapeUnit::Char);
    Some((single, 5))
}

fn hex(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0u16, |value, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(value << 4 | u16::try_from(digit).ok()?)
    })
}

/// A part of `text` whose bounds are known to be at ASCII bytes.
fn part(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}
