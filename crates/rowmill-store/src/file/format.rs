//! The lines of the ledger.

use rowmill_core::record::EnvelopeHead;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A line as read back.
#[derive(Debug)]
pub enum Line {
    /// Rows that were about to be sent.
    Taken(Vec<u64>),
    /// A row that ended.
    Ended(EnvelopeHead),
}

#[derive(Deserialize)]
struct Fields<'a> {
    event: &'a str,
    #[serde(borrow)]
    envelope: Option<&'a RawValue>,
    rows: Option<Vec<u64>>,
}

/// Says that rows are about to be sent.
pub(super) fn taken_line(rows: &[u64], out: &mut Vec<u8>) {
    if rows.is_empty() {
        return;
    }
    out.extend_from_slice(b"{\"event\":\"rows_taken\",\"rows\":[");
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(row.to_string().as_bytes());
    }
    out.extend_from_slice(b"]}\n");
}

/// Reads a line; the error says what is wrong with it.
pub(super) fn parse(line: &[u8]) -> Result<Line, String> {
    let fields: Fields<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    match (fields.event, fields.envelope, fields.rows) {
        ("row_ended", Some(envelope), _) => {
            EnvelopeHead::parse(envelope.get().as_bytes()).map(Line::Ended).map_err(|error| error.to_string())
        }
        ("rows_taken", _, Some(rows)) => Ok(Line::Taken(rows)),
        (event, ..) => Err(format!("unknown event `{event}`")),
    }
}
