//! The flags of `rowmill run`, as given. Their texts are the reference manual.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use rowmill::{InputFormat, Lane, Money, RepairLane};

use crate::agent_flags::AgentFlags;
use crate::data_flags::DataFlags;
use crate::flag_values::{
    DeadlineValue, ParallelRows, QuotaAction, SummaryFormat, parse_deadline, parse_dollars, parse_duration,
    parse_duration_or_none, parse_format, parse_lane, parse_pace, parse_parallel_rows, parse_positive,
    parse_quota_action, parse_repair_lane, parse_share, parse_summary_format, parse_u32, parse_u64,
};
use crate::notify_flags::NotifyFlags;
use crate::output_flags::OutputFlags;

/// Run a model over every row of a dataset and write one result per row.
///
/// Each input row becomes a prompt, the model answers it, and one line is written to the output: an
/// envelope with the row's id and its result or error. If the output ends in `.csv`, `.tsv` or
/// `.parquet`, each row becomes a row of that table instead. Progress is saved as the run goes:
/// after Ctrl-C or a crash, `--resume` continues where it stopped and never pays for a finished row
/// twice.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = "See `rowmill run --help` for examples.")]
#[command(group(ArgGroup::new("place").args(["output", "output_dir", "spec"]).required(true)))]
#[command(override_usage = USAGE)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) output: OutputFlags,

    #[command(flatten)]
    pub(crate) common: CommonFlags,

    /// Print this command as a JSON run spec and exit; run it with `--spec`.
    ///
    /// The spec includes the settings from `rowmill.toml` and all defaults, but no API keys from
    /// the environment.
    #[arg(long, help_heading = "Spec")]
    pub(crate) print_spec: bool,
}

const USAGE: &str = "rowmill run [OPTIONS] --input <INPUT> <--output <FILE>|--output-dir <FOLDER>>\n       \
                     rowmill run [OPTIONS] --spec <FILE>";

/// The flags that `run` and `plan` share.
#[derive(Debug, Args)]
pub(crate) struct CommonFlags {
    /// Run a spec file, as printed by `--print-spec`; `-` reads it from standard input.
    ///
    /// A spec is complete: `rowmill.toml` is ignored, and flags that belong in a spec are rejected.
    /// Allowed are `--resume`, `--accept-changes`, `--overwrite`, `--summary-format`,
    /// `--final-summary` and the progress flags. See `docs/run-spec.md` for the format.
    #[arg(long, value_name = "FILE", help_heading = "Spec")]
    pub(crate) spec: Option<PathBuf>,

    /// Input rows: a file, a glob pattern, a folder of documents, a URL, or `-` for standard input.
    ///
    /// Supported extensions: `.jsonl`, `.ndjson`, `.csv`, `.tsv`, `.json` (one array) and
    /// `.parquet`. Files may be compressed with gzip or zstd. A pattern such as `'parts/*.parquet'`
    /// reads several files as one input, and so does a folder named `rows.parquet`, or one with
    /// folders such as `year=2026`. For any other folder, or a pattern of other files such as
    /// `'invoices/*.pdf'`, each file is a row and is sent to the model. URLs are `https://…` and
    /// `hf://datasets/owner/name[/path]`. Required unless `--spec` is given.
    #[arg(long, short, value_name = "INPUT", required_unless_present = "spec", help_heading = "Rows")]
    pub(crate) input: Option<String>,

    /// Input format, if it cannot be determined from the file name.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format, help_heading = "Rows")]
    pub(crate) input_format: Option<InputFormat>,

    /// Process at most N rows.
    #[arg(long, value_name = "N", value_parser = parse_u64, allow_negative_numbers = true, help_heading = "Rows")]
    pub(crate) limit: Option<u64>,

    /// Skip the first N rows.
    #[arg(long, value_name = "N", value_parser = parse_u64, allow_negative_numbers = true, help_heading = "Rows")]
    pub(crate) offset: Option<u64>,

    /// Process a random sample of N rows, in input order; the same seed gives the same sample.
    #[arg(long, value_name = "N", value_parser = parse_u64, allow_negative_numbers = true, help_heading = "Rows")]
    pub(crate) sample: Option<u64>,

    /// Random seed for `--sample` [default: 0].
    #[arg(long, value_name = "N", value_parser = parse_u64, allow_negative_numbers = true, help_heading = "Rows")]
    pub(crate) seed: Option<u64>,

