//! The script of a simulator.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use rowmill_core::cost::Price;
use serde_json::Value;

use crate::answer::{AnswerFunction, ReplyFunction, SimulatedAnswer};
use crate::batch::SimulatedBatches;
use crate::call_log::CallLog;
use crate::conditions::SimulatorConditionChange;
use crate::conversation::SimulatedCallView;
use crate::distribution::RandomDistribution;
use crate::fault::{FaultTrigger, SimulatedFault};
use crate::limits::SimulatedLimits;
use crate::outage::OutageKind;
use crate::rules::SimulatedAnswerRules;
use crate::tokens::Tokenizer;

/// Settings that define what a simulator checks, how it answers, and which faults it injects.
///
/// ```
/// # use rowmill_simulator::{SimulatedFault, SimulatorScript, FaultTrigger};
/// # use std::time::Duration;
/// let script = SimulatorScript::new()
///     .key("k")
///     .model("m")
///     .latency(Duration::from_millis(5))
///     .fault(FaultTrigger::Nth(3), SimulatedFault::from_status(503))
///     .fault(FaultTrigger::Rate(0.02), SimulatedFault::Reset);
/// ```
#[derive(Clone)]
pub struct SimulatorScript {
    pub(crate) host: IpAddr,
    pub(crate) port: u16,
    pub(crate) seed: u64,
    pub(crate) key: Option<String>,
    pub(crate) models: Vec<String>,
    pub(crate) latency: RandomDistribution,
    pub(crate) jitter: Duration,
    pub(crate) faults: Vec<(FaultTrigger, SimulatedFault)>,
    pub(crate) answer: Option<Arc<AnswerFunction>>,
    pub(crate) reply: Option<Arc<ReplyFunction>>,
    pub(crate) rules: SimulatedAnswerRules,
    pub(crate) answer_bytes: Option<usize>,
    pub(crate) answer_tokens: Option<RandomDistribution>,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) limits: SimulatedLimits,
    pub(crate) quota_requests: Option<u64>,
    pub(crate) quota_renews: Option<Duration>,
    pub(crate) changes: Vec<(Duration, SimulatorConditionChange)>,
    pub(crate) outage_kind: OutageKind,
    pub(crate) price: Option<Price>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) texts: BTreeMap<String, String>,
    pub(crate) hold_after: Option<u64>,
    pub(crate) drip_every: Option<Duration>,
    pub(crate) keep_requests: usize,
    pub(crate) keep_prompts: bool,
    pub(crate) instant: Option<String>,
    pub(crate) instant_turns: Option<InstantTurns>,
    pub(crate) body_limit: Option<usize>,
    pub(crate) upload_status: Option<u16>,
    pub(crate) file_processing_polls: u32,
    pub(crate) log: Option<CallLog>,
    pub(crate) log_messages: bool,
    pub(crate) batches: SimulatedBatches,
}

