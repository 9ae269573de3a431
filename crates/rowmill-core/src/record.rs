//! The one record that a row leaves: its envelope and telemetry inside a ledger line.
//!
//! The line is built once; output, errors and telemetry are slices of it.

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;
use std::time::Duration;

use rowmill_types::{CallTiming, ErrorKind, Row, RowError, RowId, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json_text;

/// One call that was made for a row.
#[derive(Debug, Clone)]
pub struct CallReport {
    /// How it failed, `None` for an answer.
    pub error: Option<ErrorKind>,
    /// The HTTP status of a failure, where one was received.
    pub status: Option<u16>,
    /// How long it took.
    pub timing: CallTiming,
    /// Tokens, where the provider told.
    pub usage: Option<Usage>,
    /// The provider's own account of the usage.
    pub raw_usage: Option<Box<RawValue>>,
    /// The model that answered, where the provider told.
    pub model: Option<String>,
    /// The service tier that was granted, where the provider told.
    pub service_tier: Option<String>,
}

/// Everything there is to say about a row that has ended.
#[derive(Debug)]
pub struct RowReport<'a> {
    /// Its id.
    pub id: &'a RowId,
    /// Its number.
    pub number: u64,
    /// Its result as JSON text, or why it failed.
    pub outcome: &'a Result<String, RowError>,
    /// What the envelope says of the input.
    pub input: InputField<'a>,
    /// When work on it began, counted from the start of the run.
    pub start: Duration,
    /// When it ended, counted from the start of the run.
    pub end: Duration,
    /// The calls that were made, in order.
    pub calls: &'a [CallReport],
}

/// What the envelope says of the input row.
#[derive(Debug, Clone, Copy)]
pub enum InputField<'a> {
    /// Nothing: there is no such field.
    Absent,
    /// The row.
    Row(&'a Row),
    /// `null`, because the record could not be read as a row.
    Unreadable,
}

/// The start of an envelope: enough to know which row it is of and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeHead {
    /// The row's id.
    pub id: RowId,
    /// The row's number.
    pub number: u64,
    /// Whether the row is ok.
    pub ok: bool,
    /// Whether its call was aborted, so that nobody knows if it was billed.
    pub interrupted: bool,
}

#[derive(Deserialize)]
struct EnvelopeFields<'a> {
    #[serde(borrow)]
    id: IdField<'a>,
    row_number: u64,
    ok: bool,
    #[serde(borrow, default)]
    error: Option<ErrorFields<'a>>,
}

#[derive(Deserialize)]
struct ErrorFields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum IdField<'a> {
    Number(u64),
    #[serde(borrow)]
    Text(Cow<'a, str>),
}

impl EnvelopeHead {
    /// Reads the head of an envelope; anything else is an error that says what is wrong.
    ///
    /// # Errors
    ///
    /// The line is not JSON or not an envelope.
    pub fn parse(envelope: &[u8]) -> Result<Self, serde_json::Error> {
        let fields: EnvelopeFields<'_> = serde_json::from_slice(envelope)?;
        let id = match fields.id {
            IdField::Number(number) => RowId::Number(number),
            IdField::Text(text) => RowId::Text(text.into()),
        };
        let interrupted = fields.error.is_some_and(|error| error.kind == ErrorKind::Interrupted.name());
        Ok(Self { id, number: fields.row_number, ok: fields.ok, interrupted })
    }
}

#[derive(Deserialize)]
struct RecordFields<'a> {
    #[serde(borrow)]
    envelope: &'a RawValue,
    #[serde(borrow)]
    telemetry: &'a RawValue,
}

/// A row's line of the ledger, and where its parts are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The ledger line, newline included.
    pub line: Vec<u8>,
    /// Where the envelope stands in it.
    pub envelope: Range<usize>,
    /// Where the telemetry stands in it.
    pub telemetry: Range<usize>,
    /// Whether the row is ok.
    pub ok: bool,
}

impl Record {
    /// Writes the record of a row.
    #[must_use]
    pub fn of(report: &RowReport<'_>) -> Self {
        let ok = report.outcome.is_ok();
        let mut line = Vec::with_capacity(768);
        line.extend_from_slice(b"{\"event\":\"row_ended\",\"envelope\":");
        let envelope = line.len();
        write_envelope(&mut line, report);
        let envelope = envelope..line.len();
        line.extend_from_slice(b",\"telemetry\":");
        let telemetry = line.len();
        write_telemetry(&mut line, report);
        let telemetry = telemetry..line.len();
        line.extend_from_slice(b"}\n");
        Self { line, envelope, telemetry, ok }
    }

