//! One value of a card, parsed as the expected type.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::mistake::{CardMistake, backticked_list, nearest};
use crate::yaml::{YamlContent, YamlEntry, YamlNode, mapping_to_json};

/// A value and its path, for messages.
#[derive(Debug, Clone)]
pub(crate) struct CardField {
    /// The path, such as `request_params.top_p` or `agents[2]`.
    pub(crate) path: String,
    pub(crate) line: u64,
    pub(crate) content: YamlContent,
}

impl CardField {
    pub(crate) fn new(path: String, node: YamlNode) -> Self {
        Self { path, line: node.line, content: node.content }
    }

    /// A mistake in this value.
    pub(crate) fn mistake(&self, what: &str) -> CardMistake {
        CardMistake::at(self.line, format!("`{}` {what}", self.path))
    }

    fn must_be(&self, expected: &str) -> CardMistake {
        let found = match &self.content {
            YamlContent::Null => "nothing",
            YamlContent::Boolean(_) => "true or false",
            YamlContent::Number(_) => "a number",
            YamlContent::Text(_) => "text",
            YamlContent::List(_) => "a list",
            YamlContent::Mapping(_) => "a mapping",
        };
        self.mistake(&format!("must be {expected}, not {found}"))
    }

    /// `true` or `false`, or a word that older YAML versions read as one of them.
    pub(crate) fn boolean(self) -> Result<bool, CardMistake> {
        let word = |word: &str, words: [&str; 2]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
        match &self.content {
            YamlContent::Boolean(value) => Ok(*value),
            YamlContent::Text(text) if word(text, ["yes", "on"]) => Ok(true),
            YamlContent::Text(text) if word(text, ["no", "off"]) => Ok(false),
            _ => Err(self.must_be("`true` or `false`")),
        }
    }

    /// Text that is not blank, trimmed.
    pub(crate) fn text(self) -> Result<String, CardMistake> {
        let text = self.any_text()?;
        Ok(text.trim().to_owned())
    }

    /// Text that is not blank, unchanged.
    pub(crate) fn any_text(self) -> Result<String, CardMistake> {
        match &self.content {
            YamlContent::Text(text) if text.trim().is_empty() => {
                Err(self.mistake("must not be empty").hint("set it, or omit it"))
            }
            YamlContent::Text(text) => Ok(text.clone()),
            YamlContent::Boolean(_) | YamlContent::Number(_) => {
                Err(self.must_be("text").hint("put the value in quotes"))
            }
            _ => Err(self.must_be("text")),
        }
    }

    /// An integer that is not less than `least`.
    pub(crate) fn integer(self, least: i64) -> Result<i64, CardMistake> {
        let YamlContent::Number(number) = &self.content else { return Err(self.must_be("a whole number")) };
        let Some(whole) = number.as_i64() else {
            return Err(self.mistake(&format!("must be a whole number, not {number}")));
        };
        if whole < least {
            return Err(self.mistake(&format!("must be {least} or more, not {whole}")));
        }
        Ok(whole)
    }

    /// An integer that fits in 32 bits.
    pub(crate) fn integer_u32(self, least: u32) -> Result<u32, CardMistake> {
        let wrong = self.clone();
        let whole = self.integer(i64::from(least))?;
        u32::try_from(whole).map_err(|_| wrong.mistake(&format!("must be {} or less, not {whole}", u32::MAX)))
    }

    pub(crate) fn number(self) -> Result<f64, CardMistake> {
        match &self.content {
            YamlContent::Number(number) => {
                number.as_f64().ok_or_else(|| self.mistake("is too large a number"))
            }
            _ => Err(self.must_be("a number")),
        }
    }

    /// A duration in seconds.
    pub(crate) fn seconds(self) -> Result<Duration, CardMistake> {
        let wrong = self.clone();
        let seconds = self.number()?;
        let span = Duration::try_from_secs_f64(seconds).ok().filter(|span| !span.is_zero());
        span.ok_or_else(|| wrong.mistake(&format!("must be a number of seconds above 0, not {seconds}")))
    }

    pub(crate) fn list(self) -> Result<Vec<Self>, CardMistake> {
        match self.content {
            YamlContent::List(nodes) => {
                let item = |(index, node)| Self::new(format!("{}[{index}]", self.path), node);
                Ok(nodes.into_iter().enumerate().map(item).collect())
            }
            YamlContent::Text(ref text) => {
                let name = self.path.rsplit('.').next().unwrap_or_default();
                // Settings of a server may be secrets.
                let shown = if self.path.starts_with("mcp_connect") { "…" } else { text };
                Err(self.must_be("a list").hint(format!("write `{name}: [{shown}]`")))
            }
            _ => Err(self.must_be("a list")),
        }
    }

    /// A list of texts.
    pub(crate) fn texts(self) -> Result<Vec<String>, CardMistake> {
        self.list()?.into_iter().map(Self::text).collect()
    }

    /// A text or a list of texts.
    pub(crate) fn text_or_texts(self) -> Result<Vec<String>, CardMistake> {
        match self.content {
            YamlContent::Text(_) => Ok(vec![self.text()?]),
            _ => self.texts(),
        }
    }

    pub(crate) fn mapping(self) -> Result<Vec<YamlEntry>, CardMistake> {
        match self.content {
            YamlContent::Mapping(entries) => Ok(entries),
            _ => Err(self.must_be("a mapping")),
        }
    }

    /// The entries of a mapping.
    pub(crate) fn entries(self) -> Result<Vec<(String, Self)>, CardMistake> {
        let path = self.path.clone();
        let entry = |entry: YamlEntry| {
            let at = format!("{path}.{}", entry.key);
            if entry.key.trim().is_empty() {
                return Err(CardMistake::at(entry.line, format!("`{path}` has a key without a name")));
            }
            Ok((entry.key.trim().to_owned(), Self::new(at, entry.node)))
        };
        self.mapping()?.into_iter().map(entry).collect()
    }

    /// A mapping of texts, which may be empty.
    pub(crate) fn text_mapping(self) -> Result<Vec<(String, String)>, CardMistake> {
        let pair = |(key, field): (String, Self)| match field.content {
            YamlContent::Text(text) => Ok((key, text)),
            _ => Err(field.must_be("text").hint("put the value in quotes")),
        };
        self.entries()?.into_iter().map(pair).collect()
    }

    /// A mapping as JSON.
    pub(crate) fn object(self) -> Result<Map<String, Value>, CardMistake> {
        Ok(mapping_to_json(&self.mapping()?))
    }

    /// One of several words, ignoring case.
    pub(crate) fn choice<T: Copy>(self, choices: &[(&str, T)]) -> Result<T, CardMistake> {
        let wrong = self.clone();
        let word = self.text()?;
        let chosen = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word));
        chosen.map(|(_, value)| *value).ok_or_else(|| {
            let names = choices.iter().map(|(name, _)| *name);
            let near = nearest(&word, names.clone());
            let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            let hint = format!("{near}expected one of: {}", backticked_list(names));
            wrong.mistake(&format!("is unknown: `{word}`")).hint(hint)
        })
    }
}
