//! Plans a run: estimates its calls, cost and duration without running it.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::agent::AgentGraph;
use rowmill_core::cost::Price;
use rowmill_core::forecast::{ForecastInterval, estimate_duration_at_limits};
use rowmill_core::history::AnsweredRowUsage;
use rowmill_core::limits::{Budget, CallParallelism, MinuteLimits, PaceMode, RunPaceSettings, Spend};
use rowmill_core::record::ReusedAnswerSource;
use rowmill_engine::{
    AnswerCache, CallGateSettings, EndpointKey, ModelEndpoint, ModelRoleEndpoints, OnQuota, ReadingThread,
    RecordSinks, RowExecutionSetup, RowWorker, RunOutcome, RunSetup, SharedLimits, StopCause, StopRules,
    WorkerAssignment,
};
use rowmill_models::{
    CountAccuracy, ModelPrice, ModelSetup, PriceTable, TokenCounter, attachment_rules, endpoint_facts,
    fixed_tokens, token_counter,
};
use rowmill_store::file::WorkFolder;
use rowmill_types::settings::LIMIT;
use rowmill_types::{Money, Problem, ProblemCode, TokenUsage};
use serde::Serialize;

use crate::agents::{plain_model_request, with_fast_agent_config};
use crate::answer_cache::open_answer_cache;
use crate::attachments::configured_attachments;
use crate::columns::wanted_columns;
use crate::control::{RunControl, RunNotice};
use crate::endpoints::{
    alias_notice, answer_identity, find_price, known_providers, max_output, model_setup, without_key,
};
use crate::inputs::{self, warn_fn};
use crate::paths::{check_paths_disjoint, paths_read, paths_written};
use crate::plan_stand_ins::{CountingModel, NoLedger, ReadOnlyAnswerStore};
use crate::plan_statistics::{AnswerStatistics, gather_answer_statistics};
use crate::prepare_input;
use crate::resume::{EarlierWork, read_earlier_work};
use crate::row_completion_curve::{ReachObserver, RowCompletionCurve};
use crate::run::run_blocking_with_spec;
use crate::run_clock::RunClock;
use crate::spec::{AttachmentOptions, RunSpec};
use crate::texts::{self, RunInputTexts};
use crate::work_spec::WorkSpec;

/// The plan of a run: its calls, and their estimated cost and duration.
#[derive(Debug, Clone, Serialize)]
pub struct PlanReport {
    /// The model string.
    pub model: String,
    /// The number of selected rows.
    pub rows: u64,
    /// Calls that would be made, without retries and repairs.
    pub calls: u64,
    /// Rows that cannot be sent, because of an error in the row or the template.
    pub unsendable_rows: u64,
    /// Rows whose answer is in the cache or shared with another row.
    pub reused_rows: u64,
    /// Prompt tokens of all calls.
    pub input_tokens: ForecastInterval,
    /// How the prompt tokens were counted.
    pub counted_by: String,
    /// Generated tokens of all calls, if anything bounds them.
    pub output_tokens: Option<ForecastInterval>,
    /// What the output tokens are estimated from: sample calls, an earlier run, or kept answers.
    pub judged_by: String,
    /// Whether answers were seen; otherwise only an upper bound is known.
    pub answers_seen: bool,
    /// The cost in dollars with live calls, if the price is known.
    pub cost_usd: Option<ForecastInterval>,
    /// The cost in dollars with the provider's batch API, if it has one.
    pub batch_cost_usd: Option<ForecastInterval>,
    /// The day of the price that was used.
    pub price_as_of: Option<String>,
    /// The duration in seconds at the known limits.
    pub seconds: Option<f64>,
    /// Those limits, per minute.
    pub limits: PlanMinuteLimits,
    /// What the sample calls cost.
    pub sample_cost_usd: Money,
    /// What the run that `resume` continues has spent, or may have spent: a budget covers both.
    pub spent_before: Spend,
    /// How many rows a part of the calls completes.
    #[serde(skip)]
    pub reach: RowCompletionCurve,
}

/// Limits per minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PlanMinuteLimits {
    /// Requests.
    pub requests: Option<u64>,
    /// Tokens in both directions.
    pub tokens: Option<u64>,
    /// Prompt tokens.
    pub input_tokens: Option<u64>,
    /// Generated tokens.
    pub output_tokens: Option<u64>,
}

