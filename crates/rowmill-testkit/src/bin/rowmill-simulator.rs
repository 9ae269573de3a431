//! A provider on a loopback port, for black-box tests and benchmarks.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rowmill_testkit::{Fault, Script, Simulator, When};

/// Answer as a model provider would, or badly on purpose.
///
/// Speaks OpenAI chat and responses, Anthropic messages and Google
/// generateContent on 127.0.0.1, and prints where it listens.
#[derive(Debug, Parser)]
struct Flags {
    /// The port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The wait before each answer, such as `20ms` or `1s`.
    #[arg(long, default_value = "0", value_parser = duration)]
    latency: Duration,
    /// A further wait of up to this much.
    #[arg(long, default_value = "0", value_parser = duration)]
    latency_jitter: Duration,
    /// A fault and the share of calls it strikes, such as `503=0.02` or `reset=0.01`.
    #[arg(long, value_name = "KIND=RATE", value_parser = fault)]
    fault: Vec<(Fault, f64)>,
    /// The seed of faults and jitter.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The length of text answers in bytes.
    #[arg(long, value_name = "N")]
    answer_bytes: Option<usize>,
    /// The key that calls must carry.
    #[arg(long)]
    key: Option<String>,
    /// A model that is known; others are refused once one is named.
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// Count answers by the text of their prompt in `/stats`.
    #[arg(long)]
    keep_prompts: bool,
    /// Answer from prepared bytes, for benchmarks; checks and faults are left out.
    #[arg(long)]
    instant: bool,
    /// The text of the prepared answer.
    #[arg(long, value_name = "TEXT", default_value = "The quiet river carries the letter.")]
    instant_text: String,
}

/// Bytes of dripping answers come at this pace, as nobody lets them through by hand.
const DRIP: Duration = Duration::from_millis(50);

fn duration(text: &str) -> Result<Duration, String> {
    rowmill_core::time_span::parse(text)
        .ok_or_else(|| format!("`{text}` is no duration; write `20ms` or `1.5s`"))
}

fn fault(text: &str) -> Result<(Fault, f64), String> {
    let (name, rate) = text.split_once('=').ok_or("write a fault as KIND=RATE, such as `503=0.02`")?;
    let fault = Fault::named(name).ok_or_else(|| format!("`{name}` is no fault"))?;
    match rate.parse::<f64>() {
        Ok(rate) if (0.0..=1.0).contains(&rate) => Ok((fault, rate)),
        _ => Err(format!("`{rate}` is no share between 0 and 1")),
    }
}

fn script(flags: Flags) -> Script {
    let mut script = Script::new()
        .port(flags.port)
        .seed(flags.seed)
        .latency(flags.latency)
        .jitter(flags.latency_jitter)
        .drip_every(DRIP)
        .keep_requests(0);
    if !flags.keep_prompts {
        script = script.forget_prompts();
    }
    for (fault, rate) in flags.fault {
        script = script.fault(When::Rate(rate), fault);
    }
    for model in flags.model {
        script = script.model(model);
    }
    if let Some(key) = flags.key {
        script = script.key(key);
    }
    if let Some(bytes) = flags.answer_bytes {
        script = script.answer_bytes(bytes);
    }
    if flags.instant { script.instant(flags.instant_text) } else { script }
}

fn main() -> ExitCode {
    let served = Simulator::serve(script(Flags::parse()), |address| {
        let mut out = io::stdout().lock();
        writeln!(out, "listening on http://{address}").and_then(|()| out.flush()).is_ok()
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where even the error cannot be written, the exit code tells it.
            drop(writeln!(io::stderr(), "the simulator cannot start: {error}"));
            ExitCode::FAILURE
        }
    }
}
