//! The lines of the ledger. Format 1; a reader refuses formats it does not know.

use rowmill_core::fingerprint::Fingerprint;
use rowmill_core::record::EnvelopeHead;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The format that this version writes.
pub(super) const FORMAT: u32 = 1;

/// The first line: which run this is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The format of the lines.
    pub format: u32,
    /// The id of the run.
    pub run: String,
    /// When it started.
    pub at: String,
    /// What shapes its results.
    pub fingerprint: Fingerprint,
    /// Where telemetry goes and what the file held before this ledger.
    pub telemetry: Option<SinkBase>,
}

/// A file that records are appended to, and its length before this ledger began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkBase {
    /// The absolute path.
    pub path: String,
    /// Its length in bytes.
    pub length: u64,
}

/// A line as read back.
#[derive(Debug)]
pub enum Line {
    /// The first line.
    Started(Box<Started>),
    /// Rows that were about to be sent.
    Taken(Vec<u64>),
    /// A row that ended.
    Ended(EnvelopeHead),
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Written {
    RunStarted(Started),
}

#[derive(Deserialize)]
struct Fields<'a> {
    event: &'a str,
    #[serde(borrow)]
    envelope: Option<&'a RawValue>,
    rows: Option<Vec<u64>>,
}

/// The first line of a ledger.
#[must_use]
pub fn started_line(run: &str, at: &str, fingerprint: &Fingerprint, telemetry: Option<SinkBase>) -> Vec<u8> {
    let started = Written::RunStarted(Started {
        format: FORMAT,
        run: run.to_owned(),
        at: at.to_owned(),
        fingerprint: fingerprint.clone(),
        telemetry,
    });
    // Plain data is always JSON, so the fallback is never used.
    let mut line = serde_json::to_vec(&started).unwrap_or_default();
    line.push(b'\n');
    line
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
        ("run_started", ..) => {
            let Written::RunStarted(started) =
                serde_json::from_slice(line).map_err(|error| error.to_string())?;
            if started.format != FORMAT {
                return Err(format!("it has format {}, this version reads format {FORMAT}", started.format));
            }
            Ok(Line::Started(Box::new(started)))
        }
        (event, ..) => Err(format!("unknown event `{event}`")),
    }
}
