//! Whether a budget is enough for a planned run.

use rowmill::{BudgetLimits, ForecastInterval, Money, PlanReport};
use serde_json::{Value, json};

use crate::number_text::{count_phrase, group_digits};

/// A comparison of a budget with the expected usage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlannedBudget {
    /// Whether the budget is enough for all rows according to the estimate.
    enough: bool,
    /// The approximate number of rows that it is enough for.
    rows: u64,
    /// Whether it is enough however long the answers are.
    certain: bool,
}

impl PlannedBudget {
    /// `None` if there is no budget, or if the usage of rows is unknown.
    pub(crate) fn from_report(report: &PlanReport, limits: BudgetLimits) -> Option<Self> {
        let spent = report.spent_before;
        let cost = limits.cost.zip(report.cost_usd);
        let cost = cost.map(|(limit, cost)| ((limit.dollars() - spent.cost.dollars()).max(0.0), cost));
        let tokens = limits.tokens.zip(report.output_tokens).map(|(limit, output)| {
            let input = report.input_tokens;
            let both = ForecastInterval {
                low: input.low + output.low,
                expected: input.expected.zip(output.expected).map(|(input, output)| input + output),
                high: input.high + output.high,
            };
            (limit.saturating_sub(spent.tokens) as f64, both)
        });
        let of = |(limit, needed): (f64, ForecastInterval)| {
            // If no answer was seen, only the maximum is known.
            let likely = needed.expected.unwrap_or(needed.high);
            let share = if likely > 0.0 { (limit / likely).min(1.0) } else { 1.0 };
            let calls = (report.calls as f64 * share) as u64;
            Self {
                enough: likely <= limit,
                // Rows without a call end together with the rows around them.
                rows: report.rows.saturating_sub(report.reach.rows() - report.reach.rows_within_calls(calls)),
                certain: needed.high <= limit,
            }
        };
        cost.into_iter()
            .chain(tokens)
            .map(of)
            .min_by_key(|budget| (budget.enough, budget.certain, budget.rows))
    }

    /// The budget as a part of the plan's JSON.
    pub(crate) fn json(&self) -> Value {
        json!({ "enough": self.enough, "certain": self.certain, "rows": self.rows })
    }

    /// The budget as a line of the plan.
    pub(crate) fn text(&self, report: &PlanReport) -> String {
        let all = count_phrase(report.rows, "row");
        let spent = report.spent_before.cost;
        let before =
            if spent > Money::ZERO { format!(", {spent} of it already spent") } else { String::new() };
        match self {
            Self { enough: true, certain: true, .. } => format!("budget: enough for all {all}{before}"),
            Self { enough: true, .. } => {
                format!("budget: enough for all {all}, unless answers are longer than expected")
            }
            Self { rows, .. } if report.answers_seen => {
                format!("budget: not enough; exhausted after about {} of {all}{before}", group_digits(*rows))
            }
            Self { rows, .. } => format!(
                "budget: enough for {} of {all} if all answers have the maximum length; use `--sample-calls N` for an estimate",
                group_digits(*rows)
            ),
        }
    }
}
