//! The one place that prints. Standard output is data, standard error is talk.

use std::io::{self, Write};

use rowmill::{ErrorKind, Money, Notice, Problem, RunReport, StopCause};

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
    lines.extend(cost_line(report));
    lines.extend(reused_line(report));
    if let Some(list) = by_kind(numbers.failures.iter()) {
        lines.push(format!("failed: {list}"));
    }
    if numbers.calls.outcome_unknown + report.unknown_rows > 0 {
        let unknown = numbers.calls.outcome_unknown + report.unknown_rows;
        let was = if unknown == 1 { "was" } else { "were" };
        lines.push(format!("unknown: {} {was} cut and may have been billed", counted(unknown, "call")));
    }
    if summary.output != "-" {
        lines.push(format!("output: {}", summary.output));
    }
    if let Some(next) = next_step(report) {
        lines.push(format!("next:   {next}"));
    }
    // Where no call was repeated, they are the failures told above.
    let called = numbers.processed_rows - numbers.reused.duplicate - numbers.reused.cache;
    let repeated = numbers.calls.made > called || numbers.calls.failed != numbers.failures;
    if let Some(list) = by_kind(numbers.calls.failed.iter()).filter(|_| repeated) {
        lines.push(format!(
            "retries: of {} calls, these failed and were repeated or given up: {list}",
            grouped(numbers.calls.made)
        ));
    }
    lines.join("\n")
}

fn cost_line(report: &RunReport) -> Option<String> {
    let cost = &report.summary.numbers.cost;
    let spent = report.summary.spent_usd;
    if cost.usd == Money::ZERO && spent == Money::ZERO {
        return None;
    }
    let mut line = format!("cost:   {}", cost.usd);
    if spent > cost.usd {
        line.push_str(&format!(", {spent} with earlier parts and calls that may have been billed"));
    }
    if cost.saved_by_cache_usd > Money::ZERO {
        line.push_str(&format!(", {} saved by the provider's cache", cost.saved_by_cache_usd));
    }
    if cost.calls_without_price > 0 {
        line.push_str(&format!(", without {} of unknown price", counted(cost.calls_without_price, "call")));
    }
    Some(line)
}

fn reused_line(report: &RunReport) -> Option<String> {
    let reused = &report.summary.numbers.reused;
    let parts =
        [(reused.duplicate, "asked the same as another row"), (reused.cache, "had an answer in the cache")];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(rows, _)| *rows > 0)
        .map(|(rows, what)| format!("{} {what}", counted(*rows, "row")))
        .collect();
    (!parts.is_empty()).then(|| format!("reused: {}", parts.join(", ")))
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
            Some(format!("stopped after {}; {resume} goes on", counted(*limit, "failed row")))
        }
        Some(StopCause::ErrorRate { failed, ended, allowed }) => Some(format!(
            "stopped because {failed} of {ended} rows failed, more than the share of {allowed}; {resume} goes on"
        )),
        Some(StopCause::Deadline(_)) => Some(format!("stopped at the deadline; {resume} goes on")),
        Some(StopCause::FirstResult) => Some(format!(
            "stopped at the first result; {} in flight were cancelled",
            counted(report.unknown_rows, "call")
        )),
        Some(StopCause::Budget { spent, worst }) => Some(format!(
            "stopped before the budget could be passed: {} and {} tokens are spent, and the next call could use {} and {}; {resume} and a higher limit goes on",
            spent.cost,
            grouped(spent.tokens),
            worst.cost,
            grouped(worst.tokens)
        )),
        Some(StopCause::Problem(_)) => None,
        None if report.summary.numbers.failures.keys().any(|kind| kind.needs_correction()) => {
            Some(format!("correct the input or the template, then {resume} tries the failed rows again"))
        }
        None if report.summary.numbers.failed_rows > 0 => {
            let is_unknown = |kind: &ErrorKind| *kind == ErrorKind::OutcomeUnknown;
            let unknown = report.summary.numbers.failures.keys().any(is_unknown);
            let more =
                if unknown { "; with `--retry-unknown` also those whose tools may have run" } else { "" };
            Some(format!("{resume} tries the failed rows again{more}"))
        }
        None => None,
    }
}
