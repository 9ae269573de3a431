//! Differences between providers of one protocol, and the keys that each kind accepts.

use crate::batch::BatchSupport;
use crate::files::{ANTHROPIC_FILES, AcceptedFiles, BUILT_IN_FILES, GOOGLE_FILES, IMAGES_ONLY, OPENAI_FILES};
use crate::model_settings::ModelSettingKey;

/// How a provider differs from others with the same protocol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ProviderQuirks {
    /// How thinking is requested.
    pub(crate) reasoning: ReasoningStyle,
    /// How a schema is sent by default.
    pub(crate) structured: SchemaStyle,
    /// The name of the field for the token limit.
    pub(crate) max_tokens: &'static str,
    /// The name of the field for the seed.
    pub(crate) seed: &'static str,
    /// The name of the field for the repetition penalty.
    pub(crate) repetition: &'static str,
    /// The available service tiers.
    pub(crate) tiers: &'static [&'static str],
    /// Whether an idempotency key may be sent.
    pub(crate) idempotency: bool,
    /// Whether the key goes into the header `api-key`.
    pub(crate) api_key_header: bool,
    /// How prefixes that requests share are cached.
    pub(crate) cache: PrefixCaching,
    /// Which files are accepted, and where large ones are stored.
    pub(crate) files: &'static AcceptedFiles,
    /// Whether it accepts a schema and tools in one request.
    pub(crate) schema_beside_tools: bool,
    /// How a chat server names the tools that it runs itself: the start of their names.
    pub(crate) hosted: &'static str,
    /// Whether the tools that it runs itself are available only in its Responses API.
    pub(crate) hosts_by_responses: bool,
    /// How many tools it accepts in one request, if documented (as of November 2026).
    pub(crate) max_tools: Option<usize>,
    /// Its batch API, if it has one.
    pub(crate) batch: Option<&'static BatchSupport>,
}

/// How a provider caches the prefix that requests share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrefixCaching {
    /// Not at all, or not documented.
    Unknown,
    /// Automatically, from this many tokens on.
    From(u64),
    /// As OpenAI does: automatically, except for its oldest models.
    OpenAi,
    /// As Anthropic does: what is marked, from a minimum length that depends on the model.
    Anthropic,
    /// As Gemini does: automatically, from a minimum length that depends on the model.
    Google,
}

impl PrefixCaching {
    /// The shortest prefix that is cached for a model with this name, in tokens.
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

/// How thinking is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReasoningStyle {
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

impl ReasoningStyle {
    /// The accepted words.
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

    /// Whether a budget in tokens is accepted.
    pub(crate) fn takes_budget(self) -> bool {
        matches!(self, Self::Object | Self::Enable | Self::Anthropic | Self::Google)
    }
}

/// How a schema is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaStyle {
    /// The provider enforces the schema.
    Schema,
    /// The provider enforces JSON; the schema is described in the instruction.
    JsonObject,
    /// The provider forces a tool call whose arguments have the schema.
    Tool,
}

/// A chat server without quirks.
pub(crate) const CHAT: ProviderQuirks = ProviderQuirks {
    reasoning: ReasoningStyle::Effort,
    structured: SchemaStyle::Schema,
    max_tokens: "max_tokens",
    seed: "seed",
    repetition: "repetition_penalty",
    tiers: &[],
    idempotency: false,
    api_key_header: false,
    cache: PrefixCaching::Unknown,
    files: &IMAGES_ONLY,
    schema_beside_tools: true,
    hosted: "",
    hosts_by_responses: false,
    max_tools: None,
    batch: None,
};
/// OpenAI's service tiers.
pub(crate) const OPENAI_TIERS: &[&str] = &["fast", "flex", "auto", "default", "priority"];
/// OpenAI itself.
pub(crate) const OPENAI: ProviderQuirks = ProviderQuirks {
    max_tokens: "max_completion_tokens",
    tiers: OPENAI_TIERS,
    idempotency: true,
    cache: PrefixCaching::OpenAi,
    files: &OPENAI_FILES,
    max_tools: Some(128),
    ..CHAT
};
/// A chat server that enforces JSON but no schema.
pub(crate) const JSON_OBJECT: ProviderQuirks = ProviderQuirks { structured: SchemaStyle::JsonObject, ..CHAT };
/// Anthropic.
pub(crate) const ANTHROPIC: ProviderQuirks = ProviderQuirks {
    reasoning: ReasoningStyle::Anthropic,
    structured: SchemaStyle::Tool,
    tiers: &["auto", "standard_only"],
    cache: PrefixCaching::Anthropic,
    files: &ANTHROPIC_FILES,
    ..CHAT
};
/// Gemini.
pub(crate) const GOOGLE: ProviderQuirks = ProviderQuirks {
    reasoning: ReasoningStyle::Google,
    cache: PrefixCaching::Google,
    files: &GOOGLE_FILES,
    max_tools: Some(512),
    ..CHAT
};
/// Models that answer in this process.
pub(crate) const BUILT_IN: ProviderQuirks = ProviderQuirks { files: &BUILT_IN_FILES, ..CHAT };

