//! Settings of a model string: the keys, their types of values, and the values that were set.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rowmill_core::time_span;

macro_rules! keys {
    ($($variant:ident = $name:literal, $also:expr, $takes:expr, $about:literal;)*) => {
        /// A key of a model string, as in `?temperature=0`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum ModelSettingKey { $(#[doc = $about] $variant,)* }

        impl ModelSettingKey {
            /// All keys, in the order in which a model string is displayed.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in a model string.
            #[must_use]
            pub fn name(self) -> &'static str { match self { $(Self::$variant => $name,)* } }

            /// Other names of the same key.
            #[must_use]
            pub fn other_names(self) -> &'static [&'static str] { match self { $(Self::$variant => $also,)* } }

            /// What the key does, as a sentence.
            #[must_use]
            pub fn description(self) -> &'static str { match self { $(Self::$variant => $about,)* } }

            pub(crate) fn takes(self) -> AcceptedValue { match self { $(Self::$variant => $takes,)* } }
        }
    };
}

/// What kind of value a key takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum AcceptedValue {
    /// One of these words; a provider may allow fewer.
    Word(&'static [&'static str]),
    /// One of these words, or a number of tokens.
    WordOrTokens(&'static [&'static str]),
    /// A number within a range.
    Number(f64, f64),
    /// A whole number within a range.
    Integer(i64, i64),
    /// `true` or `false`.
    Switch,
    /// A duration such as `100ms`.
    Span,
    /// A text, or a JSON array of texts.
    Texts,
}

const EFFORTS: &[&str] = &["auto", "none", "minimal", "low", "medium", "high", "xhigh", "max", "on", "off"];
const TIERS: &[&str] =
    &["fast", "flex", "auto", "default", "priority", "standard_only", "on_demand", "performance"];

keys! {
    Reasoning = "reasoning", &[], AcceptedValue::WordOrTokens(EFFORTS),
        "Reasoning effort: a level, or a token budget if the provider supports one.";
    Verbosity = "verbosity", &[], AcceptedValue::Word(&["low", "medium", "high"]),
        "Verbosity of answers.";
    Structured = "structured", &[], AcceptedValue::Word(&["json", "tool_use"]),
        "How a schema is enforced: the provider's JSON mode, or a forced tool call.";
    Transport = "transport", &[], AcceptedValue::Word(&["http", "sse", "ws", "auto"]),
        "How answers are transferred: complete, as a stream of events, over a WebSocket, or over a WebSocket \
         if available.";
    Stream = "stream", &[], AcceptedValue::Switch,
        "Whether answers are streamed, which allows the time to the first token to be measured.";
    ServiceTier = "service_tier", &[], AcceptedValue::Word(TIERS),
        "Service tier to request.";
    Temperature = "temperature", &["temp"], AcceptedValue::Number(0.0, 2.0),
        "Sampling temperature.";
    TopP = "top_p", &[], AcceptedValue::Number(0.0, 1.0),
        "Nucleus sampling: the probability mass to sample from.";
    TopK = "top_k", &[], AcceptedValue::Integer(0, i64::MAX),
        "Sample only from this many of the most likely tokens.";
    MinP = "min_p", &[], AcceptedValue::Number(0.0, 1.0),
        "Minimum probability of a token, relative to the most likely one.";
    PresencePenalty = "presence_penalty", &[], AcceptedValue::Number(-2.0, 2.0),
        "Penalizes tokens that have already occurred.";
    FrequencyPenalty = "frequency_penalty", &[], AcceptedValue::Number(-2.0, 2.0),
        "Penalizes tokens by how often they have occurred.";
    RepetitionPenalty = "repetition_penalty", &[], AcceptedValue::Number(0.0, 10.0),
        "Penalizes repetition by a factor.";
    MaxTokens = "max_tokens", &["maxTokens"], AcceptedValue::Integer(1, i64::MAX),
        "Maximum number of tokens in an answer.";
    Seed = "seed", &[], AcceptedValue::Integer(0, i64::MAX),
        "Random seed for sampling.";
    Stop = "stop", &[], AcceptedValue::Texts,
        "Stop sequence that ends the answer, or a JSON array of several.";
    WebSearch = "web_search", &[], AcceptedValue::Switch,
        "Whether the model may search the web; the provider runs the search.";
    WebFetch = "web_fetch", &[], AcceptedValue::Switch,
        "Whether the model may read pages of the web; the provider reads them.";
    XSearch = "x_search", &[], AcceptedValue::Switch,
        "Whether the model may search X; the provider runs the search.";
    Delay = "delay", &[], AcceptedValue::Span,
        "How long to wait before the answer.";
    Latency = "latency", &[], AcceptedValue::Span,
        "How long a simulated answer takes.";
    Jitter = "jitter", &[], AcceptedValue::Number(0.0, 1.0),
        "Random variation of the simulated latency, as a share of it.";
    FailureRate = "failure_rate", &[], AcceptedValue::Number(0.0, 1.0),
        "Share of simulated calls that fail.";
}

