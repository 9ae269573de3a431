//! The flags of `rowmill run`, as given. Their texts are the reference manual.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use rowmill::{Format, Money};

use crate::agent_flags::AgentFlags;
use crate::data_flags::DataFlags;
use crate::output_flags::OutputFlags;
use crate::values::{
    Deadline, Quota, Rows, SummaryFormat, deadline, dollars, duration, duration_or_none, format_name,
    positive, quota, rows, share, summary_format, switch, whole, whole_u32,
};

/// Run a model over every row of a file and write one result per row.
///
/// Every row of the input becomes a prompt, is answered by the model, and leaves one
/// line in the output: an envelope with its id, its result or its error. With an output
/// that ends in `.csv`, `.tsv` or `.parquet` it leaves a row of that table. The run is
/// recorded as it goes: after Ctrl-C or a crash, `--resume` goes on where it was and
/// pays for no finished row again.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = "See `rowmill run --help` for examples.")]
#[command(group(ArgGroup::new("place").args(["output", "output_dir", "spec"]).required(true)))]
#[command(override_usage = USAGE)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) output: OutputFlags,

    #[command(flatten)]
    pub(crate) common: CommonFlags,

    /// Print the spec of this command as JSON, and do nothing else; `--spec` runs it.
    ///
    /// What `rowmill.toml` and the defaults say is in it, and no key of the environment is.
    #[arg(long, help_heading = "Spec")]
    pub(crate) print_spec: bool,
}

const USAGE: &str = "rowmill run [OPTIONS] --input <INPUT> <--output <FILE>|--output-dir <FOLDER>>\n       \
                     rowmill run [OPTIONS] --spec <FILE>";

/// The flags that `run` and `plan` share.
#[derive(Debug, Args)]
pub(crate) struct CommonFlags {
    /// Run what a file says: a spec, as `--print-spec` prints it; `-` for standard input.
    ///
    /// A spec is complete: `rowmill.toml` is not read, and flags that are part of a spec cannot stand
    /// beside it. `--resume`, `--accept-changes`, `--overwrite` and those of progress and summary can.
    /// `docs/run-spec.md` tells what a spec may say.
    #[arg(long, value_name = "FILE", help_heading = "Spec")]
    pub(crate) spec: Option<PathBuf>,

    /// The rows: a file, a pattern, a folder of documents, an address, or `-` for standard input.
    ///
    /// Files end in `.jsonl`, `.ndjson`, `.csv`, `.tsv`, `.json` (one array) or `.parquet`, and may
    /// be packed with gzip or zstd. A pattern such as `'parts/*.parquet'` reads several files as
    /// one, and so does a folder called `rows.parquet`, or one with folders such as `year=2026`. Any
    /// other folder, or a pattern of other files such as `'invoices/*.pdf'`, makes every file a row
    /// and sends it. Addresses are `https://…` and `hf://datasets/owner/name[/path]`. A command without
    /// `--spec` needs it.
    #[arg(long, short, value_name = "INPUT", required_unless_present = "spec", help_heading = "Rows")]
    pub(crate) input: Option<String>,

    /// The format of the input, where its name does not tell.
    #[arg(long, value_name = "FORMAT", value_parser = format_name, help_heading = "Rows")]
    pub(crate) input_format: Option<Format>,

    /// Take at most this many rows.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true, help_heading = "Rows")]
    pub(crate) limit: Option<u64>,

    /// Pass over this many rows first.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true, help_heading = "Rows")]
    pub(crate) offset: Option<u64>,

    /// Take a random sample of this many rows, in input order; the same for the same seed.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true, help_heading = "Rows")]
    pub(crate) sample: Option<u64>,

