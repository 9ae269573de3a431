//! Writes the telemetry of a row.

use std::borrow::Cow;
use std::time::Duration;

use rowmill_types::{BatchAnswerOrigin, CallTiming, HostedToolUse, Money, RowErrorKind, TokenUsage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::envelope::{write_head, write_json};
use super::row_record::RowReport;
use crate::agent::AnswerRating;
use crate::json_text;
use crate::redact::Redactor;

/// One call that was made for a row.
#[derive(Debug, Clone)]
pub struct CallReport {
    /// How it failed, `None` for an answer.
    pub error: Option<RowErrorKind>,
    /// The HTTP status of a failure, if one was received.
    pub status: Option<u16>,
    /// How long it took.
    pub timing: CallTiming,
    /// Tokens, if the provider reported them.
    pub usage: Option<TokenUsage>,
    /// The usage as the provider reported it.
    pub raw_usage: Option<Box<RawValue>>,
    /// The model that answered, if the provider reported it.
    pub model: Option<String>,
    /// The service tier that was granted, if the provider reported it.
    pub service_tier: Option<String>,
    /// The cost, if the price and the usage are known.
    pub cost: Option<Money>,
    /// The agent that asked, if there are agents.
    pub agent: Option<String>,
    /// Activity of tools that run at the provider.
    pub hosted_tools: Option<Box<HostedToolUse>>,
    /// The maximum number of tokens of the answer, if it was chosen for this call.
    pub output_cap: Option<u64>,
    /// The batch job that has its result; `None` for a live call.
    pub batch: Option<Box<BatchAnswerOrigin>>,
    /// Whether this was a live call of a run that has batch jobs, too.
    pub beside_jobs: bool,
}

impl CallReport {
    /// Removes secrets from the provider's reports.
    pub fn redact(&mut self, redactor: &Redactor) {
        for text in [&mut self.model, &mut self.service_tier].into_iter().flatten() {
            if let Cow::Owned(hidden) = redactor.redact(text) {
                *text = hidden;
            }
        }
        let hidden = self.raw_usage.as_ref().map(|usage| redactor.redact_json(usage.get()));
        if let Some(Cow::Owned(hidden)) = hidden {
            self.raw_usage = RawValue::from_string(hidden).ok();
        }
    }
}

/// A tool that was called for a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallReport {
    /// The agent that called it.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// Whether it returned a result and did not report a failure.
    pub ok: bool,
    /// How long it took.
    pub duration: Duration,
}

/// An answer that an evaluator-optimizer gave although it is rated below its `min_rating`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LowRatingReport {
    /// The evaluator-optimizer.
    pub agent: String,
    /// The rating of the answer.
    pub rating: AnswerRating,
    /// The rating that was required.
    pub min_rating: AnswerRating,
}

pub(super) fn write_telemetry(out: &mut Vec<u8>, report: &RowReport<'_>) {
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
        if report.calls.iter().any(|call| call.cost.is_some()) {
            write_cost(out, total_cost(report.calls));
        }
        out.extend_from_slice(b",\"provider_attempts\":[");
        for (index, call) in report.calls.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_call(out, call);
        }
        out.push(b']');
    }
    out.push(b'}');
    if !report.tools.is_empty() {
        out.extend_from_slice(b",\"tool_calls\":[");
        for (index, tool) in report.tools.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_tool(out, tool);
        }
        out.push(b']');
    }
    if !report.below_min_rating.is_empty() {
        out.extend_from_slice(b",\"below_min_rating\":");
        write_json(out, &report.below_min_rating);
    }
    out.push(b'}');
}

fn write_tool(out: &mut Vec<u8>, tool: &ToolCallReport) {
    out.extend_from_slice(b"{\"agent\":");
    write_json(out, &tool.agent);
    out.extend_from_slice(b",\"tool\":");
    write_json(out, &tool.tool);
    out.extend_from_slice(if tool.ok { b",\"ok\":true" } else { b",\"ok\":false" });
    out.extend_from_slice(b",\"duration_ms\":");
    write_milliseconds(out, tool.duration);
    out.push(b'}');
}

/// The sum over all calls with a known usage.
#[must_use]
pub fn total_usage(calls: &[CallReport]) -> TokenUsage {
    let mut total = TokenUsage::default();
    for usage in calls.iter().filter_map(|call| call.usage) {
        total += usage;
    }
    total
}

/// The sum over all calls whose cost is known.
#[must_use]
pub fn total_cost(calls: &[CallReport]) -> Money {
    calls.iter().filter_map(|call| call.cost).sum()
}

fn write_cost(out: &mut Vec<u8>, cost: Money) {
    const PICO: u64 = 1_000_000_000_000;
    let pico = cost.pico();
    out.extend_from_slice(b",\"cost_usd\":");
    write_whole(out, pico / PICO);
    out.push(b'.');
    // With a one before it, the fraction has all its zeros.
    let mut buffer = itoa::Buffer::new();
    let fraction = buffer.format(PICO + pico % PICO).as_bytes().get(1..).unwrap_or_default();
    // A number needs a digit after the point.
    let kept = fraction.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1);
    out.extend(fraction.iter().take(kept));
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
    let texts = [("agent", &call.agent), ("model", &call.model), ("service_tier", &call.service_tier)];
    for (name, value) in texts {
        if let Some(value) = value {
            out.extend_from_slice(b",");
            write_json(out, name);
            out.push(b':');
            write_json(out, value);
        }
    }
    if let Some(batch) = &call.batch {
        out.extend_from_slice(b",\"lane\":\"batch\",\"batch\":");
        write_json(out, batch);
    } else if call.beside_jobs {
        out.extend_from_slice(b",\"lane\":\"live\"");
    }
    if let Some(cap) = call.output_cap {
        out.extend_from_slice(b",\"max_tokens\":");
        write_json(out, &cap);
    }
    write_call_timing(out, call);
    if let Some(usage) = &call.usage {
        out.extend_from_slice(b",\"tokens\":");
        write_usage(out, usage);
    }
    if let Some(cost) = call.cost {
        write_cost(out, cost);
    }
    if let Some(hosted) = &call.hosted_tools {
        out.extend_from_slice(b",\"hosted_tools\":");
        write_json(out, hosted);
    }
    if let Some(raw) = &call.raw_usage {
        out.extend_from_slice(b",\"raw_usage\":");
        // A provider's JSON may span several lines; the ledger needs one line.
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

fn write_usage(out: &mut Vec<u8>, usage: &TokenUsage) {
    let TokenUsage { input, cached, cache_write, output, reasoning } = *usage;
    let counts: [(&[u8], u64); 5] = [
        (b"{\"input_tokens\":", input),
        (b",\"cached_tokens\":", cached),
        (b",\"cache_write_tokens\":", cache_write),
        (b",\"output_tokens\":", output),
        (b",\"reasoning_tokens\":", reasoning),
    ];
    for (name, count) in counts {
        out.extend_from_slice(name);
        write_whole(out, count);
    }
    out.push(b'}');
}

fn write_milliseconds(out: &mut Vec<u8>, duration: Duration) {
    write_thousandths(out, duration.as_micros());
}

fn write_thousandths(out: &mut Vec<u8>, value: u128) {
    // Thousandths of a second are enough for half a billion years.
    let value = u64::try_from(value).unwrap_or(u64::MAX);
    write_whole(out, value / 1000);
    out.push(b'.');
    let digit = |unit: u64| b'0' + (value / unit % 10) as u8;
    out.extend_from_slice(&[digit(100), digit(10), digit(1)]);
}

/// Numbers come several to a row, and the formatting of the standard library takes ten times as long.
fn write_whole(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}
