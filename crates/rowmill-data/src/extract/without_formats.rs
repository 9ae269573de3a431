//! Stands in for the formats of documents in a build without them.

use rowmill_types::CargoFeature;

/// Always an error: this build cannot extract text.
pub(super) fn document_text(_media_type: &str, _bytes: &[u8]) -> Result<String, String> {
    Err(format!("cannot be read: {}", CargoFeature::Documents.missing_text()))
}
