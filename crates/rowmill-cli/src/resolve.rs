//! Turns flags into a spec. A flag overrides the environment, which overrides `rowmill.toml`, which
//! overrides the default; only this module implements that.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rowmill::wording::settings::{OUTPUT, SUMMARY_OUTPUT};
use rowmill::{
    BudgetLimits, CallParallelism, ConfigDuration, ConfigFile, DiagnosticText, Durability, ErrorRateLimit,
    ExistingOutput, HttpTimeouts, InputLocation, InputSpec, InstructionVariableOptions, KeptFiles, Lane,
    LaneOptions, MinuteLimits, OnQuota, OutputTarget, PaceMode, ParallelSetting, Problem, ProblemCode,
    PromptSource, ResultSchemaSource, RowSampleSettings, RowSelection, RunDefaults, RunSpec, SpecVersion,
    StopRules, WorkSpec,
};

use crate::flag_values::{
    DeadlineValue, ParallelRows, QuotaAction, SummaryFormat, parse_duration, parse_parallel_rows,
};
use crate::flags::CommonFlags;
use crate::output_flags::OutputFlags;
use crate::spec_file::resolve_spec;

/// The request of a command line, including options beside the run itself.
#[derive(Debug)]
pub(crate) struct ResolvedCommand {
    pub(crate) spec: RunSpec,
    pub(crate) show: DisplayOptions,
}

/// What the user wants to see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DisplayOptions {
    pub(crate) progress: bool,
    pub(crate) every: Option<u64>,
    /// Whether envelopes go to standard output.
    pub(crate) envelopes_on_stdout: bool,
    /// The maximum number of rows, if a flag sets it.
    pub(crate) wanted: Option<u64>,
    /// The budget of the run.
    pub(crate) budget: BudgetLimits,
    pub(crate) json_summary: bool,
}

/// The request of a command, from its flags or from a spec.
pub(crate) fn resolve_command(flags: CommonFlags, output: OutputFlags) -> Result<ResolvedCommand, Problem> {
    match flags.spec.clone() {
        Some(path) => resolve_spec(&flags, &path),
        None => resolve(flags, output.output()?, &ConfigFile::find(&config_search_folder())?),
    }
}

/// Checks flags and fills in defaults.
fn resolve(flags: CommonFlags, output: OutputTarget, file: &ConfigFile) -> Result<ResolvedCommand, Problem> {
    check_flags(&flags, &output)?;
    let (defaults, usual) = (&file.config.run, WorkSpec::default());
    let (lane, notify) = (lane_options(&flags, defaults)?, flags.notify.options(defaults));
    let (stop_rules, timeouts, rates) = (stop_rules(&flags), timeouts(&flags), rates(&flags, file)?);
    let (input, selection, existing) = (input(&flags)?, selection(&flags), existing_output(&flags));
    let (show, keep_temp) = (display_options(&flags, &output, &selection, budget(&flags)), keep_temp(&flags));
    let model_given = flags.model.as_ref().is_some_and(|name| !name.is_empty());
    let model = model(flags.model, defaults, !flags.agents.agent_card.is_empty())?;
    let agents = flags.agents.spec(model_given, file);
    let work = WorkSpec {
        model,
        agents,
        parallel: parallel(flags.parallel, file)?,
        pace: if flags.pace == Some(false) { PaceMode::Off } else { PaceMode::Auto },
        rates,
        on_quota: if flags.on_quota == Some(QuotaAction::Stop) { OnQuota::Stop } else { OnQuota::Wait },
        max_outage: flags.max_outage.unwrap_or(usual.max_outage),
        fallback_models: fallback_models(flags.fallback_model, defaults),
        stop_rules,
        budget: show.budget,
        dedupe: flags.dedupe,
        cache: flags.cache.or_else(|| Some(beside(file, defaults.cache.as_deref()?))),
        prime: !flags.no_prime,
        durability: durability(flags.durable || defaults.durable),
        retries: flags.retries.or(defaults.retries).unwrap_or(usual.retries),
        retry_wait: time(flags.retry_wait, &defaults.retry_wait, "retry_wait", file)?
            .unwrap_or(usual.retry_wait),
        timeout: time(flags.timeout, &defaults.timeout, "timeout", file)?.unwrap_or(usual.timeout),
        row_timeout: flags.row_timeout,
        timeouts,
        repairs: flags.repairs.or(defaults.repairs).unwrap_or(usual.repairs),
        lane,
        ..work_of_config(file)
    };
    let spec = RunSpec {
        version: SpecVersion,
        input,
        query: flags.data.query(),
        files: flags.data.files(),
        selection,
        existing,
        removed_rows: flags.data.removed_rows(),
        id_field: flags.id_field,
        prompt: prompt(flags.prompt, flags.template),
        instruction: flags.instruction,
        variables: instruction_variables(flags.var, flags.var_file, flags.vars_json),
        work,
        schema: schema(flags.json_schema, flags.schema_model),
        output,
        include_input: flags.include_input,
        error_output: flags.error_output,
        telemetry_output: flags.telemetry_output,
        summary_output: flags.summary_output,
        traces: flags.export_traces,
        work_dir: flags.work_dir,
        keep_temp,
        notify,
        config_files: file.path.iter().cloned().collect(),
    };
    Ok(ResolvedCommand { spec, show })
}

