//! Ten million rows with ids of their own, run and resumed, with almost constant memory.

use super::{ROWS, files};
use crate::TaskFailure;
use crate::bench::context::{BenchContext, BenchLength};
use crate::bench::measure::{ProcessCost, command_text, measure_cost};
use crate::bench::report::{ReportSection, ReportTable, TargetVerdict, whole_number_text};

const OUTPUT: &str = "ids.jsonl";
/// A column of numbers; as ids they are texts.
const ID_FIELD: &str = "id";

/// Runs the file's rows through `passthrough`, identified by their ids, and once more when all of them are
/// done.
pub(super) fn ids(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let mut table = ReportTable {
        head: ["rows", "what", "seconds", "CPU seconds", "peak MB"].map(str::to_owned).to_vec(),
        rows: Vec::new(),
    };
    let mut commands = Vec::new();
    let (mut most, mut seconds) = (0.0_f64, f64::NAN);
    for (count, is_large) in [(context.rows(ROWS) / 10, false), (context.rows(ROWS), true)] {
        let file = files::made(context, count, "jsonl")?;
        for (what, existing) in [("run", "--overwrite"), ("resume of all rows", "--resume")] {
            let (cost, command) = run(context, &file, existing)?;
            if is_large {
                most = most.max(cost.peak_megabytes());
                commands.push(command);
            } else {
                seconds = cost.wall.as_secs_f64();
            }
            table.rows.push(vec![
                whole_number_text(count as f64),
                what.to_owned(),
                format!("{:.1}", cost.wall.as_secs_f64()),
                format!("{:.1}", cost.cpu.as_secs_f64()),
                whole_number_text(cost.peak_megabytes()),
            ]);
        }
    }
    std::fs::remove_file(context.folder.join(OUTPUT))?;
    let targets = [
        (
            "ten million rows with ids: peak memory under 100 MB, run and resumed",
            format!("{most:.0} MB"),
            most < 100.0,
        ),
        (
            "a resume of a million finished rows with ids under 2.5 s",
            format!("{seconds:.2} s"),
            seconds < 2.5,
        ),
    ];
    let verdict = |(target, measured, reached)| TargetVerdict { target, measured, reached };
    Ok(ReportSection {
        title: "Ten million rows with ids",
        about: "Each run looks at all ids before it sends anything, and a resume looks up what became of every row. \
                Ids are kept as texts.",
        commands,
        table: Some(table),
        numbers: Vec::new(),
        // With fewer rows these targets would mean nothing.
        verdicts: if context.length == BenchLength::Full { targets.map(verdict).into() } else { Vec::new() },
    })
}

fn run(context: &BenchContext, file: &str, existing: &str) -> Result<(ProcessCost, String), TaskFailure> {
    let mut command = context.run(file, OUTPUT, "passthrough");
    command.args(["-p", "{{id}}", "--id-field", ID_FIELD, existing]);
    let (cost, _) = measure_cost(&mut command)?;
    Ok((cost, command_text(&command)))
}
