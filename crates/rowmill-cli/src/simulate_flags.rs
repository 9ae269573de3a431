//! The flags of `rowmill simulate`. Their texts are the reference manual.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rowmill_simulator::{
    FaultTrigger, OutageKind, Price, RandomDistribution, SimulatedFault, SimulatedLimits,
    SimulatorConditionChange, SimulatorScript, Tokenizer, parse_flags,
};
use serde_json::Value;

use crate::simulate_batch_flags::SimulateBatchFlags;

/// Run a simulated model provider locally, to test limits, faults and costs for free.
///
/// Serves the OpenAI chat completions and Responses APIs, Anthropic Messages and Google
/// generateContent, with and without streaming, and the batch APIs of these and of Azure, Groq,
/// Together and Mistral, and prints the address that it listens on. Point rowmill or any other
/// client at it with the provider's base URL. `GET /stats` reports requests, answers, rate limits,
/// batch jobs and cost. Runs until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = "See `rowmill simulate --help` for examples.")]
pub(crate) struct SimulateFlags {
    /// Port to listen on; 0 picks a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0, help_heading = "Server")]
    port: u16,

    /// Address to listen on; 0.0.0.0 lets other machines connect.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", help_heading = "Server")]
    pub(crate) host: IpAddr,

    /// API key that calls must send; any key is accepted by default.
    #[arg(long, value_name = "KEY", help_heading = "Server")]
    key: Option<String>,

    /// Model to serve; all other models are then rejected. Repeatable.
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    model: Vec<String>,

    /// Random seed for faults, latencies and lengths.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Server")]
    seed: u64,

    /// Length of text answers in bytes, at most one gibibyte.
    #[arg(long, value_name = "N", value_parser = up_to(1 << 30), help_heading = "Answers")]
    answer_bytes: Option<usize>,

    /// Length of text answers in tokens, such as `50` or `uniform:10..200`.
    ///
    /// Also `lognormal:40,1.0` (median, sigma) or `exponential:50` (mean). The same prompt gets the
    /// same length.
    #[arg(long, value_name = "TOKENS", value_parser = RandomDistribution::parse_token_counts, help_heading = "Answers")]
    answer_tokens: Option<RandomDistribution>,

    /// How tokens are counted: `chars` (four characters per token) or `o200k` (like OpenAI).
    #[arg(long, value_name = "NAME", default_value = "chars", help_heading = "Answers")]
    tokenizer: Tokenizer,

