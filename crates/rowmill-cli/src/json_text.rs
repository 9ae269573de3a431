//! Reformats JSON text token by token, so that a number keeps all its digits.

/// JSON text on one line.
pub(crate) fn compact_json(json: &str) -> String {
    lay_out(json, LineBreaks::None)
}

/// JSON text on several lines, indented as a value at the given depth.
pub(crate) fn indent_json(json: &str, depth: usize) -> String {
    lay_out(json, LineBreaks::Indented(depth))
}

/// Where to break lines.
#[derive(Clone, Copy)]
enum LineBreaks {
    None,
    /// Before every item, with two spaces of indentation per level.
    Indented(usize),
}

impl LineBreaks {
    fn write(self, out: &mut String) {
        if let Self::Indented(depth) = self {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        }
    }

    fn deeper(self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Indented(depth) => Self::Indented(depth + 1),
        }
    }

    fn less_deep(self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Indented(depth) => Self::Indented(depth.saturating_sub(1)),
        }
    }
}

fn lay_out(json: &str, mut breaks: LineBreaks) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json.trim_ascii_start();
    while let Some(first) = rest.chars().next() {
        let length = if first == '"' { string_length(rest) } else { first.len_utf8() };
        let (token, after) = rest.split_at(length);
        rest = after.trim_ascii_start();
        match first {
            '"' => push_string(token, &mut out),
            '{' | '[' => {
                out.push(first);
                match rest.strip_prefix(['}', ']']) {
                    Some(after) => {
                        out.push(if first == '{' { '}' } else { ']' });
                        rest = after.trim_ascii_start();
                    }
                    None => {
                        breaks = breaks.deeper();
                        breaks.write(&mut out);
                    }
                }
            }
            '}' | ']' => {
                breaks = breaks.less_deep();
                breaks.write(&mut out);
                out.push(first);
            }
            ',' => {
                out.push(',');
                breaks.write(&mut out);
            }
            ':' => out.push_str(if matches!(breaks, LineBreaks::None) { ":" } else { ": " }),
            _ => out.push_str(token),
        }
    }
    out
}

/// The length of the string at the start of `text`, including its quotes.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    let ends = |(at, byte): (usize, u8)| {
        let is_end = at > 0 && byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    };
    text.bytes().enumerate().position(ends).map_or(text.len(), |at| at + 1)
}

/// Appends a string without unnecessary escapes.
fn push_string(token: &str, out: &mut String) {
    let decoded = serde_json::from_str::<String>(token);
    match decoded.and_then(|text| serde_json::to_string(&text)) {
        Ok(text) => out.push_str(&text),
        Err(_) => out.push_str(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str =
        r#" {"a" : 0.1234567890123456789, "b":[ 1 , {} ,[], "x, \"y\" {:\u00e9\\"], "c":{"d":null}} "#;

    #[test]
    fn numbers_keep_their_text_and_strings_their_content() {
        let expected = r#"{"a":0.1234567890123456789,"b":[1,{},[],"x, \"y\" {:é\\"],"c":{"d":null}}"#;
        assert_eq!(compact_json(JSON), expected);
    }

    #[test]
    fn an_indented_text_looks_as_others_indent_it() {
        let json = JSON.replace("0.1234567890123456789", "0.5");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(indent_json(&json, 0), serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(indent_json("[1]", 2), "[\n      1\n    ]");
    }
}