impl SimulatorScript {
    /// Answers everything correctly and immediately, with any key and any model.
    #[must_use]
    pub fn new() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            seed: 0,
            key: None,
            models: Vec::new(),
            latency: RandomDistribution::Constant(0.0),
            jitter: Duration::ZERO,
            faults: Vec::new(),
            answer: None,
            reply: None,
            rules: SimulatedAnswerRules::default(),
            answer_bytes: None,
            answer_tokens: None,
            tokenizer: Tokenizer::Characters,
            limits: SimulatedLimits::default(),
            quota_requests: None,
            quota_renews: None,
            changes: Vec::new(),
            outage_kind: OutageKind::Status(503),
            price: None,
            headers: Vec::new(),
            texts: BTreeMap::new(),
            hold_after: None,
            drip_every: None,
            keep_requests: 256,
            keep_prompts: true,
            instant: None,
            instant_turns: None,
            body_limit: None,
            upload_status: None,
            file_processing_polls: 0,
            log: None,
            log_messages: false,
            batches: SimulatedBatches::new(),
        }
    }

    /// Listens on this address instead of a loopback address.
    #[must_use]
    pub fn host(mut self, host: IpAddr) -> Self {
        self.host = host;
        self
    }

    /// Listens on this port instead of a free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets the seed of random faults and of the jitter.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Rejects calls without this key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Adds a known model; once there is one, all others are rejected.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.models.push(model.into());
        self
    }

    /// Waits this long before each answer: a constant, or a distribution.
    #[must_use]
    pub fn latency(mut self, latency: impl Into<RandomDistribution>) -> Self {
        self.latency = latency.into();
        self
    }

    /// Waits up to this much longer, derived from the seed.
    #[must_use]
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// Adds a fault. The first one that applies wins; prompt markers come after all of them.
    #[must_use]
    pub fn fault(mut self, when: FaultTrigger, fault: SimulatedFault) -> Self {
        self.faults.push((when, fault));
        self
    }

    /// Answers with a function of the prompt and of how often it was received, from 1.
    #[must_use]
    pub fn answer_prompts(
        mut self,
        answer: impl Fn(&str, u64) -> SimulatedAnswer + Send + Sync + 'static,
    ) -> Self {
        self.answer = Some(Arc::new(answer));
        self
    }

    /// Answers with a function of everything in a call. [`SimulatedAnswer::Default`] leaves it to the rules.
    ///
    /// ```
    /// # use rowmill_simulator::{SimulatedAnswer, SimulatorScript};
    /// # use serde_json::json;
    /// let script = SimulatorScript::new().answer_calls(|seen| match seen.turn {
    ///     1 => SimulatedAnswer::Calls { text: String::new(), calls: vec![("search".into(), json!({"query": seen.prompt}))] },
    ///     _ => SimulatedAnswer::Text(format!("found: {}", seen.last)),
    /// });
    /// ```
    #[must_use]
    pub fn answer_calls(
        mut self,
        reply: impl Fn(&SimulatedCallView<'_>) -> SimulatedAnswer + Send + Sync + 'static,
    ) -> Self {
        self.reply = Some(Arc::new(reply));
        self
    }

    /// Answers with rules; a call that matches none is answered as without them.
    #[must_use]
    pub fn rules(mut self, rules: SimulatedAnswerRules) -> Self {
        self.rules = rules;
        self
    }

    /// Makes text answers this many bytes long.
    #[must_use]
    pub fn answer_bytes(mut self, bytes: usize) -> Self {
        self.answer_bytes = Some(bytes);
        self
    }

    /// Makes text answers this many tokens long, the same for the same prompt.
    #[must_use]
    pub fn answer_tokens(mut self, tokens: RandomDistribution) -> Self {
        self.answer_tokens = Some(tokens);
        self
    }

    /// Counts tokens with this tokenizer.
    #[must_use]
    pub fn tokenizer(mut self, tokenizer: Tokenizer) -> Self {
        self.tokenizer = tokenizer;
        self
    }

    /// Rejects calls beyond these limits, for each key and model.
    #[must_use]
    pub fn limits(mut self, limits: SimulatedLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Rejects everything once this many calls were admitted.
    #[must_use]
    pub fn quota_requests(mut self, calls: u64) -> Self {
        self.quota_requests = Some(calls);
        self
    }

    /// Renews the quota this long after it was exhausted.
    #[must_use]
    pub fn quota_renews(mut self, after: Duration) -> Self {
        self.quota_renews = Some(after);
        self
    }

    /// Makes a change this long after the start.
    #[must_use]
    pub fn change_after(mut self, after: Duration, change: SimulatorConditionChange) -> Self {
        self.changes.push((after, change));
        self
    }

    /// Schedules an outage of a given length, this long after the start.
    #[must_use]
    pub fn outage(self, after: Duration, length: Duration) -> Self {
        self.change_after(after, SimulatorConditionChange::Outage(length, None))
    }

    /// Sets the kind of outages; the default is status 503.
    #[must_use]
    pub fn outage_kind(mut self, kind: OutageKind) -> Self {
        self.outage_kind = kind;
        self
    }

    /// Sets prices, so that the cost of answers is counted.
    #[must_use]
    pub fn price(mut self, price: Price) -> Self {
        self.price = Some(price);
        self
    }

    /// Sends this header with every answer to a model call.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Serves a text at `/text/{name}`.
    #[must_use]
    pub fn serve_text(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.texts.insert(name.into(), text.into());
        self
    }

    /// Answers the first `calls` calls; later ones wait for [`crate::Simulator::release`].
    #[must_use]
    pub fn hold_after(mut self, calls: u64) -> Self {
        self.hold_after = Some(calls);
        self
    }

    /// Releases a byte of a dripping answer at this interval, in addition to [`crate::Simulator::release_bytes`].
    #[must_use]
    pub fn drip_every(mut self, interval: Duration) -> Self {
        self.drip_every = Some(interval);
        self
    }

    /// Keeps the last `count` requests for [`crate::Simulator::requests`]; 256 by default.
    #[must_use]
    pub fn keep_requests(mut self, count: usize) -> Self {
        self.keep_requests = count;
        self
    }

    /// Does not keep the texts of prompts, for runs of many rows.
    #[must_use]
    pub fn forget_prompts(mut self) -> Self {
        self.keep_prompts = false;
        self
    }

    /// Rejects calls with a larger body; replaces the vendor's own limit.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = Some(bytes);
        self
    }

    /// Rejects every upload of a file with this status.
    #[must_use]
    pub fn upload_status(mut self, status: u16) -> Self {
        self.upload_status = Some(status);
        self
    }

    /// Reports files in Google's API as still being processed, this many times.
    #[must_use]
    pub fn file_processing_polls(mut self, times: u32) -> Self {
        self.file_processing_polls = times;
        self
    }

    /// Writes a line of JSON for every valid call, a [`crate::RecordedCall`] with the digests of its files,
    /// before the call is answered.
    #[must_use]
    pub fn log_calls(mut self, log: impl Write + Send + 'static) -> Self {
        self.log = Some(CallLog::new(log));
        self
    }

    /// Writes the whole conversation of every call to that log too.
    #[must_use]
    pub fn log_messages(mut self) -> Self {
        self.log_messages = true;
        self
    }

    /// Sets how long jobs of the batch APIs take, what limits them, and what damage is done to them.
    #[must_use]
    pub fn batches(mut self, batches: SimulatedBatches) -> Self {
        self.batches = batches;
        self
    }

    /// Answers every call with this text from prepared bytes, as cheaply as possible.
    ///
    /// For benchmarks: key, model, faults, markers and holds are ignored, and only requests and answers are
    /// counted.
    #[must_use]
    pub fn instant_answer(mut self, text: impl Into<String>) -> Self {
        self.instant = Some(text.into());
        self
    }

    /// With [`SimulatorScript::instant_answer`]: calls this tool in the first `turns` turns of a conversation, which are
    /// identified by the number of tool results.
    #[must_use]
    pub fn instant_tool_turns(mut self, turns: usize, tool: impl Into<String>, arguments: Value) -> Self {
        self.instant_turns = Some(InstantTurns { turns, tool: tool.into(), arguments });
        self
    }
}

/// The calls in prepared answers.
#[derive(Debug, Clone)]
pub(crate) struct InstantTurns {
    pub(crate) turns: usize,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

impl Default for SimulatorScript {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SimulatorScript {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Script")
            .field("models", &self.models)
            .field("latency", &self.latency)
            .field("faults", &self.faults)
            .field("instant", &self.instant.is_some())
            .finish_non_exhaustive()
    }
}
