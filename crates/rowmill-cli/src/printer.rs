//! The one place that prints. Standard output is data, standard error is talk.

use std::io::{self, Write};

use rowmill::{Notice, Problem, RunReport, StopCause};

use crate::numbers::{counted, grouped, rate, time};

/// Prints data. A reader that has gone away is no error of ours.
pub(crate) fn data(text: &str) {
    drop(writeln!(io::stdout().lock(), "{text}"));
}

/// Prints talk.
pub(crate) fn talk(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// A notice as a line.
pub(crate) fn notice_line(notice: &Notice) -> String {
    match notice {
        Notice::Info(text) => text.clone(),
        Notice::Warning(text) => format!("warning: {text}"),
    }
}

/// A problem with its code, cause and hint.
pub(crate) fn problem_text(problem: &Problem) -> String {
    let mut text = format!("error[{}]: {}", problem.code.code(), problem.message);
    if let Some(cause) = &problem.cause {
        text.push_str("\n  cause: ");
        text.push_str(cause);
    }
    if let Some(hint) = &problem.hint {
        text.push_str("\n  help: ");
        text.push_str(hint);
    }
    text
}

/// The summary for people.
pub(crate) fn summary_text(report: &RunReport) -> String {
    let summary = &report.summary;
    let numbers = &summary.numbers;
    let seconds = numbers.duration_ms / 1000.0;
    let ok = numbers.processed_rows - numbers.failed_rows;
    let mut lines = Vec::new();
    let mut first = format!("{}: {} ok", counted(numbers.processed_rows, "row"), grouped(ok));
    if numbers.failed_rows > 0 {
        first.push_str(&format!(", {} failed", grouped(numbers.failed_rows)));
    }
    if numbers.skipped_rows > 0 {
        first.push_str(&format!(", {} skipped (done before)", grouped(numbers.skipped_rows)));
    }
    let took = time(std::time::Duration::from_secs_f64(seconds));
    first.push_str(&format!(" in {took}"));
    // Of the shortest runs a rate says nothing.
    if seconds >= 0.1 {
        first.push_str(&format!(" ({} rows/s)", rate(numbers.processed_rows as f64 / seconds)));
    }
    lines.push(first);
    if numbers.usage.total_tokens > 0 {
        let cached = match numbers.cache.read_tokens {
            0 => String::new(),
            cached => format!(" ({} from cache)", grouped(cached)),
        };
        let (input, output) = (numbers.usage.prompt_tokens, numbers.usage.completion_tokens);
        lines.push(format!("tokens: {} in{cached}, {} out", grouped(input), grouped(output)));
    }
    if let Some(list) = by_kind(numbers.failures.iter()) {
        lines.push(format!("failed: {list}"));
    }
    // Where no call was repeated, they are the failures told above.
    let repeated = numbers.calls.made > numbers.processed_rows || numbers.calls.failed != numbers.failures;
    if let Some(list) = by_kind(numbers.calls.failed.iter()).filter(|_| repeated) {
        lines.push(format!("calls:  {} made, of which failed: {list}", grouped(numbers.calls.made)));
    }
    if numbers.calls.outcome_unknown + report.unknown_rows > 0 {
        let unknown = numbers.calls.outcome_unknown + report.unknown_rows;
        lines.push(format!("unknown: {} calls were cut and may have been billed", grouped(unknown)));
    }
    if summary.output != "-" {
        lines.push(format!("output: {}", summary.output));
    }
    if let Some(next) = next_step(report) {
        lines.push(format!("next:   {next}"));
    }
    lines.join("\n")
}

fn by_kind<'a, K: std::fmt::Display + 'a>(counts: impl Iterator<Item = (&'a K, &'a u64)>) -> Option<String> {
    let list: Vec<String> = counts.map(|(kind, count)| format!("{} {kind}", grouped(*count))).collect();
    (!list.is_empty()).then(|| list.join(", "))
}

fn next_step(report: &RunReport) -> Option<String> {
    let resume = match (&report.kept, report.summary.output.as_str()) {
        (Some(folder), "-") => format!("the same command with `--resume --work-dir {}`", folder.display()),
        _ => "the same command with `--resume`".to_owned(),
    };
    match &report.stopped {
        Some(StopCause::Interrupted) => Some(format!("{resume} goes on where this stopped")),
        Some(StopCause::MaxErrors(limit)) => {
            Some(format!("stopped after {limit} failed rows; {resume} goes on"))
        }
        Some(StopCause::Problem(_)) => None,
        None if report.summary.numbers.failures.keys().any(|kind| kind.needs_correction()) => {
            Some(format!("correct the input or the template, then {resume} tries the failed rows again"))
        }
        None if report.summary.numbers.failed_rows > 0 => {
            Some(format!("{resume} tries the failed rows again"))
        }
        None => None,
    }
}