/// Reads the whole selection and estimates the run. No calls are made, except for `sample_calls` rows
/// if requested. Returns `None` if it was stopped before the end.
///
/// # Errors
///
/// The run could not start.
pub async fn plan_run(
    mut spec: RunSpec,
    sample_calls: Option<u64>,
    control: &RunControl,
) -> Result<Option<PlanReport>, Problem> {
    // A run would be rejected for this, so nothing is spent on the plan.
    let folder = spec.work_folder().unwrap_or_else(|| control.environment.temp_folder().to_owned());
    check_paths_disjoint(&paths_read(&spec), &paths_written(&spec, &folder), Some(&spec.input))?;
    let clock = RunClock::start(&spec, control);
    let http = control.environment.http_client();
    let texts = clock.unless_stopped(Box::pin(texts::load_texts(&spec, &http, control))).await?;
    if texts.cards.is_some() {
        return Err(Problem::new(
            ProblemCode::Usage,
            "cannot estimate the cost of agents: their calls are not known in advance",
        )
        .hint(format!(
            "run a few rows with {limit} and check what they cost",
            limit = LIMIT.with_value("10")
        )));
    }
    spec.work = with_fast_agent_config(&spec.work, None, &control.environment.lookup(), &*control.notice)?;
    let providers = known_providers(&spec.work)?;
    let prices = PriceTable::with_config(&spec.work.prices)?;
    let asks = plain_model_request(&spec, &texts, texts.schema.as_ref());
    let setup = without_key(&control.environment, |environment| {
        model_setup(&spec.work.model, &providers, &asks, control, environment)
    })?;
    let alias = alias_notice(&spec.work.model, &setup.model, &providers);
    for text in alias.into_iter().chain(setup.connection.address_notice.clone()) {
        (control.notice)(RunNotice::info(text));
    }
    let priced = find_price(&prices, &setup.model);
    clock.unless_stopped(Box::pin(inputs::fetch(&mut spec, control))).await?;
    let gather_answer_statistics =
        Box::pin(gather_answer_statistics(&spec, sample_calls, &setup, &texts, control)).await?;
    let counter = token_counter(&setup.model.provider, &setup.model.model);
    let (end, input, kept) = count(&spec, &texts, &setup, counter, control).await?;
    match end.stopped {
        Some(StopCause::Problem(problem)) => return Err(problem),
        Some(_) => return Ok(None),
        None => {}
    }
    let mut gather_answer_statistics = gather_answer_statistics.or_stored_answers(kept);
    gather_answer_statistics.judged_by =
        gather_answer_statistics.judged_by.with_vocabulary(control.vocabulary);
    Ok(Some(report(&setup, &end, (input, counter), priced.as_ref(), gather_answer_statistics)))
}

/// The tokens of all prompts, how accurate the count is, what the run to be resumed has spent, and how
/// many rows a number of calls completes.
struct CountedPrompts {
    tokens: u64,
    accuracy: CountAccuracy,
    spent: Spend,
    reach: RowCompletionCurve,
}

fn report(
    setup: &ModelSetup,
    end: &RunOutcome,
    (input, counter): (CountedPrompts, TokenCounter),
    priced: Option<&ModelPrice<'_>>,
    gather_answer_statistics: AnswerStatistics,
) -> PlanReport {
    let calls = end.tally.calls;
    let (input_tokens, counted_by) = match input.accuracy {
        CountAccuracy::Exact { name } => (ForecastInterval::exact(input.tokens as f64), name.to_owned()),
        CountAccuracy::Estimate { percent } => (
            ForecastInterval::from_value_and_tolerance(input.tokens as f64, percent),
            format!("estimate, ±{percent} %"),
        ),
    };
    let facts = endpoint_facts(setup);
    let most = max_output(&facts, priced);
    let seen = gather_answer_statistics
        .history
        .as_ref()
        .and_then(|history| ForecastInterval::total_from_sample(&history.output_tokens, calls));
    let unseen = most.map(|most| ForecastInterval::at_most((most * calls) as f64));
    let nothing = (calls == 0).then(|| ForecastInterval::exact(0.0));
    let output_tokens = nothing.or(seen).or(unseen);
    let cached_share = gather_answer_statistics.history.as_ref().map_or(0.0, AnsweredRowUsage::cached_share);
    // The shared prefix of all calls may be read from the provider's cache, from the second call on.
    let shared = fixed_bytes_tokens(&facts, counter, setup);
    let cost_usd = priced
        .zip(output_tokens)
        .map(|(priced, output)| cost(&priced.price, calls, (input_tokens, output), (shared, cached_share)));
    let limits = gather_answer_statistics.limits;
    let output = output_tokens.and_then(|output| output.expected);
    PlanReport {
        model: setup.model.to_string(),
        rows: end.tally.selected_rows,
        calls,
        unsendable_rows: end.tally.failed_rows,
        reused_rows: end.tally.processed_rows.saturating_sub(end.tally.failed_rows + calls),
        input_tokens,
        counted_by,
        output_tokens,
        judged_by: gather_answer_statistics.judged_by.to_string(),
        answers_seen: seen.is_some(),
        cost_usd,
        batch_cost_usd: priced.zip(cost_usd).and_then(|(priced, live)| batch_cost(&priced.price, live)),
        price_as_of: priced.map(|priced| priced.as_of.to_owned()).filter(|day| !day.is_empty()),
        seconds: input_tokens
            .expected
            .and_then(|input| estimate_duration_at_limits(limits, calls, input, output))
            .map(|time| time.as_secs_f64()),
        limits: PlanMinuteLimits {
            requests: limits.requests,
            tokens: limits.tokens,
            input_tokens: limits.input_tokens,
            output_tokens: limits.output_tokens,
        },
        sample_cost_usd: gather_answer_statistics.cost,
        spent_before: input.spent,
        reach: input.reach,
    }
}

