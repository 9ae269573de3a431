//! The human-readable summary at the end of a run.

use std::time::Duration;

use rowmill::wording::settings::{REMOVED_ROWS, SQL};
use rowmill::{
    FailureExample, FailureGroup, Money, OutputChanges, OutputTarget, RowId, RunReport, RunSpec, StopCause,
    TableTarget,
};

use crate::batch_text::batch_lines;
use crate::number_text::{count_phrase, duration_text, group_digits, rate_text};
use crate::printer::next_step_text;
use crate::text_layout::{display_width, escape_control, fold_words, truncate_to_width};
use crate::vocabulary::worded;

/// The maximum number of groups of failures that are shown with an example.
const EXAMPLES: usize = 5;
/// The maximum width of an example's message.
const MESSAGE: usize = 240;
/// The indentation of text after the names of lines.
const INDENT: usize = 8;

/// The data of the summary besides the report.
#[derive(Debug, Clone)]
pub(crate) struct SummaryContext {
    /// The maximum width of a line; `None` if lines are not wrapped.
    pub(crate) columns: Option<usize>,
    /// Other files that the run wrote, with their contents.
    pub(crate) side_files: Vec<String>,
    /// The command line, if the user who typed it can see the summary.
    pub(crate) arguments: Option<Vec<String>>,
    /// The output, if `rowmill results` can read it.
    pub(crate) results: Option<String>,
    /// Whether `--sql` determines the rows.
    pub(crate) asks_a_query: bool,
}

impl SummaryContext {
    /// The part that is known before the run starts.
    pub(crate) fn of(spec: &RunSpec, columns: Option<usize>) -> Self {
        let files = [
            (&spec.error_output, "failed rows"),
            (&spec.telemetry_output, "times and tokens"),
            (&spec.summary_output, "summary"),
            (&spec.traces, "traces"),
        ];
        let named = |(path, what): (&Option<std::path::PathBuf>, &str)| {
            path.as_ref().map(|path| format!("{} ({what})", path.display()))
        };
        let results = match &spec.output {
            OutputTarget::File(path) => Some(path),
            OutputTarget::Table(table) => match &table.target {
                TableTarget::File(path) => Some(path),
                TableTarget::Folder { .. } | TableTarget::Stdout => None,
            },
            OutputTarget::Stdout => None,
        };
        Self {
            columns,
            side_files: files.into_iter().filter_map(named).collect(),
            arguments: columns.map(|_| std::env::args().collect()),
            results: results.map(|path| path.to_string_lossy().into_owned()),
            asks_a_query: spec.query.sql.is_some(),
        }
    }
}

/// Renders the summary for people.
pub(crate) fn summary_text(report: &RunReport, context: &SummaryContext) -> String {
    let numbers = &report.summary.numbers;
    let mut lines = vec![first_line(report)];
    lines.extend(stopped_line(report));
    if let Some(list) = by_kind(numbers.failures.iter()) {
        lines.push(format!("failed: {list}"));
        lines.extend(examples(report));
    }
    if numbers.usage.total_tokens > 0 {
        let cached = match numbers.cache.read_tokens {
            0 => String::new(),
            cached => format!(" ({} from cache)", group_digits(cached)),
        };
        let (input, output) = (numbers.usage.prompt_tokens, numbers.usage.completion_tokens);
        lines.push(format!("tokens: {} in{cached}, {} out", group_digits(input), group_digits(output)));
    }
    lines.extend(cost_line(report));
    lines.extend(batch_lines(report));
    lines.extend(reused_line(report));
    let unknown = numbers.calls.outcome_unknown;
    if unknown > 0 {
        let was = if unknown == 1 { "was" } else { "were" };
        lines.push(format!(
            "unknown: {} {was} interrupted and may have been billed",
            count_phrase(unknown, "call")
        ));
    }
    lines.extend(retries_line(report));
    lines.extend(repairs_line(report));
    lines.extend(tools_line(report));
    lines.extend(output_lines(report, context));
    if report.summary.output != "-" {
        lines.push(format!("output: {}", report.summary.output));
    }
    if !context.side_files.is_empty() {
        lines.push(format!("also:   {}", context.side_files.join(", ")));
    }
    if let Some(next) = next_step_text(report) {
        lines.push(format!("next:   {next}"));
    }
    let mut lines = match context.columns {
        Some(columns) => lines.iter().flat_map(|line| fold_words(line, columns, INDENT)).collect(),
        None => lines,
    };
    lines.extend(commands(report, context));
    lines.join("\n")
}

