//! From flags to a spec. A flag wins over the environment, the environment over
//! `rowmill.toml`, the file over the default; this is the only place that says so.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rowmill::{
    ConfigFile, Existing, InputSpec, Location, Output, Problem, ProblemCode, Prompt, RunDefaults, RunSpec,
    Sample, Schema, Selection, VariableFlags,
};

use crate::flags::{RunFlags, duration};

const DEFAULT_PARALLEL: usize = 8;
const DEFAULT_RETRIES: u32 = 4;
const DEFAULT_RETRY_WAIT: Duration = Duration::from_millis(500);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
const DEFAULT_REPAIRS: u32 = 1;

/// What a command line asks for, besides the run itself.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) spec: RunSpec,
    pub(crate) show: Show,
}

/// What the user wants to see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Show {
    pub(crate) progress: bool,
    pub(crate) every: Option<u64>,
    /// At most how many rows there will be, where a flag says so.
    pub(crate) wanted: Option<u64>,
    pub(crate) json_summary: bool,
}

/// Checks flags against each other and fills in what was not said.
pub(crate) fn resolve(flags: RunFlags, file: &ConfigFile) -> Result<Resolved, Problem> {
    check_conflicts(&flags)?;
    let defaults = &file.config.run;
    let output = if flags.output == Path::new("-") { Output::Stdout } else { Output::File(flags.output) };
    let show = Show {
        progress: !flags.no_progress,
        every: flags.progress_every,
        wanted: [flags.limit, flags.sample].into_iter().flatten().min(),
        json_summary: !flags.no_final_summary && (flags.final_summary || output != Output::Stdout),
    };
    if flags.final_summary && output == Output::Stdout {
        return Err(usage("--final-summary and --output - cannot be used together").hint(
            "standard output carries the envelopes; write the summary to a file with `--summary-output`",
        ));
    }
    let spec = RunSpec {
        input: InputSpec { location: Location::parse(&flags.input)?, format: flags.input_format },
        selection: Selection {
            offset: flags.offset.unwrap_or(0),
            sample: flags.sample.map(|count| Sample { count, seed: flags.seed.unwrap_or(0) }),
            limit: flags.limit,
        },
        id_field: flags.id_field,
        prompt: match (flags.prompt, flags.template) {
            (Some(text), _) => Prompt::Inline(text),
            (None, Some(source)) => Prompt::Source(source),
            (None, None) => Prompt::Default,
        },
        instruction: flags.instruction,
        variables: VariableFlags { pairs: flags.var, files: flags.var_file, json: flags.vars_json },
        model: model(flags.model, defaults)?,
        schema: match (flags.json_schema, flags.schema_model) {
            (Some(source), _) => Schema::Source(source),
            (None, Some(name)) => Schema::PythonModel(name),
            (None, None) => Schema::None,
        },
        output,
        existing: match (flags.resume, flags.overwrite) {
            (true, _) if flags.accept_changes => Existing::ResumeChanged,
            (true, _) => Existing::Resume,
            (false, true) => Existing::Overwrite,
            (false, false) => Existing::Refuse,
        },
        include_input: flags.include_input,
        error_output: flags.error_output,
        telemetry_output: flags.telemetry_output,
        summary_output: flags.summary_output,
        parallel: parallel(flags.parallel, file)?,
        max_errors: flags.max_errors,
        retries: flags.retries.or(defaults.retries).unwrap_or(DEFAULT_RETRIES),
        retry_wait: time(flags.retry_wait, &defaults.retry_wait, "retry_wait", file)?
            .unwrap_or(DEFAULT_RETRY_WAIT),
        timeout: time(flags.timeout, &defaults.timeout, "timeout", file)?.unwrap_or(DEFAULT_TIMEOUT),
        repairs: flags.repairs.or(defaults.repairs).unwrap_or(DEFAULT_REPAIRS),
        work_dir: flags.work_dir,
        keep_temp: flags.keep_temp,
        providers: file.config.providers.clone(),
    };
    Ok(Resolved { spec, show })
}

fn check_conflicts(flags: &RunFlags) -> Result<(), Problem> {
    let together = [
        ("--prompt", flags.prompt.is_some(), "--template", flags.template.is_some()),
        ("--resume", flags.resume, "--overwrite", flags.overwrite),
        ("--json-schema", flags.json_schema.is_some(), "--schema-model", flags.schema_model.is_some()),
    ];
    for (first, has_first, second, has_second) in together {
        if has_first && has_second {
            return Err(usage(format!("{first} and {second} cannot be used together")));
        }
    }
    let needs = [
        ("--accept-changes", flags.accept_changes, "--resume", flags.resume),
        ("--seed", flags.seed.is_some(), "--sample", flags.sample.is_some()),
    ];
    for (flag, given, other, has_other) in needs {
        if given && !has_other {
            return Err(usage(format!("{flag} requires {other}")));
        }
    }
    Ok(())
}

/// How many rows are worked on at once; the file must keep to the range of the flag.
fn parallel(flag: Option<u64>, file: &ConfigFile) -> Result<usize, Problem> {
    match (flag, file.config.run.parallel) {
        (Some(rows), _) => Ok(rows as usize),
        (None, Some(0)) => {
            let shown = file.path.as_deref().unwrap_or(Path::new("rowmill.toml")).display();
            let message = format!("`parallel` in `{shown}` must be greater than zero");
            Err(Problem::new(ProblemCode::InvalidConfig, message))
        }
        (None, configured) => Ok(configured.unwrap_or(DEFAULT_PARALLEL)),
    }
}

/// A time from the flag, or from the file, whose mistakes are told as the file's.
fn time(
    flag: Option<Duration>,
    configured: &Option<String>,
    name: &str,
    file: &ConfigFile,
) -> Result<Option<Duration>, Problem> {
    let (None, Some(text)) = (flag, configured) else { return Ok(flag) };
    duration(text).map(Some).map_err(|what| {
        let shown = file.path.as_deref().unwrap_or(Path::new("rowmill.toml")).display();
        Problem::new(ProblemCode::InvalidConfig, format!("`{name}` in `{shown}` {what}, not `{text}`"))
    })
}

fn usage(message: impl Into<String>) -> Problem {
    Problem::new(ProblemCode::Usage, message)
}

/// The model string. A variable that is set to nothing counts as unset.
fn model(flag: Option<String>, defaults: &RunDefaults) -> Result<String, Problem> {
    let named = flag.filter(|name| !name.is_empty()).or_else(|| defaults.model.clone());
    named.ok_or_else(no_model)
}

fn no_model() -> Problem {
    usage("no model was named").hint(
        "use `--model`, set `ROWMILL_MODEL`, or put `model = \"…\"` under `[run]` in `rowmill.toml`; \
         `--model simulated` needs no key",
    )
}

/// The folder that the search for `rowmill.toml` begins in.
pub(crate) fn current_folder() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}