    /// Field that identifies a row; without it, rows are identified by their row numbers.
    ///
    /// Values must be unique. With an id field, you can add, remove and reorder rows before
    /// resuming.
    #[arg(long, value_name = "FIELD", help_heading = "Rows")]
    pub(crate) id_field: Option<String>,

    #[command(flatten)]
    pub(crate) data: DataFlags,

    /// Inline prompt template; `{{field}}` and `{{row_json}}` are replaced with values of the row.
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Prompt and model")]
    pub(crate) prompt: Option<String>,

    /// Prompt template file: a path or a `file://`, `http(s)://` or `hf://` URL.
    #[arg(long, value_name = "SOURCE", help_heading = "Prompt and model")]
    pub(crate) template: Option<String>,

    /// System prompt file, sent with every call: a path or a `file://`, `http(s)://` or `hf://` URL.
    #[arg(long, value_name = "SOURCE", help_heading = "Prompt and model")]
    pub(crate) instruction: Option<String>,

    #[command(flatten)]
    pub(crate) agents: AgentFlags,

    /// Model, as `provider.model?key=value`; `rowmill models` lists the providers.
    #[arg(long, short, value_name = "MODEL", env = "ROWMILL_MODEL", help_heading = "Prompt and model")]
    pub(crate) model: Option<String>,

    /// JSON Schema that results must satisfy: a path or a `file://`, `http(s)://` or `hf://` URL.
    #[arg(long, value_name = "SOURCE", help_heading = "Prompt and model")]
    pub(crate) json_schema: Option<String>,

    /// Pydantic model that results must satisfy, as `module.path:Class`.
    ///
    /// Its JSON Schema is read with your Python.
    #[arg(long, value_name = "MODULE:CLASS", help_heading = "Prompt and model")]
    pub(crate) schema_model: Option<String>,

    /// How many times to ask the model to correct an answer that violates the schema [default: 1].
    #[arg(long, value_name = "N", value_parser = parse_u32, allow_negative_numbers = true, help_heading = "Prompt and model")]
    pub(crate) repairs: Option<u32>,

    /// Set the instruction variable NAME, used as `{{NAME}}`; repeatable.
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Prompt and model")]
    pub(crate) var: Vec<String>,

    /// Set an instruction variable to the contents of a file; repeatable.
    #[arg(long, value_name = "NAME=PATH", help_heading = "Prompt and model")]
    pub(crate) var_file: Vec<String>,

    /// JSON file with one object of instruction variables; `--var` and `--var-file` override it.
    #[arg(long, value_name = "PATH", help_heading = "Prompt and model")]
    pub(crate) vars_json: Option<PathBuf>,

    /// Resume the run that wrote this output: skip rows that are ok, retry the rest.
    #[arg(long, help_heading = "Results")]
    pub(crate) resume: bool,

    /// With `--resume`, continue even if the model, prompt, schema or input has changed.
    #[arg(long, help_heading = "Results")]
    pub(crate) accept_changes: bool,

    /// Overwrite the output if it exists.
    #[arg(long, help_heading = "Results")]
    pub(crate) overwrite: bool,

    /// Copy the input row into its envelope.
    #[arg(long, overrides_with = "no_include_input", help_heading = "Results")]
    pub(crate) include_input: bool,

    /// Leave the input row out of the envelope (the default).
    #[arg(long, overrides_with = "include_input", help_heading = "Results")]
    pub(crate) no_include_input: bool,

    /// Also write the envelopes of failed rows to this file.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) error_output: Option<PathBuf>,

    /// Write the times and token counts of every row to this file, as JSON Lines.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) telemetry_output: Option<PathBuf>,

    /// Write the summary of the run to this file as JSON.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) summary_output: Option<PathBuf>,

    /// Write a trace of every row to this folder: messages, tool calls, tokens and times.
    ///
    /// Each row gets a file `row-000001__id-…` in the format of Codex sessions; `manifest.jsonl`
    /// has a line for every row, and `spans.jsonl` has the same data as OpenTelemetry spans.
    /// Known secrets are redacted. Example: `--export-traces traces/`.
    #[arg(long, value_name = "FOLDER", help_heading = "Results")]
    pub(crate) export_traces: Option<PathBuf>,

