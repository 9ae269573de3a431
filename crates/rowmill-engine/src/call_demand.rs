//! The tokens and the cost of a call, and the limit on its answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rowmill_core::limits::{
    AnswerLengthNeeds, AnswerLengths, BudgetLimits, CallNeed, CallSize, RemainingBudget, Spend,
};
use rowmill_types::{Attachment, Completion, FinishReason, Message, TokenUsage};

use crate::endpoint::ModelEndpoint;

/// Tokens that a message may add to those of its text.
const MESSAGE_OVERHEAD: u64 = 16;
/// Tokens that a provider may add to a request, such as instructions for the use of a tool.
const REQUEST_OVERHEAD: u64 = 512;

/// The data from which the length of a model's answers is limited, call by call.
#[derive(Debug, Default)]
pub struct OutputCaps {
    /// The tokens that the model may use for thinking before its answer, if known.
    pub thinking: u64,
    /// Whether the provider counts the allowed length of an answer as used until the answer is complete.
    pub reserves_output: bool,
    /// The lengths of the answers so far.
    pub lengths: Mutex<AnswerLengths>,
    /// Whether an answer was longer than its limit, so that limits are no longer relied on.
    pub is_ignored: AtomicBool,
    /// How the limits are chosen.
    pub choice: OutputCapChoice,
}

/// How the limit on an answer is chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputCapChoice {
    /// By the lengths of earlier answers and the rest of the budget.
    #[default]
    Learned,
    /// Only by how often the answer was truncated: the same request has the same limit in every pass over the input.
    Fixed,
}

impl OutputCaps {
    fn needs(&self, tried: PreviousAttempt) -> AnswerLengthNeeds {
        let lengths = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        let needs = lengths.needs(self.thinking, tried.cut_at);
        let needs = if self.reserves_output { needs.cap_at_preferred() } else { needs };
        tried.cap.map_or(needs, |cap| needs.like_last_attempt(cap))
    }

    /// The limit that depends on nothing but the limit that truncated the last answer.
    fn fixed_cap(&self, tried: PreviousAttempt) -> u64 {
        let needs = AnswerLengths::default().needs(self.thinking, tried.cut_at);
        if tried.cut_at.is_some() { needs.preferred } else { needs.minimum }
    }

    /// Whether there are enough answers to estimate from.
    pub(crate) fn has_enough_samples(&self) -> bool {
        self.lengths.lock().unwrap_or_else(PoisonError::into_inner).is_trusted()
    }

    /// Records the length of an answer, if it was complete. Returns the tokens used if it is the first that exceeded
    /// its limit; a few tokens more are a matter of counting.
    pub(crate) fn record_answer(&self, completion: &Completion, cap: Option<u64>) -> Option<u64> {
        let used = capped_output_tokens(&completion.usage?);
        if completion.finish != FinishReason::Length {
            self.lengths.lock().unwrap_or_else(PoisonError::into_inner).record(used);
        }
        let is_longer = cap.is_some_and(|cap| used > cap.saturating_add(cap / 64));
        (is_longer && !self.is_ignored.swap(true, Ordering::Relaxed)).then_some(used)
    }
}

/// How the same request was sent before.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PreviousAttempt {
    /// The limit on the answer in the last attempt; the next has the same, if it fits.
    pub(crate) cap: Option<u64>,
    /// The limit that truncated the last answer; the next must be higher.
    pub(crate) cut_at: Option<u64>,
}

/// What a call with these messages needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallDemand {
    bytes: usize,
    /// The maximum number of tokens of the prompt.
    input: u64,
    /// What the row may still spend.
    row_left: BudgetLimits,
    tried: PreviousAttempt,
}

/// The size of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallSizing {
    /// The limit on its answer, if it has one of its own.
    pub(crate) cap: Option<u64>,
    /// The maximum cost and usage with that limit.
    pub(crate) max_spend: Spend,
}

