//! Checks whether a table and the envelopes that it is made from allow what a run wants to do with
//! them.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use rowmill_data::table::TableTarget;
use rowmill_store::file::WorkFolder;
use rowmill_types::settings::{FLATTEN, OUTPUT_FORMAT, OVERWRITE, RESUME, SPLIT_BY};
use rowmill_types::{Problem, ProblemCode};
use serde_json::Value;

use crate::spec::{ExistingOutput, OutputTarget, RunSpec};

/// How much of a file is read to find its first line.
const FIRST_LINE: u64 = 16 << 20;

/// Checks that a run may create or continue the envelopes in its work folder.
pub(crate) fn check_table_envelopes(spec: &RunSpec, work_folder: &Path) -> Result<(), Problem> {
    let path = WorkFolder::envelopes_path_in(work_folder);
    let kept = path.metadata().is_ok_and(|found| found.len() > 0);
    match &spec.output {
        OutputTarget::Table(table)
            if spec.existing.resumes() && !path.exists() && holds_envelopes(&table.target) =>
        {
            let message = format!("`{}` contains the envelopes of its run, not a table", spec.output.name());
            Err(Problem::new(ProblemCode::ChangedRun, message)
                .hint("resume it with its original output, then create the table with `rowmill export`"))
        }
        OutputTarget::Table(table) if spec.existing.resumes() && !path.exists() && table.target.exists() => {
            let message = format!("the envelopes that `{}` was created from are gone", spec.output.name());
            Err(Problem::new(ProblemCode::OutputUnusable, message)
                .hint(format!("move it away or use {OVERWRITE}; either way every row is sent again")))
        }
        OutputTarget::Table(_) if spec.existing == ExistingOutput::Refuse && kept => {
            let message = format!("an earlier run left its results in `{}`", work_folder.display());
            Err(Problem::new(ProblemCode::OutputExists, message).hint(format!(
                "use {RESUME} or `rowmill export` to recreate the output from them, or {OVERWRITE} to start \
                 over"
            )))
        }
        OutputTarget::File(_) | OutputTarget::Stdout if spec.existing.resumes() && kept => {
            let message = format!("the output of the run in `{}` is a table", work_folder.display());
            Err(Problem::new(ProblemCode::ChangedRun, message).hint(
                format!("resume with the same {OUTPUT_FORMAT}, {FLATTEN} and {SPLIT_BY}; `rowmill export` writes its envelopes as JSONL"),
            ))
        }
        _ => Ok(()),
    }
}

/// Whether a file starts with an envelope, and so was written by a run without a table.
fn holds_envelopes(target: &TableTarget) -> bool {
    let TableTarget::File(path) = target else { return false };
    let mut line = String::new();
    let read = File::open(path).and_then(|file| BufReader::new(file.take(FIRST_LINE)).read_line(&mut line));
    let Ok(Value::Object(fields)) = read.map(|_| serde_json::from_str(&line).unwrap_or_default()) else {
        return false;
    };
    ["row_number", "ok", "result", "error"].iter().all(|field| fields.contains_key(*field))
}
