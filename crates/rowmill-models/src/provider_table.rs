//! The known providers, as data: one row each.

use crate::ProviderProtocol;
use crate::batch::{
    ANTHROPIC_BATCH, AZURE_BATCH, GOOGLE_BATCH, GROQ_BATCH, MISTRAL_BATCH, OPENAI_BATCH, TOGETHER_BATCH,
};
use crate::files::{
    ALIYUN_FILES, GROQ_FILES, IMAGES_ONLY, MISTRAL_FILES, OPENROUTER_FILES, TEXT_ONLY, XAI_FILES,
};
use crate::model_settings::ModelSettingKey;
use crate::quirks::{
    ANTHROPIC, ANTHROPIC_KEYS, BUILT_IN, CHAT, CHAT_KEYS, GOOGLE, GOOGLE_KEYS, GROQ_KEYS, JSON_OBJECT,
    OPEN_KEYS, OPENAI, OPENAI_KEYS, OPENAI_TIERS, OPENROUTER_KEYS, PrefixCaching, ProviderQuirks,
    RESPONSES_KEYS, ReasoningStyle, XAI_KEYS,
};

/// What is known about a provider. A quirk of a provider is a field here, so that the translation checks the
/// quirk and never the name.
#[derive(Debug, PartialEq)]
pub(crate) struct ProviderRow {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) protocol: ProviderProtocol,
    pub(crate) base_url: Option<&'static str>,
    pub(crate) key_variables: &'static [&'static str],
    pub(crate) base_url_variables: &'static [&'static str],
    pub(crate) needs_key: bool,
    pub(crate) about: &'static str,
    pub(crate) keys: &'static [ModelSettingKey],
    pub(crate) quirks: ProviderQuirks,
}

/// A provider with a key of its own and the chat protocol; the base of most rows.
const HOSTED: ProviderRow = ProviderRow {
    name: "",
    aliases: &[],
    protocol: ProviderProtocol::Chat,
    base_url: None,
    key_variables: &[],
    base_url_variables: &[],
    needs_key: true,
    about: "",
    keys: CHAT_KEYS,
    quirks: CHAT,
};
const LOCAL: ProviderRow = ProviderRow { needs_key: false, keys: OPEN_KEYS, ..HOSTED };
const BUILTIN: ProviderRow = ProviderRow {
    protocol: ProviderProtocol::Builtin,
    needs_key: false,
    keys: &[],
    quirks: BUILT_IN,
    ..HOSTED
};

/// The row of a provider that the configuration adds, by its protocol.
pub(crate) fn row_for_protocol(protocol: ProviderProtocol) -> &'static ProviderRow {
    const CHAT_ROW: ProviderRow = ProviderRow { about: "added in rowmill.toml", ..LOCAL };
    const RESPONSES_ROW: ProviderRow = ProviderRow {
        protocol: ProviderProtocol::Responses,
        keys: RESPONSES_KEYS,
        quirks: ProviderQuirks { tiers: OPENAI_TIERS, ..CHAT },
        ..CHAT_ROW
    };
    const ANTHROPIC_ROW: ProviderRow = ProviderRow {
        protocol: ProviderProtocol::Anthropic,
        keys: ANTHROPIC_KEYS,
        quirks: ANTHROPIC,
        ..CHAT_ROW
    };
    const GOOGLE_ROW: ProviderRow =
        ProviderRow { protocol: ProviderProtocol::Google, keys: GOOGLE_KEYS, quirks: GOOGLE, ..CHAT_ROW };
    match protocol {
        ProviderProtocol::Chat => &CHAT_ROW,
        ProviderProtocol::Responses => &RESPONSES_ROW,
        ProviderProtocol::Anthropic => &ANTHROPIC_ROW,
        ProviderProtocol::Google => &GOOGLE_ROW,
        ProviderProtocol::Builtin => &BUILTIN,
    }
}

/// Whether a model with this name answers in this process; no configuration can change it.
pub(crate) fn is_builtin(name: &str) -> bool {
    PROVIDER_ROWS.iter().any(|row| row.name == name && row.protocol == ProviderProtocol::Builtin)
}

