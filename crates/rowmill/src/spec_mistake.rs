//! Translates the JSON parser's messages about a spec into plain ones.

use rowmill_core::known_secrets::strip_value_from_type_error;

/// Whether the text that the parser rejected is JSON at all. For text that is not JSON, the same
/// message of the parser means something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpecText {
    Json,
    Broken,
}

/// The message for something else than one of several names, which the parser does not list.
const NAMES: &str =
    "expected a name in quotes, or an object with one name in it; docs/run-spec.schema.json lists the names";

/// The plain form of a message of the parser.
pub(crate) fn plain_mistake(message: &str, text: SpecText) -> String {
    let plain = match text {
        SpecText::Broken => broken_text(message).map(str::to_owned),
        SpecText::Json => wrong_choice(message).map(str::to_owned),
    };
    plain
        .or_else(|| wrong_type(&strip_value_from_type_error(message)))
        .or_else(|| nearest_name(message))
        .unwrap_or_else(|| strip_value_from_type_error(message))
}

/// The message for text that is not JSON.
fn broken_text(message: &str) -> Option<&'static str> {
    Some(match message {
        "EOF while parsing a list" => "the text ends before a `[` is closed by `]`",
        "EOF while parsing an object" => "the text ends before a `{` is closed by `}`",
        "EOF while parsing a string" => "the text ends before a text in quotes is closed by `\"`",
        "EOF while parsing a value" => "the text ends where a value is expected",
        "expected `:`" => "a name in an object is followed by `:` and its value",
        "expected `,` or `]`" => "the next entry of a list follows after `,`, and `]` ends the list",
        "expected `,` or `}`" => "the next name of an object follows after `,`, and `}` ends the object",
        "expected ident" | "expected value" => {
            "a value is expected here: text in quotes, a number, `true`, `false`, `null`, `[…]` or `{…}`"
        }
        "key must be a string" => "a name in an object is expected here, in double quotes",
        "trailing characters" => "something follows after the end of the spec",
        "recursion limit exceeded" => "lists and objects are nested too deeply",
        "invalid number" | "number out of range" => "this number is not valid",
        "invalid escape" | "invalid unicode code point" | "unexpected end of hex escape" => {
            "the escape after `\\` in a text is not valid"
        }
        "lone leading surrogate in hex escape" => "`\\u` gives half a character; both halves are needed",
        message if message.starts_with("control character") => {
            "a text in quotes contains a line break or another control character; write `\\n` and the like"
        }
        _ => return None,
    })
}

/// The message for a value that is not one of the expected names.
fn wrong_choice(message: &str) -> Option<&'static str> {
    Some(match message {
        "expected value" => NAMES,
        "invalid type: unit variant, expected newtype variant" => {
            "this name needs a value: write it as `{\"name\": value}`"
        }
        message if message.ends_with(", expected unit") => {
            "this name takes no value: write it alone, in quotes"
        }
        message if message.starts_with("data did not match any variant of untagged enum") => {
            "this value has none of the forms allowed here"
        }
        _ => return None,
    })
}

/// The plain form of `invalid type: integer, expected struct InputSpec`.
fn wrong_type(message: &str) -> Option<String> {
    if let Some((found, expected)) =
        message.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
    {
        return Some(format!("expected {}, found {}", expected_kind(expected), found_kind(found)));
    }
    if let Some((_, expected)) =
        message.strip_prefix("invalid value: ").and_then(|rest| rest.split_once(", expected "))
    {
        return Some(format!("expected {}", expected_range(expected).unwrap_or(expected_kind(expected))));
    }
    let (_, expected) = message.strip_prefix("invalid length ")?.split_once(", expected ")?;
    Some(format!("expected {}, found a list", expected_kind(expected)))
}

/// The bounds of a number, for one that is outside of them.
fn expected_range(expected: &str) -> Option<&'static str> {
    Some(match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "a nonzero u32" => "a whole number from 1 to 4294967295",
        _ => return None,
    })
}

fn expected_kind(expected: &str) -> &str {
    match expected {
        "a sequence" => "a list",
        "a map" => "an object",
        "a string" | "a borrowed string" | "a character" | "a string or bytes" => "text in quotes",
        "a boolean" => "`true` or `false`",
        "path string" => "a path in quotes",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, zero or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "a nonzero u32" | "a nonzero u64" | "a nonzero usize" => "a whole number above zero",
        "f32" | "f64" => "a number",
        expected if expected.starts_with("struct ") || expected.starts_with("tuple struct ") => "an object",
        expected if expected.starts_with("enum ") || expected == "variant identifier" => "a name in quotes",
        expected => expected,
    }
}

fn found_kind(found: &str) -> &str {
    match found {
        "boolean" => "`true` or `false`",
        "integer" | "floating point" => "a number",
        "string" | "character" => "text",
        "sequence" => "a list",
        "map" => "an object",
        "null" | "unit value" | "Option value" => "`null`",
        found if found.starts_with("floating point") || found.starts_with("integer") => "a number",
        found => found,
    }
}

