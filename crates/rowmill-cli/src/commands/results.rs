//! `rowmill results`: summarizes a run, or compares it with another one.

use std::path::{Path, PathBuf};

use clap::Args;
use rowmill::results::{
    self, FieldSummary, ResultsOverview, ResultsOverviewSpec, RowTelemetrySummary, RunDiff,
    TelemetryDistribution, UnfinishedRun,
};
use rowmill::{ExitCode, JsonKind, Problem};

use crate::flag_values::parse_u64;
use crate::number_text::{count_phrase, group_digits};
use crate::printer;
use crate::text_layout::{CellAlign, TextTable, escape_control, fold_words, screen_width, truncate_to_width};

/// How many differing rows are shown.
const EXAMPLES: usize = 5;
/// The length of the longest bar of a histogram in columns.
const BAR: usize = 40;

/// Summarize a run: counts, failures, result values, tokens and times.
///
/// With `--diff`, compare it with another run, row by row. The exit code is then 0 if all rows are
/// identical, and 3 if not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rowmill results results.jsonl\n  \
    rowmill results results.jsonl --failures 50\n  \
    rowmill results results.jsonl --telemetry telemetry.jsonl\n  \
    rowmill results new.jsonl --diff old.jsonl\n  \
    rowmill results results.jsonl --sql 'SELECT label, count(*) AS n FROM input GROUP BY label'")]
pub(crate) struct ResultsFlags {
    /// Output of the run.
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,

    /// Number of failed rows to show.
    #[arg(long, value_name = "N", value_parser = parse_u64, default_value = "10", allow_negative_numbers = true)]
    failures: u64,

    /// The run's `--telemetry-output`, for tokens and times.
    ///
    /// Without it they come from the ledger, if it was kept.
    #[arg(long, value_name = "FILE", conflicts_with = "diff")]
    telemetry: Option<PathBuf>,

    /// Compare with the output of another run; rows are matched by id.
    #[arg(long, value_name = "OTHER")]
    diff: Option<PathBuf>,

    /// Run a single SELECT over the results, which are the view `input`.
    ///
    /// Its columns are `id`, `row_number`, `ok`, `error_type`, `error_message`, the fields of the
    /// results, and `input` if the run kept it.
    #[arg(long, value_name = "QUERY", conflicts_with_all = ["diff", "telemetry"])]
    sql: Option<String>,

    /// Print as JSON; with `--sql`, one line per row.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run_results_command(flags: &ResultsFlags) -> Result<ExitCode, Problem> {
    if let Some(sql) = &flags.sql {
        return super::query::query(&flags.output, sql, flags.json);
    }
    if let Some(other) = &flags.diff {
        let diff = results::diff_runs(&flags.output, other, EXAMPLES)?;
        printer::report(&if flags.json {
            serde_json::to_string_pretty(&diff).unwrap_or_default()
        } else {
            diff_text(&flags.output, other, &diff, screen_width())
        })?;
        return Ok(if diff.is_same() { ExitCode::Ok } else { ExitCode::RowsFailed });
    }
    let spec = ResultsOverviewSpec {
        output: flags.output.clone(),
        telemetry: flags.telemetry.clone(),
        failures: usize::try_from(flags.failures).unwrap_or(usize::MAX),
    };
    let found = results::summarize_results(&spec)?;
    printer::report(&if flags.json {
        serde_json::to_string_pretty(&found).unwrap_or_default()
    } else {
        text(&found, screen_width())
    })?;
    Ok(ExitCode::Ok)
}

fn text(found: &ResultsOverview, width: usize) -> String {
    let mut first = format!(
        "{}: {}: {} ok",
        escape_control(&found.output),
        count_phrase(found.rows, "row"),
        group_digits(found.ok)
    );
    if found.failed > 0 {
        first.push_str(&format!(", {} failed", group_digits(found.failed)));
    }
    let mut lines = vec![truncate_to_width(&first, width)];
    let is_running = found.unfinished.is_some_and(|run| run.running);
    if found.repeated > 0 && !is_running {
        let rows = count_phrase(found.repeated, "row");
        let appear = if found.repeated == 1 { "appears" } else { "appear" };
        lines.push(truncate_to_width(
            &format!("{rows} {appear} more than once: the run is unfinished; `--resume` fixes this"),
            width,
        ));
    }
    if let Some(unfinished) = &found.unfinished {
        lines.extend(unfinished_lines(*unfinished, width));
    }
    lines.extend(failures(found, width));
    lines.extend(fields(&found.fields, width));
    if let Some(telemetry) = &found.telemetry {
        lines.extend(telemetry_lines(telemetry, width));
    }
    lines.join("\n")
}

