//! The summary of a run, accumulated from its rows.

use std::collections::BTreeMap;
use std::time::Duration;

use rowmill_types::{Money, RowError, RowErrorKind, RowId};
use serde::Serialize;

use crate::record::{CallReport, ReusedAnswerSource, RowReport, total_usage};
use crate::stats::{ValueStats, ValueStatsSummary, round_to_three_decimals};

/// A failed row, as an example of its type of failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureExample {
    /// Its number.
    pub number: u64,
    /// Its id.
    pub id: RowId,
    /// The message of its error.
    pub message: String,
    /// How many rows failed in the same way.
    pub rows: u64,
}

/// Failures whose messages differ only in names and numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailureGroup {
    /// The type of the errors.
    pub kind: RowErrorKind,
    /// Their message, with `…` for the parts that differ from row to row.
    pub message: String,
}

/// No more groups than this are distinguished; beyond it the messages vary too much.
const MOST_GROUPS: usize = 200;

/// Counts rows, times and tokens during a run. Constant in size.
#[derive(Debug, Clone, Default)]
pub struct RunTally {
    /// Rows read from the input.
    pub input_rows: u64,
    /// Rows that the selection chose.
    pub selected_rows: u64,
    /// The number of rows that the selection chooses in total, once the last was read.
    pub all_rows: Option<u64>,
    /// Selected rows that were done already.
    pub skipped_rows: u64,
    /// Rows that ended in this run.
    pub processed_rows: u64,
    /// Rows that ended in this run and are not ok.
    pub failed_rows: u64,
    /// Failures by type.
    pub failures: BTreeMap<RowErrorKind, u64>,
    /// One failed row of each group of failures: the one with the lowest number.
    pub failure_examples: BTreeMap<FailureGroup, FailureExample>,
    /// Calls made, including repeated ones.
    pub calls: u64,
    /// Calls that failed and were retried or given up, by type.
    pub failed_calls: BTreeMap<RowErrorKind, u64>,
    /// Calls that gave no answer but may have been billed.
    pub unknown_calls: u64,
    /// The savings by the provider's cache.
    pub saved: Money,
    /// Rows with an answer that is rated lower than requested.
    pub below_min_rating: u64,
    /// Answers that violated the schema and were requested again.
    pub repairs: u64,
    tools: ToolCallCounts,
    cost: Money,
    calls_without_price: u64,
    reused: BTreeMap<ReusedAnswerSource, u64>,
    duration: ValueStats,
    first_token: ValueStats,
    response: ValueStats,
    tokens: rowmill_types::TokenUsage,
    rows_with_usage: u64,
    rows_with_cache: u64,
}

impl RunTally {
    /// Adds a row that ended.
    pub fn add(&mut self, report: &RowReport<'_>) {
        self.processed_rows += 1;
        self.below_min_rating += u64::from(!report.below_min_rating.is_empty());
        if let Err(error) = report.outcome {
            self.failed_rows += 1;
            *self.failures.entry(error.kind).or_default() += 1;
            self.keep_example(report, error);
        }
        if let Some(reused) = report.reused {
            *self.reused.entry(reused).or_default() += 1;
        }
        self.tools.made += report.tools.len() as u64;
        self.tools.failed += report.tools.iter().filter(|tool| !tool.ok).count() as u64;
        if report.calls.is_empty() {
            return;
        }
        self.duration.add(milliseconds(report.end.saturating_sub(report.start)));
        report.calls.iter().for_each(|call| self.add_call(call));
        let usage = total_usage(report.calls);
        self.tokens += usage;
        self.rows_with_usage += u64::from(report.calls.iter().any(|call| call.usage.is_some()));
        self.rows_with_cache += u64::from(usage.cached > 0 || usage.cache_write > 0);
    }

