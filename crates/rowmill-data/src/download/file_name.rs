//! The file name of a fetched file, from its address or else from its headers.

use rowmill_http::{HeaderMap, Url, header};

use super::partial::header_text;
use crate::InputFormat;
use crate::input_format::format_from_name;
use crate::percent::percent_decoded;

/// Longer names are cut at their beginning, because the extension matters.
const MAX_NAME: usize = 120;

/// A file name for an address, with an extension that shows its format if that is known.
pub(super) fn file_name_for(url: &Url, headers: &HeaderMap) -> String {
    let given = last_part(url);
    let name = match format_from_name(&given) {
        Some(_) => given,
        None => name_from_headers(headers, &given).unwrap_or(given),
    };
    let packing = header_text(headers, &header::CONTENT_ENCODING).unwrap_or_default().to_ascii_lowercase();
    let name = match packing.trim() {
        // It was requested uncompressed; a server that compresses it anyway is believed.
        "gzip" | "x-gzip" if !name.to_ascii_lowercase().ends_with(".gz") => format!("{name}.gz"),
        "zstd" if !name.to_ascii_lowercase().ends_with(".zst") => format!("{name}.zst"),
        _ => name,
    };
    safe_file_name(&name)
}

/// A name that is valid on every file system, and has no path in it.
pub(crate) fn safe_file_name(name: &str) -> String {
    let kept: String =
        name.chars()
            .map(|letter| {
                if letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_' | ' ') { letter } else { '_' }
            })
            .collect();
    let mut rest = kept.trim_start_matches('.').trim();
    while rest.len() > MAX_NAME {
        let mut letters = rest.chars();
        letters.next();
        rest = letters.as_str();
    }
    if rest.is_empty() { "file".into() } else { rest.to_owned() }
}

fn last_part(url: &Url) -> String {
    let part = url.path_segments().and_then(|mut parts| parts.next_back().map(percent_decoded));
    part.unwrap_or_default()
}

/// The name in `Content-Disposition`, or `given` with the extension for the `Content-Type`.
fn name_from_headers(headers: &HeaderMap, given: &str) -> Option<String> {
    let disposition = header_text(headers, &header::CONTENT_DISPOSITION);
    if let Some(name) = disposition.and_then(|text| attachment_name(&text)) {
        return Some(name);
    }
    if is_document(given) {
        return None;
    }
    let kind = header_text(headers, &header::CONTENT_TYPE)?;
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let ending = match format_of_type(&kind) {
        Some(format) => *format.extensions().first()?,
        None => document_ending(&kind)?,
    };
    let stem = if given.is_empty() { "file" } else { given };
    Some(format!("{stem}.{ending}"))
}

/// Whether the extension is that of some file type, such as `.pdf`, and not of a script that generates the
/// answer.
fn is_document(name: &str) -> bool {
    let is_program =
        |name: &str| [".php", ".cgi", ".asp", ".aspx", ".jsp"].iter().any(|end| name.ends_with(end));
    mime_guess::from_path(name).first().is_some() && !is_program(&name.to_ascii_lowercase())
}

fn format_of_type(kind: &str) -> Option<InputFormat> {
    Some(match kind {
        "text/csv" | "application/csv" => InputFormat::Csv,
        "text/tab-separated-values" => InputFormat::Tsv,
        "application/json" | "text/json" => InputFormat::Json,
        "application/x-ndjson"
        | "application/ndjson"
        | "application/jsonl"
        | "application/x-jsonlines"
        | "application/jsonlines"
        | "application/json-lines"
        | "text/jsonl" => InputFormat::Jsonl,
        "application/vnd.apache.parquet" | "application/parquet" | "application/x-parquet" => {
            InputFormat::Parquet
        }
        _ => return None,
    })
}

/// The extension for a document whose address needs none.
fn document_ending(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "application/pdf" => "pdf",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "text/html" => "html",
        "text/markdown" => "md",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "audio/mpeg" => "mp3",
        "audio/wav" | "audio/x-wav" => "wav",
        _ => return None,
    })
}

/// The file name of `attachment; filename="a.csv"` or `filename*=UTF-8''a.csv`.
fn attachment_name(text: &str) -> Option<String> {
    let value = |key: &str| {
        text.split(';').find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case(key).then(|| value.trim().trim_matches('"').to_owned())
        })
    };
    let encoded = value("filename*").and_then(|value| Some(percent_decoded(value.split("''").nth(1)?)));
    let name = encoded.or_else(|| value("filename"))?;
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default().trim().to_owned();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rowmill_http::{HeaderName, HeaderValue};

    #[test]
    fn the_address_tells_the_name_or_else_the_headers_do() {
        let csv = ("content-type", "text/csv; charset=utf-8");
        let named = ("content-disposition", "attachment; filename=\"../q3 rows.jsonl\"; size=3");
        let encoded = ("content-disposition", "attachment; filename*=UTF-8''r%C3%A9sum%C3%A9.tsv");
        for (address, headers, expected) in [
            ("https://h/a/rows.jsonl?x=1", &[csv][..], "rows.jsonl"),
            ("https://h/rows%20a.JSON.gz", &[], "rows a.JSON.gz"),
            ("https://h/export", &[csv], "export.csv"),
            ("https://h/export.php", &[csv], "export.php.csv"),
            ("https://h/", &[("content-type", "application/x-ndjson")], "file.jsonl"),
            ("https://h/export", &[csv, named], "q3 rows.jsonl"),
            ("https://h/export", &[encoded], "résumé.tsv"),
            ("https://h/a.pdf", &[("content-type", "text/csv")], "a.pdf"),
            ("https://h/get", &[("content-type", "application/pdf")], "get.pdf"),
            ("https://h/get", &[("content-type", "application/octet-stream")], "get"),
            ("https://h/rows.jsonl", &[("content-encoding", "gzip")], "rows.jsonl.gz"),
            ("https://h/rows.jsonl.gz", &[("content-encoding", "gzip")], "rows.jsonl.gz"),
            ("https://h/..%2f..%2f.bashrc", &[], "_.._.bashrc"),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            assert_eq!(file_name_for(&Url::parse(address).unwrap(), &map), expected, "{address}");
        }
        assert_eq!(safe_file_name(&format!("{}.csv", "x".repeat(500))).len(), MAX_NAME);
    }
}
