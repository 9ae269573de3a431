//! Tokens, times and cost of a run's rows.

use std::path::Path;

use rowmill_core::ledger::LedgerEvent;
use rowmill_core::stats::ValueStats;
use rowmill_store::file::WorkFolder;
use rowmill_types::Problem;
use rowmill_types::settings::TELEMETRY_OUTPUT;
use serde::{Deserialize, Serialize};

use super::distribution::{TelemetryDistribution, ValueScale};
use super::envelopes::EnvelopeLines;

use crate::run_storage::RunStorage;

/// A summary of the tokens, times and cost of rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowTelemetrySummary {
    /// The source of the numbers.
    pub source: String,
    /// Prompt tokens per row.
    pub input_tokens: Option<TelemetryDistribution>,
    /// Generated tokens per row.
    pub output_tokens: Option<TelemetryDistribution>,
    /// Milliseconds per row, from its first call to its end.
    pub milliseconds: Option<TelemetryDistribution>,
    /// The total cost of the rows, as far as prices are known.
    pub cost_usd: Option<f64>,
}

#[derive(Deserialize)]
struct TelemetryLine {
    timing: TelemetryTiming,
    #[serde(default)]
    usage: TelemetryUsage,
}

#[derive(Deserialize)]
struct TelemetryTiming {
    duration_ms: f64,
}

#[derive(Default, Deserialize)]
struct TelemetryUsage {
    turn: Option<TelemetryTurn>,
    cost_usd: Option<f64>,
}

#[derive(Deserialize)]
struct TelemetryTurn {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Deserialize)]
struct LedgerLine {
    telemetry: TelemetryLine,
}

#[derive(Default)]
struct TelemetrySums {
    input: ValueStats,
    output: ValueStats,
    milliseconds: ValueStats,
    cost: Option<f64>,
}

impl TelemetrySums {
    fn add(&mut self, telemetry: &TelemetryLine) {
        // A row without calls has no usage, and its time is meaningless.
        let Some(turn) = &telemetry.usage.turn else { return };
        self.input.add(turn.input_tokens as f64);
        self.output.add(turn.output_tokens as f64);
        self.milliseconds.add(telemetry.timing.duration_ms);
        if let Some(cost) = telemetry.usage.cost_usd {
            *self.cost.get_or_insert(0.0) += cost;
        }
    }

    fn summary(self, source: String) -> Option<RowTelemetrySummary> {
        let found = RowTelemetrySummary {
            source,
            input_tokens: TelemetryDistribution::from_stats(&self.input, ValueScale::Counted),
            output_tokens: TelemetryDistribution::from_stats(&self.output, ValueScale::Counted),
            milliseconds: TelemetryDistribution::from_stats(&self.milliseconds, ValueScale::Measured),
            cost_usd: self.cost,
        };
        found.milliseconds.is_some().then_some(found)
    }
}

/// Summarizes the file of `--telemetry-output`.
pub(super) fn from_file(path: &Path) -> Result<Option<RowTelemetrySummary>, Problem> {
    let mut sums = TelemetrySums::default();
    let mut lines = EnvelopeLines::open(path)?;
    while let Some((_, line)) = lines.next()? {
        match serde_json::from_slice(line) {
            Ok(telemetry) => sums.add(&telemetry),
            Err(error) => {
                let mut problem = lines.no_envelope(&error);
                problem.message =
                    format!("line {} of `{}` is not telemetry", lines.number, path.display()).into();
                return Err(problem.hint(format!("use the file that was the run's {TELEMETRY_OUTPUT}")));
            }
        }
    }
    Ok(sums.summary(path.display().to_string()))
}

/// Summarizes the ledger beside the output, if it was kept.
pub(super) fn from_ledger(output: &Path) -> Result<Option<RowTelemetrySummary>, Problem> {
    let folder = WorkFolder::default_path(output);
    let mut sums = TelemetrySums::default();
    RunStorage::look_at(&folder).store.scan(&mut |scanned| {
        if let LedgerEvent::Ended(_) = scanned.event
            && let Ok(line) = serde_json::from_slice::<LedgerLine>(scanned.line)
        {
            sums.add(&line.telemetry);
        }
        Ok(())
    })?;
    Ok(sums.summary(folder.display().to_string()))
}
