//! `rowmill run`: runs the spec that the flags describe, and returns an exit code.

use std::io::IsTerminal;
use std::path::Path;

use rowmill::{ExitCode, Problem, RunControl, RunReport, StopCause};

use crate::flags::RunFlags;
use crate::resolve::{ResolvedCommand, resolve_command};
use crate::run_with_signals::run_with_signals;
use crate::spec_file::print_spec;
use crate::summary_text::{SummaryContext, summary_text};
use crate::text_layout::stderr_width;
use crate::{browser, open_files, printer};

/// Runs the command.
pub(crate) fn run_run_command(flags: RunFlags) -> Result<ExitCode, Problem> {
    let own_file = flags.common.spec.clone().filter(|path| path != Path::new("-"));
    let ResolvedCommand { mut spec, show } = resolve_command(flags.common, flags.output)?;
    if flags.print_spec {
        return print_spec(&spec);
    }
    // These files must not be overwritten.
    spec.config_files.extend(own_file);
    let notice = open_files::fit(&mut spec.work);
    notice.iter().for_each(|notice| printer::talk(&printer::notice_line(notice)));
    let is_terminal = std::io::stderr().is_terminal();
    let context = SummaryContext::of(&spec, is_terminal.then(stderr_width));
    let report = run_with_signals(show, async |control| {
        let control = RunControl { person: browser::interactive_sign_in(show, control), ..control.clone() };
        Box::pin(rowmill::run(spec, &control)).await
    })?;
    // The width of the screen may have changed since the start.
    let context = SummaryContext { columns: is_terminal.then(stderr_width), ..context };
    printer::talk(&summary_text(&report, &context));
    if let Some(StopCause::Problem(problem)) = &report.stopped {
        printer::talk(&printer::problem_text(problem));
    }
    if show.json_summary {
        print_summary(&report)?;
    }
    Ok(report.exit)
}

/// Prints the summary as JSON. A failure to print it is reported only if there is no other problem.
fn print_summary(report: &RunReport) -> Result<(), Problem> {
    // The summary is plain data, so it always serializes to JSON.
    let printed = printer::report(&serde_json::to_string_pretty(&report.summary).unwrap_or_default());
    match printed {
        Err(problem) if report.exit == ExitCode::Ok => {
            Err(problem.hint("the results are complete; only the summary is missing"))
        }
        _ => Ok(()),
    }
}
