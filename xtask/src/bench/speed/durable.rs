//! The cost of forcing data to disk before a result is reported.

use super::rows;
use super::scenarios::calls;
use crate::TaskFailure;
use crate::bench::context::BenchContext;
use crate::bench::measure::{command_text, measure_cost, median};
use crate::bench::report::{ReportSection, ReportTable, values_text, whole_number_text};
use crate::bench::server::SimulatorProcess;

const ROUNDS: usize = 3;

/// The same run without `--durable` and with it, against a server that answers immediately and one with
/// latency.
pub(super) fn durable(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let count = context.rows(50_000);
    rows::write(&context.folder.join("durable.jsonl"), count)?;
    let mut commands = Vec::new();
    let mut table = ReportTable {
        head: ["answers", "run", "seconds", "rows/s (median)", "µs of CPU per row (median)"]
            .map(str::to_owned)
            .to_vec(),
        rows: Vec::new(),
    };
    let (at_once, after_a_while) = (["--instant"].as_slice(), ["--instant", "--latency", "100ms"].as_slice());
    for (answers, simulator) in [("at once", at_once), ("after 100 ms", after_a_while)] {
        let mut server = SimulatorProcess::start(&context.rowmill, simulator)?;
        for (name, flags) in [("without", &[][..]), ("with `--durable`", &["--durable"][..])] {
            let mut run = calls(context, "durable.jsonl", &server, 64);
            run.args(flags);
            let (mut seconds, mut cpu) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let (cost, _) = measure_cost(&mut run).map_err(|failure| server.explain(&failure))?;
                seconds.push(cost.wall.as_secs_f64());
                cpu.push(cost.cpu_per(count));
            }
            table.rows.push(vec![
                answers.to_owned(),
                name.to_owned(),
                values_text(&seconds),
                whole_number_text(count as f64 / median(&seconds)),
                format!("{:.1}", median(&cpu)),
            ]);
            if !flags.is_empty() {
                commands.extend([format!("rowmill simulate {}", simulator.join(" ")), command_text(&run)]);
            }
        }
    }
    Ok(ReportSection {
        title: "Forced to disk",
        about: "64 in flight. With `--durable` every group of the ledger is forced to disk before its rows are \
                published or sent. How long that takes is a matter of the disk. For information.",
        commands,
        table: Some(table),
        numbers: vec![format!("{} rows", whole_number_text(count as f64))],
        verdicts: vec![],
    })
}
