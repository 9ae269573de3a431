//! Extracts the text of documents locally.

mod child;
#[cfg_attr(not(feature = "documents"), path = "without_formats.rs")]
mod formats;
mod runner;

pub use child::run_extract_child;
pub(crate) use runner::ExtractionPool;
pub use runner::TextExtractor;

use crate::media_type::{DOCX, HTML, PDF};

/// The maximum length of a document's text.
pub(crate) const MOST_TEXT: usize = 64 * 1024 * 1024;

/// Whether text can be extracted from files of this type.
pub(crate) fn is_extractable(media_type: &str) -> bool {
    matches!(media_type, PDF | DOCX | HTML | "application/xhtml+xml")
}

/// Extracts the text of a PDF, DOCX or HTML document. The error is worded to follow the name of the file.
///
/// A malicious document can make this run very long, use up memory or end the process; [`TextExtractor`] protects
/// against that.
///
/// ```
/// let text = rowmill_data::extract_text("text/html", b"<h1>Invoice</h1><p>12 &euro;</p>").unwrap();
/// assert_eq!(text, "# Invoice\n\n12 €");
/// ```
///
/// # Errors
///
/// The document is broken, encrypted or of another type, or it has no text.
pub fn extract_text(media_type: &str, bytes: &[u8]) -> Result<String, String> {
    if !is_extractable(media_type) {
        return Err(format!("is {media_type}, from which no text can be extracted"));
    }
    let text = tidy(&formats::document_text(media_type, bytes)?);
    if text.is_empty() {
        return Err("has no text; send it as a file, to a model that accepts such files".into());
    }
    if text.len() > MOST_TEXT {
        return Err(format!("has more than {} MiB of text", MOST_TEXT >> 20));
    }
    Ok(text)
}

/// Removes trailing spaces of lines, and all but one of consecutive empty lines.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines() {
        // Some fonts map their spaces to characters that text cannot contain.
        let line = line.trim_end_matches(|character: char| character.is_whitespace() || character == '\0');
        if line.is_empty() {
            empty += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if empty > 0 { "\n\n" } else { "\n" });
        }
        empty = 0;
        out.push_str(line);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lines_and_spaces_at_ends_are_few() {
        assert_eq!(tidy("\n\n a  \n\n\n\nb\nc \u{a0}\n\n"), " a\n\nb\nc");
        assert_eq!(tidy(" \n\t\n"), "");
    }
}