    /// Adds what an earlier pass over the same input counted. What describes the input is that of the later pass;
    /// skipped rows are those that were done before the first pass.
    pub fn add_earlier_pass(&mut self, earlier: &Self) {
        self.skipped_rows = earlier.skipped_rows;
        self.processed_rows += earlier.processed_rows;
        self.failed_rows += earlier.failed_rows;
        earlier.failures.iter().for_each(|(kind, rows)| *self.failures.entry(*kind).or_default() += rows);
        for (group, example) in &earlier.failure_examples {
            let rows = self.failure_examples.remove(group).map_or(0, |later| later.rows);
            let example = FailureExample { rows: example.rows + rows, ..example.clone() };
            self.failure_examples.insert(group.clone(), example);
        }
        self.calls += earlier.calls;
        earlier.failed_calls.iter().for_each(|(kind, n)| *self.failed_calls.entry(*kind).or_default() += n);
        self.unknown_calls += earlier.unknown_calls;
        self.saved += earlier.saved;
        self.below_min_rating += earlier.below_min_rating;
        self.repairs += earlier.repairs;
        self.tools.made += earlier.tools.made;
        self.tools.failed += earlier.tools.failed;
        self.cost += earlier.cost;
        self.calls_without_price += earlier.calls_without_price;
        earlier.reused.iter().for_each(|(reuse, rows)| *self.reused.entry(*reuse).or_default() += rows);
        self.duration.merge(&earlier.duration);
        self.first_token.merge(&earlier.first_token);
        self.response.merge(&earlier.response);
        self.tokens += earlier.tokens;
        self.rows_with_usage += earlier.rows_with_usage;
        self.rows_with_cache += earlier.rows_with_cache;
    }

    fn keep_example(&mut self, report: &RowReport<'_>, error: &RowError) {
        let mut group = FailureGroup { kind: error.kind, message: pattern_of(&error.message) };
        if self.failure_examples.len() >= MOST_GROUPS && !self.failure_examples.contains_key(&group) {
            group.message = "…".to_owned();
        }
        let new = || FailureExample {
            number: report.number,
            id: report.id.clone(),
            message: error.message.to_string(),
            rows: 0,
        };
        let kept = self.failure_examples.entry(group).or_insert_with(new);
        if report.number < kept.number {
            *kept = FailureExample { rows: kept.rows, ..new() };
        }
        kept.rows += 1;
    }

    fn add_call(&mut self, call: &CallReport) {
        self.calls += 1;
        match call.error {
            Some(kind) => *self.failed_calls.entry(kind).or_default() += 1,
            None => {
                match call.cost {
                    Some(cost) => self.cost += cost,
                    None => self.calls_without_price += 1,
                }
                self.response.add(milliseconds(call.timing.response));
                if let Some(first) = call.timing.first_token {
                    self.first_token.add(milliseconds(first));
                }
            }
        }
    }

    /// The numbers for the summary.
    #[must_use]
    pub fn summary_numbers(&self, duration: Duration) -> SummaryNumbers {
        let percent = |part: u64| {
            let whole = self.processed_rows.max(1) as f64;
            (part as f64 * 10_000.0 / whole).round() / 100.0
        };
        SummaryNumbers {
            input_rows: self.input_rows,
            selected_rows: self.selected_rows,
            processed_rows: self.processed_rows,
            skipped_rows: self.skipped_rows,
            failed_rows: self.failed_rows,
            failures: self.failures.clone(),
            calls: CallCounts {
                made: self.calls,
                failed: self.failed_calls.clone(),
                outcome_unknown: self.unknown_calls,
                repairs: self.repairs,
            },
            tools: self.tools,
            duration_ms: round_to_three_decimals(milliseconds(duration)),
            timing_ms: TimingSummary {
                duration: self.duration.summary(),
                ttft: self.first_token.summary(),
                time_to_response: self.response.summary(),
            },
            usage: UsageSummary {
                prompt_tokens: self.tokens.input,
                completion_tokens: self.tokens.output,
                total_tokens: self.tokens.tokens(),
                reasoning_tokens: self.tokens.reasoning,
                rows_with_usage: self.rows_with_usage,
                usage_coverage_percent: percent(self.rows_with_usage),
            },
            cost: CostSummary {
                usd: self.cost,
                saved_by_cache_usd: self.saved,
                calls_without_price: self.calls_without_price,
            },
            reused: ReusedSummary {
                duplicate: self.reused.get(&ReusedAnswerSource::Duplicate).copied().unwrap_or(0),
                cache: self.reused.get(&ReusedAnswerSource::Cache).copied().unwrap_or(0),
            },
            cache: ProviderCacheSummary {
                read_tokens: self.tokens.cached,
                write_tokens: self.tokens.cache_write,
                rows_with_cache_activity: self.rows_with_cache,
                row_cache_activity_percent: percent(self.rows_with_cache),
            },
        }
    }
}