/// The keys of every chat server.
pub(crate) const CHAT_KEYS: &[ModelSettingKey] = &[
    ModelSettingKey::Reasoning,
    ModelSettingKey::Structured,
    ModelSettingKey::Stream,
    ModelSettingKey::Temperature,
    ModelSettingKey::TopP,
    ModelSettingKey::PresencePenalty,
    ModelSettingKey::FrequencyPenalty,
    ModelSettingKey::MaxTokens,
    ModelSettingKey::Seed,
    ModelSettingKey::Stop,
];
/// The keys of servers of open models.
pub(crate) const OPEN_KEYS: &[ModelSettingKey] = &[
    ModelSettingKey::Reasoning,
    ModelSettingKey::Structured,
    ModelSettingKey::Stream,
    ModelSettingKey::Temperature,
    ModelSettingKey::TopP,
    ModelSettingKey::TopK,
    ModelSettingKey::MinP,
    ModelSettingKey::PresencePenalty,
    ModelSettingKey::FrequencyPenalty,
    ModelSettingKey::RepetitionPenalty,
    ModelSettingKey::MaxTokens,
    ModelSettingKey::Seed,
    ModelSettingKey::Stop,
];
/// The keys of OpenRouter.
pub(crate) const OPENROUTER_KEYS: &[ModelSettingKey] = &[
    ModelSettingKey::Reasoning,
    ModelSettingKey::Structured,
    ModelSettingKey::Stream,
    ModelSettingKey::Temperature,
    ModelSettingKey::TopP,
    ModelSettingKey::TopK,
    ModelSettingKey::MinP,
    ModelSettingKey::PresencePenalty,
    ModelSettingKey::FrequencyPenalty,
    ModelSettingKey::RepetitionPenalty,
    ModelSettingKey::MaxTokens,
    ModelSettingKey::Seed,
    ModelSettingKey::Stop,
    ModelSettingKey::WebSearch,
    ModelSettingKey::WebFetch,
];
/// The keys of xAI.
pub(crate) const XAI_KEYS: &[ModelSettingKey] = &[
    ModelSettingKey::Reasoning,
    ModelSettingKey::Structured,
    ModelSettingKey::Stream,
    ModelSettingKey::Temperature,
    ModelSettingKey::TopP,
    ModelSettingKey::PresencePenalty,
    ModelSettingKey::FrequencyPenalty,
    ModelSettingKey::MaxTokens,
    ModelSettingKey::Seed,
    ModelSettingKey::Stop,
    ModelSettingKey::WebSearch,
    ModelSettingKey::XSearch,
];
/// The keys of OpenAI's chat completions.
pub(crate) const OPENAI_KEYS: &[ModelSettingKey] = &[
    ModelSettingKey::Reasoning,
    ModelSettingKey::Verbosity,
    ModelSettingKey::Structured,
    ModelSettingKey::Stream,
    ModelSettingKey::ServiceTier,
    ModelSettingKey::Temperature,
    ModelSettingKey::TopP,
    ModelSettingKey::PresencePenalty,
    ModelSettingKey::FrequencyPenalty,
    ModelSettingKey::MaxTokens,
    ModelSettingKey::Seed,
    ModelSettingKey::Stop,
];
/// The keys of Groq.
pub(crate) const GROQ_KEYS: &[ModelSettingKey] = &[
    ModelSettingKey::Reasoning,
    ModelSettingKey::Structured,
    ModelSettingKey::Stream,
    ModelSettingKey::ServiceTier,
    ModelSettingKey::Temperature,
    ModelSettingKey::TopP,
    ModelSettingKey::MaxTokens,
    ModelSettingKey::Seed,
    ModelSettingKey::Stop,
];
/// The keys of the Responses API.
pub(crate) const RESPONSES_KEYS: &[ModelSettingKey] = &[
    ModelSettingKey::Reasoning,
    ModelSettingKey::Verbosity,
    ModelSettingKey::Transport,
    ModelSettingKey::Stream,
    ModelSettingKey::ServiceTier,
    ModelSettingKey::Temperature,
    ModelSettingKey::TopP,
    ModelSettingKey::MaxTokens,
    ModelSettingKey::WebSearch,
];
/// The keys of Anthropic.
pub(crate) const ANTHROPIC_KEYS: &[ModelSettingKey] = &[
    ModelSettingKey::Reasoning,
    ModelSettingKey::Structured,
    ModelSettingKey::Stream,
    ModelSettingKey::ServiceTier,
    ModelSettingKey::Temperature,
    ModelSettingKey::TopP,
    ModelSettingKey::TopK,
    ModelSettingKey::MaxTokens,
    ModelSettingKey::Stop,
    ModelSettingKey::WebSearch,
    ModelSettingKey::WebFetch,
];
/// The keys of Gemini.
pub(crate) const GOOGLE_KEYS: &[ModelSettingKey] = &[
    ModelSettingKey::Reasoning,
    ModelSettingKey::Stream,
    ModelSettingKey::Temperature,
    ModelSettingKey::TopP,
    ModelSettingKey::TopK,
    ModelSettingKey::PresencePenalty,
    ModelSettingKey::FrequencyPenalty,
    ModelSettingKey::MaxTokens,
    ModelSettingKey::Seed,
    ModelSettingKey::Stop,
    ModelSettingKey::WebSearch,
    ModelSettingKey::WebFetch,
];