/// The changes of the output besides the rows that ended.
fn output_lines(report: &RunReport, context: &SummaryContext) -> Vec<String> {
    let OutputChanges { moved_rows, removed_rows, dropped_rows, made_whole, set_aside } = &report.output;
    let mut lines = Vec::new();
    if *made_whole {
        let aside = set_aside.as_ref().map(|path| format!("; the modified file is now {}", path.display()));
        lines.push(format!(
            "rebuilt: the output was modified during the run and has been rebuilt from the ledger{}",
            aside.unwrap_or_default()
        ));
    }
    let were = |rows: u64| if rows == 1 { "was" } else { "were" };
    let are = |rows: u64| if rows == 1 { "is" } else { "are" };
    let place = match context.asks_a_query {
        true => worded(format!("the result of {SQL}")),
        false => "the input".to_owned(),
    };
    if *moved_rows > 0 {
        let (rows, were) = (count_phrase(*moved_rows, "row"), were(*moved_rows));
        lines
            .push(format!("moved:  {rows} changed position in the input and {were} reordered in the output"));
    }
    if *removed_rows > 0 {
        let (rows, are) = (count_phrase(*removed_rows, "row"), are(*removed_rows));
        let drop = worded(REMOVED_ROWS.with_value("drop").to_string());
        lines.push(format!(
            "gone:   {rows} {are} no longer in {place} and kept at the end of the output; {drop} removes such rows"
        ));
    }
    if *dropped_rows > 0 {
        let (rows, are) = (count_phrase(*dropped_rows, "row"), are(*dropped_rows));
        lines.push(format!("gone:   {rows} {are} no longer in {place} and dropped from the output"));
    }
    lines
}

fn first_line(report: &RunReport) -> String {
    let numbers = &report.summary.numbers;
    let seconds = numbers.duration_ms / 1000.0;
    let ok = numbers.processed_rows - numbers.failed_rows;
    let mut line = format!("{}: {} ok", count_phrase(numbers.processed_rows, "row"), group_digits(ok));
    if numbers.failed_rows > 0 {
        line.push_str(&format!(", {} failed", group_digits(numbers.failed_rows)));
    }
    if numbers.skipped_rows > 0 {
        line.push_str(&format!(", {} skipped ({})", group_digits(numbers.skipped_rows), why_skipped(report)));
    }
    line.push_str(&format!(" in {}", duration_text(Duration::from_secs_f64(seconds))));
    // For very short runs, a rate is meaningless.
    if seconds >= 0.1 {
        line.push_str(&format!(" ({} rows/s)", rate_text(numbers.processed_rows as f64 / seconds)));
    }
    line
}

/// Why a resume skips rows.
fn why_skipped(report: &RunReport) -> &'static str {
    match report.resumed.map(|before| (before.done, before.undecided)) {
        Some((0, 1..)) => "left as `OutcomeUnknown`",
        Some((_, 1..)) => "done before, or left as `OutcomeUnknown`",
        _ => "done before",
    }
}

/// Why a run ended early, so that it does not look like a complete one.
fn stopped_line(report: &RunReport) -> Option<String> {
    let why = match report.stopped.as_ref()? {
        StopCause::Interrupted => "interrupted",
        StopCause::MaxErrors(_) | StopCause::ErrorRate { .. } => "too many rows failed",
        StopCause::Deadline(_) => "deadline reached",
        StopCause::Budget { .. } => "budget reached",
        StopCause::Problem(_) => "see the error below",
        StopCause::FirstResult => return None,
    };
    Some(format!("stopped: {why}; the remaining rows were not sent"))
}

