//! The public vocabularies of OpenAI, loaded when they are first used.

use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

/// A vocabulary that texts can be counted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vocabulary {
    /// GPT-4o and what came after it.
    O200k,
    /// GPT-4 and GPT-3.5.
    Cl100k,
}

/// Bytes that are counted at once. The tokenizer's regular expression gives up on several megabytes
/// without a break, and its memory grows with the text.
const PIECE: usize = 64 * 1024;

impl Vocabulary {
    /// The name that OpenAI gave it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
        }
    }

    /// The tokens of a text, in which nothing is a special token.
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

/// A text in pieces of bounded length, cut where tokens end anyway if there is such a place.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, next) = rest.split_at(cut(rest));
        rest = next;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Where the first piece ends.
fn cut(text: &str) -> usize {
    if text.len() <= PIECE {
        return text.len();
    }
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    // A space between two words starts a token, and so does a word that starts a line.
    let ends = |index: &usize| {
        let (before, here, after) = (at(index - 1), at(*index), at(index + 1));
        (before.is_ascii_lowercase() && here == b' ' && after.is_ascii_lowercase())
            || (before == b'\n' && here.is_ascii_alphanumeric())
    };
    (1..PIECE).rev().find(ends).unwrap_or_else(|| text.floor_char_boundary(PIECE))
}
