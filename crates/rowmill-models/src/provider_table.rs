//! The known providers, as data: one row each.

use crate::Protocol;
use crate::files::{
    ALIYUN_FILES, GROQ_FILES, IMAGES_ONLY, MISTRAL_FILES, OPENROUTER_FILES, TEXT_ONLY, XAI_FILES,
};
use crate::quirks::{
    ANTHROPIC, ANTHROPIC_KEYS, BUILT_IN, CHAT, CHAT_KEYS, Cache, GOOGLE, GOOGLE_KEYS, GROQ_KEYS, JSON_OBJECT,
    OPEN_KEYS, OPENAI, OPENAI_KEYS, OPENAI_TIERS, OPENROUTER_KEYS, Quirks, RESPONSES_KEYS, Reasoning,
    XAI_KEYS,
};
use crate::settings::Key;

/// What is known about a provider. A quirk of a provider is a field here, so that the translation checks the
/// quirk and never the name.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) protocol: Protocol,
    pub(crate) base_url: Option<&'static str>,
    pub(crate) key_variables: &'static [&'static str],
    pub(crate) base_url_variables: &'static [&'static str],
    pub(crate) needs_key: bool,
    pub(crate) about: &'static str,
    pub(crate) keys: &'static [Key],
    pub(crate) quirks: Quirks,
}

/// A provider with a key of its own and the chat protocol; the base of most rows.
const HOSTED: Row = Row {
    name: "",
    aliases: &[],
    protocol: Protocol::Chat,
    base_url: None,
    key_variables: &[],
    base_url_variables: &[],
    needs_key: true,
    about: "",
    keys: CHAT_KEYS,
    quirks: CHAT,
};
const LOCAL: Row = Row { needs_key: false, keys: OPEN_KEYS, ..HOSTED };
const BUILTIN: Row =
    Row { protocol: Protocol::Builtin, needs_key: false, keys: &[], quirks: BUILT_IN, ..HOSTED };

/// The row of a provider that the configuration adds, by its protocol.
pub(crate) fn added(protocol: Protocol) -> &'static Row {
    const CHAT_ROW: Row = Row { about: "added in rowmill.toml", ..LOCAL };
    const RESPONSES_ROW: Row = Row {
        protocol: Protocol::Responses,
        keys: RESPONSES_KEYS,
        quirks: Quirks { tiers: OPENAI_TIERS, ..CHAT },
        ..CHAT_ROW
    };
    const ANTHROPIC_ROW: Row =
        Row { protocol: Protocol::Anthropic, keys: ANTHROPIC_KEYS, quirks: ANTHROPIC, ..CHAT_ROW };
    const GOOGLE_ROW: Row = Row { protocol: Protocol::Google, keys: GOOGLE_KEYS, quirks: GOOGLE, ..CHAT_ROW };
    match protocol {
        Protocol::Chat => &CHAT_ROW,
        Protocol::Responses => &RESPONSES_ROW,
        Protocol::Anthropic => &ANTHROPIC_ROW,
        Protocol::Google => &GOOGLE_ROW,
        Protocol::Builtin => &BUILTIN,
    }
}

/// Whether a model with this name answers in this process; no configuration can change it.
pub(crate) fn is_builtin(name: &str) -> bool {
    ROWS.iter().any(|row| row.name == name && row.protocol == Protocol::Builtin)
}

