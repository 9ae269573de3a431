//! Tells office documents from other ZIP archives.

use std::io::{Read, Seek};

use crate::media_type::{DOCX, PPTX, XLSX, ZIP};

/// The media type of a ZIP archive that begins with `head`. Office documents are archives and can be
/// distinguished only by their contents.
pub(crate) fn kind_of_archive(head: &[u8], content: impl Read + Seek) -> &'static str {
    let Ok(archive) = zip::ZipArchive::new(content) else { return ZIP };
    let holds = |folder: &str, stem: &str| {
        let begins = format!("{folder}/{stem}");
        archive.file_names().flatten().any(|name| name.starts_with(&begins) && name.ends_with(".xml"))
    };
    if holds("word", "document") {
        DOCX
    } else if holds("xl", "workbook") {
        XLSX
    } else if holds("ppt", "presentation") {
        PPTX
    } else {
        infer::get(head).map_or(ZIP, |kind| kind.mime_type())
    }
}