/// Checks flags against each other.
fn check_flags(flags: &CommonFlags, output: &OutputTarget) -> Result<(), Problem> {
    check_conflicts(flags)?;
    flags.data.check()?;
    flags.agents.check(flags.instruction.as_deref(), flags.resume)?;
    check_summary(flags, output)
}

fn instruction_variables(
    pairs: Vec<String>,
    files: Vec<String>,
    json: Option<PathBuf>,
) -> InstructionVariableOptions {
    InstructionVariableOptions { pairs, files, json }
}

/// The settings that only the configuration file has.
fn work_of_config(file: &ConfigFile) -> WorkSpec {
    let (providers, aliases) = (file.config.providers.clone(), file.config.alias_config());
    WorkSpec { providers, aliases, prices: file.config.prices.clone(), ..WorkSpec::default() }
}

fn budget(flags: &CommonFlags) -> BudgetLimits {
    BudgetLimits { cost: flags.max_cost, tokens: flags.max_tokens }
}

/// How requests are sent.
fn lane_options(flags: &CommonFlags, defaults: &RunDefaults) -> Result<LaneOptions, Problem> {
    let usual = LaneOptions::default();
    let lane = flags.lane.or(defaults.lane).unwrap_or(usual.lane);
    let given = [
        ("--detach", flags.detach),
        ("--poll-every", flags.poll_every.is_some()),
        ("--repair-lane", flags.repair_lane.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given && lane == Lane::Live) {
        Some((flag, _)) => Err(usage_problem(format!("{flag} requires --lane batch or --lane auto"))),
        None => Ok(LaneOptions {
            lane,
            detach: flags.detach,
            scope: usual.scope,
            poll_every: flags.poll_every.unwrap_or(usual.poll_every),
            repair_lane: flags.repair_lane.or(defaults.repair_lane).unwrap_or(usual.repair_lane),
        }),
    }
}

fn durability(is_asked_for: bool) -> Durability {
    if is_asked_for { Durability::Power } else { Durability::Process }
}

fn fallback_models(named: Vec<String>, defaults: &RunDefaults) -> Vec<String> {
    if named.is_empty() { defaults.fallback_models.clone() } else { named }
}

fn keep_temp(flags: &CommonFlags) -> KeptFiles {
    match (flags.keep_temp, flags.no_keep_temp) {
        (true, _) => KeptFiles::Ledger,
        (false, true) => KeptFiles::Nothing,
        (false, false) => KeptFiles::Header,
    }
}

/// Checks that envelopes and a summary do not both go to standard output.
pub(crate) fn check_summary(flags: &CommonFlags, output: &OutputTarget) -> Result<(), Problem> {
    let asked = match flags.summary_format {
        Some(SummaryFormat::Json) => Some("--summary-format json"),
        _ => flags.final_summary.then_some("--final-summary"),
    };
    if let Some(flag) = asked.filter(|_| output.is_stdout()) {
        let message = format!(
            "{flag} and {output} cannot be used together",
            output = OUTPUT.with_value("-").without_backticks()
        );
        return Err(usage_problem(message).hint(format!(
            "envelopes are written to standard output; write the summary to a file with {SUMMARY_OUTPUT}"
        )));
    }
    Ok(())
}

fn input(flags: &CommonFlags) -> Result<InputSpec, Problem> {
    Ok(InputSpec {
        location: InputLocation::parse(flags.input.as_deref().unwrap_or("-"))?,
        format: flags.input_format,
        document_ids: flags.data.document_ids(),
        delimiter: flags.data.delimiter(),
    })
}

pub(crate) fn display_options(
    flags: &CommonFlags,
    output: &OutputTarget,
    selection: &RowSelection,
    budget: BudgetLimits,
) -> DisplayOptions {
    let sampled = selection.sample.map(|sample| sample.count);
    DisplayOptions {
        progress: !flags.no_progress,
        every: flags.progress_every,
        envelopes_on_stdout: output.is_stdout(),
        wanted: [selection.limit, sampled].into_iter().flatten().min(),
        budget,
        json_summary: has_json_summary(flags, output),
    }
}

/// Whether the summary is printed as JSON on standard output. On a terminal only if requested: the
/// human-readable summary is there already.
fn has_json_summary(flags: &CommonFlags, output: &OutputTarget) -> bool {
    match flags.summary_format.unwrap_or_default() {
        _ if flags.no_final_summary => false,
        _ if flags.final_summary => true,
        SummaryFormat::Json => true,
        SummaryFormat::Text => false,
        SummaryFormat::Auto => !output.is_stdout() && !std::io::stdout().is_terminal(),
    }
}

fn prompt(inline: Option<String>, source: Option<String>) -> PromptSource {
    match (inline, source) {
        (Some(text), _) => PromptSource::Inline(text),
        (None, Some(source)) => PromptSource::Source(source),
        (None, None) => PromptSource::Default,
    }
}

fn schema(source: Option<String>, python_model: Option<String>) -> ResultSchemaSource {
    match (source, python_model) {
        (Some(source), _) => ResultSchemaSource::Source(source),
        (None, Some(name)) => ResultSchemaSource::PythonModel(name),
        (None, None) => ResultSchemaSource::None,
    }
}

fn selection(flags: &CommonFlags) -> RowSelection {
    RowSelection {
        offset: flags.offset.unwrap_or(0),
        sample: flags.sample.map(|count| RowSampleSettings { count, seed: flags.seed.unwrap_or(0) }),
        limit: flags.limit,
    }
}

pub(crate) fn existing_output(flags: &CommonFlags) -> ExistingOutput {
    match (flags.resume, flags.overwrite) {
        (true, _) if flags.accept_changes => ExistingOutput::ResumeChanged,
        (true, _) => ExistingOutput::Resume,
        (false, true) => ExistingOutput::Overwrite,
        (false, false) => ExistingOutput::Refuse,
    }
}

fn check_conflicts(flags: &CommonFlags) -> Result<(), Problem> {
    let together = [
        ("--prompt", flags.prompt.is_some(), "--template", flags.template.is_some()),
        ("--resume", flags.resume, "--overwrite", flags.overwrite),
        ("--json-schema", flags.json_schema.is_some(), "--schema-model", flags.schema_model.is_some()),
    ];
    for (first, has_first, second, has_second) in together {
        if has_first && has_second {
            return Err(usage_problem(format!("{first} and {second} cannot be used together")));
        }
    }
    let needs = [
        ("--accept-changes", flags.accept_changes, "--resume", flags.resume),
        ("--seed", flags.seed.is_some(), "--sample", flags.sample.is_some()),
        ("--after", flags.after.is_some(), "--max-error-rate", flags.max_error_rate.is_some()),
    ];
    for (flag, given, other, has_other) in needs {
        if given && !has_other {
            return Err(usage_problem(format!("{flag} requires {other}")));
        }
    }
    Ok(())
}

/// How many rows are worked on at once; a value of the file is checked like that of the flag.
fn parallel(flag: Option<ParallelRows>, file: &ConfigFile) -> Result<CallParallelism, Problem> {
    let configured = match &file.config.run.parallel {
        None => Ok(ParallelRows::Auto),
        Some(ParallelSetting::Rows(count)) => parse_parallel_rows(&count.to_string()),
        Some(ParallelSetting::Word(word)) => parse_parallel_rows(word),
    };
    let chosen = match flag {
        Some(rows) => rows,
        None => configured.map_err(|what| {
            let shown = file.path.as_deref().unwrap_or(Path::new("rowmill.toml")).display();
            Problem::new(ProblemCode::InvalidConfig, format!("`parallel` in `{shown}` {what}"))
        })?,
    };
    Ok(match chosen {
        ParallelRows::Auto => CallParallelism::Auto,
        ParallelRows::AtMost(rows) => CallParallelism::AtMost(rows),
    })
}

/// A path of the configuration file, which is relative to that file.
fn beside(file: &ConfigFile, path: &Path) -> PathBuf {
    file.path.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).join(path)
}

