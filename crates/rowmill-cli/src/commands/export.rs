//! `rowmill export`: builds a table from the results of a run.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use rowmill::{ExitCode, ExportReport, ExportSpec, InputRowInclusion, Problem, ProblemCode, READER_ENDED};

use crate::number_text::{count_phrase, group_digits};
use crate::output_flags::OutputFlags;
use crate::printer;
use crate::process_environment::process_environment;
use crate::vocabulary::COMMAND_LINE_VOCABULARY;

/// Export the results of a run as a table, even while it is running or after it was killed.
///
/// The table has every finished row, in input order. The run itself is not changed, and no calls
/// are made.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rowmill export results.jsonl --output results.parquet\n  \
                  rowmill export results.parquet --output flat.csv --flatten\n  \
                  rowmill export results.jsonl --output-dir by-label --split-by result.label --output-format csv")]
#[command(group(ArgGroup::new("place").args(["output", "output_dir"]).required(true)))]
pub(crate) struct ExportFlags {
    /// Output of a run, or its work folder.
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    #[command(flatten)]
    pub(crate) output: OutputFlags,

    /// Leave the input rows out, if the run kept them.
    #[arg(long, help_heading = "Results")]
    pub(crate) no_include_input: bool,

    /// Overwrite the output if it exists.
    #[arg(long, help_heading = "Results")]
    pub(crate) overwrite: bool,

    /// JSON Schema of the results, for column types [default: the schema of the run].
    #[arg(long, value_name = "SOURCE", help_heading = "Results")]
    pub(crate) json_schema: Option<String>,

    /// Work folder of the run, if it was started with `--work-dir`.
    #[arg(long, value_name = "FOLDER", help_heading = "Results")]
    pub(crate) work_dir: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn export(flags: ExportFlags) -> Result<ExitCode, Problem> {
    let spec = ExportSpec {
        run: flags.run,
        work_dir: flags.work_dir,
        table: flags.output.table()?,
        input: if flags.no_include_input { InputRowInclusion::Excluded } else { InputRowInclusion::Included },
        schema: flags.json_schema,
        overwrite: flags.overwrite,
        environment: process_environment().clone(),
    };
    let cannot =
        |error: std::io::Error| Problem::new(ProblemCode::Internal, "cannot start the runtime").cause(error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let report = match runtime.block_on(rowmill::export_table(spec)) {
        // A reader that stops early, like `head`, has what it wanted.
        Err(problem) if problem.message == READER_ENDED => return Ok(ExitCode::Ok),
        exported => exported?,
    };
    report.notices.iter().for_each(|notice| printer::talk(&notice.render(COMMAND_LINE_VOCABULARY)));
    printer::talk(&text(&report));
    Ok(ExitCode::Ok)
}

fn text(report: &ExportReport) -> String {
    let mut text = count_phrase(report.rows, "row");
    if report.failed_rows > 0 {
        text.push_str(&format!(", {} failed", group_digits(report.failed_rows)));
    }
    if report.files != 1 {
        text.push_str(&format!(", in {}", count_phrase(report.files, "file")));
    }
    text
}
