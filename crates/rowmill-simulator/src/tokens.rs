//! Counts and truncates text in tokens.

use std::str::FromStr;

use tiktoken_rs::o200k_base_singleton;

use crate::protocol::ParsedRequest;
use crate::recorded_file::FileTransfer;

/// How tokens are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tokenizer {
    /// Four characters per token: cheap, and easy to calculate with.
    #[default]
    Characters,
    /// OpenAI's `o200k_base`, with the overhead of each chat message.
    O200k,
}

/// The tokens that OpenAI counts for each message besides its role and text, and for the start of the answer.
const PER_MESSAGE: u64 = 3;

/// The tokens of any file that is not text.
const PER_FILE: u64 = 258;

impl Tokenizer {
    /// The tokens of a text.
    pub(crate) fn count(self, text: &str) -> u64 {
        match self {
            Self::Characters => text.chars().count().div_ceil(4) as u64,
            Self::O200k => o200k_base_singleton().count_ordinary(text) as u64,
        }
    }

    /// The tokens of a whole call.
    pub(crate) fn count_prompt(self, ask: &ParsedRequest) -> u64 {
        // Files sent as text are counted as text.
        let files = ask.files.iter().filter(|file| file.sent != FileTransfer::Text).count() as u64 * PER_FILE;
        match self {
            Self::Characters => {
                let characters: usize = ask.spoken.iter().map(|(_, text)| text.chars().count()).sum();
                (characters.div_ceil(4) as u64 + files).max(1)
            }
            Self::O200k => {
                let messages = ask.spoken.iter();
                let message_tokens =
                    messages.map(|(role, text)| PER_MESSAGE + self.count(role) + self.count(text));
                let schema = ask.schema.as_ref().map_or(0, |schema| self.count(&schema.to_string()));
                // A tool that must be called is counted by its schema.
                let offered = ask.tools.iter().filter(|tool| ask.tool.as_ref() != Some(&tool.name));
                let tools = offered.map(|tool| {
                    let schema = if tool.schema.is_null() { 0 } else { self.count(&tool.schema.to_string()) };
                    PER_MESSAGE + self.count(&tool.name) + self.count(&tool.description) + schema
                });
                message_tokens.sum::<u64>() + PER_MESSAGE + schema + tools.sum::<u64>() + files
            }
        }
    }

    /// The start of `text` with at most `most` tokens; `None` if the whole text has no more.
    pub(crate) fn truncate(self, text: &str, most: u64) -> Option<String> {
        if self.count(text) <= most {
            return None;
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        match self {
            Self::Characters => Some(text.chars().take(most.saturating_mul(4)).collect()),
            Self::O200k => {
                let coder = o200k_base_singleton();
                let tokens = coder.encode_ordinary(text);
                // A token may end inside a character; then the token is left out too.
                (0..=most).rev().find_map(|count| coder.decode(tokens.get(..count)?).ok())
            }
        }
    }

    /// Resizes `text` to `wanted` tokens, by truncating or extending it.
    pub(crate) fn resize_to(self, text: &str, wanted: u64) -> String {
        if let Some(cut) = self.truncate(text, wanted) {
            return cut;
        }
        let mut text = text.to_owned();
        let missing = wanted - self.count(&text);
        // Each word is one token of `o200k_base`, and more than one token of four characters.
        for word in [" and", " more"].into_iter().cycle().take(usize::try_from(missing).unwrap_or(0)) {
            text.push_str(word);
        }
        self.truncate(&text, wanted).unwrap_or(text)
    }
}

impl FromStr for Tokenizer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "chars" => Ok(Self::Characters),
            "o200k" => Ok(Self::O200k),
            _ => Err(format!("`{text}` is not a tokenizer; write `chars` or `o200k`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn o200k_counts_as_openai_does() {
        let both = |text| (Tokenizer::Characters.count(text), Tokenizer::O200k.count(text));
        assert_eq!(both("hello world"), (3, 2));
        assert_eq!(both("tiktoken is great!"), (5, 6));
        assert_eq!(both(""), (0, 0));
    }

    #[test]
    fn a_prompt_counts_its_messages_and_its_schema() {
        let mut ask = ParsedRequest::default();
        ask.say_system("hello world");
        ask.say_user("hello world".into());
        assert_eq!(Tokenizer::Characters.count_prompt(&ask), 6);
        assert_eq!(Tokenizer::O200k.count_prompt(&ask), 2 * (3 + 1 + 2) + 3);
        ask.schema = Some(json!({"type": "object"}));
        let schema = Tokenizer::O200k.count(r#"{"type":"object"}"#);
        assert_eq!(Tokenizer::O200k.count_prompt(&ask), 15 + schema);
    }

    #[test]
    fn texts_are_cut_and_stretched_to_the_token() {
        for tokenizer in [Tokenizer::Characters, Tokenizer::O200k] {
            for text in ["answer to: Is this review positive?", "答えは：とても良い、と言える🙂🙂", ""]
            {
                for wanted in [1, 2, 7, 40, 333] {
                    let fitted = tokenizer.resize_to(text, wanted);
                    let counted = tokenizer.count(&fitted);
                    // A character of several tokens cannot be split.
                    assert!(counted.abs_diff(wanted) <= 2, "{tokenizer:?} {text} {wanted}: {counted}");
                    assert_eq!(fitted, tokenizer.resize_to(text, wanted));
                }
            }
            assert_eq!(tokenizer.truncate("hello world", 9), None);
        }
    }
}
