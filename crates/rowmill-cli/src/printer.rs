//! The only module that prints. Standard output is for data, standard error for messages.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use rowmill::wording::settings::{OUTPUT, RESUME, RETRY_UNKNOWN, WORK_DIR};
use rowmill::{
    DiagnosticText, NoticedCorrections, Problem, ProblemCode, RowErrorKind, RunNotice, RunReport,
    StandardOutput, StopCause,
};

use crate::batch_text::next_batch_step;
use crate::number_text::{count_phrase, group_digits};
use crate::process_environment::process_environment;
use crate::text_layout::printable_lines;
use crate::vocabulary::{vocabulary, worded};

/// Whether the output still has a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputReader {
    Reading,
    /// The reader stopped early, as `head` does, which is not an error.
    Ended,
}

/// Prints data.
///
/// # Errors
///
/// Standard output cannot be written: its disk is full, or it is not open for writing.
pub(crate) fn data(text: &str) -> Result<OutputReader, Problem> {
    let written = StandardOutput::open().and_then(|mut out| out.write_all(line(text).as_bytes()));
    reader(written)
}

/// Interprets the result of printing data.
pub(crate) fn reader(written: io::Result<()>) -> Result<OutputReader, Problem> {
    let Err(error) = written else { return Ok(OutputReader::Reading) };
    let hint = match error.kind() {
        io::ErrorKind::BrokenPipe => return Ok(OutputReader::Ended),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk is full: free some space and run the same command again"
        }
        io::ErrorKind::FileTooLarge => {
            "raise the limit on file sizes (`ulimit -f`, or a quota) and run the same command again"
        }
        _ => "redirect standard output elsewhere and run the same command again",
    };
    Err(Problem::new(ProblemCode::WriteFailed, "cannot write to standard output").cause(error).hint(hint))
}

/// Prints a report: data about what the user provided, with the secrets of the environment masked.
///
/// # Errors
///
/// As [`data`].
pub(crate) fn report(text: &str) -> Result<OutputReader, Problem> {
    data(&shown(text))
}

/// Prints a message, with the secrets of the environment masked.
pub(crate) fn talk(text: &str) {
    talk_as_it_is(&shown(text));
}

/// Prints a message without masking: an address for signing in would not work with a part of it masked.
pub(crate) fn talk_as_it_is(text: &str) {
    // Long data is written in parts, and no message may come between them if both streams are one.
    let _data_waits = go_to_one_place().then(|| io::stdout().lock());
    drop(io::stderr().lock().write_all(line(text).as_bytes()));
}

/// Masks the secrets of the environment in a text that repeats what the user provided.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    process_environment().redact(text)
}

/// Text and newline in one string: if they were written separately, other output could come between
/// them.
fn line(text: &str) -> String {
    format!("{text}\n")
}

/// Whether standard output and standard error are the same pipe, file or terminal.
fn go_to_one_place() -> bool {
    static ONE_PLACE: OnceLock<bool> = OnceLock::new();
    let place = |stream: &dyn AsFd| {
        let found = File::from(stream.as_fd().try_clone_to_owned()?).metadata()?;
        Ok::<_, io::Error>((found.dev(), found.ino()))
    };
    let is_one =
        || matches!((place(&io::stdout()), place(&io::stderr())), (Ok(data), Ok(talk)) if data == talk);
    *ONE_PLACE.get_or_init(is_one)
}

/// A notice as a line.
pub(crate) fn notice_line(notice: &RunNotice) -> String {
    match notice {
        RunNotice::Info(text) | RunNotice::SignIn(text) => printable_lines(&worded(text.clone())),
        RunNotice::Warning(text) => warning_line(text),
    }
}

/// A warning as a line.
pub(crate) fn warning_line(text: &DiagnosticText) -> String {
    format!("warning: {}", printable_lines(&worded(text.clone())))
}

/// A problem with its code, cause and hint. Names in it may come from a file that somebody else wrote,
/// so control characters are escaped.
pub(crate) fn problem_text(problem: &Problem) -> String {
    let vocabulary = vocabulary();
    let mut text = format!("error[{}]: {}", problem.code.code(), problem.message.render(vocabulary));
    if let Some(cause) = &problem.cause {
        text.push_str("\n  cause: ");
        text.push_str(&cause.render(vocabulary));
    }
    if let Some(hint) = &problem.hint {
        text.push_str("\n  help: ");
        text.push_str(&hint.render(vocabulary));
    }
    printable_lines(&text)
}

