//! `rowmill run`: from flags to an exit code.

use std::io::IsTerminal;

use rowmill::{ConfigFile, Control, ExitCode, Problem, RunReport, StopCause};

use crate::conduct::conduct;
use crate::flags::RunFlags;
use crate::layout::stderr_width;
use crate::resolve::{Resolved, current_folder, resolve};
use crate::summary_text::{SummaryContext, summary_text};
use crate::{browser, open_files, printer};

/// Runs the command.
pub(crate) fn run(flags: RunFlags) -> Result<ExitCode, Problem> {
    let file = ConfigFile::find(&current_folder())?;
    let Resolved { mut spec, show } = resolve(flags.common, flags.output.output()?, &file)?;
    let notice = open_files::fit(&mut spec.work);
    notice.iter().for_each(|notice| printer::talk(&printer::notice_line(notice)));
    let columns = std::io::stderr().is_terminal().then(stderr_width);
    let context = SummaryContext::of(&spec, columns);
    let report = conduct(show, async |control| {
        let control = Control { person: browser::person(show, control), ..control.clone() };
        Box::pin(rowmill::run(spec, &control)).await
    })?;
    tell(&report, show.json_summary, &context);
    Ok(report.exit)
}

fn tell(report: &RunReport, json_summary: bool, context: &SummaryContext) {
    printer::talk(&printer::shown(&summary_text(report, context)));
    if let Some(StopCause::Problem(problem)) = &report.stopped {
        printer::talk(&printer::problem_text(problem));
    }
    if json_summary {
        // The summary is plain data, so it is always JSON.
        printer::data(&serde_json::to_string_pretty(&report.summary).unwrap_or_default());
    }
}
