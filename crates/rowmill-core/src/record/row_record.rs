//! A row's line of the ledger.

use std::ops::Range;
use std::time::Duration;

use rowmill_types::{Row, RowError, RowId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::envelope::write_envelope;
use super::telemetry::write_telemetry;
use super::trace::{RowTraceData, write_trace};
use super::{CallReport, EnvelopeHead, LowRatingReport, ReusableAnswer, ToolCallReport};
use crate::ports::PublishedRecord;

/// The complete report about a row that has ended.
#[derive(Debug)]
pub struct RowReport<'a> {
    /// Its id.
    pub id: &'a RowId,
    /// Its number.
    pub number: u64,
    /// Its result as JSON text, or its error.
    pub outcome: &'a Result<String, RowError>,
    /// The input row for the envelope.
    pub input: EnvelopeInput<'a>,
    /// When work on it began, counted from the start of the run.
    pub start: Duration,
    /// When it ended, counted from the start of the run.
    pub end: Duration,
    /// The calls that were made, in order.
    pub calls: &'a [CallReport],
    /// The tools that were called, in the order in which they ended.
    pub tools: &'a [ToolCallReport],
    /// Answers that were given although they are rated lower than requested.
    pub below_min_rating: &'a [LowRatingReport],
    /// Where the answer came from, if no call was made for this row.
    pub reused: Option<ReusedAnswerSource>,
    /// The key of its request, if other rows with the same request may use its answer.
    pub reusable: Option<ReusableAnswer>,
    /// The data for its trace, if one is wanted.
    pub trace: Option<RowTraceData<'a>>,
}

/// An answer that was paid for before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReusedAnswerSource {
    /// By another row of the run with the same request.
    Duplicate,
    /// By an earlier run; it was in the cache.
    Cache,
}

impl ReusedAnswerSource {
    /// The name in envelopes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::Cache => "cache",
        }
    }
}

/// The input row in the envelope.
#[derive(Debug, Clone, Copy)]
pub enum EnvelopeInput<'a> {
    /// Nothing: there is no such field.
    Absent,
    /// The row.
    Row(&'a Row),
    /// `null`, because the record could not be read as a row.
    Unreadable,
}

#[derive(Deserialize)]
struct RecordFields<'a> {
    #[serde(borrow)]
    envelope: &'a RawValue,
    #[serde(borrow)]
    telemetry: &'a RawValue,
    #[serde(borrow, default)]
    trace: Option<&'a RawValue>,
}

/// A row's line of the ledger, and the positions of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowRecord {
    /// The ledger line, including the newline.
    pub line: Vec<u8>,
    /// The range of the envelope in it.
    pub envelope: Range<usize>,
    /// The range of the telemetry in it.
    pub telemetry: Range<usize>,
    /// The range of the trace in it, if there is one.
    pub trace: Option<Range<usize>>,
    /// Whether the row is ok.
    pub ok: bool,
}

impl RowRecord {
    /// Writes the record of a row.
    #[must_use]
    pub fn from_report(report: &RowReport<'_>) -> Self {
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
        let trace = report.trace.map(|trace| {
            line.extend_from_slice(b",\"trace\":");
            let start = line.len();
            write_trace(&mut line, report, trace);
            start..line.len()
        });
        if let Some(reusable) = report.reusable {
            reusable.write(&mut line);
        }
        line.extend_from_slice(b"}\n");
        Self { line, envelope, telemetry, trace, ok }
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
        let trace = fields.trace.map(range);
        let ok = EnvelopeHead::parse(fields.envelope.get().as_bytes())?.ok;
        Ok(Self { line, envelope, telemetry, trace, ok })
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

    /// The trace as compact JSON, without a newline.
    #[must_use]
    pub fn trace(&self) -> Option<&[u8]> {
        self.trace.clone().and_then(|range| self.line.get(range))
    }

    /// The outcome of the row, parsed from its envelope.
    ///
    /// # Errors
    ///
    /// The envelope is invalid.
    pub fn outcome(&self) -> Result<Result<String, RowError>, serde_json::Error> {
        #[derive(serde::Deserialize)]
        struct OutcomeFields<'a> {
            #[serde(borrow)]
            result: Option<&'a RawValue>,
            error: Option<RowError>,
        }
        let fields: OutcomeFields<'_> = serde_json::from_slice(self.envelope())?;
        Ok(match fields.error {
            Some(error) => Err(error),
            None => Ok(fields.result.map_or("null", RawValue::get).to_owned()),
        })
    }

    /// Its parts, for sinks to choose from.
    #[must_use]
    pub fn parts_for_sinks(&self) -> PublishedRecord<'_> {
        PublishedRecord {
            envelope: self.envelope(),
            telemetry: self.telemetry(),
            trace: self.trace(),
            ok: self.ok,
        }
    }
}

