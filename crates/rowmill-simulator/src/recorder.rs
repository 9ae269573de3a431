//! Records what the simulator received, for assertions.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rowmill_schema_faker::seed_from;
use rowmill_types::{Money, TokenUsage};
use serde_json::Value;
use tokio::sync::watch;

use crate::answer_plan::AnsweredPrompt;
use crate::batch::SimulatedBatchStats;
use crate::protocol::ParsedRequest;
use crate::recorded_call::RecordedCall;
use crate::script::SimulatorScript;
use crate::stats::{MinuteStats, SimulatorStats};

/// One request as received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedRequest {
    /// The method; `WEBSOCKET` for a message on a WebSocket.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, without chunked framing.
    pub body: Vec<u8>,
}

impl RecordedRequest {
    /// The value of a header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` if it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

#[derive(Debug, Default)]
struct RecorderState {
    stats: SimulatorStats,
    prompts: HashMap<u64, PromptCounts>,
    conversations: HashMap<u64, PromptCounts>,
    requests: VecDeque<RecordedRequest>,
    calls: VecDeque<RecordedCall>,
}

#[derive(Debug, Default)]
struct PromptCounts {
    /// Live calls and rows of jobs.
    calls: u64,
    /// Live calls among them.
    live: u64,
    answers: u64,
}

impl RecorderState {
    /// The counts of a minute; `None` if its index is implausibly large.
    fn minute(&mut self, minute: usize) -> Option<&mut MinuteStats> {
        const YEAR: usize = 366 * 24 * 60;
        let minutes = &mut self.stats.minutes;
        if minute < YEAR && minutes.len() <= minute {
            minutes.resize(minute + 1, MinuteStats::default());
        }
        minutes.get_mut(minute)
    }
}

/// Collects [`SimulatorStats`] and wakes callers that wait for them.
#[derive(Debug)]
pub(crate) struct RequestRecorder {
    held: Mutex<RecorderState>,
    changed: Condvar,
    version: watch::Sender<()>,
    keep_requests: usize,
    keep_prompts: bool,
    /// Counted separately, because a benchmark cannot afford the lock.
    pub(crate) instant_requests: AtomicU64,
    pub(crate) instant_answers: AtomicU64,
}

impl RequestRecorder {
    pub(crate) fn new(keep_requests: usize, keep_prompts: bool, money: Option<Money>) -> Self {
        let batches = SimulatedBatchStats { cost_usd: money, ..SimulatedBatchStats::default() };
        let stats = SimulatorStats { cost_usd: money, batches, ..SimulatorStats::default() };
        Self {
            held: Mutex::new(RecorderState { stats, ..RecorderState::default() }),
            changed: Condvar::new(),
            version: watch::channel(()).0,
            keep_requests,
            keep_prompts,
            instant_requests: AtomicU64::new(0),
            instant_answers: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, RecorderState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut RecorderState) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        self.version.send_replace(());
        result
    }

    pub(crate) fn record_connection(&self) {
        self.change(|held| held.stats.connections += 1);
    }

    pub(crate) fn keep(&self, request: &RecordedRequest) {
        if self.keep_requests == 0 {
            return;
        }
        self.change(|held| {
            if held.requests.len() == self.keep_requests {
                held.requests.pop_front();
            }
            held.requests.push_back(request.clone());
        });
    }

    /// Keeps the record of a call, and writes it to the script's log.
    pub(crate) fn call_seen(
        &self,
        script: &SimulatorScript,
        request: &RecordedRequest,
        ask: &ParsedRequest,
        number: u64,
    ) {
        if self.keep_requests == 0 && script.log.is_none() {
            return;
        }
        let mut seen = RecordedCall::from_request(number, &request.path, ask);
        if script.log_messages {
            seen.messages.clone_from(&ask.messages);
        }
        if let Some(log) = &script.log {
            log.write(&seen);
        }
        if self.keep_requests > 0 {
            seen.messages.clone_from(&ask.messages);
            self.change(|held| {
                if held.calls.len() == self.keep_requests {
                    held.calls.pop_front();
                }
                held.calls.push_back(seen);
            });
        }
    }

    pub(crate) fn calls(&self) -> Vec<RecordedCall> {
        self.lock().calls.iter().cloned().collect()
    }

    pub(crate) fn file_uploaded(&self) {
        self.change(|held| held.stats.uploads += 1);
    }

    pub(crate) fn file_deleted(&self) {
        self.change(|held| held.stats.deleted_files += 1);
    }

    /// Records the start of a model call, which is in flight until the guard is dropped.
    pub(crate) fn begin(&self) -> CallInFlight<'_> {
        let number = self.change(|held| {
            held.stats.requests += 1;
            held.stats.in_flight += 1;
            held.stats.max_in_flight = held.stats.max_in_flight.max(held.stats.in_flight);
            held.stats.requests
        });
        CallInFlight { recorder: self, number }
    }

    /// Counts a call; returns how many had this prompt and this conversation, including this one.
    pub(crate) fn count_prompt(&self, asked: &AnsweredPrompt) -> (u64, u64) {
        let key = seed_from(&[&asked.prompt]);
        self.change(|held| {
            let prompt = held.prompts.entry(key).or_default();
            prompt.calls += 1;
            prompt.live += 1;
            held.stats.distinct_prompts += u64::from(prompt.live == 1);
            let conversation = held.conversations.entry(asked.conversation).or_default();
            conversation.calls += 1;
            (prompt.calls, conversation.calls)
        })
    }

