//! How providers of one protocol differ, and the keys that each kind takes.

use crate::files::{ANTHROPIC_FILES, BUILT_IN_FILES, GOOGLE_FILES, IMAGES_ONLY, OPENAI_FILES, Taken};
use crate::settings::Key;

/// How a provider differs from others of its protocol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quirks {
    /// How thinking is asked for.
    pub(crate) reasoning: Reasoning,
    /// How a schema is sent by default.
    pub(crate) structured: Structured,
    /// The name of the token limit.
    pub(crate) max_tokens: &'static str,
    /// The name of the seed.
    pub(crate) seed: &'static str,
    /// The name of the repetition penalty.
    pub(crate) repetition: &'static str,
    /// The service tiers that there are.
    pub(crate) tiers: &'static [&'static str],
    /// Whether an idempotency key may be sent.
    pub(crate) idempotency: bool,
    /// Whether the key goes into the header `api-key`.
    pub(crate) api_key_header: bool,
    /// How prefixes that requests share are kept.
    pub(crate) cache: Cache,
    /// Which files are taken, and where large ones are kept.
    pub(crate) files: &'static Taken,
    /// Whether it takes a schema and tools in one request.
    pub(crate) schema_beside_tools: bool,
    /// What a chat server calls the tools that it runs itself; the start of their names.
    pub(crate) hosted: &'static str,
    /// Whether the tools that it runs itself are in its Responses API alone.
    pub(crate) hosts_by_responses: bool,
    /// How many tools it takes in one request, where it says so (as of November 2026).
    pub(crate) max_tools: Option<usize>,
}

/// How a provider keeps the prefix that requests share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    /// Not at all, or nobody says how.
    Unknown,
    /// By itself, from so many tokens on.
    From(u64),
    /// As OpenAI does: by itself, except for its oldest models.
    OpenAi,
    /// As Anthropic does: what is marked, from a length that depends on the model.
    Anthropic,
    /// As Gemini does: by itself, from a length that depends on the model.
    Google,
}

impl Cache {
    /// The least prefix that is kept, in tokens, for a model of this name.
    pub(crate) fn least_prefix(self, model: &str) -> Option<u64> {
        let named = |parts: &[&str]| parts.iter().any(|part| model.contains(part));
        match self {
            Self::Unknown => None,
            Self::From(tokens) => Some(tokens),
            Self::OpenAi if model == "gpt-4" || named(&["gpt-3.5", "gpt-4-"]) => None,
            Self::OpenAi => Some(1024),
            Self::Anthropic if named(&["opus-4-5", "opus-4-6", "haiku-4-5"]) => Some(4096),
            Self::Anthropic if named(&["haiku", "sonnet-4-6"]) => Some(2048),
            Self::Anthropic => Some(1024),
            Self::Google if named(&["gemini-1", "gemini-2.0"]) => None,
            Self::Google if named(&["gemini-2.5"]) => Some(2048),
            Self::Google => Some(4096),
        }
    }
}

/// How thinking is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reasoning {
    /// A level: `reasoning_effort`, or `reasoning.effort` in Responses.
    Effort,
    /// OpenRouter's object with a level or a budget.
    Object,
    /// `thinking: {type: enabled|disabled}`.
    Toggle,
    /// `enable_thinking` with an optional budget.
    Enable,
    /// Anthropic's `thinking` and `output_config.effort`.
    Anthropic,
    /// Gemini's `thinkingConfig`.
    Google,
    /// A level, and a switch whose field depends on the model.
    ByModel,
}

impl Reasoning {
    /// The words that can be said.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Effort => &["auto", "none", "minimal", "low", "medium", "high", "xhigh", "max", "off"],
            Self::Object | Self::ByModel => {
                &["auto", "none", "minimal", "low", "medium", "high", "xhigh", "max", "on", "off"]
            }
            Self::Toggle | Self::Enable => &["auto", "none", "on", "off"],
            Self::Anthropic => &["auto", "none", "low", "medium", "high", "xhigh", "max", "on", "off"],
            Self::Google => &["auto", "none", "minimal", "low", "medium", "high", "on", "off"],
        }
    }

    /// Whether a budget of tokens can be said.
    pub(crate) fn takes_budget(self) -> bool {
        matches!(self, Self::Object | Self::Enable | Self::Anthropic | Self::Google)
    }
}

/// How a schema is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Structured {
    /// The provider enforces the schema.
    Schema,
    /// The provider enforces JSON; the schema is told in words.
    JsonObject,
    /// A tool call is forced whose arguments have the schema.
    Tool,
}

