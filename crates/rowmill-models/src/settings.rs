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
        pub enum Key { $(#[doc = $about] $variant,)* }

        impl Key {
            /// All keys, in the order in which a model string is displayed.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in a model string.
            #[must_use]
            pub fn name(self) -> &'static str { match self { $(Self::$variant => $name,)* } }

            /// Other names of the same key.
            #[must_use]
            pub fn also(self) -> &'static [&'static str] { match self { $(Self::$variant => $also,)* } }

            /// What the key does, as a sentence.
            #[must_use]
            pub fn about(self) -> &'static str { match self { $(Self::$variant => $about,)* } }

            pub(crate) fn takes(self) -> Takes { match self { $(Self::$variant => $takes,)* } }
        }
    };
}

/// What kind of value a key takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Takes {
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
    Reasoning = "reasoning", &[], Takes::WordOrTokens(EFFORTS),
        "Reasoning effort: a level, or a token budget if the provider supports one.";
    Verbosity = "verbosity", &[], Takes::Word(&["low", "medium", "high"]),
        "Verbosity of answers.";
    Structured = "structured", &[], Takes::Word(&["json", "tool_use"]),
        "How a schema is enforced: the provider's JSON mode, or a forced tool call.";
    Transport = "transport", &[], Takes::Word(&["http", "sse", "ws", "auto"]),
        "How answers are transferred: complete, as a stream of events, over a WebSocket, or over a WebSocket \
         if available.";
    Stream = "stream", &[], Takes::Switch,
        "Whether answers are streamed, which allows the time to the first token to be measured.";
    ServiceTier = "service_tier", &[], Takes::Word(TIERS),
        "Service tier to request.";
    Temperature = "temperature", &["temp"], Takes::Number(0.0, 2.0),
        "Sampling temperature.";
    TopP = "top_p", &[], Takes::Number(0.0, 1.0),
        "Nucleus sampling: the probability mass to sample from.";
    TopK = "top_k", &[], Takes::Integer(0, i64::MAX),
        "Sample only from this many of the most likely tokens.";
    MinP = "min_p", &[], Takes::Number(0.0, 1.0),
        "Minimum probability of a token, relative to the most likely one.";
    PresencePenalty = "presence_penalty", &[], Takes::Number(-2.0, 2.0),
        "Penalizes tokens that have already occurred.";
    FrequencyPenalty = "frequency_penalty", &[], Takes::Number(-2.0, 2.0),
        "Penalizes tokens by how often they have occurred.";
    RepetitionPenalty = "repetition_penalty", &[], Takes::Number(0.0, 10.0),
        "Penalizes repetition by a factor.";
    MaxTokens = "max_tokens", &["maxTokens"], Takes::Integer(1, i64::MAX),
        "Maximum number of tokens in an answer.";
    Seed = "seed", &[], Takes::Integer(0, i64::MAX),
        "Random seed for sampling.";
    Stop = "stop", &[], Takes::Texts,
        "Stop sequence that ends the answer, or a JSON array of several.";
    WebSearch = "web_search", &[], Takes::Switch,
        "Whether the model may search the web; the provider runs the search.";
    WebFetch = "web_fetch", &[], Takes::Switch,
        "Whether the model may read pages of the web; the provider reads them.";
    XSearch = "x_search", &[], Takes::Switch,
        "Whether the model may search X; the provider runs the search.";
    Delay = "delay", &[], Takes::Span,
        "How long to wait before the answer.";
    Latency = "latency", &[], Takes::Span,
        "How long a simulated answer takes.";
    Jitter = "jitter", &[], Takes::Number(0.0, 1.0),
        "Random variation of the simulated latency, as a share of it.";
    FailureRate = "failure_rate", &[], Takes::Number(0.0, 1.0),
        "Share of simulated calls that fail.";
}