    /// The same for a row of a job.
    pub(crate) fn count_batch_prompt(&self, asked: &AnsweredPrompt) -> (u64, u64) {
        let key = seed_from(&[&asked.prompt]);
        self.change(|held| {
            let prompt = held.prompts.entry(key).or_default();
            prompt.calls += 1;
            let conversation = held.conversations.entry(asked.conversation).or_default();
            conversation.calls += 1;
            (prompt.calls, conversation.calls)
        })
    }

    /// Records the answer to a row of a job.
    pub(crate) fn record_batch_answer(
        &self,
        asked: &AnsweredPrompt,
        usage: &TokenUsage,
        cost: Option<Money>,
    ) {
        let key = seed_from(&[&asked.prompt]);
        self.change(|held| {
            held.prompts.entry(key).or_default().answers += 1;
            let counts = held.conversations.entry(asked.conversation).or_default();
            counts.answers += 1;
            let batches = &mut held.stats.batches;
            batches.answers += 1;
            batches.repeated_answers += u64::from(counts.answers > 1);
            batches.input_tokens += usage.input;
            batches.cached_tokens += usage.cached;
            batches.output_tokens += usage.output;
            if let Some(cost) = cost {
                *batches.cost_usd.get_or_insert(Money::ZERO) += cost;
            }
        });
    }

    /// Changes the counts of the batch APIs.
    pub(crate) fn count_batches(&self, change: impl FnOnce(&mut SimulatedBatchStats)) {
        self.change(|held| change(&mut held.stats.batches));
    }

    /// Records an admitted call in this minute since the start.
    pub(crate) fn record_admission(&self, minute: usize) {
        self.change(|held| {
            if let Some(minute) = held.minute(minute) {
                minute.requests += 1;
            }
        });
    }

    /// Records a call that exceeded a rate limit.
    pub(crate) fn record_rate_limit(&self, minute: usize) {
        self.change(|held| {
            held.stats.rate_limited += 1;
            if let Some(minute) = held.minute(minute) {
                minute.rate_limited += 1;
            }
        });
    }

    /// Records a call that was rejected because the quota was used up.
    pub(crate) fn record_quota_refusal(&self) {
        self.change(|held| held.stats.quota_refused += 1);
    }

    /// Records a call during an outage.
    pub(crate) fn record_outage(&self) {
        self.change(|held| held.stats.outage_refused += 1);
    }

    /// Records that an answer was made and charged for, whether it arrives or not.
    pub(crate) fn record_answer(&self, usage: &TokenUsage, cost: Option<Money>, minute: usize) {
        self.change(|held| {
            held.stats.input_tokens += usage.input;
            held.stats.cached_tokens += usage.cached;
            held.stats.cache_write_tokens += usage.cache_write;
            held.stats.output_tokens += usage.output;
            if let Some(cost) = cost {
                *held.stats.cost_usd.get_or_insert(Money::ZERO) += cost;
            }
            if let Some(minute) = held.minute(minute) {
                minute.input_tokens += usage.input;
                minute.output_tokens += usage.output;
            }
        });
    }

    pub(crate) fn record_written(&self, status: u16, asked: Option<&AnsweredPrompt>) {
        self.change(|held| {
            *held.stats.by_status.entry(status).or_default() += 1;
            let (200..300, Some(asked)) = (status, asked) else { return };
            held.stats.answers += 1;
            let counts = held.prompts.entry(seed_from(&[&asked.prompt])).or_default();
            counts.answers += 1;
            held.stats.repeated_answers += u64::from(counts.answers > 1);
            let counts = held.conversations.entry(asked.conversation).or_default();
            counts.answers += 1;
            held.stats.repeated_turns += u64::from(counts.answers > 1);
            if self.keep_prompts {
                *held.stats.answers_by_prompt.entry(asked.prompt.clone()).or_default() += 1;
            }
        });
    }

    pub(crate) fn record_abandoned(&self) {
        self.change(|held| held.stats.abandoned += 1);
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.lock().requests.iter().cloned().collect()
    }

    /// Passes the statistics so far to `read`.
    pub(crate) fn with_stats<T>(&self, read: impl FnOnce(&SimulatorStats) -> T) -> T {
        read(self.gather(&mut self.lock()))
    }

    /// Adds the separate counts.
    fn gather<'h>(&self, held: &'h mut RecorderState) -> &'h SimulatorStats {
        let answers = self.instant_answers.swap(0, Ordering::Relaxed);
        held.stats.requests += self.instant_requests.swap(0, Ordering::Relaxed);
        held.stats.answers += answers;
        if answers > 0 {
            *held.stats.by_status.entry(200).or_default() += answers;
        }
        &held.stats
    }

    pub(crate) async fn wait_until(&self, reached: impl Fn(&SimulatorStats) -> bool) -> SimulatorStats {
        let mut version = self.version.subscribe();
        loop {
            // There can be many prompts, so they are copied only at the end.
            let is_reached = self.with_stats(|stats| reached(stats).then(|| stats.clone()));
            if let Some(stats) = is_reached {
                return stats;
            }
            // The sender is a field of this value, so it cannot be gone.
            if version.changed().await.is_err() {
                return self.with_stats(SimulatorStats::clone);
            }
        }
    }

    pub(crate) fn wait_until_blocking(&self, reached: impl Fn(&SimulatorStats) -> bool) -> SimulatorStats {
        let mut held = self.lock();
        loop {
            if reached(self.gather(&mut held)) {
                return held.stats.clone();
            }
            held = self.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A call in flight.
#[derive(Debug)]
pub(crate) struct CallInFlight<'r> {
    recorder: &'r RequestRecorder,
    /// Its number among all calls, from 1.
    pub(crate) number: u64,
}

impl Drop for CallInFlight<'_> {
    fn drop(&mut self) {
        self.recorder.change(|held| held.stats.in_flight -= 1);
    }
}