fn rates(flags: &CommonFlags, file: &ConfigFile) -> Result<MinuteLimits, Problem> {
    let defaults = &file.config.run;
    let named =
        [("rpm", defaults.rpm), ("tpm", defaults.tpm), ("itpm", defaults.itpm), ("otpm", defaults.otpm)];
    if let Some((name, _)) = named.iter().find(|(_, limit)| *limit == Some(0)) {
        let shown = file.path.as_deref().unwrap_or(Path::new("rowmill.toml")).display();
        let message = format!("`{name}` in `{shown}` must be greater than zero");
        return Err(Problem::new(ProblemCode::InvalidConfig, message));
    }
    Ok(MinuteLimits {
        requests: flags.rpm.or(defaults.rpm),
        tokens: flags.tpm.or(defaults.tpm),
        input_tokens: flags.itpm.or(defaults.itpm),
        output_tokens: flags.otpm.or(defaults.otpm),
    })
}

fn timeouts(flags: &CommonFlags) -> HttpTimeouts {
    let default = HttpTimeouts::default();
    HttpTimeouts {
        connect: flags.connect_timeout.unwrap_or(default.connect),
        first_byte: flags.first_byte_timeout.unwrap_or(default.first_byte),
        idle: flags.idle_timeout.unwrap_or(default.idle),
    }
}

