//! `rowmill run`: from flags to an exit code.

use rowmill::{ConfigFile, ExitCode, Problem, RunReport, StopCause};

use crate::conduct::conduct;
use crate::flags::RunFlags;
use crate::printer;
use crate::resolve::{Resolved, current_folder, resolve};

/// Runs the command.
pub(crate) fn run(flags: RunFlags) -> Result<ExitCode, Problem> {
    let file = ConfigFile::find(&current_folder())?;
    let Resolved { spec, show } = resolve(flags.common, flags.output.output()?, &file)?;
    let report =
        conduct(show, spec.work.parallel, async |control| Box::pin(rowmill::run(spec, control)).await)?;
    tell(&report, show.json_summary);
    Ok(report.exit)
}

fn tell(report: &RunReport, json_summary: bool) {
    printer::talk(&printer::summary_text(report));
    if let Some(StopCause::Problem(problem)) = &report.stopped {
        printer::talk(&printer::problem_text(problem));
    }
    if json_summary {
        // The summary is plain data, so it is always JSON.
        printer::data(&serde_json::to_string_pretty(&report.summary).unwrap_or_default());
    }
}
