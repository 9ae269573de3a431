//! The lines of the ledger.

use rowmill_core::limits::Spend;
use rowmill_core::record::EnvelopeHead;
use rowmill_types::RowId;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A line as read back.
#[derive(Debug)]
pub enum Line {
    /// Rows that were about to be sent.
    Taken(Vec<u64>),
    /// Rows that were given back unsent.
    Released(Vec<u64>),
    /// The run cannot have spent more than this when the line was written, nor until the next one.
    Cover(Spend),
    /// Something that happened to a row that went on: its number and its id.
    Turn(u64, RowId),
    /// A row that ended.
    Ended(EnvelopeHead),
}

#[derive(Deserialize)]
struct Fields<'a> {
    event: &'a str,
    #[serde(borrow)]
    envelope: Option<&'a RawValue>,
    rows: Option<Vec<u64>>,
    row: Option<u64>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    spent: Option<Spend>,
}

/// Says that rows are about to be sent.
pub(super) fn taken_line(rows: &[u64], out: &mut Vec<u8>) {
    rows_line("rows_taken", rows, out);
}

/// Says that rows were given back unsent.
pub(super) fn released_line(rows: &[u64], out: &mut Vec<u8>) {
    rows_line("rows_released", rows, out);
}

/// Says what the run cannot have spent more than.
pub(super) fn cover_line(spent: Spend, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"event\":\"spent_at_most\",\"spent\":");
    let written = serde_json::to_writer(&mut *out, &spent);
    debug_assert!(written.is_ok(), "two numbers are always JSON");
    out.extend_from_slice(b"}\n");
}

fn rows_line(event: &str, rows: &[u64], out: &mut Vec<u8>) {
    if rows.is_empty() {
        return;
    }
    out.extend_from_slice(b"{\"event\":\"");
    out.extend_from_slice(event.as_bytes());
    out.extend_from_slice(b"\",\"rows\":[");
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
    if let ("spent_at_most", Some(spent)) = (fields.event, fields.spent) {
        return Ok(Line::Cover(spent));
    }
    if let ("turn", Some(row), Some(id)) = (fields.event, fields.row, fields.id) {
        let id = match serde_json::from_str::<u64>(id.get()) {
            Ok(number) => RowId::Number(number),
            Err(_) => RowId::Text(serde_json::from_str(id.get()).map_err(|error| error.to_string())?),
        };
        return Ok(Line::Turn(row, id));
    }
    match (fields.event, fields.envelope, fields.rows) {
        ("row_ended", Some(envelope), _) => {
            EnvelopeHead::parse(envelope.get().as_bytes()).map(Line::Ended).map_err(|error| error.to_string())
        }
        ("rows_taken", _, Some(rows)) => Ok(Line::Taken(rows)),
        ("rows_released", _, Some(rows)) => Ok(Line::Released(rows)),
        (event, ..) => Err(format!("unknown event `{event}`")),
    }
}