fn stop_rules(flags: &CommonFlags) -> StopRules {
    let on_error = (flags.on_error.as_deref() == Some("stop")).then_some(1);
    let after = flags.after.unwrap_or_else(ErrorRateLimit::default_minimum_rows);
    let usual = StopRules::standard();
    StopRules {
        max_errors: [flags.max_errors, on_error].into_iter().flatten().min(),
        max_error_rate: flags.max_error_rate.map(|share| ErrorRateLimit { share, after }),
        // A user who sets the number of failed rows has decided already.
        same_failure: usual.same_failure.filter(|_| !flags.keep_going && flags.max_errors.is_none()),
        first_result: flags.stop_on_first_result,
        deadline: flags.deadline.map(|deadline| match deadline {
            DeadlineValue::In(time) => time,
            // A deadline in the past ends the run before its first row.
            DeadlineValue::At(when) => {
                Duration::try_from(when.duration_since(jiff::Timestamp::now())).unwrap_or(Duration::ZERO)
            }
        }),
    }
}

/// A time from the flag, or from the file, whose mistakes are reported as the file's.
fn time(
    flag: Option<Duration>,
    configured: &Option<ConfigDuration>,
    name: &str,
    file: &ConfigFile,
) -> Result<Option<Duration>, Problem> {
    let (None, Some(setting)) = (flag, configured) else { return Ok(flag) };
    let text = setting.to_string();
    parse_duration(&text).map(Some).map_err(|what| {
        let shown = file.path.as_deref().unwrap_or(Path::new("rowmill.toml")).display();
        Problem::new(ProblemCode::InvalidConfig, format!("`{name}` in `{shown}` {what}, not `{text}`"))
    })
}

pub(crate) fn usage_problem(message: impl Into<DiagnosticText>) -> Problem {
    Problem::new(ProblemCode::Usage, message)
}

/// The model string. A variable with an empty value counts as unset. Agent cards may name their own
/// models.
fn model(flag: Option<String>, defaults: &RunDefaults, has_cards: bool) -> Result<String, Problem> {
    let named = flag.filter(|name| !name.is_empty()).or_else(|| defaults.model.clone());
    named.or_else(|| has_cards.then(String::new)).ok_or_else(no_model)
}

fn no_model() -> Problem {
    usage_problem("no model given").hint(
        "use `--model`, set `ROWMILL_MODEL`, or put `model = \"…\"` under `[run]` in `rowmill.toml`; \
         `--model simulated` needs no key",
    )
}

/// The folder in which the search for `rowmill.toml` starts.
pub(crate) fn config_search_folder() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}