/// The cost with the provider's batch API, if it has one.
fn batch_cost(price: &Price, live: ForecastInterval) -> Option<ForecastInterval> {
    price.batch_percent?;
    let of = |dollars| Money::from_dollars(dollars).and_then(|live| price.batch_cost(live));
    Some(live.map(|dollars| of(dollars).unwrap_or_default().dollars()))
}

/// Tokens of a call that the provider may cache for the next one, if it caches any.
fn fixed_bytes_tokens(
    facts: &rowmill_models::EndpointFacts,
    counter: TokenCounter,
    setup: &ModelSetup,
) -> u64 {
    let schema = setup.schema.as_ref().map(ToString::to_string);
    let fixed = fixed_tokens(&counter, setup.instruction.as_deref(), schema.as_deref());
    if facts.caches_prefix.is_some_and(|least| fixed >= least) { fixed } else { 0 }
}

/// The cost of all calls: at best the provider always has the shared prefix in its cache, at worst
/// never.
fn cost(
    price: &Price,
    calls: u64,
    (input, output): (ForecastInterval, ForecastInterval),
    (shared, cached_share): (u64, f64),
) -> ForecastInterval {
    let of = |input: f64, output: f64, cached: u64, written: u64| {
        let calls = calls.max(1);
        // Long prompts have a different price, so the price is that of an average call.
        let usage = TokenUsage {
            input: (input / calls as f64).round() as u64,
            cached,
            cache_write: written,
            output: (output / calls as f64).round() as u64,
            reasoning: 0,
        };
        let whole =
            price.cost(&TokenUsage { input: input as u64, output: output as u64, ..TokenUsage::default() });
        match (price.long, cached + written) {
            (None, 0) => whole.dollars(),
            _ => price.cost(&usage).times(calls).dollars(),
        }
    };
    let low = of(input.low, output.low, shared, 0);
    let high = of(input.high, output.high, 0, shared);
    let expected = input.expected.zip(output.expected).map(|(input, output)| {
        let met = (input / calls.max(1) as f64 * cached_share).round() as u64;
        of(input, output, met, 0)
    });
    ForecastInterval {
        low: expected.map_or(low, |expected| low.min(expected)),
        expected,
        high: expected.map_or(high, |expected| high.max(expected)),
    }
}

/// A row worker of one agent whose only model counts tokens.
fn counting_row_worker(setup: &ModelSetup, model: Arc<CountingModel>) -> Result<RowWorker, Problem> {
    let endpoints = vec![Arc::new(counting_endpoint(setup, model))];
    let model_roles = vec![ModelRoleEndpoints { endpoints, files: attachment_rules(setup) }];
    Ok(RowWorker { graph: Arc::new(AgentGraph::single_agent(None, 0)?), model_roles, tools: None })
}

/// The folder in which a plan keeps what it looks at, for as long as the value lives.
fn temporary_folder(control: &RunControl) -> Result<tempfile::TempDir, Problem> {
    tempfile::tempdir_in(control.environment.temp_folder()).map_err(|error| {
        Problem::new(rowmill_types::ProblemCode::WriteFailed, "cannot create a temporary folder for the plan")
            .cause(error)
    })
}