/// A message with `…` in place of the parts that differ from row to row: numbers, words with digits in them, and values
/// in quotes or backticks.
fn pattern_of(message: &str) -> String {
    let mut pattern = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(first) = rest.chars().next() {
        let quoted = ['`', '"', '\'']
            .contains(&first)
            .then(|| rest.get(1..)?.find(first).map(|end| end + 2))
            .flatten()
            // An apostrophe inside a word opens no quote.
            .filter(|_| !pattern.ends_with(char::is_alphanumeric));
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let is_value =
            |text: &str| text.len() > 24 || text.contains(|c: char| c.is_ascii_digit() || c == ' ');
        let (length, varies) = match quoted {
            // The name of a field is part of the cause; a value is one of many.
            Some(length) => (length, rest.get(..length).is_some_and(is_value)),
            None if is_word(first) => {
                let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                (word, rest.get(..word).is_some_and(|word| word.contains(|c: char| c.is_ascii_digit())))
            }
            None => (first.len_utf8(), false),
        };
        let (piece, after) = rest.split_at(length);
        if !varies {
            pattern.push_str(piece);
        } else if !pattern.ends_with('…') {
            pattern.push('…');
        }
        rest = after;
    }
    pattern
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The counted part of a summary, in the documented order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SummaryNumbers {
    /// Rows read from the input.
    pub input_rows: u64,
    /// Rows that the selection chose.
    pub selected_rows: u64,
    /// Rows that ended in this run.
    pub processed_rows: u64,
    /// Selected rows that were done already.
    pub skipped_rows: u64,
    /// Rows that ended in this run and are not ok.
    pub failed_rows: u64,
    /// Failures by type.
    pub failures: BTreeMap<RowErrorKind, u64>,
    /// Calls made.
    pub calls: CallCounts,
    /// Tool calls, if there were any.
    #[serde(skip_serializing_if = "ToolCallCounts::is_none")]
    pub tools: ToolCallCounts,
    /// How long the run took.
    pub duration_ms: f64,
    /// How long rows and calls took.
    pub timing_ms: TimingSummary,
    /// Tokens used.
    pub usage: UsageSummary,
    /// The cost.
    pub cost: CostSummary,
    /// Rows whose answer was paid for before.
    pub reused: ReusedSummary,
    /// The effect of the provider's cache.
    pub cache: ProviderCacheSummary,
}

/// The cost of a run, as far as prices are known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostSummary {
    /// Dollars for calls of this run.
    pub usd: Money,
    /// Dollars saved by the provider's cache.
    pub saved_by_cache_usd: Money,
    /// Answered calls whose price or usage is unknown.
    pub calls_without_price: u64,
}

/// Rows that needed no call of their own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReusedSummary {
    /// Another row of the run had the same request.
    pub duplicate: u64,
    /// The cache had the answer.
    pub cache: u64,
}

/// The calls of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallCounts {
    /// All calls, including repeated ones.
    pub made: u64,
    /// Failed calls by type.
    pub failed: BTreeMap<RowErrorKind, u64>,
    /// Calls without an answer that may have been billed.
    pub outcome_unknown: u64,
    /// Answers that violated the schema and were requested again, if there were any.
    #[serde(skip_serializing_if = "is_zero")]
    pub repairs: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ToolCallCounts {
    /// All of them.
    pub made: u64,
    /// Those that gave no result, or reported a failure.
    pub failed: u64,
}

impl ToolCallCounts {
    fn is_none(&self) -> bool {
        self.made == 0
    }
}

/// Times in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimingSummary {
    /// Whole rows, including waits and repeated calls.
    pub duration: ValueStatsSummary,
    /// Time to the first token, if it is known.
    pub ttft: ValueStatsSummary,
    /// Time to the complete answer, per answered call.
    pub time_to_response: ValueStatsSummary,
}

/// Tokens of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageSummary {
    /// All prompt tokens.
    pub prompt_tokens: u64,
    /// All generated tokens.
    pub completion_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// Generated tokens spent on reasoning.
    pub reasoning_tokens: u64,
    /// Rows for which the provider reported the usage.
    pub rows_with_usage: u64,
    /// The same, as a percentage of the processed rows.
    pub usage_coverage_percent: f64,
}

/// The effect of the provider's cache.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProviderCacheSummary {
    /// Prompt tokens read from it.
    pub read_tokens: u64,
    /// Prompt tokens written to it.
    pub write_tokens: u64,
    /// Rows with either.
    pub rows_with_cache_activity: u64,
    /// The same, as a percentage of the processed rows.
    pub row_cache_activity_percent: f64,
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