/// An example of each of the most frequent groups of failures, and how many rows are in the group.
fn examples(report: &RunReport) -> Vec<String> {
    let mut groups: Vec<(&FailureGroup, &FailureExample)> = report.failure_examples.iter().collect();
    groups.sort_by_key(|(_, example)| std::cmp::Reverse(example.rows));
    let line = |(group, example): &(&FailureGroup, &FailureExample)| {
        let row = match &example.id {
            RowId::Number(number) => format!("row {number}"),
            RowId::Text(id) => {
                format!("row {} (id {})", example.number, truncate_to_width(&escape_control(id), 40))
            }
        };
        let rows = match example.rows {
            1 => row,
            rows => format!("{} such as {row}", count_phrase(rows, "row")),
        };
        let message = truncate_to_width(&escape_control(&example.message), MESSAGE);
        format!("{:INDENT$}{}: {rows}: {message}", "", group.kind)
    };
    let mut lines: Vec<String> = groups.iter().take(EXAMPLES).map(line).collect();
    let rest: u64 = groups.iter().skip(EXAMPLES).map(|(_, example)| example.rows).sum();
    if rest > 0 {
        lines.push(format!("{:INDENT$}… and {} with other errors", "", count_phrase(rest, "row")));
    }
    lines
}

fn cost_line(report: &RunReport) -> Option<String> {
    let cost = &report.summary.numbers.cost;
    let spent = report.summary.spent_usd;
    if cost.usd == Money::ZERO && spent == Money::ZERO {
        return None;
    }
    // Calls of rows that wait for further jobs are paid for as well.
    let (now, earlier) = match &report.batch {
        Some(batch) => (spent.saturating_sub(batch.spent_before), batch.spent_before > Money::ZERO),
        None => (cost.usd, spent > cost.usd),
    };
    let mut line = format!("cost:   {now}");
    if earlier {
        line.push_str(&format!(", {spent} including {}", also_spent(report)));
    }
    if cost.saved_by_cache_usd > Money::ZERO {
        line.push_str(&format!(", {} saved by the provider's cache", cost.saved_by_cache_usd));
    }
    if cost.calls_without_price > 0 {
        line.push_str(&format!(
            ", not including {} of unknown price",
            count_phrase(cost.calls_without_price, "call")
        ));
    }
    Some(line)
}

/// What a run may have spent in addition to calls with a known cost.
fn also_spent(report: &RunReport) -> String {
    let cut = report.summary.numbers.calls.outcome_unknown;
    let cut = (cut > 0).then(|| format!("{} that may have been billed", count_phrase(cut, "call")));
    let earlier = report.resumed.is_some().then(|| "earlier parts of the run".to_owned());
    let parts: Vec<String> = earlier.into_iter().chain(cut).collect();
    if parts.is_empty() { "calls that may have been billed".to_owned() } else { parts.join(" and ") }
}

fn reused_line(report: &RunReport) -> Option<String> {
    let reused = &report.summary.numbers.reused;
    let parts = [(reused.duplicate, "identical to another row"), (reused.cache, "answered from the cache")];
    let mut parts: Vec<String> = parts
        .iter()
        .filter(|(rows, _)| *rows > 0)
        .map(|(rows, what)| format!("{} {what}", count_phrase(*rows, "row")))
        .collect();
    parts.extend(saved_by_reuse(report).map(|saved| format!("about {saved} saved")));
    (!parts.is_empty()).then(|| format!("reused: {}", parts.join(", ")))
}

/// The cost that reused answers saved, estimated from the rows that needed a call.
fn saved_by_reuse(report: &RunReport) -> Option<Money> {
    let numbers = &report.summary.numbers;
    let reused = numbers.reused.duplicate + numbers.reused.cache;
    let paid = numbers.processed_rows.checked_sub(reused).filter(|paid| *paid > 0)?;
    let saved = u128::from(numbers.cost.usd.pico()) * u128::from(reused) / u128::from(paid);
    u64::try_from(saved).ok().map(Money::from_pico).filter(|saved| *saved > Money::ZERO)
}

fn retries_line(report: &RunReport) -> Option<String> {
    let numbers = &report.summary.numbers;
    // If no call was repeated, they are the failures reported above.
    let called = numbers.processed_rows - numbers.reused.duplicate - numbers.reused.cache;
    let repeated = numbers.calls.made > called || numbers.calls.failed != numbers.failures;
    let list = by_kind(numbers.calls.failed.iter()).filter(|_| repeated)?;
    let failed: u64 = numbers.calls.failed.values().sum();
    let (failed, made) = (group_digits(failed), count_phrase(numbers.calls.made, "call"));
    Some(format!("retries: {failed} of {made} failed and were retried or given up: {list}"))
}

