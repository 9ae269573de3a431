//! The position of an error in a JSON text, as a path of names.

use std::fmt;

/// A position in a JSON text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JsonPlace {
    steps: Vec<JsonPathStep>,
}

/// One level of the path.
#[derive(Debug, PartialEq, Eq)]
enum JsonPathStep {
    /// An object, at this name; at none before the first.
    Field(Option<String>),
    /// A list, at this index.
    Entry(usize),
}

impl JsonPlace {
    /// The position that a parser had reached, given by line and column.
    pub(crate) fn at(text: &str, line: usize, column: usize) -> Self {
        let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
        let end = lines.map(str::len).sum::<usize>() + column;
        let mut place = Self { steps: Vec::new() };
        let mut rest = text.as_bytes().get(..end.min(text.len())).unwrap_or_default();
        while let Some((&first, after)) = rest.split_first() {
            rest = after;
            match first {
                b'"' => {
                    let (name, behind) = string(after);
                    rest = behind;
                    if let Some(JsonPathStep::Field(field @ None)) = place.steps.last_mut() {
                        *field = Some(name);
                    }
                }
                b'{' => place.steps.push(JsonPathStep::Field(None)),
                b'[' => place.steps.push(JsonPathStep::Entry(0)),
                b'}' | b']' => drop(place.steps.pop()),
                b',' => match place.steps.last_mut() {
                    Some(JsonPathStep::Field(field)) => *field = None,
                    Some(JsonPathStep::Entry(index)) => *index += 1,
                    None => {}
                },
                _ => {}
            }
        }
        place
    }
}

/// The string that starts after a quote, and the text after it.
fn string(text: &[u8]) -> (String, &[u8]) {
    let mut is_escaped = false;
    let end = text.iter().position(|&byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    let end = end.unwrap_or(text.len());
    let (inside, after) = text.split_at(end);
    let quoted = [b"\"", inside, b"\""].concat();
    let plain = || String::from_utf8_lossy(inside).into_owned();
    (serde_json::from_slice(&quoted).unwrap_or_else(|_| plain()), after.get(1..).unwrap_or_default())
}

/// `: work.stubs[2]`, and nothing for the whole text.
impl fmt::Display for JsonPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut path = String::new();
        for step in &self.steps {
            match step {
                JsonPathStep::Field(None) => {}
                JsonPathStep::Field(Some(name)) if path.is_empty() => path.push_str(name),
                JsonPathStep::Field(Some(name)) => path.push_str(&format!(".{name}")),
                JsonPathStep::Entry(index) => path.push_str(&format!("[{index}]")),
            }
        }
        if path.is_empty() { Ok(()) } else { write!(out, ": `{path}`") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_that_of_the_last_thing_that_was_read() {
        let text = "{\"a\": 1,\n \"b\": {\"c\": [1, {\"d\\\"e\": true}], \"f\": \"x,y\"}}";
        let path = |line, column| JsonPlace::at(text, line, column).to_string();
        assert_eq!(path(1, 0), "");
        assert_eq!(path(1, 7), ": `a`");
        assert_eq!(path(2, 4), ": `b`");
        assert_eq!(path(2, 14), ": `b.c[0]`");
        assert_eq!(path(2, 29), ": `b.c[1].d\"e`");
        assert_eq!(path(2, 43), ": `b.f`");
        assert_eq!(path(2, 44), ": `b`");
        assert_eq!(path(9, 99), "", "nothing is behind the end");
    }
}