impl CallDemand {
    pub(crate) fn for_messages(
        endpoint: &ModelEndpoint,
        messages: &[Message],
        row_left: BudgetLimits,
    ) -> Self {
        let text: usize = messages.iter().map(bytes_of).sum::<usize>() + endpoint.fixed_bytes;
        let files = messages.iter().flat_map(|message| &message.attachments);
        let bytes = text + files.map(Attachment::equivalent_prose_bytes).sum::<usize>();
        let input = prompt_token_upper_bound(endpoint.fixed_bytes, messages);
        Self { bytes, input, row_left, tried: PreviousAttempt::default() }
    }

    pub(crate) fn as_retry(self, tried: PreviousAttempt) -> Self {
        Self { tried, ..self }
    }

    /// Whether the last answer was truncated, so that a longer one is requested.
    pub(crate) fn wants_longer_answer(&self) -> bool {
        self.tried.cut_at.is_some()
    }

    pub(crate) fn limiter_need(&self, output_cap: Option<u64>) -> CallNeed {
        CallNeed { bytes: self.bytes, output_cap }
    }

    /// The maximum cost and usage of the call with a limit on its answer.
    pub(crate) fn max_spend(&self, endpoint: &ModelEndpoint, cap: Option<u64>) -> Spend {
        self.size(endpoint).max_spend(cap)
    }

    fn size(&self, endpoint: &ModelEndpoint) -> CallSize {
        CallSize { price: endpoint.price, input: self.input, longest: endpoint.max_output.unwrap_or(0) }
    }

    /// The size of the call to a model, with `left` of the run's budget for `calls` calls.
    pub(crate) fn sizing(&self, endpoint: &ModelEndpoint, left: RemainingBudget, calls: u64) -> CallSizing {
        let size = self.size(endpoint);
        if let Some(caps) = endpoint.output_caps.as_ref().filter(|caps| caps.choice == OutputCapChoice::Fixed)
        {
            let cap = Some(caps.fixed_cap(self.tried)).filter(|cap| *cap < size.longest);
            return CallSizing { cap, max_spend: size.max_spend(cap) };
        }
        let is_limited = left.whole.is_limited() || self.row_left.is_limited();
        let caps = endpoint.output_caps.as_ref().filter(|_| is_limited);
        let cap = caps.filter(|caps| !caps.is_ignored.load(Ordering::Relaxed)).and_then(|caps| {
            let needs = caps.needs(self.tried);
            let of_run = size.output_cap(needs, left, calls);
            let of_row = size.output_cap_in_row_budget(needs, self.row_left);
            [of_run, of_row].into_iter().flatten().min()
        });
        CallSizing { cap, max_spend: size.max_spend(cap) }
    }
}

/// The maximum number of tokens of a prompt: its messages, and the bytes that every request has in common.
#[must_use]
pub fn prompt_token_upper_bound(fixed_bytes: usize, messages: &[Message]) -> u64 {
    // No tokenizer produces more tokens than there are bytes.
    let text = messages.iter().map(bytes_of).sum::<usize>() + fixed_bytes;
    let files = messages.iter().flat_map(|message| &message.attachments).map(Attachment::max_tokens);
    text as u64 + files.sum::<u64>() + REQUEST_OVERHEAD + MESSAGE_OVERHEAD * messages.len() as u64
}

/// The tokens that a limit on an answer counts. Some providers report thinking tokens separately.
pub(crate) fn capped_output_tokens(usage: &TokenUsage) -> u64 {
    let TokenUsage { output, reasoning, .. } = *usage;
    if reasoning > output { output.saturating_add(reasoning) } else { output }
}

/// The bytes of a message as text: its content, its calls, and what must be sent back unchanged.
fn bytes_of(message: &Message) -> usize {
    let calls = message.calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len() * 2);
    let echo = message.native.as_ref().map_or(0, |echo| echo.content.len());
    let answers =
        message.answered_call.as_ref().map_or(0, |answered| answered.call.len() + answered.tool.len());
    message.text.len() + calls.sum::<usize>() + echo + answers
}