    /// Summary on standard output: `json`, `text` (none), or `auto` [default: auto].
    ///
    /// `auto` prints JSON unless standard output is a terminal or carries envelopes. A
    /// human-readable summary is always printed to standard error.
    #[arg(long, value_name = "auto|text|json", value_parser = parse_summary_format, help_heading = "Results")]
    pub(crate) summary_format: Option<SummaryFormat>,

    /// Print the JSON summary, even to a terminal; same as `--summary-format json`.
    #[arg(long, overrides_with = "no_final_summary", help_heading = "Results")]
    pub(crate) final_summary: bool,

    /// Do not print the JSON summary to standard output.
    #[arg(long, overrides_with = "final_summary", help_heading = "Results")]
    pub(crate) no_final_summary: bool,

    #[command(flatten)]
    pub(crate) notify: NotifyFlags,

    /// Maximum number of rows in flight; `auto` adapts to the provider [default: auto].
    #[arg(long, value_name = "N|auto", value_parser = parse_parallel_rows, allow_negative_numbers = true, env = "ROWMILL_PARALLEL", help_heading = "Rate limits")]
    pub(crate) parallel: Option<ParallelRows>,

    /// Maximum requests per minute, in addition to the limits that the provider reports.
    #[arg(long, value_name = "N", value_parser = parse_positive, allow_negative_numbers = true, help_heading = "Rate limits")]
    pub(crate) rpm: Option<u64>,

    /// Maximum tokens per minute, input and output together.
    #[arg(long, value_name = "N", value_parser = parse_positive, allow_negative_numbers = true, help_heading = "Rate limits")]
    pub(crate) tpm: Option<u64>,

    /// Maximum input tokens per minute.
    #[arg(long, value_name = "N", value_parser = parse_positive, allow_negative_numbers = true, help_heading = "Rate limits")]
    pub(crate) itpm: Option<u64>,

    /// Maximum output tokens per minute.
    #[arg(long, value_name = "N", value_parser = parse_positive, allow_negative_numbers = true, help_heading = "Rate limits")]
    pub(crate) otpm: Option<u64>,

    /// Respect the limits that the provider reports (`auto`) or ignore them (`off`) [default: auto].
    #[arg(long, value_name = "auto|off", value_parser = parse_pace, help_heading = "Rate limits")]
    pub(crate) pace: Option<bool>,

    /// When the account's quota is exhausted: `wait` until it renews, or `stop` [default: wait].
    #[arg(long, value_name = "wait|stop", value_parser = parse_quota_action, help_heading = "Rate limits")]
    pub(crate) on_quota: Option<QuotaAction>,

    /// How long to wait for a provider that is down before stopping the run [default: 1h].
    ///
    /// This also applies to a provider that is up but lets no call through. With 0, do not wait,
    /// not even for a pause that the provider asks for if it is longer than a minute: rows fail
    /// once their retries are exhausted. A provider that has never answered a call is given one
    /// minute at most.
    #[arg(long, value_name = "TIME", value_parser = parse_duration_or_none, help_heading = "Rate limits")]
    pub(crate) max_outage: Option<Duration>,

    /// Do not wait for the first call to fill the provider's prompt cache.
    #[arg(long, help_heading = "Rate limits")]
    pub(crate) no_prime: bool,

    /// Stop before the run can cost more than this many dollars, including all resumes.
    ///
    /// A call is sent only if its maximum cost fits the remaining budget. The run exits with code
    /// 4; resume with a higher limit to continue. If the model string has no `max_tokens`, the
    /// length of answers is capped so that calls can run in parallel; truncated answers are
    /// requested again with a higher cap.
    #[arg(long, value_name = "USD", value_parser = parse_dollars, allow_negative_numbers = true, help_heading = "Cost")]
    pub(crate) max_cost: Option<Money>,

    /// Stop before the run can use more than this many tokens, including all resumes.
    #[arg(long, value_name = "N", value_parser = parse_u64, allow_negative_numbers = true, help_heading = "Cost")]
    pub(crate) max_tokens: Option<u64>,

    /// Send identical requests only once; every row still gets its own envelope.
    #[arg(long, help_heading = "Cost")]
    pub(crate) dedupe: bool,

    /// Cache answers in this folder and reuse them in this and later runs; implies `--dedupe`.
    #[arg(long, value_name = "FOLDER", help_heading = "Cost")]
    pub(crate) cache: Option<PathBuf>,

