//! Marks for settings and actions in a text that becomes [`crate::DiagnosticText`].

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// Private-use characters, which are on no keyboard. A text that contains them anyway keeps them.
const START: char = '\u{E000}';
const END: char = '\u{E001}';
/// Precedes a value.
const VALUE: char = '\u{E002}';
/// Separates two names.
const NEXT: char = '\u{E003}';
/// Precedes a mark's first name if the mark has no backticks.
const BARE: char = '\u{E004}';
/// Precedes a character of a value that would otherwise have a meaning.
const ESCAPE: char = '\u{E005}';

/// The random prefix of this process's marks. It cannot be guessed, so no text of a user is mistaken for a mark.
fn own_sign() -> &'static str {
    static SIGN: OnceLock<String> = OnceLock::new();
    SIGN.get_or_init(|| format!("{:016x}", RandomState::new().hash_one(START)))
}

/// A mark in a text: names, and their values if they have any.
#[derive(Debug)]
pub(crate) struct TextMarker<'t> {
    pub(crate) parts: Vec<MarkerPart<'t>>,
    pub(crate) is_bare: bool,
}

/// A name in a mark.
#[derive(Debug)]
pub(crate) struct MarkerPart<'t> {
    pub(crate) name: &'t str,
    pub(crate) value: Option<Cow<'t, str>>,
}

impl fmt::Display for TextMarker<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_char(START)?;
        out.write_str(own_sign())?;
        if self.is_bare {
            out.write_char(BARE)?;
        }
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                out.write_char(NEXT)?;
            }
            out.write_str(part.name)?;
            let Some(value) = &part.value else { continue };
            out.write_char(VALUE)?;
            for letter in value.chars() {
                if (START..=ESCAPE).contains(&letter) {
                    out.write_char(ESCAPE)?;
                }
                out.write_char(letter)?;
            }
        }
        out.write_char(END)
    }
}

/// Whether a text may contain marks.
pub(crate) fn may_have_markers(text: &str) -> bool {
    text.contains(START)
}

/// The text before the first possible mark, and the text after that mark's first character.
pub(crate) fn split_at_marker(text: &str) -> Option<(&str, &str)> {
    text.split_once(START)
}

/// The character to put back if it turns out to start no mark.
pub(crate) const NO_MARKER: char = START;

/// The mark whose start was just passed, and the text after it.
pub(crate) fn read_marker(text: &str) -> Option<(TextMarker<'_>, &str)> {
    let text = text.strip_prefix(own_sign())?;
    let (is_bare, mut rest) = text.strip_prefix(BARE).map_or((false, text), |rest| (true, rest));
    let mut parts = Vec::new();
    loop {
        let at = rest.find([END, VALUE, NEXT])?;
        let (name, behind) = rest.split_at(at);
        rest = behind;
        let value = match rest.strip_prefix(VALUE) {
            Some(behind) => {
                let (value, behind) = read_value(behind)?;
                rest = behind;
                Some(value)
            }
            None => None,
        };
        parts.push(MarkerPart { name, value });
        if let Some(behind) = rest.strip_prefix(END) {
            return Some((TextMarker { parts, is_bare }, behind));
        }
        rest = rest.strip_prefix(NEXT)?;
    }
}

/// A value, and the text that follows.
fn read_value(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            END | NEXT => return Some((value.into(), text.get(at..)?)),
            ESCAPE => value.push(letters.next()?.1),
            _ => value.push(letter),
        }
    }
    None
}
