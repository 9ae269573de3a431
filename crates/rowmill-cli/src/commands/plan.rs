//! `rowmill plan`: estimates a run without running it.

use rowmill::wording::actions::SET_PRICES;
use rowmill::wording::settings::{RPM, TPM};
use rowmill::{ExitCode, ForecastInterval, Money, PlanMinuteLimits, PlanReport, Problem};

use crate::args::PlanFlags;
use crate::number_text::{count_phrase, duration_text, group_digits};
use crate::planned_budget::PlannedBudget;
use crate::resolve::{ResolvedCommand, resolve_command};
use crate::run_with_signals::run_with_signals;
use crate::vocabulary::worded;
use crate::{open_files, printer};

/// Runs the command.
pub(crate) fn plan(flags: PlanFlags) -> Result<ExitCode, Problem> {
    let ResolvedCommand { mut spec, show } = resolve_command(flags.common, flags.output)?;
    let sample_calls = flags.sample_calls;
    let limits = spec.work.budget;
    // The notice is dropped: a plan makes few calls, if any.
    drop(open_files::fit(&mut spec.work));
    let planned = run_with_signals(show, async |control| {
        Box::pin(rowmill::plan_run(spec, sample_calls, control)).await
    })?;
    let Some(report) = planned else { return Ok(ExitCode::Interrupted) };
    let budget = PlannedBudget::from_report(&report, limits);
    if flags.json {
        // Plain data, so it always serializes to JSON.
        let mut whole = serde_json::to_value(&report).unwrap_or_default();
        if let (Some(budget), Some(fields)) = (budget, whole.as_object_mut()) {
            fields.insert("budget".to_owned(), budget.json());
        }
        printer::report(&serde_json::to_string_pretty(&whole).unwrap_or_default())?;
    } else {
        printer::report(&text(&report, budget.as_ref()))?;
    }
    Ok(ExitCode::Ok)
}

fn text(report: &PlanReport, budget: Option<&PlannedBudget>) -> String {
    let mut lines = vec![format!("{}: {}", report.model, rows(report))];
    lines.push(format!(
        "input:  {} tokens, counted by {}",
        range(report.input_tokens, whole),
        report.counted_by
    ));
    lines.push(match report.output_tokens {
        Some(output) if report.answers_seen => {
            format!("output: {} tokens, estimated from {}", range(output, whole), report.judged_by)
        }
        Some(output) if output.expected.is_some() => format!("output: {} tokens", range(output, whole)),
        Some(output) => {
            format!("output: {} tokens; use `--sample-calls N` for an estimate", range(output, whole))
        }
        None => "output: unknown; use `--sample-calls N` for an estimate".to_owned(),
    });
    let money = |cost: ForecastInterval| range(cost, dollars);
    lines.push(match (report.cost_usd, &report.price_as_of) {
        (Some(cost), Some(day)) => {
            format!("cost:   {} with live calls (prices of {day})", money(cost))
        }
        (Some(cost), None) => format!("cost:   {} with live calls", money(cost)),
        (None, _) => {
            worded(format!("cost:   unknown: set the price {SET_PRICES}; see `rowmill models MODEL`"))
        }
    });
    if let Some(cost) = report.batch_cost_usd {
        lines.push(format!("        {} with the provider's batch API", money(cost)));
    }
    lines.extend(budget.map(|budget| budget.text(report)));
    lines.push(match report.seconds {
        Some(seconds) => {
            format!(
                "time:   about {} at {}",
                duration_text(std::time::Duration::from_secs_f64(seconds)),
                limits(report)
            )
        }
        None if report.limits != PlanMinuteLimits::default() => {
            "time:   unknown, because answer length is unknown; use `--sample-calls N` for an estimate"
                .to_owned()
        }
        None if report.answers_seen => {
            worded(format!("time:   unknown, because no rate limits are known; set {RPM} or {TPM}"))
        }
        None => worded(format!(
            "time:   unknown, because no rate limits are known; set {RPM} or {TPM}, or use `--sample-calls N`"
        )),
    });
    if report.sample_cost_usd > Money::ZERO {
        lines.push(format!("        the sample calls cost {}", report.sample_cost_usd));
    }
    lines.join("\n")
}

fn rows(report: &PlanReport) -> String {
    let mut text = format!("{}, {}", count_phrase(report.rows, "row"), count_phrase(report.calls, "call"));
    if report.reused_rows > 0 {
        text.push_str(&format!(
            ", {} reused from the cache or from identical rows",
            group_digits(report.reused_rows)
        ));
    }
    if report.unsendable_rows > 0 {
        text.push_str(&format!(", {} that cannot be sent", group_digits(report.unsendable_rows)));
    }
    text
}

fn limits(report: &PlanReport) -> String {
    let known = [
        (report.limits.requests, "requests/min"),
        (report.limits.tokens, "tokens/min"),
        (report.limits.input_tokens, "input tokens/min"),
        (report.limits.output_tokens, "output tokens/min"),
    ];
    let known: Vec<String> = known
        .iter()
        .filter_map(|(limit, what)| Some(format!("{} {what}", group_digits((*limit)?))))
        .collect();
    known.join(", ")
}

fn range(interval: ForecastInterval, show: impl Fn(f64) -> String) -> String {
    let ForecastInterval { low, expected, high } = interval;
    let Some(expected) = expected else { return format!("unknown, at most {}", show(high)) };
    let (low, expected, high) = (show(low), show(expected), show(high));
    if low == high { expected } else { format!("about {expected} ({low} to {high})") }
}

fn whole(value: f64) -> String {
    group_digits(value.round() as u64)
}

fn dollars(value: f64) -> String {
    Money::from_dollars(value).unwrap_or(Money::MAX).to_string()
}