    /// How requests are sent: `live`, as single calls, or `batch`, as jobs of the provider's batch API,
    /// which take up to a day and cost half as much with most providers [default: live].
    ///
    /// With `auto`, they are sent as batch jobs if the provider has a batch API, and live otherwise; with
    /// `--deadline` as well, jobs are cancelled while there is just enough time to send live what they
    /// have not finished. The run waits for its jobs. Ctrl-C ends only the waiting: the jobs go on, and
    /// the same command with `--resume` collects them. See `docs/batch.md`.
    #[arg(long, value_name = "live|batch|auto", value_parser = parse_lane, env = "ROWMILL_LANE", help_heading = "Batch jobs")]
    pub(crate) lane: Option<Lane>,

    /// With `--lane batch`: exit once all jobs are submitted, with code 5.
    #[arg(long, help_heading = "Batch jobs")]
    pub(crate) detach: bool,

    /// With `--lane batch`: the first wait between two checks of the jobs; later waits are longer, up to
    /// five minutes [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Batch jobs")]
    pub(crate) poll_every: Option<Duration>,

    /// With `--lane batch`: how answers that violate the schema are sent back, as requests of a further
    /// job (`batch`) or as calls at once (`live`), at the price of live calls [default: batch].
    #[arg(long, value_name = "live|batch", value_parser = parse_repair_lane, help_heading = "Batch jobs")]
    pub(crate) repair_lane: Option<RepairLane>,

    /// Model to use when the first one fails or its provider is down; repeatable.
    #[arg(long, value_name = "MODEL", help_heading = "Retries and timeouts")]
    pub(crate) fallback_model: Vec<String>,

    /// Number of retries after a transient failure [default: 4].
    #[arg(long, value_name = "N", value_parser = parse_u32, allow_negative_numbers = true, env = "ROWMILL_RETRIES", help_heading = "Retries and timeouts")]
    pub(crate) retries: Option<u32>,

    /// Initial wait between retries; it doubles each time [default: 500ms].
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Retries and timeouts")]
    pub(crate) retry_wait: Option<Duration>,

    /// Timeout for one call, such as `90s`, `5m` or `30` (seconds) [default: 10m].
    #[arg(long, value_name = "TIME", value_parser = parse_duration, env = "ROWMILL_TIMEOUT", help_heading = "Retries and timeouts")]
    pub(crate) timeout: Option<Duration>,

    /// Timeout for one row: all its calls and the waits between retries.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Retries and timeouts")]
    pub(crate) row_timeout: Option<Duration>,

    /// Timeout for connecting [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Retries and timeouts")]
    pub(crate) connect_timeout: Option<Duration>,

    /// Timeout for the first byte of an answer [default: 10m].
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Retries and timeouts")]
    pub(crate) first_byte_timeout: Option<Duration>,

    /// Timeout between two chunks of an answer [default: 5m].
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Retries and timeouts")]
    pub(crate) idle_timeout: Option<Duration>,

    /// When a row fails: `continue`, or `stop` the run [default: continue].
    #[arg(long, value_name = "continue|stop", value_parser = ["continue", "stop"], help_heading = "When to stop")]
    pub(crate) on_error: Option<String>,

    /// Stop once this many rows have failed; 0 stops before the first row.
    #[arg(long, value_name = "N", value_parser = parse_u64, allow_negative_numbers = true, help_heading = "When to stop")]
    pub(crate) max_errors: Option<u64>,

    /// Stop once the share of failed rows exceeds this, such as 0.05.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, allow_negative_numbers = true, help_heading = "When to stop")]
    pub(crate) max_error_rate: Option<f64>,

    /// Apply `--max-error-rate` only after this many rows [default: 100].
    #[arg(long, value_name = "N", value_parser = parse_positive, allow_negative_numbers = true, help_heading = "When to stop")]
    pub(crate) after: Option<u64>,

    /// Keep going even if the first 50 rows all fail, nearly all for the same reason.
    ///
    /// By default the run stops then. `--max-errors` replaces this rule: with it, that many rows
    /// may fail, for whatever reason.
    #[arg(long, help_heading = "When to stop")]
    pub(crate) keep_going: bool,

    /// Stop after the first successful row and cancel calls in flight.
    #[arg(long, help_heading = "When to stop")]
    pub(crate) stop_on_first_result: bool,

