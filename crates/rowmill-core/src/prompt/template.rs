//! The row template: literal text and the fields between.

use std::ops::Range;

use rowmill_types::{Row, RowError, RowErrorKind};

use super::{TemplatePiece, split_placeholders};
use crate::json_text::{decode_string, start_indented_line, write_indented_at, write_spaced, write_string};
use crate::ports::{PromptMaker, PromptRendering};

/// The template of a run without one.
const DEFAULT: &str = "Input record:\n\n{{row_json}}\n";

/// The name of the whole row, unless the row has a field of that name.
const WHOLE_ROW: &str = "row_json";

/// The maximum size of a prompt in bytes, give or take the last field: no model reads as much, and a template may name
/// a large field very often.
const LARGEST: usize = 256 << 20;

/// The indentation of each level of `{{row_json}}`.
const STEP: usize = 2;

/// A row template, parsed once and rendered for every row.
///
/// `{{name}}` is replaced by the row's field of that name: text as it is, any other value as JSON. `{{row_json}}` is
/// the whole row. Values are not searched for placeholders.
///
/// ```
/// # use {rowmill_core::prompt::PromptTemplate, rowmill_types::Row};
/// let template = PromptTemplate::parse("Is {{name}} in {{ tags }}?".into());
/// let row = Row::parse(1, r#"{"name":"Ada","tags":["a","b"]}"#.into()).unwrap();
/// assert_eq!(template.render(&row).unwrap(), r#"Is Ada in ["a", "b"]?"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptTemplate {
    text: String,
    parts: Vec<TemplatePart>,
    literal_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    /// A byte range of the template's text.
    Literal(Range<usize>),
    Field(Box<str>),
}

impl PromptTemplate {
    /// Parses a template. Every text is valid: anything that is not a placeholder is literal.
    #[must_use]
    pub fn parse(text: String) -> Self {
        let mut at = 0;
        let mut literal_bytes = 0;
        let part = |piece: TemplatePiece<'_>| match piece {
            TemplatePiece::Literal(literal) => {
                let start = at;
                at += literal.len();
                literal_bytes += literal.len();
                TemplatePart::Literal(start..at)
            }
            TemplatePiece::Field { name, source } => {
                at += source.len();
                TemplatePart::Field(name.into())
            }
        };
        let parts = split_placeholders(&text).into_iter().map(part).collect();
        Self { text, parts, literal_bytes }
    }

    /// The default template: the whole row.
    #[must_use]
    pub fn default_template() -> Self {
        Self::parse(DEFAULT.to_owned())
    }

    /// The template as it was written, for the fingerprint of the run.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The row fields that it names, each once; the whole row is not included.
    #[must_use]
    pub fn fields(&self) -> Vec<&str> {
        let mut fields: Vec<&str> = Vec::new();
        for part in &self.parts {
            if let TemplatePart::Field(name) = part
                && &**name != WHOLE_ROW
                && !fields.contains(&&**name)
            {
                fields.push(name);
            }
        }
        fields
    }

    /// Whether it may insert the whole row.
    #[must_use]
    pub fn uses_whole_row(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, TemplatePart::Field(name) if &**name == WHOLE_ROW))
    }

    /// Whether it renders the same text for every row.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, TemplatePart::Literal(_)))
    }

    /// Renders the template for a row.
    ///
    /// # Errors
    ///
    /// The row lacks fields that the template names; the error lists all of them.
    pub fn render(&self, row: &Row) -> Result<String, RowError> {
        let mut out = String::with_capacity(self.literal_bytes + row.json_text().len());
        let mut missing: Vec<&str> = Vec::new();
        for part in &self.parts {
            if out.len() > LARGEST {
                let message = format!("the prompt would be larger than {} MiB", LARGEST >> 20);
                return Err(RowError::new(RowErrorKind::Prompt, message));
            }
            match part {
                TemplatePart::Literal(range) => {
                    out.push_str(self.text.get(range.clone()).unwrap_or_default())
                }
                TemplatePart::Field(name) => match row.field(name) {
                    Some(json) => write_value(json, &mut out),
                    None if &**name == WHOLE_ROW => write_row(row, &mut out),
                    None if missing.contains(&&**name) => {}
                    None => missing.push(name),
                },
            }
        }
        if missing.is_empty() { Ok(out) } else { Err(missing_fields(&missing)) }
    }
}

impl PromptMaker for PromptTemplate {
    fn make_prompt(&self, row: &Row) -> PromptRendering {
        PromptRendering::Done(self.render(row))
    }
}

fn missing_fields(names: &[&str]) -> RowError {
    let plural = if names.len() == 1 { "" } else { "s" };
    let message = format!("Missing template field{plural}: {}", names.join(", "));
    RowError::new(RowErrorKind::MissingTemplateField, message)
}

fn write_value(json: &str, out: &mut String) {
    match decode_string(json) {
        Some(text) => out.push_str(&text),
        None => write_spaced(json, out),
    }
}