/// Runs the selection through the engine with a model that only counts; also returns the usage of the
/// kept answers for its rows.
async fn count(
    spec: &RunSpec,
    texts: &RunInputTexts,
    setup: &ModelSetup,
    counter: TokenCounter,
    control: &RunControl,
) -> Result<(RunOutcome, CountedPrompts, AnsweredRowUsage), Problem> {
    let home = temporary_folder(control)?;
    let folder = home.path().to_owned();
    let (warn, wanted) = (warn_fn(control), wanted_columns(spec, &texts.template));
    let environment = control.environment.clone();
    // Opening a pipe blocks until something writes into it.
    let opened = run_blocking_with_spec(spec.clone(), move |spec| {
        let rows = prepare_input::rows(spec, &folder, (&warn, &environment), &wanted)?;
        let source = rows.dataset.open()?;
        Ok((rows, source))
    });
    let (spec, (rows, source)) = RunClock::start(spec, control).unless_stopped(opened).await?;
    let schema = setup.schema.as_ref().map(ToString::to_string);
    let fixed = fixed_tokens(&counter, setup.instruction.as_deref(), schema.as_deref());
    // A plan keeps no copies of the files that it reads.
    let looked_at =
        RunSpec { files: AttachmentOptions { archive: None, ..spec.files.clone() }, ..spec.clone() };
    let (http, rules) = (control.environment.http_client(), attachment_rules(setup));
    let files = configured_attachments(&looked_at, &*rows.dataset, rules, (&http, &control.environment))?;
    let reach = ReachObserver::new(control.observer.clone());
    let model = Arc::new(CountingModel::new(counter, fixed, reach.clone()));
    let folder = WorkFolder::open(home.path())?;
    let store = open_answer_cache(&spec, &folder, answer_identity(setup), warn_fn(control))?;
    let row_worker = counting_row_worker(setup, model.clone())?;
    let work = WorkSpec { retries: 0, timeout: spec.work.timeout, ..WorkSpec::default() };
    let looked_up = store.as_ref().map(|answers| Arc::new(ReadOnlyAnswerStore::new(answers.store.clone())));
    let worker = RowExecutionSetup {
        attachments: files,
        answer_cache: store.zip(looked_up.clone()).map(|(answers, store)| AnswerCache {
            store,
            kept_before: ReusedAnswerSource::Cache,
            ..answers
        }),
        vocabulary: control.vocabulary,
        ..work.worker(WorkerAssignment::Shared(Arc::new(row_worker)), Arc::new(texts.template.clone()))
    };
    let EarlierWork { resume, ids, spent } = read_earlier_work(&spec, rows.ids)?;
    let plan = RunSetup {
        run: "plan".into(),
        source,
        reading: ReadingThread::for_dataset(&*rows.dataset),
        selector: rows.selector,
        ids,
        id_check: rows.id_check,
        resume,
        worker,
        parallel: 1,
        memory: rowmill_engine::ROW_MEMORY,
        stop_rules: StopRules::default(),
        budget: Budget::default(),
        ledger: NoLedger::open(),
        sinks: RecordSinks::default(),
        locks: None,
        observer: reach.clone(),
        stop: control.stop.clone(),
    };
    let end = Box::pin(rowmill_engine::execute_run(plan)).await?;
    let kept = looked_up.map(|store| store.usage_of_hits()).unwrap_or_default();
    let (tokens, accuracy) = (model.tokens(), model.accuracy());
    Ok((end, CountedPrompts { tokens, accuracy, spent, reach: reach.reach() }, kept))
}

/// An endpoint without limits, for a model that only counts.
fn counting_endpoint(setup: &ModelSetup, model: Arc<CountingModel>) -> ModelEndpoint {
    let share = RunPaceSettings {
        parallel: CallParallelism::AtMost(1),
        pace: PaceMode::Off,
        rates: MinuteLimits::default(),
        max_output: None,
        reserves_output: false,
        priming: false,
        max_outage: Duration::MAX,
    };
    let settings = CallGateSettings { share, on_quota: OnQuota::Stop };
    let key = EndpointKey { provider: String::new(), account: String::new(), model: String::new() };
    ModelEndpoint {
        name: setup.model.to_string(),
        model,
        gate: SharedLimits::default().gate(key, settings),
        price: None,
        max_output: None,
        output_caps: None,
        batch_terms: None,
        fixed_bytes: 0,
        identity: String::new(),
    }
}
