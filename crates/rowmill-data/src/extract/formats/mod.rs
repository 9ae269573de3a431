//! The formats of documents whose text is extracted.

mod docx;
mod html;
mod pdf;
mod pdf_fonts;

use crate::media_type::{DOCX, PDF};

/// The text of a document, which is HTML if it is neither PDF nor DOCX. The error is worded to follow the name
/// of the file.
pub(super) fn document_text(media_type: &str, bytes: &[u8]) -> Result<String, String> {
    match media_type {
        PDF => pdf::pdf_text(bytes),
        DOCX => docx::docx_text(bytes),
        _ => html::html_text(bytes),
    }
}