fn repairs_line(report: &RunReport) -> Option<String> {
    let repairs = report.summary.numbers.calls.repairs;
    let were = if repairs == 1 { "was" } else { "were" };
    let answers = count_phrase(repairs, "answer");
    (repairs > 0).then(|| format!("repairs: {answers} violated the schema and {were} requested again"))
}

fn tools_line(report: &RunReport) -> Option<String> {
    let tools = report.summary.numbers.tools;
    let made = count_phrase(tools.made, "tool call");
    (tools.failed > 0).then(|| format!("tools:  {} of {made} failed", group_digits(tools.failed)))
}

fn by_kind<'a, K: std::fmt::Display + 'a>(counts: impl Iterator<Item = (&'a K, &'a u64)>) -> Option<String> {
    let list: Vec<String> = counts.map(|(kind, count)| format!("{} {kind}", group_digits(*count))).collect();
    (!list.is_empty()).then(|| list.join(", "))
}

/// Suggested next commands, ready to run.
fn commands(report: &RunReport, context: &SummaryContext) -> Vec<String> {
    let Some(arguments) = &context.arguments else { return Vec::new() };
    let numbers = &report.summary.numbers;
    let mut commands = Vec::new();
    let helps = match &report.stopped {
        Some(StopCause::Interrupted | StopCause::MaxErrors(_) | StopCause::ErrorRate { .. }) => true,
        None => numbers.failed_rows > 0 && !numbers.failures.keys().any(|kind| kind.needs_correction()),
        // A part of the command must be changed first.
        Some(_) => false,
    };
    if helps {
        commands.push(resume_command(arguments, report));
    }
    if let Some(results) = context.results.as_ref().filter(|_| numbers.failed_rows > 0) {
        let program = arguments.first().map_or("rowmill", String::as_str);
        commands.push(vec![quoted(program), "results".into(), quoted(results)]);
    }
    let label = if next_step_text(report).is_none() { "next:" } else { "" };
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    labels.zip(commands).flat_map(|(label, words)| command_lines(label, &words, context.columns)).collect()
}

/// A command, split with backslashes into lines that fit the screen.
fn command_lines(label: &str, words: &[String], columns: Option<usize>) -> Vec<String> {
    let most = columns.unwrap_or(usize::MAX);
    let mut lines = Vec::new();
    let mut line = format!("{label:INDENT$}");
    for (at, word) in words.iter().enumerate() {
        // A backslash at the end of a line takes two columns.
        let end = if at + 1 == words.len() { 0 } else { 2 };
        if at > 0 && display_width(&line) + 1 + display_width(word) + end > most {
            lines.push(format!("{line} \\"));
            line = " ".repeat(INDENT + 2);
        } else if at > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// The words of the command that resumes a run, in shell syntax.
fn resume_command(arguments: &[String], report: &RunReport) -> Vec<String> {
    let given = arguments.iter().filter(|argument| !matches!(argument.as_str(), "--overwrite" | "--resume"));
    let mut words: Vec<String> = given.map(|argument| quoted(argument)).collect();
    words.push("--resume".into());
    let names_folder = arguments.iter().any(|argument| argument.starts_with("--work-dir"));
    if let (Some(folder), "-", false) = (&report.kept, report.summary.output.as_str(), names_folder) {
        words.extend(["--work-dir".into(), quoted(&folder.to_string_lossy())]);
    }
    words
}

/// A word, quoted for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_a_shell_reads_them() {
        let words = ["out.jsonl", "Classify: {{t}}", "it's", "", "$HOME", "a=b"];
        let expected = ["out.jsonl", "'Classify: {{t}}'", r"'it'\''s'", "''", "'$HOME'", "a=b"];
        assert_eq!(words.map(quoted), expected);
    }

    #[test]
    fn a_command_is_broken_between_its_words_so_that_a_shell_reads_it_as_one() {
        let words = ["rowmill", "run", "-p", "'Read: {{t}}'", "--resume"].map(String::from);
        let whole = "next:   rowmill run -p 'Read: {{t}}' --resume";
        assert_eq!(command_lines("next:", &words, None), [whole]);
        assert_eq!(command_lines("next:", &words, Some(80)), [whole]);
        let broken = ["next:   rowmill run -p \\", "          'Read: {{t}}' \\", "          --resume"];
        assert_eq!(command_lines("next:", &words, Some(30)), broken);
    }
}
