//! Statistics of the simulator.

use std::collections::BTreeMap;

use rowmill_types::Money;
use serde::Serialize;

use crate::batch::SimulatedBatchStats;

/// Counts of events so far. An answer counts once its last byte was handed to the kernel; tokens and money
/// count once the answer was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SimulatorStats {
    /// Connections accepted.
    pub connections: u64,
    /// Model calls that were read completely, over HTTP or a WebSocket.
    pub requests: u64,
    /// Answers with a 2xx status that were written completely, including garbage.
    pub answers: u64,
    /// All answers that were written completely, by status.
    pub by_status: BTreeMap<u16, u64>,
    /// Calls whose client disconnected before the answer was written.
    pub abandoned: u64,
    /// Calls that are being answered or held now.
    pub in_flight: u64,
    /// The maximum number of calls in flight at once.
    pub max_in_flight: u64,
    /// Distinct prompts. The prompt of a conversation is its first user message.
    pub distinct_prompts: u64,
    /// Answers to prompts that had been answered before.
    pub repeated_answers: u64,
    /// Answers to conversations that had been answered before: turns that were paid for twice.
    pub repeated_turns: u64,
    /// Calls that exceeded a rate limit.
    pub rate_limited: u64,
    /// Calls that were rejected because the quota was used up.
    pub quota_refused: u64,
    /// Calls during an outage.
    pub outage_refused: u64,
    /// Files that were uploaded.
    pub uploads: u64,
    /// Uploaded files that were deleted.
    pub deleted_files: u64,
    /// Uploaded files that exist now; reported by `/stats` and [`crate::Simulator::stats`].
    pub stored_files: u64,
    /// Prompt tokens of all answers that were made, whether they arrived or not.
    pub input_tokens: u64,
    /// Prompt tokens among them that came from the cache.
    pub cached_tokens: u64,
    /// Prompt tokens among them that were written to the cache.
    pub cache_write_tokens: u64,
    /// Generated tokens of all answers that were made.
    pub output_tokens: u64,
    /// The cost of those answers, if the script has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Money>,
    /// The same by minute since the start.
    pub minutes: Vec<MinuteStats>,
    /// Jobs of the batch APIs and their rows, which count nowhere else.
    pub batches: SimulatedBatchStats,
    /// Answers by prompt, unless the script forgets prompts.
    pub answers_by_prompt: BTreeMap<String, u64>,
}

/// What was admitted and what was allowed in one minute since the start.
///
/// The allowed amount is the limit in force over the part of the minute that has passed, for one key and one
/// model; absent if there was no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MinuteStats {
    /// Admitted calls.
    pub requests: u64,
    /// Prompt tokens of the admitted calls.
    pub input_tokens: u64,
    /// Tokens that were generated for them.
    pub output_tokens: u64,
    /// Calls that exceeded a rate limit.
    pub rate_limited: u64,
    /// Allowed calls.
    pub quota_requests: Option<u64>,
    /// Allowed tokens of both directions.
    pub quota_tokens: Option<u64>,
    /// Allowed prompt tokens.
    pub quota_input_tokens: Option<u64>,
    /// Allowed generated tokens.
    pub quota_output_tokens: Option<u64>,
}