/// All providers that need no configuration.
pub(crate) static ROWS: &[Row] = &[
    Row {
        name: "responses",
        protocol: Protocol::Responses,
        base_url: Some("https://api.openai.com/v1"),
        key_variables: &["OPENAI_API_KEY"],
        base_url_variables: &["OPENAI_BASE_URL"],
        about: "OpenAI, Responses API",
        keys: RESPONSES_KEYS,
        quirks: OPENAI,
        ..HOSTED
    },
    Row {
        name: "openai",
        base_url: Some("https://api.openai.com/v1"),
        key_variables: &["OPENAI_API_KEY"],
        base_url_variables: &["OPENAI_BASE_URL"],
        about: "OpenAI, chat completions",
        keys: OPENAI_KEYS,
        quirks: OPENAI,
        ..HOSTED
    },
    Row {
        name: "anthropic",
        aliases: &["claude"],
        protocol: Protocol::Anthropic,
        base_url: Some("https://api.anthropic.com"),
        key_variables: &["ANTHROPIC_API_KEY"],
        base_url_variables: &["ANTHROPIC_BASE_URL"],
        about: "Anthropic, Messages API",
        keys: ANTHROPIC_KEYS,
        quirks: ANTHROPIC,
        ..HOSTED
    },
    Row {
        name: "google",
        aliases: &["gemini"],
        protocol: Protocol::Google,
        base_url: Some("https://generativelanguage.googleapis.com"),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url_variables: &["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"],
        about: "Google, Gemini API",
        keys: GOOGLE_KEYS,
        quirks: GOOGLE,
        ..HOSTED
    },
    Row {
        name: "googleoai",
        base_url: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url_variables: &["GOOGLEOAI_BASE_URL"],
        about: "Google, Gemini through its OpenAI-compatible API",
        quirks: Quirks { cache: Cache::Google, schema_beside_tools: false, max_tools: Some(512), ..CHAT },
        ..HOSTED
    },
    Row {
        name: "generic",
        base_url: Some("http://localhost:11434/v1"),
        key_variables: &["GENERIC_API_KEY"],
        base_url_variables: &["GENERIC_BASE_URL"],
        about: "any OpenAI-compatible server",
        ..LOCAL
    },
    Row {
        name: "azure",
        key_variables: &["AZURE_OPENAI_API_KEY"],
        base_url_variables: &["AZURE_OPENAI_ENDPOINT", "AZURE_BASE_URL"],
        about: "Azure OpenAI; the model is the deployment's name",
        keys: OPENAI_KEYS,
        quirks: Quirks { api_key_header: true, idempotency: false, files: &IMAGES_ONLY, ..OPENAI },
        ..HOSTED
    },
    Row {
        name: "openrouter",
        base_url: Some("https://openrouter.ai/api/v1"),
        key_variables: &["OPENROUTER_API_KEY"],
        base_url_variables: &["OPENROUTER_BASE_URL"],
        about: "OpenRouter",
        keys: OPENROUTER_KEYS,
        quirks: Quirks {
            reasoning: Reasoning::Object,
            files: &OPENROUTER_FILES,
            hosted: "openrouter:",
            ..CHAT
        },
        ..HOSTED
    },
    Row {
        name: "groq",
        base_url: Some("https://api.groq.com/openai/v1"),
        key_variables: &["GROQ_API_KEY"],
        base_url_variables: &["GROQ_BASE_URL"],
        about: "Groq",
        keys: GROQ_KEYS,
        quirks: Quirks {
            max_tools: Some(128),
            max_tokens: "max_completion_tokens",
            tiers: &["auto", "on_demand", "flex", "performance"],
            files: &GROQ_FILES,
            schema_beside_tools: false,
            ..CHAT
        },
        ..HOSTED
    },
    Row {
        name: "mistral",
        base_url: Some("https://api.mistral.ai/v1"),
        key_variables: &["MISTRAL_API_KEY"],
        base_url_variables: &["MISTRAL_BASE_URL"],
        about: "Mistral",
        quirks: Quirks { seed: "random_seed", files: &MISTRAL_FILES, ..CHAT },
        ..HOSTED
    },
    Row {
        name: "deepseek",
        base_url: Some("https://api.deepseek.com/v1"),
        key_variables: &["DEEPSEEK_API_KEY"],
        base_url_variables: &["DEEPSEEK_BASE_URL"],
        about: "DeepSeek",
        quirks: Quirks {
            max_tools: Some(128),
            reasoning: Reasoning::Toggle,
            cache: Cache::From(64),
            files: &TEXT_ONLY,
            ..JSON_OBJECT
        },
        ..HOSTED
    },
    Row {
        name: "xai",
        aliases: &["grok"],
        base_url: Some("https://api.x.ai/v1"),
        key_variables: &["XAI_API_KEY"],
        base_url_variables: &["XAI_BASE_URL"],
        about: "xAI",
        keys: XAI_KEYS,
        quirks: Quirks { files: &XAI_FILES, hosts_by_responses: true, max_tools: Some(128), ..CHAT },
        ..HOSTED
    },
    Row {
        name: "together",
        base_url: Some("https://api.together.xyz/v1"),
        key_variables: &["TOGETHER_API_KEY"],
        base_url_variables: &["TOGETHER_BASE_URL"],
        about: "Together AI",
        keys: OPEN_KEYS,
        ..HOSTED
    },
    Row {
        name: "hf",
        aliases: &["huggingface"],
        base_url: Some("https://router.huggingface.co/v1"),
        key_variables: &["HF_TOKEN"],
        base_url_variables: &["HF_BASE_URL"],
        about: "Hugging Face inference providers; `:provider` after the model chooses the route",
        keys: OPEN_KEYS,
        quirks: Quirks { reasoning: Reasoning::ByModel, ..CHAT },
        ..HOSTED
    },
    Row {
        name: "moonshot",
        base_url: Some("https://api.moonshot.ai/v1"),
        key_variables: &["MOONSHOT_API_KEY"],
        base_url_variables: &["MOONSHOT_BASE_URL"],
        about: "Moonshot AI",
        quirks: Quirks { reasoning: Reasoning::Toggle, ..JSON_OBJECT },
        ..HOSTED
    },
    Row {
        name: "zai",
        base_url: Some("https://api.z.ai/api/paas/v4"),
        key_variables: &["ZAI_API_KEY"],
        base_url_variables: &["ZAI_BASE_URL"],
        about: "Z.ai",
        quirks: Quirks { reasoning: Reasoning::Toggle, ..JSON_OBJECT },
        ..HOSTED
    },
    Row {
        name: "aliyun",
        base_url: Some("https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
        key_variables: &["ALIYUN_API_KEY", "DASHSCOPE_API_KEY"],
        base_url_variables: &["ALIYUN_BASE_URL"],
        about: "Alibaba Cloud Model Studio",
        quirks: Quirks { reasoning: Reasoning::Enable, files: &ALIYUN_FILES, ..JSON_OBJECT },
        ..HOSTED
    },
    Row {
        name: "ollama",
        base_url: Some("http://localhost:11434/v1"),
        key_variables: &["OLLAMA_API_KEY"],
        base_url_variables: &["OLLAMA_BASE_URL"],
        about: "a local Ollama",
        ..LOCAL
    },
    Row {
        name: "vllm",
        base_url: Some("http://localhost:8000/v1"),
        key_variables: &["VLLM_API_KEY"],
        base_url_variables: &["VLLM_BASE_URL"],
        about: "a local vLLM",
        ..LOCAL
    },
    Row {
        name: "llamacpp",
        base_url: Some("http://localhost:8080/v1"),
        key_variables: &["LLAMACPP_API_KEY"],
        base_url_variables: &["LLAMACPP_BASE_URL"],
        about: "a local llama.cpp server",
        quirks: Quirks { repetition: "repeat_penalty", ..CHAT },
        ..LOCAL
    },
    Row {
        name: "openresponses",
        protocol: Protocol::Responses,
        key_variables: &["OPENRESPONSES_API_KEY"],
        base_url_variables: &["OPENRESPONSES_BASE_URL"],
        about: "any server that speaks the Responses API",
        keys: RESPONSES_KEYS,
        quirks: Quirks { tiers: OPENAI_TIERS, ..CHAT },
        ..LOCAL
    },
    Row { name: "passthrough", about: "built in: returns the prompt", ..BUILTIN },
    Row { name: "playback", about: "built in: replays the conversation of its first call", ..BUILTIN },
    Row {
        name: "slow",
        about: "built in: returns the prompt after three seconds",
        keys: &[Key::Delay],
        ..BUILTIN
    },
    Row { name: "silent", about: "built in: returns an empty answer", ..BUILTIN },
    Row {
        name: "simulated",
        about: "built in: generates answers that match the schema",
        keys: &[Key::Seed, Key::Latency, Key::Jitter, Key::FailureRate],
        ..BUILTIN
    },
];