/// Reports that a run is unfinished, and how to resume it if it is not in progress.
pub(super) fn unfinished_lines(unfinished: UnfinishedRun, width: usize) -> Vec<String> {
    let missing = match unfinished.missing {
        Some(1) => "1 row is missing".to_owned(),
        Some(rows) => format!("{} rows are missing", group_digits(rows)),
        None => "rows are missing".to_owned(),
    };
    let text = match unfinished.running {
        true => format!("the run is still in progress, so {missing}"),
        false => format!("the run is unfinished: {missing}; run its command with `--resume` to continue"),
    };
    fold_words(&text, width, 2)
}

fn failures(found: &ResultsOverview, width: usize) -> Vec<String> {
    if found.failed == 0 {
        return Vec::new();
    }
    let mut lines = vec![String::new(), "failed rows".to_owned()];
    let mut kinds: Vec<(&String, &u64)> = found.errors.iter().collect();
    kinds.sort_by(|one, other| other.1.cmp(one.1).then_with(|| one.0.cmp(other.0)));
    let mut table = TextTable::new(&[CellAlign::Left, CellAlign::Right]);
    kinds.iter().for_each(|(kind, count)| table.row([escape_control(kind), group_digits(**count)]));
    lines.extend(table.lines(2, width));
    if found.failures.is_empty() {
        return lines;
    }
    lines.push(String::new());
    let mut table = TextTable::new(&[CellAlign::Right, CellAlign::Left, CellAlign::Left, CellAlign::Left]);
    // Ids that are the row numbers need no column.
    let has_ids = found.failures.iter().any(|failure| failure.id != failure.row_number.to_string());
    if !has_ids {
        table = TextTable::new(&[CellAlign::Right, CellAlign::Left, CellAlign::Left]);
    }
    let mut row = |number: String, id: String, kind: String, message: String| {
        if has_ids { table.row([number, id, kind, message]) } else { table.row([number, kind, message]) }
    };
    row("row".into(), "id".into(), "type".into(), "message".into());
    for failure in &found.failures {
        let message = escape_control(&failure.message);
        row(
            group_digits(failure.row_number),
            truncate_to_width(&escape_control(&failure.id), 20),
            escape_control(&failure.kind),
            message,
        );
    }
    lines.extend(table.lines(2, width));
    let rest = found.failed - found.failures.len() as u64;
    if rest > 0 {
        lines.push(format!("  … and {} more; `--failures {}` shows all", group_digits(rest), found.failed));
    }
    lines
}

fn fields(fields: &[FieldSummary], width: usize) -> Vec<String> {
    let mut table = TextTable::new(&[CellAlign::Left, CellAlign::Left, CellAlign::Left]);
    for field in fields {
        let kinds: Vec<&str> = field.kinds.kinds().into_iter().map(JsonKind::name).collect();
        let kinds = if kinds.is_empty() { "null".into() } else { kinds.join(", ") };
        let name = field.name.as_deref().unwrap_or("(whole result)");
        let mut counted = Vec::new();
        if let (Some(min), Some(mean), Some(max)) = (field.min, field.mean, field.max) {
            counted.push(format!("min {}, mean {}, max {}", number(min), number(mean), number(max)));
        }
        let nulls = field.kinds.count_of(JsonKind::Null);
        if let Some(values) = &field.values {
            let values = values
                .iter()
                .map(|(value, count)| format!("{}: {}", value_text(value), group_digits(*count)));
            counted.extend(values);
        }
        if nulls > 0 {
            counted.push(format!("null: {}", group_digits(nulls)));
        }
        table.row([
            truncate_to_width(&escape_control(name), 24),
            truncate_to_width(&kinds, 20),
            counted.join(" · "),
        ]);
    }
    if fields.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), "results".to_owned()];
    lines.extend(table.lines(2, width));
    lines
}

fn value_text(value: &str) -> String {
    if value.is_empty() { "(empty)".into() } else { truncate_to_width(&escape_control(value), 24) }
}