impl ModelSettingKey {
    /// The key with this name or alternative name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|key| key.name() == name || key.other_names().contains(&name))
    }

    /// Parses a value; the error says what is allowed.
    pub(crate) fn read(self, value: &str) -> Result<ModelSettingValue, String> {
        let setting = match self.takes() {
            AcceptedValue::Word(words) => word(words, value),
            AcceptedValue::WordOrTokens(words) => word(words, value)
                .or_else(|| value.parse().ok().filter(|n| *n >= 0).map(ModelSettingValue::Integer)),
            AcceptedValue::Number(low, high) => {
                value.parse().ok().filter(|n| (low..=high).contains(n)).map(ModelSettingValue::Number)
            }
            AcceptedValue::Integer(low, high) => {
                value.parse().ok().filter(|n| (low..=high).contains(n)).map(ModelSettingValue::Integer)
            }
            AcceptedValue::Switch => match value {
                "true" | "on" | "1" => Some(ModelSettingValue::Switch(true)),
                "false" | "off" | "0" => Some(ModelSettingValue::Switch(false)),
                _ => None,
            },
            AcceptedValue::Span => time_span::parse_single_unit_duration(value).map(ModelSettingValue::Span),
            AcceptedValue::Texts => texts(value).map(ModelSettingValue::Texts),
        };
        setting.ok_or_else(|| self.allowed())
    }

    fn allowed(self) -> String {
        match self.takes() {
            AcceptedValue::Word(words) => words.join(", "),
            AcceptedValue::WordOrTokens(words) => format!("{}, or a number of tokens", words.join(", ")),
            AcceptedValue::Number(low, high) => format!("a number from {low} to {high}"),
            AcceptedValue::Integer(low, i64::MAX) => format!("a whole number from {low}"),
            AcceptedValue::Integer(low, high) => format!("a whole number from {low} to {high}"),
            AcceptedValue::Switch => "true, false".to_owned(),
            AcceptedValue::Span => "a duration such as `100ms` or `2s`".to_owned(),
            AcceptedValue::Texts => "a text, or a JSON array of texts".to_owned(),
        }
    }
}

/// A value that was set.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelSettingValue {
    /// A word from a list.
    Word(&'static str),
    /// A number.
    Number(f64),
    /// A whole number.
    Integer(i64),
    /// True or false.
    Switch(bool),
    /// A duration.
    Span(Duration),
    /// One or more texts.
    Texts(Vec<String>),
}

impl fmt::Display for ModelSettingValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => out.write_str(word),
            Self::Number(number) => write!(out, "{number}"),
            Self::Integer(number) => write!(out, "{number}"),
            Self::Switch(on) => write!(out, "{on}"),
            Self::Span(span) => match span.as_micros() {
                micros if micros.is_multiple_of(1_000_000) => write!(out, "{}s", micros / 1_000_000),
                micros if micros.is_multiple_of(1_000) => write!(out, "{}ms", micros / 1_000),
                micros => write!(out, "{micros}us"),
            },
            Self::Texts(texts) => match texts.as_slice() {
                [text] if !text.starts_with('[') => out.write_str(text),
                texts => write!(out, "{}", serde_json::Value::from(texts)),
            },
        }
    }
}

/// The settings of a model string, one value per key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings(BTreeMap<ModelSettingKey, ModelSettingValue>);

impl ModelSettings {
    /// Sets a value and replaces an earlier one of the same key.
    pub(crate) fn set(&mut self, key: ModelSettingKey, value: ModelSettingValue) {
        self.0.insert(key, value);
    }

    /// Removes a value.
    pub(crate) fn remove(&mut self, key: ModelSettingKey) {
        self.0.remove(&key);
    }

    /// All settings, in the order of [`ModelSettingKey::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (ModelSettingKey, &ModelSettingValue)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    /// The value of a key.
    #[must_use]
    pub fn value(&self, key: ModelSettingKey) -> Option<&ModelSettingValue> {
        self.0.get(&key)
    }

    /// The word that a key is set to.
    #[must_use]
    pub fn word(&self, key: ModelSettingKey) -> Option<&'static str> {
        if let Some(ModelSettingValue::Word(word)) = self.value(key) { Some(word) } else { None }
    }

    pub(crate) fn number(&self, key: ModelSettingKey) -> Option<f64> {
        if let Some(ModelSettingValue::Number(number)) = self.value(key) { Some(*number) } else { None }
    }

    pub(crate) fn integer(&self, key: ModelSettingKey) -> Option<i64> {
        if let Some(ModelSettingValue::Integer(number)) = self.value(key) { Some(*number) } else { None }
    }

    pub(crate) fn switch(&self, key: ModelSettingKey) -> Option<bool> {
        if let Some(ModelSettingValue::Switch(on)) = self.value(key) { Some(*on) } else { None }
    }

    pub(crate) fn span(&self, key: ModelSettingKey) -> Option<Duration> {
        if let Some(ModelSettingValue::Span(span)) = self.value(key) { Some(*span) } else { None }
    }

    pub(crate) fn texts(&self, key: ModelSettingKey) -> Option<&[String]> {
        if let Some(ModelSettingValue::Texts(texts)) = self.value(key) { Some(texts) } else { None }
    }
}

/// Finds a word, also by its alternative spellings.
fn word(words: &'static [&'static str], value: &str) -> Option<ModelSettingValue> {
    let meant = match value {
        "websocket" => "ws",
        "med" => "medium",
        "adaptive" => "auto",
        other => other,
    };
    words.iter().find(|word| **word == meant).map(|word| ModelSettingValue::Word(word))
}

fn texts(value: &str) -> Option<Vec<String>> {
    if value.is_empty() {
        return None;
    }
    if !value.starts_with('[') {
        return Some(vec![value.to_owned()]);
    }
    serde_json::from_str::<Vec<String>>(value).ok().filter(|texts| !texts.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_shown_in_the_largest_unit_that_holds_it_whole() {
        for (value, shown) in
            [("2m", "120s"), ("1500ms", "1500ms"), ("0.2s", "200ms"), ("7us", "7us"), ("0", "0s")]
        {
            let setting = ModelSettingKey::Latency.read(value).unwrap();
            assert_eq!(setting.to_string(), shown);
            assert_eq!(ModelSettingKey::Latency.read(shown), Ok(setting));
        }
    }
}