/// A chat server without quirks.
pub(crate) const CHAT: Quirks = Quirks {
    reasoning: Reasoning::Effort,
    structured: Structured::Schema,
    max_tokens: "max_tokens",
    seed: "seed",
    repetition: "repetition_penalty",
    tiers: &[],
    idempotency: false,
    api_key_header: false,
    cache: Cache::Unknown,
    files: &IMAGES_ONLY,
    schema_beside_tools: true,
    hosted: "",
    hosts_by_responses: false,
    max_tools: None,
};
/// The tiers of OpenAI.
pub(crate) const OPENAI_TIERS: &[&str] = &["fast", "flex", "auto", "default", "priority"];
/// OpenAI itself.
pub(crate) const OPENAI: Quirks = Quirks {
    max_tokens: "max_completion_tokens",
    tiers: OPENAI_TIERS,
    idempotency: true,
    cache: Cache::OpenAi,
    files: &OPENAI_FILES,
    max_tools: Some(128),
    ..CHAT
};
/// A chat server that enforces JSON but no schema.
pub(crate) const JSON_OBJECT: Quirks = Quirks { structured: Structured::JsonObject, ..CHAT };
/// Anthropic.
pub(crate) const ANTHROPIC: Quirks = Quirks {
    reasoning: Reasoning::Anthropic,
    structured: Structured::Tool,
    tiers: &["auto", "standard_only"],
    cache: Cache::Anthropic,
    files: &ANTHROPIC_FILES,
    ..CHAT
};
/// Gemini.
pub(crate) const GOOGLE: Quirks = Quirks {
    reasoning: Reasoning::Google,
    cache: Cache::Google,
    files: &GOOGLE_FILES,
    max_tools: Some(512),
    ..CHAT
};
/// Answers in this process.
pub(crate) const BUILT_IN: Quirks = Quirks { files: &BUILT_IN_FILES, ..CHAT };

/// What every chat server takes.
pub(crate) const CHAT_KEYS: &[Key] = &[
    Key::Reasoning,
    Key::Structured,
    Key::Stream,
    Key::Temperature,
    Key::TopP,
    Key::PresencePenalty,
    Key::FrequencyPenalty,
    Key::MaxTokens,
    Key::Seed,
    Key::Stop,
];
/// What servers of open models take.
pub(crate) const OPEN_KEYS: &[Key] = &[
    Key::Reasoning,
    Key::Structured,
    Key::Stream,
    Key::Temperature,
    Key::TopP,
    Key::TopK,
    Key::MinP,
    Key::PresencePenalty,
    Key::FrequencyPenalty,
    Key::RepetitionPenalty,
    Key::MaxTokens,
    Key::Seed,
    Key::Stop,
];
/// What OpenRouter takes.
pub(crate) const OPENROUTER_KEYS: &[Key] = &[
    Key::Reasoning,
    Key::Structured,
    Key::Stream,
    Key::Temperature,
    Key::TopP,
    Key::TopK,
    Key::MinP,
    Key::PresencePenalty,
    Key::FrequencyPenalty,
    Key::RepetitionPenalty,
    Key::MaxTokens,
    Key::Seed,
    Key::Stop,
    Key::WebSearch,
    Key::WebFetch,
];
/// What xAI takes.
pub(crate) const XAI_KEYS: &[Key] = &[
    Key::Reasoning,
    Key::Structured,
    Key::Stream,
    Key::Temperature,
    Key::TopP,
    Key::PresencePenalty,
    Key::FrequencyPenalty,
    Key::MaxTokens,
    Key::Seed,
    Key::Stop,
    Key::WebSearch,
    Key::XSearch,
];
/// What OpenAI takes in chat completions.
pub(crate) const OPENAI_KEYS: &[Key] = &[
    Key::Reasoning,
    Key::Verbosity,
    Key::Structured,
    Key::Stream,
    Key::ServiceTier,
    Key::Temperature,
    Key::TopP,
    Key::PresencePenalty,
    Key::FrequencyPenalty,
    Key::MaxTokens,
    Key::Seed,
    Key::Stop,
];
/// What Groq takes.
pub(crate) const GROQ_KEYS: &[Key] = &[
    Key::Reasoning,
    Key::Structured,
    Key::Stream,
    Key::ServiceTier,
    Key::Temperature,
    Key::TopP,
    Key::MaxTokens,
    Key::Seed,
    Key::Stop,
];
/// What the Responses API takes.
pub(crate) const RESPONSES_KEYS: &[Key] = &[
    Key::Reasoning,
    Key::Verbosity,
    Key::Transport,
    Key::Stream,
    Key::ServiceTier,
    Key::Temperature,
    Key::TopP,
    Key::MaxTokens,
    Key::WebSearch,
];
/// What Anthropic takes.
pub(crate) const ANTHROPIC_KEYS: &[Key] = &[
    Key::Reasoning,
    Key::Structured,
    Key::Stream,
    Key::ServiceTier,
    Key::Temperature,
    Key::TopP,
    Key::TopK,
    Key::MaxTokens,
    Key::Stop,
    Key::WebSearch,
    Key::WebFetch,
];
/// What Gemini takes.
pub(crate) const GOOGLE_KEYS: &[Key] = &[
    Key::Reasoning,
    Key::Stream,
    Key::Temperature,
    Key::TopP,
    Key::TopK,
    Key::PresencePenalty,
    Key::FrequencyPenalty,
    Key::MaxTokens,
    Key::Seed,
    Key::Stop,
    Key::WebSearch,
    Key::WebFetch,
];
