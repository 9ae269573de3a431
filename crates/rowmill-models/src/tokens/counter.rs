//! Counts the tokens of a text for a model.

use rowmill_types::Attachment;

use super::families::{TokenizerFamily, tokenizer_family};
use super::files::file_tokens;
use crate::provider_table::is_builtin;

/// How accurate a count is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountAccuracy {
    /// The model's own tokenizer.
    Exact {
        /// The tokenizer's name.
        name: &'static str,
    },
    /// Not the model's own tokenizer.
    Estimate {
        /// The maximum error for ordinary text, in percent. Scripts that vocabularies treat differently, such
        /// as Devanagari, can be further off.
        percent: u32,
    },
}

/// The maximum error for pictures, PDFs and audio, in percent.
const FILES_PERCENT: u32 = 50;

/// Counts the tokens of texts for a model.
///
/// The vocabulary is loaded when the first text is counted; until then, a counter costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenCounter(CounterKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CounterKind {
    /// Built-in models: four characters per token, and no overhead.
    BuiltIn,
    Family(TokenizerFamily),
}

/// The counter for a model.
///
/// ```
/// # use rowmill_models::{CountAccuracy, token_counter};
/// let counter = token_counter("responses", "gpt-5.4-mini");
/// assert_eq!(counter.count("hello world"), 2);
/// assert_eq!(counter.accuracy(), CountAccuracy::Exact { name: "o200k_base" });
/// ```
#[must_use]
pub fn token_counter(provider: &str, model: &str) -> TokenCounter {
    TokenCounter(if is_builtin(provider) {
        CounterKind::BuiltIn
    } else {
        CounterKind::Family(tokenizer_family(model))
    })
}

impl TokenCounter {
    /// The tokens of a text; special tokens are not recognized.
    #[must_use]
    pub fn count(&self, text: &str) -> u64 {
        let CounterKind::Family(family) = self.0 else { return text.chars().count().div_ceil(4) as u64 };
        let mut tokens = family.vocabulary.count(text);
        if family.single_digits {
            tokens += more_digits(text);
        }
        (tokens * family.percent).div_ceil(100)
    }

    /// How accurate a count is.
    #[must_use]
    pub fn accuracy(&self) -> CountAccuracy {
        match self.0 {
            CounterKind::BuiltIn => CountAccuracy::Exact { name: "characters / 4" },
            CounterKind::Family(TokenizerFamily { error: Some(percent), .. }) => {
                CountAccuracy::Estimate { percent }
            }
            CounterKind::Family(family) => CountAccuracy::Exact { name: family.vocabulary.name() },
        }
    }

    /// The accuracy of a count that includes files other than text: they make it an estimate with any
    /// tokenizer.
    #[must_use]
    pub fn accuracy_with_files(&self) -> CountAccuracy {
        match self.accuracy() {
            accuracy if self.is_built_in() => accuracy,
            CountAccuracy::Estimate { percent } if percent > FILES_PERCENT => {
                CountAccuracy::Estimate { percent }
            }
            _ => CountAccuracy::Estimate { percent: FILES_PERCENT },
        }
    }

    /// The prompt tokens of a file; zero for built-in models, which do not read files.
    #[must_use]
    pub fn count_file(&self, file: &Attachment) -> u64 {
        match self.0 {
            CounterKind::BuiltIn => 0,
            CounterKind::Family(family) => file_tokens(self, family.vision, file),
        }
    }

    pub(super) fn is_built_in(&self) -> bool {
        self.0 == CounterKind::BuiltIn
    }
}

/// The additional tokens if each digit is a token, compared with three digits per token.
fn more_digits(text: &str) -> u64 {
    let runs = text.as_bytes().chunk_by(|one, other| one.is_ascii_digit() == other.is_ascii_digit());
    let digits = runs.filter(|run| run.first().is_some_and(u8::is_ascii_digit));
    digits.map(|run| (run.len() - run.len().div_ceil(3)) as u64).sum()
}
