//! The results of a run in numbers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rowmill_core::select::IdSet;
use rowmill_types::{Problem, RowId};
use serde::Serialize;

use super::envelopes::{EnvelopeLines, envelopes_path, parse_envelope};
use super::fields::{FieldCollector, FieldSummary};
use super::telemetry::{self, RowTelemetrySummary};
use super::unfinished::{UnfinishedRun, unfinished_run_of_output};

/// The parameters of a summary.
#[derive(Debug, Clone)]
pub struct ResultsOverviewSpec {
    /// The output of the run.
    pub output: PathBuf,
    /// The telemetry of the run; if missing, the telemetry in the ledger is used, if one was kept.
    pub telemetry: Option<PathBuf>,
    /// The maximum number of failures to return.
    pub failures: usize,
}

/// The summary of a run's results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultsOverview {
    /// The output.
    pub output: String,
    /// The number of envelopes.
    pub rows: u64,
    /// Envelopes of rows that are ok.
    pub ok: u64,
    /// Envelopes of rows that failed.
    pub failed: u64,
    /// Envelopes of rows that have an earlier one: the run has not been finished.
    pub repeated: u64,
    /// Set if the run has not reached the end of its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<UnfinishedRun>,
    /// The failed rows by the type of their error.
    pub errors: BTreeMap<String, u64>,
    /// The first failed rows.
    pub failures: Vec<FailedRow>,
    /// The values of the results.
    pub fields: Vec<FieldSummary>,
    /// Tokens and times, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<RowTelemetrySummary>,
}

/// A row that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedRow {
    /// The row number.
    pub row_number: u64,
    /// The id.
    pub id: String,
    /// The type of the error.
    #[serde(rename = "type")]
    pub kind: String,
    /// The message of the error.
    pub message: String,
}

/// Summarizes the output of a run, in constant memory.
///
/// # Errors
///
/// The output is missing, or a line of it is not an envelope.
pub fn summarize_results(spec: &ResultsOverviewSpec) -> Result<ResultsOverview, Problem> {
    let mut found = ResultsOverview {
        output: spec.output.display().to_string(),
        rows: 0,
        ok: 0,
        failed: 0,
        repeated: 0,
        unfinished: None,
        errors: BTreeMap::new(),
        failures: Vec::new(),
        fields: Vec::new(),
        telemetry: None,
    };
    let mut fields = FieldCollector::default();
    let mut numbers = IdSet::default();
    let mut lines = EnvelopeLines::open(&envelopes_path(&spec.output)?)?;
    while let Some((_, line)) = lines.next()? {
        let envelope = match parse_envelope(line) {
            Ok(envelope) => envelope,
            Err(error) => return Err(lines.no_envelope(&error)),
        };
        found.rows += 1;
        found.repeated += u64::from(!numbers.insert(&RowId::Number(envelope.row_number)));
        if envelope.ok {
            found.ok += 1;
            fields.add(envelope.result_text());
            continue;
        }
        found.failed += 1;
        let kind = envelope.error_kind();
        match found.errors.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(found.errors.insert(kind.to_owned(), 1)),
        }
        if found.failures.len() < spec.failures {
            found.failures.push(FailedRow {
                row_number: envelope.row_number,
                id: envelope.shown_id(),
                kind: kind.to_owned(),
                message: envelope.error.as_ref().map(|error| error.message.to_string()).unwrap_or_default(),
            });
        }
    }
    found.fields = fields.summaries();
    found.unfinished = unfinished_run_of_output(&spec.output, found.rows - found.repeated);
    found.telemetry = match &spec.telemetry {
        Some(path) => telemetry::from_file(path)?,
        None => telemetry::from_ledger(&spec.output)?,
    };
    Ok(found)
}