    /// The seed of the sample [default: 0].
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true, help_heading = "Rows")]
    pub(crate) seed: Option<u64>,

    /// The field whose value names a row; row numbers are used without it.
    ///
    /// Values must be unique. With an id field, rows may be added, removed and moved
    /// between a run and its resume.
    #[arg(long, value_name = "FIELD", help_heading = "Rows")]
    pub(crate) id_field: Option<String>,

    #[command(flatten)]
    pub(crate) data: DataFlags,

    /// The template of the prompt, given here: `{{field}}` and `{{row_json}}` are filled in.
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Worker")]
    pub(crate) prompt: Option<String>,

    /// The template of the prompt: a path, `file://`, `http(s)://` or `hf://`.
    #[arg(long, value_name = "SOURCE", help_heading = "Worker")]
    pub(crate) template: Option<String>,

    /// The instruction that every call carries: a path, `file://`, `http(s)://` or `hf://`.
    #[arg(long, value_name = "SOURCE", help_heading = "Worker")]
    pub(crate) instruction: Option<String>,

    #[command(flatten)]
    pub(crate) agents: AgentFlags,

    /// The model, as `provider.model?key=value`; `rowmill models` lists providers.
    #[arg(long, short, value_name = "MODEL", env = "ROWMILL_MODEL", help_heading = "Worker")]
    pub(crate) model: Option<String>,

    /// A JSON Schema that results must satisfy: a path, `file://`, `http(s)://` or `hf://`.
    #[arg(long, value_name = "SOURCE", help_heading = "Worker")]
    pub(crate) json_schema: Option<String>,

    /// A pydantic model that results must satisfy, as `module.path:Class`; asks your Python for its schema.
    #[arg(long, value_name = "MODULE:CLASS", help_heading = "Worker")]
    pub(crate) schema_model: Option<String>,

    /// How often an answer that breaks the schema is sent back with what is wrong [default: 1].
    #[arg(long, value_name = "N", value_parser = whole_u32, allow_negative_numbers = true, help_heading = "Worker")]
    pub(crate) repairs: Option<u32>,

    /// A variable of the instruction, filled in for `{{name}}`; can be repeated.
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Worker")]
    pub(crate) var: Vec<String>,

    /// A variable of the instruction whose value is in a file; can be repeated.
    #[arg(long, value_name = "NAME=PATH", help_heading = "Worker")]
    pub(crate) var_file: Vec<String>,

    /// A file with one JSON object of variables; `--var-file` and `--var` win over it.
    #[arg(long, value_name = "PATH", help_heading = "Worker")]
    pub(crate) vars_json: Option<PathBuf>,

    /// Go on with the run that wrote the output: rows that are ok are skipped, the rest is tried again.
    #[arg(long, help_heading = "Results")]
    pub(crate) resume: bool,

    /// With `--resume`: go on although the model, prompt, schema or input has changed.
    #[arg(long, help_heading = "Results")]
    pub(crate) accept_changes: bool,

    /// Replace the output if it exists.
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

    /// Write times and tokens of every row to this file, one JSON line each.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) telemetry_output: Option<PathBuf>,

    /// Write the summary of the run to this file as JSON.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) summary_output: Option<PathBuf>,

    /// Write the trace of every row to this folder: all messages, tool calls, tokens and times.
    ///
    /// Each row has a file `row-000001__id-…` in the form of Codex sessions; `manifest.jsonl` has a
    /// line for every row, `spans.jsonl` the same as OpenTelemetry spans. Credentials are taken
    /// out. Example: `--export-traces traces/`.
    #[arg(long, value_name = "FOLDER", help_heading = "Results")]
    pub(crate) export_traces: Option<PathBuf>,

    /// What standard output gets at the end: `json`, `text` for no JSON, or `auto` for JSON where it is
    /// no terminal and has no envelopes [default: auto].
    ///
    /// People read the summary on standard error in any case.
    #[arg(long, value_name = "auto|text|json", value_parser = summary_format, help_heading = "Results")]
    pub(crate) summary_format: Option<SummaryFormat>,

    /// Print the summary as JSON on standard output, also on a terminal; the same as `--summary-format json`.
    #[arg(long, overrides_with = "no_final_summary", help_heading = "Results")]
    pub(crate) final_summary: bool,

    /// Print no JSON summary on standard output.
    #[arg(long, overrides_with = "final_summary", help_heading = "Results")]
    pub(crate) no_final_summary: bool,

    /// Rows worked on at once, at most; `auto` finds out how many help [default: auto].
    #[arg(long, value_name = "N|auto", value_parser = rows, allow_negative_numbers = true, env = "ROWMILL_PARALLEL", help_heading = "Pace")]
    pub(crate) parallel: Option<Rows>,

    /// Requests per minute, at most; limits that the provider tells are learned and kept in any case.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = "Pace")]
    pub(crate) rpm: Option<u64>,

    /// Tokens per minute, prompts and answers together, at most.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = "Pace")]
    pub(crate) tpm: Option<u64>,

    /// Prompt tokens per minute, at most.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = "Pace")]
    pub(crate) itpm: Option<u64>,

    /// Generated tokens per minute, at most.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = "Pace")]
    pub(crate) otpm: Option<u64>,

    /// Whether limits that the provider tells are kept: `auto`, or `off` to run into them [default: auto].
    #[arg(long, value_name = "auto|off", value_parser = switch, help_heading = "Pace")]
    pub(crate) pace: Option<bool>,

    /// When the account's quota is used up: `wait` until there is some again, or `stop` [default: wait].
    #[arg(long, value_name = "wait|stop", value_parser = quota, help_heading = "Pace")]
    pub(crate) on_quota: Option<Quota>,

    /// How long to wait for a provider that is down or lets no call through, before the run stops [default: 1h].
    ///
    /// With 0 nothing is waited for, not even what the provider asks for if that is more than a minute: rows fail
    /// when their tries are used up. A provider that never answered a single call is waited for
    /// one minute at most.
    #[arg(long, value_name = "TIME", value_parser = duration_or_none, help_heading = "Pace")]
    pub(crate) max_outage: Option<Duration>,

    /// Do not let the first call go alone where that fills the provider's cache for the others.
    #[arg(long, help_heading = "Pace")]
    pub(crate) no_prime: bool,

    /// Stop before the run can cost more than this many dollars, over all its resumes.
    ///
    /// A call is sent only if its worst case fits what is left. Exit code 4; a resume with
    /// a higher limit goes on. Where the model string has no `max_tokens`, each answer is limited
    /// in length so that calls still fit beside each other; one that is cut is asked for again.
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true, help_heading = "Money")]
    pub(crate) max_cost: Option<Money>,

    /// Stop before the run can use more than this many tokens, over all its resumes.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true, help_heading = "Money")]
    pub(crate) max_tokens: Option<u64>,

    /// Send rows that ask the same only once; every row gets its envelope.
    #[arg(long, help_heading = "Money")]
    pub(crate) dedupe: bool,

    /// Keep answers in this folder and use them again, in this run and in later ones; implies `--dedupe`.
    #[arg(long, value_name = "FOLDER", help_heading = "Money")]
    pub(crate) cache: Option<PathBuf>,

    /// Another model to ask when the first gives no answer or its provider is down; can be repeated.
    #[arg(long, value_name = "MODEL", help_heading = "Faults")]
    pub(crate) fallback_model: Vec<String>,

    /// Further tries after a call that failed for a passing reason [default: 4].
    #[arg(long, value_name = "N", value_parser = whole_u32, allow_negative_numbers = true, env = "ROWMILL_RETRIES", help_heading = "Faults")]
    pub(crate) retries: Option<u32>,

    /// The first wait between tries; it doubles every time [default: 500ms].
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Faults")]
    pub(crate) retry_wait: Option<Duration>,

    /// How long one call may take, such as `90s`, `5m` or `30` (seconds) [default: 10m].
    #[arg(long, value_name = "TIME", value_parser = duration, env = "ROWMILL_TIMEOUT", help_heading = "Faults")]
    pub(crate) timeout: Option<Duration>,

    /// How long the calls of one row and the waits between its tries may take together.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Faults")]
    pub(crate) row_timeout: Option<Duration>,

    /// How long a connection may take [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Faults")]
    pub(crate) connect_timeout: Option<Duration>,

    /// How long the first byte of an answer may take [default: 10m].
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Faults")]
    pub(crate) first_byte_timeout: Option<Duration>,

    /// How long an answer may stall between two pieces of it [default: 5m].
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Faults")]
    pub(crate) idle_timeout: Option<Duration>,

    /// When a row fails: `continue`, or `stop` the run [default: continue].
    #[arg(long, value_name = "continue|stop", value_parser = ["continue", "stop"], help_heading = "When to stop")]
    pub(crate) on_error: Option<String>,

    /// Stop once this many rows have failed; 0 stops before the first row.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true, help_heading = "When to stop")]
    pub(crate) max_errors: Option<u64>,

    /// Stop once more than this share of rows has failed, such as 0.05.
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true, help_heading = "When to stop")]
    pub(crate) max_error_rate: Option<f64>,

    /// Look at `--max-error-rate` only after this many rows [default: 100].
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = "When to stop")]
    pub(crate) after: Option<u64>,

    /// Send all rows even if the first fifty all fail, nearly all of them for the same reason; without this
    /// the run stops then.
    ///
    /// `--max-errors` takes its place: with it, that many rows may fail, for whatever reason.
    #[arg(long, help_heading = "When to stop")]
    pub(crate) keep_going: bool,

    /// Stop as soon as one row is ok; calls in flight are cancelled.
    #[arg(long, help_heading = "When to stop")]
    pub(crate) stop_on_first_result: bool,

    /// Send no further call after this time, such as `2h` or `2026-11-17T06:00:00Z`.
    #[arg(long, value_name = "TIME", value_parser = deadline, help_heading = "When to stop")]
    pub(crate) deadline: Option<Deadline>,

    /// Where the ledger of the run is kept while it is unfinished [default: beside the output].
    #[arg(long, value_name = "FOLDER", help_heading = "Faults")]
    pub(crate) work_dir: Option<PathBuf>,

    /// Keep the ledger of a finished run.
    #[arg(long, overrides_with = "no_keep_temp", help_heading = "Faults")]
    pub(crate) keep_temp: bool,

    /// Leave nothing of a run whose rows are all ok; without this its header stays, for `--resume` and `plan`.
    #[arg(long, overrides_with = "keep_temp", help_heading = "Faults")]
    pub(crate) no_keep_temp: bool,

    /// Force every answer to disk before anything is made of it, so that it outlasts a power failure too.
    ///
    /// Without this an answer outlasts the end of the process, however it ends. Each group of answers that
    /// arrive together takes as long as the disk needs, a few milliseconds on most.
    #[arg(long, help_heading = "Faults")]
    pub(crate) durable: bool,

    /// Print a line of progress after every N rows.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = "Progress")]
    pub(crate) progress_every: Option<u64>,

    /// Show progress on standard error (the default).
    #[arg(long, overrides_with = "no_progress", help_heading = "Progress")]
    pub(crate) progress: bool,

    /// Show no progress.
    #[arg(long, overrides_with = "progress", help_heading = "Progress")]
    pub(crate) no_progress: bool,
}