/// A number with its significant digits.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", group_digits(value.abs() as u64));
    }
    let digits = 3 - (value.abs().log10().floor() as i32).clamp(-6, 3);
    let text = format!("{value:.*}", usize::try_from(digits).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn telemetry_lines(telemetry: &RowTelemetrySummary, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (title, unit, found) in [
        ("tokens in", "", &telemetry.input_tokens),
        ("tokens out", "", &telemetry.output_tokens),
        ("time per row", " ms", &telemetry.milliseconds),
    ] {
        if let Some(found) = found {
            lines.push(String::new());
            lines.extend(histogram(title, unit, found, width));
        }
    }
    if let Some(cost) = telemetry.cost_usd {
        lines.extend([
            String::new(),
            format!("cost {}", rowmill::Money::from_dollars(cost).unwrap_or_default()),
        ]);
    }
    lines
}

fn histogram(title: &str, unit: &str, found: &TelemetryDistribution, width: usize) -> Vec<String> {
    let shown = |value: f64| number(if value >= 100.0 { value.round() } else { value });
    let quantiles = [("p50", found.p50), ("p90", found.p90), ("p99", found.p99), ("max", found.max)];
    let quantiles: Vec<String> =
        quantiles.iter().map(|(name, value)| format!("{name} {}{unit}", shown(*value))).collect();
    let mut lines = vec![truncate_to_width(&format!("{title}: {}", quantiles.join(", ")), width)];
    let most = found.bars.iter().map(|bar| bar.count).max().unwrap_or(1).max(1);
    let mut table = TextTable::new(&[CellAlign::Right, CellAlign::Right, CellAlign::Left]);
    for bar in &found.bars {
        // A bar is rounded to whole columns, but any value above zero is visible.
        let columns = (bar.count as f64 * BAR as f64 / most as f64).round() as usize;
        let columns = if bar.count > 0 { columns.max(1) } else { 0 };
        let range = format!("{} – {}", shown(bar.from), shown(bar.to));
        table.row([range, group_digits(bar.count), "█".repeat(columns)]);
    }
    lines.extend(table.lines(2, width));
    lines
}

fn diff_text(here: &Path, there: &Path, diff: &RunDiff, width: usize) -> String {
    let (here, there) = (here.display().to_string(), there.display().to_string());
    let verdict = if diff.is_same() { "all rows are identical" } else { "the runs differ" };
    let mut lines =
        vec![format!("here:  {here}"), format!("there: {there}"), verdict.to_owned(), String::new()];
    let mut table = TextTable::new(&[CellAlign::Left, CellAlign::Right]);
    let rows = [
        ("same result", diff.same),
        ("failed in both", diff.failed_in_both),
        ("different result", diff.changed),
        ("ok here, failed there", diff.ok_only_here),
        ("failed here, ok there", diff.ok_only_there),
        ("only here", diff.only_here),
        ("only there", diff.only_there),
    ];
    for (what, count) in rows.iter().filter(|(_, count)| *count > 0) {
        table.row([(*what).to_owned(), group_digits(*count)]);
    }
    lines.extend(table.lines(2, width));
    let names: Vec<(&String, &u64)> = diff.fields.iter().filter(|(name, _)| !name.is_empty()).collect();
    if !names.is_empty() {
        lines.extend([String::new(), "fields with different values".to_owned()]);
        let mut table = TextTable::new(&[CellAlign::Left, CellAlign::Right]);
        names.iter().for_each(|(name, count)| table.row([escape_control(name), group_digits(**count)]));
        lines.extend(table.lines(2, width));
    }
    for change in &diff.examples {
        lines.push(String::new());
        let number = group_digits(change.row_number);
        lines.push(if change.id == change.row_number.to_string() {
            format!("row {number}")
        } else {
            truncate_to_width(&format!("row {number}, id {}", escape_control(&change.id)), width)
        });
        let mut table = TextTable::new(&[CellAlign::Left, CellAlign::Left, CellAlign::Left]);
        for field in &change.fields {
            let value = |value: &Option<String>| value.as_deref().map_or("—".to_owned(), escape_control);
            let name = if field.name.is_empty() { "result" } else { &field.name };
            table.row([truncate_to_width(&escape_control(name), 24), "here".into(), value(&field.here)]);
            table.row([String::new(), "there".into(), value(&field.there)]);
        }
        lines.extend(table.lines(2, width));
    }
    lines.join("\n")
}
