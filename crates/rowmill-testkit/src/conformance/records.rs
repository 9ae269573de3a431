//! Records of sample rows, for the suites of stores and sinks.

use std::time::Duration;

use rowmill_core::record::{EnvelopeInput, RowRecord, RowReport};
use rowmill_types::{Row, RowError, RowErrorKind, RowId};

/// The record of a successful row with this text as its result.
pub(super) fn ok(number: u64, text: &str) -> RowRecord {
    record(number, &Ok(serde_json::Value::from(text).to_string()))
}

/// The record of a row that failed.
pub(super) fn failed(number: u64) -> RowRecord {
    record(number, &Err(RowError::new(RowErrorKind::ServerError, "overloaded \u{2014} \"busy\"")))
}

fn record(number: u64, outcome: &Result<String, RowError>) -> RowRecord {
    let row = Row::parse(number, format!("{{\"n\": {number}}}")).ok();
    RowRecord::from_report(&RowReport {
        id: &RowId::Number(number),
        number,
        outcome,
        input: row.as_ref().map_or(EnvelopeInput::Unreadable, EnvelopeInput::Row),
        start: Duration::from_millis(number),
        end: Duration::from_millis(number + 5),
        calls: &[],
        tools: &[],
        below_min_rating: &[],
        reused: None,
        reusable: None,
        trace: None,
    })
}