    /// Make no calls after this time: `2h` from now, or a timestamp such as `2026-11-17T06:00:00Z`.
    #[arg(long, value_name = "TIME", value_parser = parse_deadline, help_heading = "When to stop")]
    pub(crate) deadline: Option<DeadlineValue>,

    /// Where to keep the run's ledger while it is unfinished [default: next to the output].
    #[arg(long, value_name = "FOLDER", help_heading = "Ledger")]
    pub(crate) work_dir: Option<PathBuf>,

    /// Keep the ledger after the run has finished.
    #[arg(long, overrides_with = "no_keep_temp", help_heading = "Ledger")]
    pub(crate) keep_temp: bool,

    /// Delete the work folder when all rows are ok.
    ///
    /// By default the run's header, `run.json`, is kept for `--resume` and `plan`.
    #[arg(long, overrides_with = "keep_temp", help_heading = "Ledger")]
    pub(crate) no_keep_temp: bool,

    /// Sync every answer to disk before using it, so that it survives a power failure.
    ///
    /// Without it, answers survive a crash of the process but not of the machine. Answers that
    /// arrive together share one sync, which takes a few milliseconds on most disks.
    #[arg(long, help_heading = "Ledger")]
    pub(crate) durable: bool,

    /// Print a progress line after every N rows.
    #[arg(long, value_name = "N", value_parser = parse_positive, allow_negative_numbers = true, help_heading = "Progress")]
    pub(crate) progress_every: Option<u64>,

    /// Show progress on standard error (the default).
    #[arg(long, overrides_with = "no_progress", help_heading = "Progress")]
    pub(crate) progress: bool,

    /// Do not show progress.
    #[arg(long, overrides_with = "progress", help_heading = "Progress")]
    pub(crate) no_progress: bool,
}

const EXAMPLES: &str = "\
Examples:
  Try a prompt on ten rows and see the results, with a built-in model that needs no key:
    rowmill run -i reviews.jsonl -o - -m simulated --limit 10 \\
      --prompt 'Classify this review: {{review}}'

  Then run all rows with a real model and structured results; rate limits are handled automatically:
    rowmill run -i reviews.jsonl -o results.jsonl -m 'responses.gpt-5.4-mini?reasoning=low' \\
      --instruction classify.md --template review.md --json-schema sentiment.schema.json \\
      --id-field id

  Never spend more than five dollars, and fall back to another model when the first is down:
    rowmill run -i reviews.jsonl -o results.jsonl -m 'openai.gpt-5.4-mini?max_tokens=500' \\
      --max-cost 5 --fallback-model 'anthropic.claude-haiku-4-5?max_tokens=500'

  Process some rows of several Parquet files, and write a table with typed columns:
    rowmill run -i 'parts/*.parquet' -o results.parquet -m simulated \\
      --where \"split = 'eval'\" --json-schema sentiment.schema.json --prompt 'Classify: {{text}}'

  Send every file of a folder to the model; a later run with --resume sends only new files:
    rowmill run -i invoices/ -o invoices.csv -m anthropic.claude-haiku-4-5 --id content \\
      --json-schema invoice.schema.json --prompt 'Read this invoice.'

  An agent with tools; finished turns are saved, so a crash never pays for a turn twice:
    rowmill run -i orders.csv -o results.jsonl -m responses.gpt-5.4-mini --agent-card clerk.md \\
      --prompt '{{question}}' --json-schema answer.schema.json --turns 10 --checkpoint-turns

  Resume after Ctrl-C, a crash or a limit, or to retry failed rows:
    rowmill run … --resume

  A table with the fields of each result next to those of its row:
    rowmill run -i reviews.jsonl -o results.parquet --flatten -m simulated \\
      --json-schema sentiment.schema.json --prompt 'Classify this review: {{review}}'

  Save a command as a spec file, to run it again later or on another machine:
    rowmill run -i reviews.jsonl -o results.jsonl -m simulated --print-spec > spec.json
    rowmill run --spec spec.json

  In a pipe:
    cat rows.jsonl.gz | rowmill run -i - --input-format jsonl -o - -m simulated | jq .result

Exit codes: 0 all rows ok, 1 could not start or stopped by an error, 2 usage,
3 finished with failed rows, 4 stopped at a limit you set, 5 batch jobs not
finished, 130 interrupted.";