/// Writes the row from its fields, not from its text, because a name that occurs twice in the text must not occur twice
/// in the prompt.
fn write_row(row: &Row, out: &mut String) {
    let mut separator = "{";
    for (name, json) in row.fields() {
        out.push_str(separator);
        separator = ",";
        start_indented_line(out, STEP, 1);
        write_string(name, out);
        out.push_str(": ");
        write_indented_at(json, out, STEP, 1);
    }
    out.push_str(if separator == "{" { "{}" } else { "\n}" });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(text: &str) -> Row {
        Row::parse(1, text.into()).unwrap()
    }

    fn render(template: &str, json: &str) -> Result<String, RowError> {
        PromptTemplate::parse(template.into()).render(&row(json))
    }

    #[test]
    fn values_are_written_as_text_or_as_json() {
        let json = r#"{"s":"a\n\"b\"","e":"","n":1.50,"t":true,"z":null,"o":{"k":"caf\u00e9","l":[1,2]},"a b":"x","n.k":"dot"}"#;
        for (template, expected) in [
            ("", ""),
            ("{{s}}", "a\n\"b\""),
            ("[{{e}}]", "[]"),
            ("{{n}} {{t}} {{z}}", "1.50 true null"),
            ("{{o}}", r#"{"k": "café", "l": [1, 2]}"#),
            ("{{ a b }}{{n.k}}", "xdot"),
            ("{s}{{}}", "{s}{{}}"),
        ] {
            assert_eq!(render(template, json).unwrap(), expected);
        }
    }

    #[test]
    fn a_value_that_looks_like_a_placeholder_is_not_filled() {
        assert_eq!(render("{{a}}", r#"{"a":"{{b}}","b":"no"}"#).unwrap(), "{{b}}");
    }

    #[test]
    fn the_whole_row_is_indented_with_repeated_names_resolved() {
        let json = r#"{"b":1,"a":{"k":[1,{}]},"b":"x\u00e9\"","e":[]}"#;
        let expected = "{\n  \"b\": \"xé\\\"\",\n  \"a\": {\n    \"k\": [\n      1,\n      {}\n    ]\n  },\n  \"e\": []\n}";
        assert_eq!(render("{{row_json}}", json).unwrap(), expected);
        assert_eq!(render("{{row_json}}", "{}").unwrap(), "{}");
    }

    #[test]
    fn a_field_called_row_json_shadows_the_whole_row() {
        assert_eq!(render("{{row_json}}", r#"{"row_json":"mine"}"#).unwrap(), "mine");
    }

    #[test]
    fn the_default_template_shows_the_whole_row() {
        let text = PromptTemplate::default_template().render(&row(r#"{"a":1}"#)).unwrap();
        assert_eq!(text, "Input record:\n\n{\n  \"a\": 1\n}\n");
    }

    #[test]
    fn missing_fields_are_reported_once_each_in_the_order_of_the_template() {
        for (template, message) in [
            ("{{a}}{{x}}{{a}}", "Missing template field: x"),
            ("{{y}}{{x}}{{y}}{{a}}", "Missing template fields: y, x"),
            ("{{{a}}}", "Missing template field: {a"),
            ("{{A}}", "Missing template field: A"),
        ] {
            let error = render(template, r#"{"a":1}"#).unwrap_err();
            assert_eq!(error, RowError::new(RowErrorKind::MissingTemplateField, message));
        }
    }

    #[test]
    fn the_source_text_and_the_names_of_fields_are_kept() {
        let template = PromptTemplate::parse("a {{ b }}{{row_json}}{{c}}{{b}}".into());
        assert_eq!(template.text(), "a {{ b }}{{row_json}}{{c}}{{b}}");
        assert_eq!(template.fields(), ["b", "c"]);
    }

    proptest! {
        #[test]
        fn text_without_two_opening_braces_is_unchanged(text in any::<String>()) {
            let text = text.replace("{{", "{");
            prop_assert_eq!(render(&text, "{}").unwrap(), text);
        }

        #[test]
        fn no_template_panics(text in "[{} ab\\n]{0,20}") {
            let filled = render(&text, r#"{"a":"x","b":2}"#);
            prop_assert!(filled.is_ok() || text.contains("{{"));
        }
    }

    #[test]
    fn a_prompt_that_would_be_larger_than_any_model_reads_is_not_made() {
        let template = PromptTemplate::parse("{{t}}".repeat(400));
        let row = Row::parse(1, format!("{{\"t\":\"{}\"}}", "x".repeat(1 << 20))).unwrap();
        let error = template.render(&row).unwrap_err();
        assert_eq!(error.message, "the prompt would be larger than 256 MiB");
    }

    #[test]
    fn a_row_that_is_nested_deeply_grows_with_its_depth_and_not_with_the_square_of_it() {
        let deep = format!("{{\"t\":{}{}}}", "[".repeat(30_000), "]".repeat(30_000));
        let row = Row::parse(1, deep).unwrap();
        let prompt = PromptTemplate::default_template().render(&row).unwrap();
        assert!(prompt.len() < 60_000 * 140, "{}", prompt.len());
    }
}
