//! Writes the envelope of a row.

use super::row_record::{EnvelopeInput, RowReport};
use crate::json_text;

pub(super) fn write_envelope(out: &mut Vec<u8>, report: &RowReport<'_>) {
    write_head(out, report);
    match report.outcome {
        Ok(result) => {
            out.extend_from_slice(b",\"result\":");
            out.extend_from_slice(result.as_bytes());
            out.extend_from_slice(b",\"error\":null");
        }
        Err(error) => {
            out.extend_from_slice(b",\"result\":null,\"error\":");
            write_json(out, error);
        }
    }
    if let Some(reused) = report.reused {
        out.extend_from_slice(b",\"reused\":");
        write_json(out, reused.name());
    }
    match report.input {
        EnvelopeInput::Absent => {}
        EnvelopeInput::Unreadable => out.extend_from_slice(b",\"input\":null"),
        EnvelopeInput::Row(row) => {
            let mut compact = String::with_capacity(row.json_text().len());
            json_text::write_compact(row.json_text(), &mut compact);
            out.extend_from_slice(b",\"input\":");
            out.extend_from_slice(compact.as_bytes());
        }
    }
    out.push(b'}');
}

/// `{"id":…,"row_number":…,"ok":…`: the common start of envelope and telemetry.
pub(super) fn write_head(out: &mut Vec<u8>, report: &RowReport<'_>) {
    out.extend_from_slice(b"{\"id\":");
    report.id.write_json(out);
    out.extend_from_slice(b",\"row_number\":");
    write_json(out, &report.number);
    out.extend_from_slice(if report.outcome.is_ok() { b",\"ok\":true" } else { b",\"ok\":false" });
}

pub(super) fn write_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let written = serde_json::to_writer(&mut *out, value);
    debug_assert!(written.is_ok(), "these types are always JSON");
}