    /// Wait before each answer, such as `200ms` or `uniform:100ms..2s`.
    ///
    /// Also `lognormal:800ms,0.6` (median, sigma) or `exponential:500ms` (mean).
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = RandomDistribution::parse_durations, help_heading = "Answers")]
    latency: RandomDistribution,

    /// Additional random wait of up to this long.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_flags::parse_duration, help_heading = "Answers")]
    latency_jitter: Duration,

    /// File of rules that define the answers: texts, JSON, tool calls or faults.
    ///
    /// A JSON array, or one rule per line, such as `{"when": {"turn": 1, "tool": "search"}, "then":
    /// {"calls": [{"name": "search", "arguments": {"query": "{{prompt}}"}}]}}`. The first rule that
    /// matches is used; if none matches, calls are answered as without a script.
    #[arg(long, value_name = "FILE", help_heading = "Answers")]
    pub(crate) script: Option<PathBuf>,

    /// Send a prepared answer, for benchmarks; checks, limits and faults are skipped.
    #[arg(long, help_heading = "Answers")]
    instant: bool,

    /// Text of the prepared answer.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "The quiet river carries the letter.",
        help_heading = "Answers"
    )]
    instant_text: String,

    /// Send prepared answers that call `--tool` in the first N turns of each conversation.
    #[arg(long, value_name = "N", value_parser = up_to(1_000), requires = "tool", help_heading = "Answers")]
    instant_turns: Option<usize>,

    /// Tool that prepared answers call, with its arguments: `search {"query": "otters"}`.
    #[arg(long, value_name = "CALL", value_parser = parse_flags::parse_tool_call, requires = "instant_turns", help_heading = "Answers")]
    tool: Option<(String, Value)>,

    /// Requests per minute, for each key and model.
    #[arg(long, value_name = "N", value_parser = limit(), help_heading = "Limits")]
    rpm: Option<u64>,

    /// Tokens per minute, input and output together.
    #[arg(long, value_name = "N", value_parser = limit(), help_heading = "Limits")]
    tpm: Option<u64>,

    /// Input tokens per minute.
    #[arg(long, value_name = "N", value_parser = limit(), help_heading = "Limits")]
    itpm: Option<u64>,

    /// Output tokens per minute.
    #[arg(long, value_name = "N", value_parser = limit(), help_heading = "Limits")]
    otpm: Option<u64>,

    /// Report the quota as exhausted after this many calls.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    quota_requests: Option<u64>,

    /// Renew the quota this long after it is exhausted.
    #[arg(long, value_name = "TIME", value_parser = parse_flags::parse_duration, requires = "quota_requests", help_heading = "Limits")]
    quota_renews: Option<Duration>,

    /// Change settings at a time after the start, such as `120s:rpm=300,tpm=30000`; repeatable.
    ///
    /// Keys: `rpm`, `tpm`, `itpm`, `otpm` (a number, or `none`), `outage` (its length),
    /// `outage-status` (as `--outage-kind`), `quota` (`exhausted` or `ok`) and `latency`.
    #[arg(long, value_name = "TIME:CHANGES", value_parser = parse_flags::parse_timed_condition_changes, help_heading = "Limits")]
    at: Vec<(Duration, Vec<SimulatorConditionChange>)>,

    /// Inject a fault into a share of calls, such as `503=0.02`; repeatable.
    ///
    /// Faults: a status code, `reset`, `midway`, `truncate`, `garbage`, `hang`, `drip`, `empty`,
    /// `refusal`, `length`, `filter`, `wrong`, `fenced`, `null`. A status code may have headers:
    /// `429=2%,retry-after=1`.
    #[arg(long, value_name = "KIND=RATE[,HEADER=VALUE]", value_parser = parse_flags::parse_fault_rate, help_heading = "Faults")]
    fault: Vec<(SimulatedFault, f64)>,

    /// Simulate an outage, such as `60s+30s`: 60 s after the start, for 30 s. Repeatable.
    #[arg(long, value_name = "START+LENGTH", value_parser = parse_flags::parse_outage, help_heading = "Faults")]
    outage: Vec<(Duration, Duration)>,

    /// How calls fail during an outage: a status such as `503` or `529`, `reset`, or `refuse`.
    #[arg(long, value_name = "KIND", default_value = "503", help_heading = "Faults")]
    outage_kind: OutageKind,

    #[command(flatten)]
    batches: SimulateBatchFlags,

    /// Dollars per million tokens, such as `input=0.25,cached=0.025,cache_write=0.3,output=2`.
    ///
    /// `/stats` then includes `cost_usd`: the cost of all answers that were generated, whether they
    /// arrived or not.
    #[arg(long, value_name = "PRICES", value_parser = parse_flags::parse_price, help_heading = "Statistics")]
    price: Option<Price>,

    /// Log every call to this file as JSON Lines.
    ///
    /// A line has the model, system text, prompt, turn, offered tools, tool calls with their
    /// arguments and results, and the name, media type, size and SHA-256 of each file.
    #[arg(long, value_name = "FILE", help_heading = "Statistics")]
    pub(crate) log_requests: Option<PathBuf>,

    /// Include the whole conversation of every call in that log.
    #[arg(long, requires = "log_requests", help_heading = "Statistics")]
    log_messages: bool,

    /// Count answers per prompt text in `/stats`.
    #[arg(long, help_heading = "Statistics")]
    keep_prompts: bool,
}