#[cfg(test)]
mod tests {
    use rowmill_types::{CallTiming, Money, RowErrorKind, TokenUsage};

    use super::*;

    fn call() -> CallReport {
        CallReport {
            error: None,
            status: None,
            timing: CallTiming { first_token: None, response: Duration::from_micros(1_259_800) },
            usage: Some(TokenUsage { input: 120, output: 36, ..TokenUsage::default() }),
            raw_usage: Some(RawValue::from_string("{\n \"prompt_tokens\": 120}".into()).unwrap()),
            model: Some("m-1".into()),
            service_tier: None,
            cost: None,
            agent: None,
            hosted_tools: None,
            output_cap: None,
            batch: None,
            beside_jobs: false,
        }
    }

    fn record(outcome: Result<String, RowError>, calls: &[CallReport]) -> RowRecord {
        let row = Row::parse(3, r#"{"n": 1.50}"#.into()).unwrap();
        RowRecord::from_report(&RowReport {
            id: &RowId::Text("r1".into()),
            number: 3,
            outcome: &outcome,
            input: EnvelopeInput::Row(&row),
            start: Duration::from_millis(1500),
            end: Duration::from_millis(2760),
            calls,
            tools: &[],
            below_min_rating: &[],
            reused: None,
            reusable: None,
            trace: None,
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
        assert_eq!(RowRecord::parse(record.line.clone()).unwrap(), record);
        let head = EnvelopeHead::parse(record.envelope()).unwrap();
        assert_eq!(
            head,
            EnvelopeHead {
                id: RowId::Text("r1".into()),
                number: 3,
                ok: true,
                interrupted: false,
                stopped: false,
                outcome_unknown: false,
                number_stands_in: false
            }
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
            ..RowError::new(RowErrorKind::RateLimited, "slow down")
        };
        let failed_call = CallReport { error: Some(RowErrorKind::RateLimited), status: Some(429), ..call() };
        let record = record(Err(error), &[failed_call]);
        assert_eq!(
            text(record.envelope()),
            r#"{"id":"r1","row_number":3,"ok":false,"result":null,"error":{"type":"RateLimited","message":"slow down","status":429,"code":"rate_limit","attempts":5},"input":{"n":1.50}}"#
        );
        assert!(text(record.telemetry()).contains(r#""turn":{"input_tokens":120"#));
        assert!(text(record.telemetry()).contains(r#""duration_ms":1260.000"#));
    }

    #[test]
    fn costs_are_exact_and_a_reused_answer_says_where_it_is_from() {
        let priced = |pico| CallReport { cost: Some(Money::from_pico(pico)), ..call() };
        let record = record(Ok("1".into()), &[priced(1_250_000_000_000), priced(30)]);
        let telemetry = text(record.telemetry());
        assert!(telemetry.contains(r#""reasoning_tokens":0},"cost_usd":1.25000000003,"#), "{telemetry}");
        assert!(telemetry.contains(r#""cost_usd":0.00000000003,"#), "{telemetry}");
        let outcome = Ok("1".into());
        let reused = RowRecord::from_report(&RowReport {
            id: &RowId::Number(3),
            number: 3,
            outcome: &outcome,
            input: EnvelopeInput::Absent,
            start: Duration::ZERO,
            end: Duration::ZERO,
            calls: &[],
            tools: &[],
            below_min_rating: &[],
            reused: Some(ReusedAnswerSource::Duplicate),
            reusable: None,
            trace: None,
        });
        assert_eq!(
            text(reused.envelope()),
            r#"{"id":3,"row_number":3,"ok":true,"result":1,"error":null,"reused":"duplicate"}"#
        );
    }

    #[test]
    fn a_row_that_made_no_call_has_an_empty_usage() {
        let record = record(Err(RowError::new(RowErrorKind::MissingIdField, "x")), &[]);
        assert!(text(record.telemetry()).ends_with(r#""usage":{}}"#));
    }

    #[test]
    fn what_a_provider_tells_of_a_call_is_kept_without_secrets() {
        let secret = "sk-planted-4711";
        let redactor = crate::redact::Redactor::new([&rowmill_types::Secret::new(secret)]).unwrap();
        let mut call = call();
        call.model = Some(format!("m of {secret}"));
        call.service_tier = Some(secret.to_owned());
        let usage = format!(r#"{{"{secret}": 1, "note": "{secret}", "prompt_tokens": 120}}"#);
        call.raw_usage = Some(RawValue::from_string(usage).unwrap());
        call.redact(&redactor);
        assert_eq!((call.model.as_deref(), call.service_tier.as_deref()), (Some("m of ***"), Some("***")));
        assert_eq!(
            call.raw_usage.unwrap().get(),
            r#"{"***": 1, "note": "***", "prompt_tokens": 120}"#,
            "the rest stays as it is"
        );
    }
}