const EXAMPLES: &str = "\
Examples:
  Try a prompt on ten rows and see the results, with a built-in model that needs no key:
    rowmill run -i reviews.jsonl -o - -m simulated --limit 10 \\
      --prompt 'Classify this review: {{review}}'

  Then run all of them with a real model, with results in a fixed shape; the pace finds itself:
    rowmill run -i reviews.jsonl -o results.jsonl -m 'responses.gpt-5.4-mini?reasoning=low' \\
      --instruction classify.md --template review.md --json-schema sentiment.schema.json \\
      --id-field id

  Never spend more than five dollars, and ask another model when the first is down:
    rowmill run -i reviews.jsonl -o results.jsonl -m 'openai.gpt-5.4-mini?max_tokens=500' \\
      --max-cost 5 --fallback-model 'anthropic.claude-haiku-4-5?max_tokens=500'

  Some rows of several Parquet files, and a table of results with typed columns:
    rowmill run -i 'parts/*.parquet' -o results.parquet -m simulated \\
      --where \"split = 'eval'\" --json-schema sentiment.schema.json --prompt 'Classify: {{text}}'

  Every file of a folder, each sent to the model; a later run with --resume does only new ones:
    rowmill run -i invoices/ -o invoices.csv -m anthropic.claude-haiku-4-5 --id content \\
      --json-schema invoice.schema.json --prompt 'Read this invoice.'

  An agent with tools; what was finished of a row is kept, so that a crash costs no turn twice:
    rowmill run -i orders.csv -o results.jsonl -m responses.gpt-5.4-mini --agent-card clerk.md \\
      --prompt '{{question}}' --json-schema answer.schema.json --turns 10 --checkpoint-turns

  Go on after Ctrl-C, a crash, a limit, or to try failed rows again:
    rowmill run … --resume

  A typed table, with the fields of the result beside those of the row:
    rowmill run -i reviews.jsonl -o results.parquet --flatten -m simulated \\
      --json-schema sentiment.schema.json --prompt 'Classify this review: {{review}}'

  The same run again, or on another machine, from a file that says everything:
    rowmill run -i reviews.jsonl -o results.jsonl -m simulated --print-spec > spec.json
    rowmill run --spec spec.json

  In a pipe:
    cat rows.jsonl.gz | rowmill run -i - --input-format jsonl -o - -m simulated | jq .result

Exit codes: 0 all rows ok, 1 could not start or stopped by an error, 2 usage,
3 finished with failed rows, 4 stopped at a limit you set, 130 interrupted.";
