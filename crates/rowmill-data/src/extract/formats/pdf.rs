//! Extracts the text of PDF.

use pdf_extract::{Document, Error, OutputError, PlainTextOutput, output_doc_page};

use super::pdf_fonts::describe_encodings;

/// The text of all pages, separated by empty lines. If one page cannot be read, the whole document fails: a
/// text with gaps would be mistaken for the complete document.
pub(super) fn pdf_text(bytes: &[u8]) -> Result<String, String> {
    let mut document = Document::load_mem(bytes).map_err(|error| unreadable(&error))?;
    if document.is_encrypted() {
        // Many documents are encrypted without a password, only to restrict what readers may do.
        document.decrypt("").map_err(|error| match error {
            Error::Decryption(_) => "is encrypted, and no text can be extracted without its password".into(),
            error => unreadable(&error),
        })?;
    }
    describe_encodings(&mut document)?;
    let mut text = String::new();
    for number in document.get_pages().into_keys() {
        let mut page = String::new();
        output_doc_page(&document, &mut PlainTextOutput::new(&mut page), number).map_err(|error| {
            let cause = match error {
                OutputError::PdfError(error) => error.to_string(),
                error => error.to_string(),
            };
            format!("cannot be read on page {number}: {cause}")
        })?;
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&page);
    }
    Ok(text)
}

fn unreadable(error: &Error) -> String {
    format!("cannot be read as PDF: {error}")
}