/// All providers that need no configuration.
pub(crate) static PROVIDER_ROWS: &[ProviderRow] = &[
    ProviderRow {
        name: "responses",
        protocol: ProviderProtocol::Responses,
        base_url: Some("https://api.openai.com/v1"),
        key_variables: &["OPENAI_API_KEY"],
        base_url_variables: &["OPENAI_BASE_URL"],
        about: "OpenAI, Responses API",
        keys: RESPONSES_KEYS,
        quirks: ProviderQuirks { batch: Some(&OPENAI_BATCH), ..OPENAI },
        ..HOSTED
    },
    ProviderRow {
        name: "openai",
        base_url: Some("https://api.openai.com/v1"),
        key_variables: &["OPENAI_API_KEY"],
        base_url_variables: &["OPENAI_BASE_URL"],
        about: "OpenAI, chat completions",
        keys: OPENAI_KEYS,
        quirks: ProviderQuirks { batch: Some(&OPENAI_BATCH), ..OPENAI },
        ..HOSTED
    },
    ProviderRow {
        name: "anthropic",
        aliases: &["claude"],
        protocol: ProviderProtocol::Anthropic,
        base_url: Some("https://api.anthropic.com"),
        key_variables: &["ANTHROPIC_API_KEY"],
        base_url_variables: &["ANTHROPIC_BASE_URL"],
        about: "Anthropic, Messages API",
        keys: ANTHROPIC_KEYS,
        quirks: ProviderQuirks { batch: Some(&ANTHROPIC_BATCH), ..ANTHROPIC },
        ..HOSTED
    },
    ProviderRow {
        name: "google",
        aliases: &["gemini"],
        protocol: ProviderProtocol::Google,
        base_url: Some("https://generativelanguage.googleapis.com"),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url_variables: &["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"],
        about: "Google, Gemini API",
        keys: GOOGLE_KEYS,
        quirks: ProviderQuirks { batch: Some(&GOOGLE_BATCH), ..GOOGLE },
        ..HOSTED
    },
    ProviderRow {
        name: "googleoai",
        base_url: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url_variables: &["GOOGLEOAI_BASE_URL"],
        about: "Google, Gemini through its OpenAI-compatible API",
        quirks: ProviderQuirks {
            cache: PrefixCaching::Google,
            schema_beside_tools: false,
            max_tools: Some(512),
            ..CHAT
        },
        ..HOSTED
    },
    ProviderRow {
        name: "generic",
        base_url: Some("http://localhost:11434/v1"),
        key_variables: &["GENERIC_API_KEY"],
        base_url_variables: &["GENERIC_BASE_URL"],
        about: "any OpenAI-compatible server",
        ..LOCAL
    },
    ProviderRow {
        name: "azure",
        key_variables: &["AZURE_OPENAI_API_KEY"],
        base_url_variables: &["AZURE_OPENAI_ENDPOINT", "AZURE_BASE_URL"],
        about: "Azure OpenAI; the model is the deployment's name",
        keys: OPENAI_KEYS,
        quirks: ProviderQuirks {
            api_key_header: true,
            idempotency: false,
            files: &IMAGES_ONLY,
            batch: Some(&AZURE_BATCH),
            ..OPENAI
        },
        ..HOSTED
    },
    ProviderRow {
        name: "openrouter",
        base_url: Some("https://openrouter.ai/api/v1"),
        key_variables: &["OPENROUTER_API_KEY"],
        base_url_variables: &["OPENROUTER_BASE_URL"],
        about: "OpenRouter",
        keys: OPENROUTER_KEYS,
        quirks: ProviderQuirks {
            reasoning: ReasoningStyle::Object,
            files: &OPENROUTER_FILES,
            hosted: "openrouter:",
            ..CHAT
        },
        ..HOSTED
    },
    ProviderRow {
        name: "groq",
        base_url: Some("https://api.groq.com/openai/v1"),
        key_variables: &["GROQ_API_KEY"],
        base_url_variables: &["GROQ_BASE_URL"],
        about: "Groq",
        keys: GROQ_KEYS,
        quirks: ProviderQuirks {
            max_tools: Some(128),
            max_tokens: "max_completion_tokens",
            tiers: &["auto", "on_demand", "flex", "performance"],
            files: &GROQ_FILES,
            batch: Some(&GROQ_BATCH),
            schema_beside_tools: false,
            ..CHAT
        },
        ..HOSTED
    },
    ProviderRow {
        name: "mistral",
        base_url: Some("https://api.mistral.ai/v1"),
        key_variables: &["MISTRAL_API_KEY"],
        base_url_variables: &["MISTRAL_BASE_URL"],
        about: "Mistral",
        quirks: ProviderQuirks {
            seed: "random_seed",
            files: &MISTRAL_FILES,
            batch: Some(&MISTRAL_BATCH),
            ..CHAT
        },
        ..HOSTED
    },
    ProviderRow {
        name: "deepseek",
        base_url: Some("https://api.deepseek.com/v1"),
        key_variables: &["DEEPSEEK_API_KEY"],
        base_url_variables: &["DEEPSEEK_BASE_URL"],
        about: "DeepSeek",
        quirks: ProviderQuirks {
            max_tools: Some(128),
            reasoning: ReasoningStyle::Toggle,
            cache: PrefixCaching::From(64),
            files: &TEXT_ONLY,
            ..JSON_OBJECT
        },
        ..HOSTED
    },
    ProviderRow {
        name: "xai",
        aliases: &["grok"],
        base_url: Some("https://api.x.ai/v1"),
        key_variables: &["XAI_API_KEY"],
        base_url_variables: &["XAI_BASE_URL"],
        about: "xAI",
        keys: XAI_KEYS,
        quirks: ProviderQuirks { files: &XAI_FILES, hosts_by_responses: true, max_tools: Some(128), ..CHAT },
        ..HOSTED
    },
    ProviderRow {
        name: "together",
        base_url: Some("https://api.together.xyz/v1"),
        key_variables: &["TOGETHER_API_KEY"],
        base_url_variables: &["TOGETHER_BASE_URL"],
        about: "Together AI",
        keys: OPEN_KEYS,
        quirks: ProviderQuirks { batch: Some(&TOGETHER_BATCH), ..CHAT },
        ..HOSTED
    },
    ProviderRow {
        name: "hf",
        aliases: &["huggingface"],
        base_url: Some("https://router.huggingface.co/v1"),
        key_variables: &["HF_TOKEN"],
        base_url_variables: &["HF_BASE_URL"],
        about: "Hugging Face inference providers; `:provider` after the model chooses the route",
        keys: OPEN_KEYS,
        quirks: ProviderQuirks { reasoning: ReasoningStyle::ByModel, ..CHAT },
        ..HOSTED
    },
    ProviderRow {
        name: "moonshot",
        base_url: Some("https://api.moonshot.ai/v1"),
        key_variables: &["MOONSHOT_API_KEY"],
        base_url_variables: &["MOONSHOT_BASE_URL"],
        about: "Moonshot AI",
        quirks: ProviderQuirks { reasoning: ReasoningStyle::Toggle, ..JSON_OBJECT },
        ..HOSTED
    },
    ProviderRow {
        name: "zai",
        base_url: Some("https://api.z.ai/api/paas/v4"),
        key_variables: &["ZAI_API_KEY"],
        base_url_variables: &["ZAI_BASE_URL"],
        about: "Z.ai",
        quirks: ProviderQuirks { reasoning: ReasoningStyle::Toggle, ..JSON_OBJECT },
        ..HOSTED
    },
    ProviderRow {
        name: "aliyun",
        base_url: Some("https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
        key_variables: &["ALIYUN_API_KEY", "DASHSCOPE_API_KEY"],
        base_url_variables: &["ALIYUN_BASE_URL"],
        about: "Alibaba Cloud Model Studio",
        quirks: ProviderQuirks { reasoning: ReasoningStyle::Enable, files: &ALIYUN_FILES, ..JSON_OBJECT },
        ..HOSTED
    },
    ProviderRow {
        name: "ollama",
        base_url: Some("http://localhost:11434/v1"),
        key_variables: &["OLLAMA_API_KEY"],
        base_url_variables: &["OLLAMA_BASE_URL"],
        about: "a local Ollama",
        ..LOCAL
    },
    ProviderRow {
        name: "vllm",
        base_url: Some("http://localhost:8000/v1"),
        key_variables: &["VLLM_API_KEY"],
        base_url_variables: &["VLLM_BASE_URL"],
        about: "a local vLLM",
        ..LOCAL
    },
    ProviderRow {
        name: "llamacpp",
        base_url: Some("http://localhost:8080/v1"),
        key_variables: &["LLAMACPP_API_KEY"],
        base_url_variables: &["LLAMACPP_BASE_URL"],
        about: "a local llama.cpp server",
        quirks: ProviderQuirks { repetition: "repeat_penalty", ..CHAT },
        ..LOCAL
    },
    ProviderRow {
        name: "openresponses",
        protocol: ProviderProtocol::Responses,
        key_variables: &["OPENRESPONSES_API_KEY"],
        base_url_variables: &["OPENRESPONSES_BASE_URL"],
        about: "any server that speaks the Responses API",
        keys: RESPONSES_KEYS,
        quirks: ProviderQuirks { tiers: OPENAI_TIERS, ..CHAT },
        ..LOCAL
    },
    ProviderRow { name: "passthrough", about: "built in: returns the prompt", ..BUILTIN },
    ProviderRow {
        name: "playback",
        about: "built in: replays the conversation of its first call",
        ..BUILTIN
    },
    ProviderRow {
        name: "slow",
        about: "built in: returns the prompt after three seconds",
        keys: &[ModelSettingKey::Delay],
        ..BUILTIN
    },
    ProviderRow { name: "silent", about: "built in: returns an empty answer", ..BUILTIN },
    ProviderRow {
        name: "simulated",
        about: "built in: generates answers that match the schema",
        keys: &[
            ModelSettingKey::Seed,
            ModelSettingKey::Latency,
            ModelSettingKey::Jitter,
            ModelSettingKey::FailureRate,
        ],
        ..BUILTIN
    },
];