const EXAMPLES: &str = "\
Examples:
  A provider with rate limits, on a port of your choice:
    rowmill simulate --port 8080 --rpm 600 --tpm 60000 --latency lognormal:800ms,0.6

  In another terminal, point rowmill at it; any key works:
    export OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=x
    rowmill run -i reviews.jsonl -o results.jsonl -m openai.gpt-5.4-mini -p 'Rate: {{review}}'
    export ANTHROPIC_BASE_URL=http://127.0.0.1:8080 ANTHROPIC_API_KEY=x
    rowmill run -i reviews.jsonl -o results.jsonl -m anthropic.claude-sonnet-4-5 -p 'Rate: {{review}}'

  Show its statistics:
    curl -s http://127.0.0.1:8080/stats | jq .

  Halve the request limit after two minutes, and simulate an outage after one:
    rowmill simulate --rpm 600 --at 120s:rpm=300 --outage 60s+30s --outage-kind refuse

  Inject faults, and count what the answers cost:
    rowmill simulate --fault 503=0.02 --fault reset=0.02 --fault drip=0.01 --price input=0.25,output=2

  Batch jobs of two hours that take two seconds, of which the first answer is lost:
    rowmill simulate --port 8080 --batch-duration 2h --time-scale 3600 --batch-lose-creates 1

  A model that calls tools by rules, and a log of all messages that it receives:
    rowmill simulate --script rules.jsonl --log-requests calls.jsonl --log-messages";

fn limit() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..)
}

/// Bytes of dripping answers come at this pace, as nobody lets them through by hand.
const DRIP: Duration = Duration::from_millis(50);

/// A number that this machine can be asked for.
fn up_to(most: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(..=most)
}

impl SimulateFlags {
    /// The script that these flags tell.
    pub(crate) fn script(self) -> SimulatorScript {
        let limits = SimulatedLimits {
            requests: self.rpm,
            tokens: self.tpm,
            input_tokens: self.itpm,
            output_tokens: self.otpm,
        };
        let mut script = SimulatorScript::new()
            .host(self.host)
            .port(self.port)
            .seed(self.seed)
            .latency(self.latency)
            .jitter(self.latency_jitter)
            .tokenizer(self.tokenizer)
            .limits(limits)
            .outage_kind(self.outage_kind)
            .drip_every(DRIP)
            .batches(self.batches.settings())
            .keep_requests(0);
        script = self.model.into_iter().fold(script, SimulatorScript::model);
        for (fault, rate) in self.fault {
            script = script.fault(FaultTrigger::Rate(rate), fault);
        }
        for (start, length) in self.outage {
            script = script.outage(start, length);
        }
        for (after, changes) in self.at {
            script = changes.into_iter().fold(script, |script, change| script.change_after(after, change));
        }
        if !self.keep_prompts {
            script = script.forget_prompts();
        }
        if self.log_messages {
            script = script.log_messages();
        }
        script = given(script, self.key, SimulatorScript::key);
        script = given(script, self.answer_bytes, SimulatorScript::answer_bytes);
        script = given(script, self.answer_tokens, SimulatorScript::answer_tokens);
        script = given(script, self.quota_requests, SimulatorScript::quota_requests);
        script = given(script, self.quota_renews, SimulatorScript::quota_renews);
        script = given(script, self.price, SimulatorScript::price);
        let is_instant = self.instant || self.instant_turns.is_some();
        script = given(script, is_instant.then_some(self.instant_text), SimulatorScript::instant_answer);
        given(script, self.instant_turns.zip(self.tool), |script, (turns, (tool, arguments))| {
            script.instant_tool_turns(turns, tool, arguments)
        })
    }
}

/// Adds to a script what was given.
fn given<T>(
    script: SimulatorScript,
    value: Option<T>,
    add: fn(SimulatorScript, T) -> SimulatorScript,
) -> SimulatorScript {
    match value {
        Some(value) => add(script, value),
        None => script,
    }
}
