//! The flags of `rowmill simulate`. Their texts are the reference manual.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rowmill_simulator::{
    Change, Distribution, Fault, Limits, OutageKind, Price, Script, Tokenizer, When, notation,
};
use serde_json::Value;

/// Serve a made-up model provider on this machine, to try limits, faults and costs without paying.
///
/// Speaks OpenAI chat and responses, Anthropic messages and Google generateContent, also
/// streamed, and prints where it listens. Point rowmill or any other client at it with the
/// base URL of the provider. `GET /stats` tells what was asked, answered, limited and
/// charged. Ends on Ctrl-C.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = "See `rowmill simulate --help` for examples.")]
pub(crate) struct SimulateFlags {
    /// The port to listen on; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0, help_heading = "Server")]
    port: u16,

    /// The address to listen on; 0.0.0.0 lets other machines in.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", help_heading = "Server")]
    pub(crate) host: IpAddr,

    /// The key that calls must carry; without it any will do.
    #[arg(long, value_name = "KEY", help_heading = "Server")]
    key: Option<String>,

    /// A model that is known; others are refused once one is named. Can be repeated.
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    model: Vec<String>,

    /// The seed of faults, latencies and lengths.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Server")]
    seed: u64,

    /// The length of text answers in bytes; a gibibyte at most.
    #[arg(long, value_name = "N", value_parser = up_to(1 << 30), help_heading = "Answers")]
    answer_bytes: Option<usize>,

    /// The length of text answers in tokens: `50`, `uniform:10..200`, `lognormal:40,1.0` (median,
    /// sigma) or `exponential:50`. The same prompt gets the same length.
    #[arg(long, value_name = "TOKENS", value_parser = Distribution::of_tokens, help_heading = "Answers")]
    answer_tokens: Option<Distribution>,

    /// How tokens are counted: `chars` (four characters a token) or `o200k` (as OpenAI counts).
    #[arg(long, value_name = "NAME", default_value = "chars", help_heading = "Answers")]
    tokenizer: Tokenizer,

    /// The wait before each answer: `200ms`, `uniform:100ms..2s`, `lognormal:800ms,0.6` (median,
    /// sigma) or `exponential:500ms`.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = Distribution::of_durations, help_heading = "Answers")]
    latency: Distribution,

    /// A further wait of up to this much.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = notation::duration, help_heading = "Answers")]
    latency_jitter: Duration,

    /// A file of rules that say how calls are answered: with texts, JSON, calls of tools or faults.
    ///
    /// A JSON array, or a rule on each line, such as `{"when": {"turn": 1, "tool": "search"},
    /// "then": {"calls": [{"name": "search", "arguments": {"query": "{{prompt}}"}}]}}`. The first
    /// rule that fits wins; where none does, calls are answered as without rules.
    #[arg(long, value_name = "FILE", help_heading = "Answers")]
    pub(crate) script: Option<PathBuf>,

    /// Answer from prepared bytes, for benchmarks; checks, limits and faults are left out.
    #[arg(long, help_heading = "Answers")]
    instant: bool,

    /// The text of the prepared answer.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "The quiet river carries the letter.",
        help_heading = "Answers"
    )]
    instant_text: String,

    /// Answer from prepared bytes, and call `--tool` at the first so many turns of a conversation.
    #[arg(long, value_name = "N", value_parser = up_to(1_000), requires = "tool", help_heading = "Answers")]
    instant_turns: Option<usize>,

    /// The tool that prepared answers call, with its arguments: `search {"query": "otters"}`.
    #[arg(long, value_name = "CALL", value_parser = notation::tool_call, requires = "instant_turns", help_heading = "Answers")]
    tool: Option<(String, Value)>,

    /// Calls per minute, for each key and model.
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

    /// After this many calls, tell that the quota is used up.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    quota_requests: Option<u64>,

    /// Give another quota this long after one is used up.
    #[arg(long, value_name = "TIME", value_parser = notation::duration, requires = "quota_requests", help_heading = "Limits")]
    quota_renews: Option<Duration>,

    /// Change something so long after the start, such as `120s:rpm=300,tpm=30000`. Can be repeated.
    ///
    /// Keys: `rpm`, `tpm`, `itpm`, `otpm` (a number, or `none`), `outage` (its length),
    /// `outage-status` (as `--outage-kind`), `quota` (`exhausted` or `ok`) and `latency`.
    #[arg(long, value_name = "TIME:CHANGES", value_parser = notation::changes, help_heading = "Limits")]
    at: Vec<(Duration, Vec<Change>)>,

    /// A fault and the share of calls it strikes, such as `503=0.02` or `429=2%,retry-after=1`. Can be repeated.
    ///
    /// Faults: a status code, which may have headers, `reset`, `midway`, `truncate`, `garbage`, `hang`, `drip`,
    /// `empty`, `refusal`, `length`, `filter`, `wrong`, `fenced`, `null`.
    #[arg(long, value_name = "KIND=RATE[,HEADER=VALUE]", value_parser = notation::fault_rate, help_heading = "Faults")]
    fault: Vec<(Fault, f64)>,

    /// Be down for a time, such as `60s+30s`: from 60 s after the start, for 30 s. Can be repeated.
    #[arg(long, value_name = "START+LENGTH", value_parser = notation::outage, help_heading = "Faults")]
    outage: Vec<(Duration, Duration)>,

    /// What calls meet during outages: a status such as `503` or `529`, `reset`, or `refuse`.
    #[arg(long, value_name = "KIND", default_value = "503", help_heading = "Faults")]
    outage_kind: OutageKind,

    /// Dollars per million tokens, such as `input=0.25,cached=0.025,cache_write=0.3,output=2`.
    ///
    /// `/stats` then has `cost_usd`: what all answers cost that were made, whether they arrived or not.
    #[arg(long, value_name = "PRICES", value_parser = notation::price, help_heading = "Statistics")]
    price: Option<Price>,

    /// Write a line of JSON for every call to this file: model, system text, prompt, turn, tools,
    /// what they were called with and gave, and name, media type, size and SHA-256 of each file.
    #[arg(long, value_name = "FILE", help_heading = "Statistics")]
    pub(crate) log_requests: Option<PathBuf>,

    /// Write the whole conversation of every call to that file too.
    #[arg(long, requires = "log_requests", help_heading = "Statistics")]
    log_messages: bool,

    /// Count answers by the text of their prompt in `/stats`.
    #[arg(long, help_heading = "Statistics")]
    keep_prompts: bool,
}