    /// Reads a record back from its ledger line.
    ///
    /// # Errors
    ///
    /// The line is not the record of a row.
    pub fn parse(line: Vec<u8>) -> Result<Self, serde_json::Error> {
        let fields: RecordFields<'_> = serde_json::from_slice(&line)?;
        let range = |part: &RawValue| {
            let start = part.get().as_ptr() as usize - line.as_ptr() as usize;
            start..start + part.get().len()
        };
        let (envelope, telemetry) = (range(fields.envelope), range(fields.telemetry));
        let ok = EnvelopeHead::parse(fields.envelope.get().as_bytes())?.ok;
        Ok(Self { line, envelope, telemetry, ok })
    }

    /// The envelope as compact JSON, without a newline.
    #[must_use]
    pub fn envelope(&self) -> &[u8] {
        self.line.get(self.envelope.clone()).unwrap_or_default()
    }

    /// The telemetry as compact JSON, without a newline.
    #[must_use]
    pub fn telemetry(&self) -> &[u8] {
        self.line.get(self.telemetry.clone()).unwrap_or_default()
    }
}

fn write_envelope(out: &mut Vec<u8>, report: &RowReport<'_>) {
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
    match report.input {
        InputField::Absent => {}
        InputField::Unreadable => out.extend_from_slice(b",\"input\":null"),
        InputField::Row(row) => {
            let mut compact = String::with_capacity(row.text().len());
            json_text::write_compact(row.text(), &mut compact);
            out.extend_from_slice(b",\"input\":");
            out.extend_from_slice(compact.as_bytes());
        }
    }
    out.push(b'}');
}

/// `{"id":…,"row_number":…,"ok":…` — the same start in envelope and telemetry.
fn write_head(out: &mut Vec<u8>, report: &RowReport<'_>) {
    out.extend_from_slice(b"{\"id\":");
    report.id.write_json(out);
    out.extend_from_slice(b",\"row_number\":");
    write_json(out, &report.number);
    out.extend_from_slice(if report.outcome.is_ok() { b",\"ok\":true" } else { b",\"ok\":false" });
}

fn write_telemetry(out: &mut Vec<u8>, report: &RowReport<'_>) {
    write_head(out, report);
    out.extend_from_slice(b",\"timing\":{\"start_time\":");
    write_thousandths(out, report.start.as_millis());
    out.extend_from_slice(b",\"end_time\":");
    write_thousandths(out, report.end.as_millis());
    out.extend_from_slice(b",\"duration_ms\":");
    write_milliseconds(out, report.end.saturating_sub(report.start));
    if let Some(answered) = report.calls.iter().rev().find(|call| call.error.is_none()) {
        write_call_timing(out, answered);
    }
    out.extend_from_slice(b"},\"usage\":{");
    if !report.calls.is_empty() {
        out.extend_from_slice(b"\"schema\":\"rowmill.usage/v1\",\"turn\":");
        write_usage(out, &total_usage(report.calls));
        out.extend_from_slice(b",\"provider_attempts\":[");
        for (index, call) in report.calls.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_call(out, call);
        }
        out.push(b']');
    }
    out.extend_from_slice(b"}}");
}

/// The sum over all calls that told their usage.
#[must_use]
pub fn total_usage(calls: &[CallReport]) -> Usage {
    let mut total = Usage::default();
    for usage in calls.iter().filter_map(|call| call.usage) {
        total += usage;
    }
    total
}

fn write_call(out: &mut Vec<u8>, call: &CallReport) {
    out.extend_from_slice(b"{\"ok\":");
    out.extend_from_slice(if call.error.is_none() { b"true" } else { b"false" });
    if let Some(error) = call.error {
        out.extend_from_slice(b",\"error\":");
        write_json(out, &error);
    }
    if let Some(status) = call.status {
        out.extend_from_slice(b",\"status\":");
        write_json(out, &status);
    }
    for (name, value) in [("model", &call.model), ("service_tier", &call.service_tier)] {
        if let Some(value) = value {
            out.extend_from_slice(b",");
            write_json(out, name);
            out.push(b':');
            write_json(out, value);
        }
    }
    write_call_timing(out, call);
    if let Some(usage) = &call.usage {
        out.extend_from_slice(b",\"tokens\":");
        write_usage(out, usage);
    }
    if let Some(raw) = &call.raw_usage {
        out.extend_from_slice(b",\"raw_usage\":");
        // A provider may spread its JSON over lines; ours must stay on one.
        let mut compact = String::with_capacity(raw.get().len());
        json_text::write_compact(raw.get(), &mut compact);
        out.extend_from_slice(compact.as_bytes());
    }
    out.push(b'}');
}

fn write_call_timing(out: &mut Vec<u8>, call: &CallReport) {
    if let Some(first) = call.timing.first_token {
        out.extend_from_slice(b",\"ttft_ms\":");
        write_milliseconds(out, first);
    }
    out.extend_from_slice(b",\"time_to_response_ms\":");
    write_milliseconds(out, call.timing.response);
}