impl Key {
    /// The key with this name or alternative name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|key| key.name() == name || key.also().contains(&name))
    }

    /// Parses a value; the error says what is allowed.
    pub(crate) fn read(self, value: &str) -> Result<Setting, String> {
        let setting = match self.takes() {
            Takes::Word(words) => word(words, value),
            Takes::WordOrTokens(words) => {
                word(words, value).or_else(|| value.parse().ok().filter(|n| *n >= 0).map(Setting::Integer))
            }
            Takes::Number(low, high) => {
                value.parse().ok().filter(|n| (low..=high).contains(n)).map(Setting::Number)
            }
            Takes::Integer(low, high) => {
                value.parse().ok().filter(|n| (low..=high).contains(n)).map(Setting::Integer)
            }
            Takes::Switch => match value {
                "true" | "on" | "1" => Some(Setting::Switch(true)),
                "false" | "off" | "0" => Some(Setting::Switch(false)),
                _ => None,
            },
            Takes::Span => time_span::parse(value).map(Setting::Span),
            Takes::Texts => texts(value).map(Setting::Texts),
        };
        setting.ok_or_else(|| self.allowed())
    }

    fn allowed(self) -> String {
        match self.takes() {
            Takes::Word(words) => words.join(", "),
            Takes::WordOrTokens(words) => format!("{}, or a number of tokens", words.join(", ")),
            Takes::Number(low, high) => format!("a number from {low} to {high}"),
            Takes::Integer(low, i64::MAX) => format!("a whole number from {low}"),
            Takes::Integer(low, high) => format!("a whole number from {low} to {high}"),
            Takes::Switch => "true, false".to_owned(),
            Takes::Span => "a duration such as `100ms` or `2s`".to_owned(),
            Takes::Texts => "a text, or a JSON array of texts".to_owned(),
        }
    }
}

/// A value that was set.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
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

impl fmt::Display for Setting {
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
pub struct Settings(BTreeMap<Key, Setting>);

impl Settings {
    /// Sets a value and replaces an earlier one of the same key.
    pub(crate) fn set(&mut self, key: Key, value: Setting) {
        self.0.insert(key, value);
    }

    /// All settings, in the order of [`Key::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Key, &Setting)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    /// The value of a key.
    #[must_use]
    pub fn value(&self, key: Key) -> Option<&Setting> {
        self.0.get(&key)
    }

    /// The word that a key is set to.
    #[must_use]
    pub fn word(&self, key: Key) -> Option<&'static str> {
        if let Some(Setting::Word(word)) = self.value(key) { Some(word) } else { None }
    }

    pub(crate) fn number(&self, key: Key) -> Option<f64> {
        if let Some(Setting::Number(number)) = self.value(key) { Some(*number) } else { None }
    }

    pub(crate) fn integer(&self, key: Key) -> Option<i64> {
        if let Some(Setting::Integer(number)) = self.value(key) { Some(*number) } else { None }
    }

    pub(crate) fn switch(&self, key: Key) -> Option<bool> {
        if let Some(Setting::Switch(on)) = self.value(key) { Some(*on) } else { None }
    }

    pub(crate) fn span(&self, key: Key) -> Option<Duration> {
        if let Some(Setting::Span(span)) = self.value(key) { Some(*span) } else { None }
    }

    pub(crate) fn texts(&self, key: Key) -> Option<&[String]> {
        if let Some(Setting::Texts(texts)) = self.value(key) { Some(texts) } else { None }
    }
}

/// Finds a word, also by its alternative spellings.
fn word(words: &'static [&'static str], value: &str) -> Option<Setting> {
    let meant = match value {
        "websocket" => "ws",
        "med" => "medium",
        "adaptive" => "auto",
        other => other,
    };
    words.iter().find(|word| **word == meant).map(|word| Setting::Word(word))
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
            let setting = Key::Latency.read(value).unwrap();
            assert_eq!(setting.to_string(), shown);
            assert_eq!(Key::Latency.read(shown), Ok(setting));
        }
    }
}