const EXAMPLES: &str = "\
Examples:
  A provider with limits, on a port of your choice:
    rowmill simulate --port 8080 --rpm 600 --tpm 60000 --latency lognormal:800ms,0.6

  In another terminal, point rowmill at it; any key will do:
    export OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=x
    rowmill run -i reviews.jsonl -o results.jsonl -m openai.gpt-5.4-mini -p 'Rate: {{review}}'
    export ANTHROPIC_BASE_URL=http://127.0.0.1:8080 ANTHROPIC_API_KEY=x
    rowmill run -i reviews.jsonl -o results.jsonl -m anthropic.claude-sonnet-4-5 -p 'Rate: {{review}}'

  See what it counted:
    curl -s http://127.0.0.1:8080/stats | jq .

  Limits that are halved after two minutes, and an outage:
    rowmill simulate --rpm 600 --at 120s:rpm=300 --outage 60s+30s --outage-kind refuse

  Damage, and what it costs:
    rowmill simulate --fault 503=0.02 --fault reset=0.02 --fault drip=0.01 --price input=0.25,output=2

  A model that calls tools by rules, and a log of all that it was told:
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
    pub(crate) fn script(self) -> Script {
        let limits = Limits {
            requests: self.rpm,
            tokens: self.tpm,
            input_tokens: self.itpm,
            output_tokens: self.otpm,
        };
        let mut script = Script::new()
            .host(self.host)
            .port(self.port)
            .seed(self.seed)
            .latency(self.latency)
            .jitter(self.latency_jitter)
            .tokenizer(self.tokenizer)
            .limits(limits)
            .outage_kind(self.outage_kind)
            .drip_every(DRIP)
            .keep_requests(0);
        script = self.model.into_iter().fold(script, Script::model);
        for (fault, rate) in self.fault {
            script = script.fault(When::Rate(rate), fault);
        }
        for (start, length) in self.outage {
            script = script.outage(start, length);
        }
        for (after, changes) in self.at {
            script = changes.into_iter().fold(script, |script, change| script.at(after, change));
        }
        if !self.keep_prompts {
            script = script.forget_prompts();
        }
        if self.log_messages {
            script = script.log_messages();
        }
        script = given(script, self.key, Script::key);
        script = given(script, self.answer_bytes, Script::answer_bytes);
        script = given(script, self.answer_tokens, Script::answer_tokens);
        script = given(script, self.quota_requests, Script::quota_requests);
        script = given(script, self.quota_renews, Script::quota_renews);
        script = given(script, self.price, Script::price);
        let is_instant = self.instant || self.instant_turns.is_some();
        script = given(script, is_instant.then_some(self.instant_text), Script::instant);
        given(script, self.instant_turns.zip(self.tool), |script, (turns, (tool, arguments))| {
            script.instant_turns(turns, tool, arguments)
        })
    }
}

/// Adds to a script what was given.
fn given<T>(script: Script, value: Option<T>, add: fn(Script, T) -> Script) -> Script {
    match value {
        Some(value) => add(script, value),
        None => script,
    }
}