fn write_usage(out: &mut Vec<u8>, usage: &Usage) {
    let Usage { input, cached, cache_write, output, reasoning } = usage;
    write_text(
        out,
        format_args!(
            "{{\"input_tokens\":{input},\"cached_tokens\":{cached},\"cache_write_tokens\":{cache_write},\"output_tokens\":{output},\"reasoning_tokens\":{reasoning}}}"
        ),
    );
}

fn write_milliseconds(out: &mut Vec<u8>, duration: Duration) {
    write_thousandths(out, duration.as_micros());
}

fn write_thousandths(out: &mut Vec<u8>, value: u128) {
    write_text(out, format_args!("{}.{:03}", value / 1000, value % 1000));
}

fn write_text(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok(), "writing into memory cannot fail");
}

fn write_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let written = serde_json::to_writer(&mut *out, value);
    debug_assert!(written.is_ok(), "these types are always JSON");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> CallReport {
        CallReport {
            error: None,
            status: None,
            timing: CallTiming { first_token: None, response: Duration::from_micros(1259_800) },
            usage: Some(Usage { input: 120, output: 36, ..Usage::default() }),
            raw_usage: Some(RawValue::from_string("{\n \"prompt_tokens\": 120}".into()).unwrap()),
            model: Some("m-1".into()),
            service_tier: None,
        }
    }

    fn record(outcome: Result<String, RowError>, calls: &[CallReport]) -> Record {
        let row = Row::parse(3, r#"{"n": 1.50}"#.into()).unwrap();
        Record::of(&RowReport {
            id: &RowId::Text("r1".into()),
            number: 3,
            outcome: &outcome,
            input: InputField::Row(&row),
            start: Duration::from_millis(1500),
            end: Duration::from_millis(2760),
            calls,
        })
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_success_has_its_fields_in_the_documented_order_and_compact() {
        let record = record(Ok("{\"a\":1}".into()), &[call()]);
        assert_eq!(
            text(record.envelope()),
            r#"{"id":"r1","row_number":3,"ok":true,"result":{"a":1},"error":null,"input":{"n":1.50}}"#
        );
        assert_eq!(
            text(record.telemetry()),
            r#"{"id":"r1","row_number":3,"ok":true,"timing":{"start_time":1.500,"end_time":2.760,"duration_ms":1260.000,"time_to_response_ms":1259.800},"usage":{"schema":"rowmill.usage/v1","turn":{"input_tokens":120,"cached_tokens":0,"cache_write_tokens":0,"output_tokens":36,"reasoning_tokens":0},"provider_attempts":[{"ok":true,"model":"m-1","time_to_response_ms":1259.800,"tokens":{"input_tokens":120,"cached_tokens":0,"cache_write_tokens":0,"output_tokens":36,"reasoning_tokens":0},"raw_usage":{"prompt_tokens":120}}]}}"#
        );
        assert!(serde_json::from_slice::<serde_json::Value>(&record.line).is_ok());
    }

    #[test]
    fn a_record_can_be_read_back_from_its_line() {
        let record = record(Ok("1".into()), &[call()]);
        assert_eq!(Record::parse(record.line.clone()).unwrap(), record);
        let head = EnvelopeHead::parse(record.envelope()).unwrap();
        assert_eq!(
            head,
            EnvelopeHead { id: RowId::Text("r1".into()), number: 3, ok: true, interrupted: false }
        );
        assert!(EnvelopeHead::parse(br#"{"id":7,"row_number":7}"#).is_err());
        assert_eq!(
            EnvelopeHead::parse(br#"{"id":7,"row_number":7,"ok":false}"#).unwrap().id,
            RowId::Number(7)
        );
    }

    #[test]
    fn a_failure_keeps_its_timing_and_usage_and_says_status_code_and_attempts() {
        let error = RowError {
            status: Some(429),
            code: Some("rate_limit".into()),
            attempts: Some(5),
            ..RowError::new(ErrorKind::RateLimited, "slow down")
        };
        let failed_call = CallReport { error: Some(ErrorKind::RateLimited), status: Some(429), ..call() };
        let record = record(Err(error), &[failed_call]);
        assert_eq!(
            text(record.envelope()),
            r#"{"id":"r1","row_number":3,"ok":false,"result":null,"error":{"type":"RateLimited","message":"slow down","status":429,"code":"rate_limit","attempts":5},"input":{"n":1.50}}"#
        );
        assert!(text(record.telemetry()).contains(r#""turn":{"input_tokens":120"#));
        assert!(text(record.telemetry()).contains(r#""duration_ms":1260.000"#));
    }

    #[test]
    fn a_row_that_made_no_call_has_an_empty_usage() {
        let record = record(Err(RowError::new(ErrorKind::MissingIdField, "x")), &[]);
        assert!(text(record.telemetry()).ends_with(r#""usage":{}}"#));
    }
}