/// The message for an unknown name, with the most similar one; `None` for any other message.
fn nearest_name(message: &str) -> Option<String> {
    let (what, rest) = match message.strip_prefix("unknown field `") {
        Some(rest) => ("unknown field", rest),
        None => ("unknown name", message.strip_prefix("unknown variant `")?),
    };
    let (given, known) = rest.rsplit_once("`, expected ")?;
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let near = known.iter().map(|&name| (strsim::osa_distance(given, name), name)).min();
    Some(match near.filter(|(distance, _)| *distance <= given.len().div_ceil(3)) {
        Some((_, name)) => format!("{what} `{given}`; did you mean `{name}`?"),
        None => format!("{what} `{given}`; expected one of `{}`", known.join("`, `")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunSpec;

    #[test]
    fn a_misspelt_name_is_reported_with_the_one_that_was_meant() {
        for (message, expected) in [
            (
                "unknown field `modle`, expected one of `model`, `agents`",
                "unknown field `modle`; did you mean `model`?",
            ),
            (
                "unknown field `colour`, expected `model` or `agents`",
                "unknown field `colour`; expected one of `model`, `agents`",
            ),
            (
                "unknown variant `wiat`, expected `wait` or `stop`",
                "unknown name `wiat`; did you mean `wait`?",
            ),
            ("missing field `input`", "missing field `input`"),
        ] {
            assert_eq!(plain_mistake(message, SpecText::Json), expected);
        }
    }

    /// The message for a spec with this field and value instead of the default.
    fn message_and_hint(field: &str, value: &str) -> String {
        let (mut input, mut output, mut more) =
            (r#"{"location": "stdin"}"#.to_owned(), r#""stdout""#.to_owned(), String::new());
        match field {
            "input" => input = value.to_owned(),
            "output" => output = value.to_owned(),
            _ => more = format!(", \"{field}\": {value}"),
        }
        let text = format!(r#"{{"version": 1, "input": {input}, "output": {output}{more}}}"#);
        RunSpec::from_json(&text, "s").unwrap_err().cause.unwrap().to_string()
    }

    #[test]
    fn what_is_of_another_kind_is_reported_without_the_words_of_the_parser() {
        for (field, value, expected) in [
            ("input", "5", "expected an object, found a number"),
            ("input", "[]", "expected an object, found a list"),
            ("input", "\"secret\"", "expected an object, found text"),
            ("output", "5", NAMES),
            ("output", "\"file\"", "this name needs a value: write it as `{\"name\": value}`"),
            ("output", "{\"stdout\": 5}", "this name takes no value: write it alone, in quotes"),
            ("output", "{}", NAMES),
            ("output", "{\"file\": \"a\", \"stdout\": 5}", NAMES),
            ("output", "\"stdotu\"", "unknown name `stdotu`; did you mean `stdout`?"),
            ("include_input", "1", "expected `true` or `false`, found a number"),
            ("work", "{\"retries\": 1.5}", "expected a whole number, zero or more, found a number"),
            ("work", "{\"retries\": -1}", "expected a whole number from 0 to 4294967295"),
            ("work", "{\"retries\": 1000000000000}", "expected a whole number from 0 to 4294967295"),
            ("work", "{\"fallback_models\": {}}", "expected a list, found an object"),
            ("variables", "null", "expected an object, found `null`"),
            (
                "work",
                "{\"agents\": {\"servers\": {\"a\": {\"tools\": [1]}}}}",
                "expected text in quotes, found a number",
            ),
        ] {
            assert_eq!(message_and_hint(field, value), expected, "{field}: {value}");
        }
    }

    #[test]
    fn text_that_is_no_json_is_reported_with_what_is_missing() {
        for (text, expected) in [
            ("{\"version\": 1", "the text ends before a `{` is closed by `}`"),
            ("{\"version\": 1, \"config_files\": [", "the text ends before a `[` is closed by `]`"),
            ("{\"version", "the text ends before a text in quotes is closed by `\"`"),
            ("", "the text ends where a value is expected"),
            ("{\"version\": 1,}", "a name in an object is expected here, in double quotes"),
            ("{\"version\": 1} x", "something follows after the end of the spec"),
            ("{\"version\": 1, oops}", "a name in an object is expected here, in double quotes"),
            ("{\"version\" 1}", "a name in an object is followed by `:` and its value"),
            (
                "{\"version\": 1 \"a\"}",
                "the next name of an object follows after `,`, and `}` ends the object",
            ),
        ] {
            let problem = RunSpec::from_json(text, "s").unwrap_err();
            assert_eq!(problem.cause.unwrap(), expected, "{text}");
        }
    }
}
