//! The delimiter between the values of a record.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::InputFormat;
use crate::block_reader::BlockReader;
use rowmill_types::settings::DELIMITER;
use rowmill_types::{DiagnosticText, Problem, deserialize_text};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// How many bytes of a header are examined.
const MOST_HEADER: usize = 256 * 1024;

/// The character between the values of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(with = "String")]
pub struct FieldDelimiter(u8);

impl<'de> Deserialize<'de> for FieldDelimiter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_text(deserializer, "one character, or `tab`", Self::parse)
    }
}

impl From<FieldDelimiter> for String {
    fn from(delimiter: FieldDelimiter) -> Self {
        delimiter.to_string()
    }
}

impl FieldDelimiter {
    const COMMA: Self = Self(b',');
    const TAB: Self = Self(b'\t');
    /// The delimiters that are detected if there is no comma, the likeliest first.
    const OTHERS: [Self; 3] = [Self(b';'), Self::TAB, Self(b'|')];

    /// Parses the value of `--delimiter`: one character, or `tab`.
    ///
    /// # Errors
    ///
    /// It is not a single ASCII character, or it is one that has another meaning in records.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.as_bytes() {
            b"\\t" | b"tab" => Ok(Self::TAB),
            [b'"' | b'\r' | b'\n' | 0] => Err("quotes and line breaks cannot be used as delimiters".into()),
            [byte] if byte.is_ascii() => Ok(Self(*byte)),
            _ => Err("expected one ASCII character such as `;` or `|`, or `tab`".into()),
        }
    }

    /// The default of a format, unless another one is named or detected.
    fn of_format(format: InputFormat) -> Self {
        if format == InputFormat::Tsv { Self::TAB } else { Self::COMMA }
    }

    pub(crate) fn byte(self) -> u8 {
        self.0
    }
}

/// The name of the delimiter in messages.
impl fmt::Display for FieldDelimiter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b'\t' => out.write_str("tab"),
            byte => write!(out, "{}", char::from(byte)),
        }
    }
}

/// Chooses the delimiter of each file of an input, and holds notices about the choice.
#[derive(Debug, Clone, Default)]
pub(crate) struct DelimiterChoice {
    /// The one that the user named.
    pub(crate) named: Option<FieldDelimiter>,
    seen: Arc<Mutex<SeenDelimiters>>,
}

#[derive(Debug, Default)]
struct SeenDelimiters {
    reported: Vec<FieldDelimiter>,
    untold: Vec<String>,
}

impl DelimiterChoice {
    pub(crate) fn new(named: Option<FieldDelimiter>) -> Self {
        Self { named, seen: Arc::default() }
    }

    /// The delimiter of an input of which no bytes have been used yet.
    pub(crate) fn choose(
        &self,
        blocks: &mut BlockReader,
        format: InputFormat,
    ) -> Result<FieldDelimiter, Problem> {
        if let Some(named) = self.named {
            return Ok(named);
        }
        let usual = FieldDelimiter::of_format(format);
        if format == InputFormat::Tsv {
            return Ok(usual);
        }
        let found = recognised(header(blocks)?);
        if found != usual {
            self.note(found, blocks.name());
        }
        Ok(found)
    }

    /// A notice that was not reported yet.
    pub(crate) fn notice(&self) -> Option<DiagnosticText> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let untold = std::mem::take(&mut seen.untold);
        (!untold.is_empty()).then(|| untold.join("; ").into())
    }

    /// Each delimiter is reported once, with the first file that has it.
    fn note(&self, found: FieldDelimiter, file: &str) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.reported.contains(&found) {
            seen.reported.push(found);
            let what = match found.0 {
                b'\t' => "tabs".to_owned(),
                b';' => "semicolons".to_owned(),
                _ => format!("`{found}`"),
            };
            seen.untold.push(format!(
                "`{file}` is read with {what} as its delimiter; if that is wrong, name it, such as {delimiter}",
                delimiter = DELIMITER.with_value(",")
            ));
        }
    }
}

/// The named delimiter, if it differs from the one that would be detected in any of these inputs: only then
/// does naming it change rows.
pub(crate) fn overriding_delimiter(
    named: FieldDelimiter,
    format: InputFormat,
    inputs: impl Iterator<Item = Result<BlockReader, Problem>>,
) -> Result<Option<FieldDelimiter>, Problem> {
    for blocks in inputs {
        if DelimiterChoice::default().choose(&mut blocks?, format)? != named {
            return Ok(Some(named));
        }
    }
    Ok(None)
}

/// The first line of an input, as far as it is examined. It includes line ends inside quotes.
fn header(blocks: &mut BlockReader) -> Result<&[u8], Problem> {
    loop {
        let unused = blocks.unread_bytes();
        let start = unused.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let mut in_quotes = false;
        let end = unused.iter().skip(start).position(|byte| {
            in_quotes ^= *byte == b'"';
            !in_quotes && matches!(byte, b'\r' | b'\n')
        });
        if let Some(length) = end {
            return Ok(blocks.unread_bytes().get(start..start + length).unwrap_or_default());
        }
        if unused.len() >= MOST_HEADER || !blocks.fill()? {
            return Ok(blocks.unread_bytes());
        }
    }
}

/// Detects the delimiter of a header: a comma if there is one outside quotes, unless there are more tabs,
/// which never occur in column names; otherwise the most frequent of the others.
fn recognised(header: &[u8]) -> FieldDelimiter {
    let count = |delimiter: FieldDelimiter| {
        let mut in_quotes = false;
        let outside = header.iter().filter(|byte| {
            in_quotes ^= **byte == b'"';
            !in_quotes && **byte == delimiter.0
        });
        outside.count()
    };
    let commas = count(FieldDelimiter::COMMA);
    if commas > 0 {
        return if count(FieldDelimiter::TAB) > commas { FieldDelimiter::TAB } else { FieldDelimiter::COMMA };
    }
    // On a tie, the first is taken.
    let others = FieldDelimiter::OTHERS.into_iter().rev();
    let most = others.max_by_key(|delimiter| count(*delimiter)).unwrap_or(FieldDelimiter::COMMA);
    if count(most) > 0 { most } else { FieldDelimiter::COMMA }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_of_a_header_is_recognised_outside_of_quotes() {
        for (header, expected) in [
            ("a,b,c", ","),
            ("a;b;c", ";"),
            ("a\tb", "tab"),
            ("a|b|c", "|"),
            ("a", ","),
            ("", ","),
            ("\"a;b\",c", ","),
            ("\"a,b\";c", ";"),
            ("\"a,b\"", ","),
            ("text,choices(a|b|c)", ","),
            ("name;price, EUR;count", ","),
            ("a, b\tc\td", "tab"),
            ("a;b|c", ";"),
        ] {
            assert_eq!(recognised(header.as_bytes()).to_string(), expected, "{header}");
        }
    }

    #[test]
    fn a_delimiter_is_one_character_or_a_name_of_the_tab() {
        for (text, expected) in [
            (";", Some(";")),
            ("\\t", Some("tab")),
            ("tab", Some("tab")),
            ("\t", Some("tab")),
            ("|", Some("|")),
        ] {
            assert_eq!(FieldDelimiter::parse(text).ok().map(|found| found.to_string()).as_deref(), expected);
        }
        for text in ["", ";;", "\"", "\n", "é", "comma"] {
            assert!(FieldDelimiter::parse(text).is_err(), "{text:?}");
        }
    }
}
