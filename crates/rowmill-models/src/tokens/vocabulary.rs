//! OpenAI's public vocabularies, loaded on first use.

use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

/// A vocabulary for counting tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenVocabulary {
    /// GPT-4o and later.
    O200k,
    /// GPT-4 and GPT-3.5.
    Cl100k,
}

/// Bytes that are counted at once. The tokenizer's regular expression fails on several megabytes without a
/// break, and its memory grows with the text.
const PIECE: usize = 64 * 1024;

impl TokenVocabulary {
    /// OpenAI's name for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
        }
    }

    /// The tokens of a text; special tokens are not recognized.
    pub(super) fn count(self, text: &str) -> u64 {
        let tokenizer = self.tokenizer();
        pieces(text).map(|piece| tokenizer.count_ordinary(piece) as u64).sum()
    }

    fn tokenizer(self) -> &'static CoreBPE {
        match self {
            Self::O200k => o200k_base_singleton(),
            Self::Cl100k => cl100k_base_singleton(),
        }
    }
}

/// A text in parts of bounded length, split at a token boundary if possible.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, next) = rest.split_at(cut(rest));
        rest = next;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The end of the first part.
fn cut(text: &str) -> usize {
    if text.len() <= PIECE {
        return text.len();
    }
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    // A space between two words starts a token, as does a word at the start of a line.
    let ends = |index: &usize| {
        let (before, here, after) = (at(index - 1), at(*index), at(index + 1));
        (before.is_ascii_lowercase() && here == b' ' && after.is_ascii_lowercase())
            || (before == b'\n' && here.is_ascii_alphanumeric())
    };
    (1..PIECE).rev().find(ends).unwrap_or_else(|| text.floor_char_boundary(PIECE))
}
