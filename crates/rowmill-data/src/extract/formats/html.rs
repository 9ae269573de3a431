//! Extracts the text of HTML.

use std::borrow::Cow;

use encoding_rs::{Encoding, WINDOWS_1252};
use html2text::config;
use html2text::render::TextDecorator;

/// Lines are broken only beyond this length.
const WIDTH: usize = 10_000;
/// How much of a document is searched for the name of its encoding.
const DECLARATION: usize = 2048;

/// The text of a page: headings and lists are marked, links and emphasis are not.
pub(super) fn html_text(bytes: &[u8]) -> Result<String, String> {
    let decoded = decode(bytes);
    config::with_decorator(PlainDecorator)
        .no_table_borders()
        .allow_width_overflow()
        .unicode_strikeout(false)
        .string_from_read(decoded.as_bytes(), WIDTH)
        .map_err(|error| format!("cannot be read as HTML: {error}"))
}

/// The document as text. The encoding is taken from its byte order mark, UTF-8 if valid, its declaration, or
/// the default that browsers use without a declaration.
fn decode(bytes: &[u8]) -> Cow<'_, str> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(bytes.get(mark..).unwrap_or_default()).0;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    declared(bytes).unwrap_or(WINDOWS_1252).decode_without_bom_handling(bytes).0
}

/// The encoding named by `<meta charset=…>` or its older form.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..bytes.len().min(DECLARATION))?.to_ascii_lowercase();
    let at = memchr::memmem::find(&head, b"charset=")? + b"charset=".len();
    let rest = head.get(at..)?;
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\'' | b'>' | b';' | b' ' | b'/'))?;
    Encoding::for_label(rest.get(..end)?)
}

/// Marks headings and lists, which carry meaning, and drops all other markup.
#[derive(Debug, Clone)]
struct PlainDecorator;

/// Markup of which only the text inside is kept.
macro_rules! unmarked {
    ($($start:ident $end:ident)*) => { $(
        fn $start(&self) -> (String, ()) {
            (String::new(), ())
        }

        fn $end(&self) -> String {
            String::new()
        }
    )* };
}

impl TextDecorator for PlainDecorator {
    type Annotation = ();

    unmarked! {
        decorate_em_start decorate_em_end
        decorate_strong_start decorate_strong_end
        decorate_strikeout_start decorate_strikeout_end
        decorate_code_start decorate_code_end
    }

    fn decorate_link_start(&mut self, _url: &str) -> (String, ()) {
        (String::new(), ())
    }

    fn decorate_link_end(&mut self) -> String {
        String::new()
    }

    fn decorate_preformat_first(&self) {}

    fn decorate_preformat_cont(&self) {}

    fn decorate_image(&mut self, _source: &str, title: &str) -> (String, ()) {
        (title.to_owned(), ())
    }

    fn header_prefix(&self, level: usize) -> String {
        "#".repeat(level) + " "
    }

    fn quote_prefix(&self) -> String {
        "> ".into()
    }

    fn unordered_item_prefix(&self) -> String {
        "- ".into()
    }

    fn ordered_item_prefix(&self, number: i64) -> String {
        format!("{number}. ")
    }

    fn make_subblock_decorator(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_like_a_page() {
        let page = "<html><head><title>T</title><style>p { color: red }</style><script>no()</script></head>\
            <body><h2>Terms</h2><p>See <a href='https://example.com'>the <b>site</b></a>.</p>\
            <ul><li>one</li><li>two</li></ul><table><tr><td>a</td><td>1</td></tr><tr><td>b</td><td>2</td>\
            </tr></table><img src=x alt='a chart'></body></html>";
        let text = html_text(page.as_bytes()).unwrap();
        assert_eq!(
            crate::extract::tidy(&text),
            "## Terms\n\nSee the site.\n- one\n- two\n\na 1\nb 2\na chart"
        );
    }

    #[test]
    fn a_long_paragraph_is_not_broken_into_short_lines() {
        let words = "word ".repeat(1500);
        let text = html_text(format!("<p>{words}</p>").as_bytes()).unwrap();
        assert_eq!(text.trim(), words.trim());
    }

    #[test]
    fn other_encodings_are_read() {
        for (bytes, expected) in [
            (&b"<p>caf\xc3\xa9"[..], "café"),
            (b"<p>caf\xe9", "café"),
            (b"<meta charset=\"iso-8859-2\"><p>\xb1", "ą"),
            (b"<meta http-equiv=x content='text/html; charset=Shift_JIS'><p>\x93\xfa", "日"),
            (b"\xff\xfe<\0p\0>\0a\0", "a"),
        ] {
            assert_eq!(html_text(bytes).unwrap().trim(), expected);
        }
    }
}