fn is_gone(report: &RunReport) -> bool {
    report.kept.is_none() && report.summary.output == "-"
}

/// Why a run stopped, and what to do next.
pub(crate) fn next_step_text(report: &RunReport) -> Option<String> {
    if let Some(next) = next_batch_step(report) {
        return Some(next);
    }
    let resume = match (&report.kept, report.summary.output.as_str()) {
        (Some(folder), "-") => {
            worded(format!("run the same command with {}", RESUME.and(WORK_DIR.with_value(folder.display()))))
        }
        _ => "run the same command with `--resume`".to_owned(),
    };
    match &report.stopped {
        Some(StopCause::Interrupted) => Some(format!("{resume} to continue")),
        Some(StopCause::MaxErrors(limit)) => {
            Some(format!("stopped after {}; {resume} to continue", count_phrase(*limit, "failed row")))
        }
        Some(StopCause::ErrorRate { failed, ended, allowed }) => Some(format!(
            "stopped because {} of {} failed, above the allowed share of {allowed}; {resume} to continue",
            group_digits(*failed),
            count_phrase(*ended, "row")
        )),
        Some(StopCause::Deadline(_)) => Some(format!("stopped at the deadline; {resume} to continue")),
        Some(StopCause::FirstResult) => {
            let calls = count_phrase(report.unknown_rows, "call");
            let were = if report.unknown_rows == 1 { "was" } else { "were" };
            Some(format!("stopped at the first result; {calls} in flight {were} cancelled"))
        }
        Some(StopCause::Budget { spent, worst }) => Some(format!(
            "stopped at the budget: {} and {} tokens spent, and the next call could use up to {} and {} tokens; raise the limit, then {resume} to continue",
            spent.cost,
            group_digits(spent.tokens),
            worst.cost,
            group_digits(worst.tokens)
        )),
        Some(StopCause::Problem(_)) => None,
        // All results are on standard output, and nothing is left to resume from.
        None if is_gone(report) => (report.summary.numbers.failed_rows > 0).then(|| {
            worded(format!(
                "see the envelopes of failed rows for the errors; with {} instead of standard output, \
                 {RESUME} could retry only these rows",
                OUTPUT.with_value("FILE")
            ))
        }),
        None if report.summary.numbers.failures.keys().any(|kind| kind.needs_correction()) => {
            Some(correction_text(report, &resume))
        }
        None if report.summary.numbers.failed_rows > 0 => {
            let is_unknown = |kind: &RowErrorKind| *kind == RowErrorKind::OutcomeUnknown;
            let unknown = report.summary.numbers.failures.keys().any(is_unknown);
            let more = match unknown {
                true => worded(format!("; add {RETRY_UNKNOWN} to include rows whose tools may have run")),
                false => String::new(),
            };
            Some(format!("{resume} to retry the failed rows{more}"))
        }
        None => None,
    }
}

/// What to correct before a resume, with `--accept-changes` only for what a resume takes for a change.
fn correction_text(report: &RunReport, resume: &str) -> String {
    let failures = &report.summary.numbers.failures;
    let by_template = failures.contains_key(&RowErrorKind::MissingTemplateField);
    let NoticedCorrections { input, template } = report.noticed;
    let accepting = resume.replace("--resume", "--resume --accept-changes");
    let (what, resume, unless) = match (by_template, input, template) {
        (false, true, _) => ("the input", accepting.as_str(), ""),
        (false, false, _) => ("the input", resume, ""),
        (true, true, true) => ("the input or the template", accepting.as_str(), ""),
        (true, false, false) => ("the input or the template", resume, ""),
        (true, true, false) => {
            ("the input or the template", resume, " (with `--accept-changes` if the input changes)")
        }
        (true, false, true) => {
            ("the input or the template", resume, " (with `--accept-changes` if the template changes)")
        }
    };
    format!("fix {what}, then {resume}{unless} to retry the failed rows; rows that are ok are kept")
}
