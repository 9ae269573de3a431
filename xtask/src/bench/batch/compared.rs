//! The same rows by rowmill and by Agent Actions.

use super::rival::AgentActions;
use super::trial::{LaneTrial, RowmillRuns, head};
use crate::TaskFailure;
use crate::bench::context::BenchContext;
use crate::bench::measure::{ProcessCost, median};
use crate::bench::report::{ReportSection, ReportTable, TargetVerdict};

/// The number of rows for the targets.
const ROWS: u64 = 20_000;
/// How often rowmill is measured. The competitor takes much longer and is measured once.
const ROUNDS: usize = 3;
/// The competitor must take at least this many times the CPU.
const TIMES: f64 = 50.0;

/// A part of the work, with the target for it.
struct ComparedPart {
    target: &'static str,
    cost: fn(&LaneTrial) -> &ProcessCost,
}

const PARTS: [ComparedPart; 2] = [
    ComparedPart {
        target: "20,000 rows submitted with at most a fiftieth of Agent Actions' CPU",
        cost: |trial| &trial.submit,
    },
    ComparedPart {
        target: "20,000 rows collected with at most a fiftieth of Agent Actions' CPU",
        cost: |trial| &trial.collect,
    },
];

pub(super) fn beside_agent_actions(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let rows = context.rows(ROWS);
    let own = RowmillRuns::prepare(context, "beside", rows)?;
    let trials = (0..ROUNDS).map(|_| Ok(own.measure()?.0)).collect::<Result<Vec<_>, TaskFailure>>()?;
    let (mut others, mut notes) = (Vec::new(), Vec::new());
    match AgentActions::install(&context.folder.join("batch")) {
        Ok(rival) => {
            for measured in [rival.measure_offline(rows), rival.measure_simulator(&context.rowmill, rows)] {
                match measured {
                    Ok(trial) => others.push(trial),
                    Err(failure) => notes.push(format!("not measured: {failure}")),
                }
            }
        }
        Err(why) => notes.push(format!("{} was not measured: {why}", AgentActions::name())),
    }
    let verdicts = PARTS.iter().filter_map(|part| verdict(part, &trials, &others)).collect();
    let mut commands = vec!["rowmill simulate".to_owned()];
    commands.extend(trials.first().into_iter().flat_map(|trial| trial.commands.clone()));
    commands.extend(others.iter().flat_map(|trial| trial.commands.clone()));
    Ok(ReportSection {
        title: "Beside Agent Actions",
        about: "The same rows, with the same prompt and the same schema for the answers, are submitted by one process and \
                collected by another, once all jobs are complete. CPU is user and system time of these processes, their \
                start included. That of the simulator, which is a process of its own, is not counted. Agent Actions has \
                an offline vendor inside its own process, which makes up the answers while they are collected; its share \
                cannot be measured. So Agent Actions is measured a second time with its client for OpenAI and the \
                simulator, as rowmill is. rowmill: three runs; Agent Actions: one run each, because it takes so long.",
        commands,
        table: Some(ReportTable {
            head: head(),
            rows: trials.iter().chain(&others).flat_map(LaneTrial::lines).collect(),
        }),
        numbers: notes,
        verdicts,
    })
}

/// How many times the CPU each of the others takes for a part; the target is about the lowest.
fn verdict(part: &ComparedPart, own: &[LaneTrial], others: &[LaneTrial]) -> Option<TargetVerdict> {
    let seconds = |trial: &LaneTrial| (part.cost)(trial).cpu.as_secs_f64();
    let own = median(&own.iter().map(seconds).collect::<Vec<_>>());
    let times: Vec<_> = others.iter().map(|other| seconds(other) / own).collect();
    let least = times.iter().copied().reduce(f64::min)?;
    let shown: Vec<_> = times.iter().map(|times| format!("1 to {times:.0}")).collect();
    Some(TargetVerdict { target: part.target, measured: shown.join(", "), reached: least >= TIMES })
}
