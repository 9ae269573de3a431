//! Ten million rows with ids of their own, run and resumed, with almost constant memory.

use super::{ROWS, files};
use crate::Failure;
use crate::bench::measure::{Cost, cost_of, shown};
use crate::bench::report::{Section, Table, Verdict, whole};
use crate::bench::stage::{Length, Stage};

const OUTPUT: &str = "ids.jsonl";
/// A column of numbers; as ids they are texts.
const ID_FIELD: &str = "id";

/// Runs the file's rows through `passthrough`, identified by their ids, and once more when all of them are
/// done.
pub(super) fn ids(stage: &Stage) -> Result<Section, Failure> {
    let mut table = Table {
        head: ["rows", "what", "seconds", "CPU seconds", "peak MB"].map(str::to_owned).to_vec(),
        rows: Vec::new(),
    };
    let mut commands = Vec::new();
    let (mut most, mut seconds) = (0.0_f64, f64::NAN);
    for (count, is_large) in [(stage.rows(ROWS) / 10, false), (stage.rows(ROWS), true)] {
        let file = files::made(stage, count, "jsonl")?;
        for (what, existing) in [("run", "--overwrite"), ("resume of all rows", "--resume")] {
            let (cost, command) = run(stage, &file, existing)?;
            if is_large {
                most = most.max(cost.peak_megabytes());
                commands.push(command);
            } else {
                seconds = cost.wall.as_secs_f64();
            }
            table.rows.push(vec![
                whole(count as f64),
                what.to_owned(),
                format!("{:.1}", cost.wall.as_secs_f64()),
                format!("{:.1}", cost.cpu.as_secs_f64()),
                whole(cost.peak_megabytes()),
            ]);
        }
    }
    std::fs::remove_file(stage.folder.join(OUTPUT))?;
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
    let verdict = |(target, measured, reached)| Verdict { target, measured, reached };
    Ok(Section {
        title: "Ten million rows with ids",
        about: "Each run looks at all ids before it sends anything, and a resume looks up what became of every row. \
                Ids are kept as texts.",
        commands,
        table: Some(table),
        numbers: Vec::new(),
        // With fewer rows these targets would mean nothing.
        verdicts: if stage.length == Length::Full { targets.map(verdict).into() } else { Vec::new() },
    })
}

fn run(stage: &Stage, file: &str, existing: &str) -> Result<(Cost, String), Failure> {
    let mut command = stage.run(file, OUTPUT, "passthrough");
    command.args(["-p", "{{id}}", "--id-field", ID_FIELD, existing]);
    let (cost, _) = cost_of(&mut command)?;
    Ok((cost, shown(&command)))
}
