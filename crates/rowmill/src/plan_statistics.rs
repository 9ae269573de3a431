//! The statistics that a plan estimates from: answers of earlier calls.

use rowmill_core::history::AnsweredRowUsage;
use rowmill_core::limits::MinuteLimits;
use rowmill_engine::StopCause;
use rowmill_models::ModelSetup;
use rowmill_types::settings::SAMPLE_CALLS;
use rowmill_types::{DiagnosticText, Money, Problem, ProblemCode};

use crate::control::RunControl;
use crate::counts::count_phrase;
use crate::prepare_input;
use crate::run::run;
use crate::run_storage::RunStorage;
use crate::spec::{ExistingOutput, OutputTarget, RunSpec};
use crate::texts::RunInputTexts;

/// The source of the estimate if there are no answers.
fn longest_answers() -> DiagnosticText {
    format!(
        "the maximum answer lengths (use {sample} for a better estimate)",
        sample = SAMPLE_CALLS.with_value("N")
    )
    .into()
}

/// The statistics from which answers are estimated.
pub(crate) struct AnswerStatistics {
    pub(crate) history: Option<AnsweredRowUsage>,
    pub(crate) judged_by: DiagnosticText,
    pub(crate) cost: Money,
    pub(crate) limits: MinuteLimits,
}

impl AnswerStatistics {
    /// Uses the stored answers for the selected rows instead, if there are more of them. Answers of
    /// sample calls are stored too, so they are not counted twice.
    pub(crate) fn or_stored_answers(self, kept: AnsweredRowUsage) -> Self {
        if kept.rows <= self.history.as_ref().map_or(0, |history| history.rows) {
            return self;
        }
        Self { judged_by: count_phrase(kept.rows, "cached answer").into(), history: Some(kept), ..self }
    }
}

/// Statistics of sample calls, or of an earlier run with the same kind of requests.
pub(crate) async fn gather_answer_statistics(
    spec: &RunSpec,
    sample_calls: Option<u64>,
    setup: &ModelSetup,
    texts: &RunInputTexts,
    control: &RunControl,
) -> Result<AnswerStatistics, Problem> {
    let none = AnswerStatistics {
        history: None,
        judged_by: longest_answers(),
        cost: Money::ZERO,
        limits: spec.work.rates,
    };
    if let Some(calls) = sample_calls {
        return Box::pin(sample(spec, calls, control)).await;
    }
    let Some(folder) = spec.work_folder().filter(|_| !spec.output.is_stdout()) else { return Ok(none) };
    let header = RunStorage::look_at(&folder).store.header()?;
    let Some(header) = header.filter(|header| header.history.rows > 0) else { return Ok(none) };
    if !header.fingerprint.asks_the_same_as(&prepare_input::wording(spec, &setup.model.to_string(), texts)) {
        return Ok(none);
    }
    let judged_by =
        format!("{} of the earlier run of {}", count_phrase(header.history.rows, "row"), header.at).into();
    Ok(AnswerStatistics { history: Some(header.history), judged_by, ..none })
}

/// Runs some rows with real calls, through the same engine, and discards their envelopes.
async fn sample(spec: &RunSpec, calls: u64, control: &RunControl) -> Result<AnswerStatistics, Problem> {
    let home = tempfile::tempdir_in(control.environment.temp_folder()).map_err(|error| {
        Problem::new(ProblemCode::WriteFailed, "cannot create a temporary folder for the sample calls")
            .cause(error)
    })?;
    let mut sampled = spec.clone();
    sampled.output = OutputTarget::File(home.path().join("sample.jsonl"));
    sampled.existing = ExistingOutput::Overwrite;
    sampled.work_dir = None;
    (sampled.error_output, sampled.telemetry_output, sampled.summary_output) = (None, None, None);
    sampled.traces = None;
    sampled.selection = spec.selection.representative_part(calls);
    let report = Box::pin(run(sampled, control)).await?;
    if let Some(StopCause::Problem(problem)) = report.stopped {
        return Err(problem);
    }
    let learned = report.limits;
    let or = |set: Option<u64>, learned: Option<u64>| match (set, learned) {
        (Some(set), Some(learned)) => Some(set.min(learned)),
        (set, learned) => set.or(learned),
    };
    let limits = MinuteLimits {
        requests: or(spec.work.rates.requests, learned.requests),
        tokens: or(spec.work.rates.tokens, learned.tokens),
        input_tokens: or(spec.work.rates.input_tokens, learned.input_tokens),
        output_tokens: or(spec.work.rates.output_tokens, learned.output_tokens),
    };
    let history = Some(report.history).filter(|history| history.rows > 0);
    let judged_by = history.as_ref().map(|history| count_phrase(history.rows, "sample call"));
    Ok(AnswerStatistics {
        judged_by: judged_by.map_or_else(longest_answers, DiagnosticText::from),
        history,
        cost: report.summary.numbers.cost.usd,
        limits,
    })
}
