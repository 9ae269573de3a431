//! Validates answers against the schema.

use std::sync::Arc;

use jsonschema::Validator;
use rowmill_types::{Problem, ProblemCode};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::json_text;
use crate::ports::AnswerChecker;

/// At most this many violations are reported to the model and the user.
const MAX_VIOLATIONS: usize = 8;

/// The existing types, for messages.
const TYPES: &str =
    "types are `string`, `number`, `integer`, `boolean`, `object`, `array` and `null`, or a list of them";

/// A JSON Schema that results must satisfy, compiled once per run.
#[derive(Debug)]
pub struct ResultSchema {
    value: Value,
    validator: Validator,
    answer_check: Option<Arc<dyn AnswerChecker>>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaVerdict {
    /// The answer is valid; its JSON text, compact, with numbers as the model wrote them.
    Valid(String),
    /// Its errors, one sentence each.
    Invalid(Vec<String>),
}

impl ResultSchema {
    /// Parses and compiles the schema in `text`.
    ///
    /// # Errors
    ///
    /// It is not JSON, not an object, or not a valid schema; the message names `source`.
    pub fn parse(text: &str, source: &str) -> Result<Self, Problem> {
        let invalid = |what: String| {
            Problem::new(ProblemCode::InvalidSchema, format!("invalid JSON schema in `{source}`: {what}"))
                .hint("correct the schema; nothing was sent")
        };
        let value: Value = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
        if !value.is_object() {
            return Err(invalid("it must be a JSON object".into()));
        }
        if let Err(error) = jsonschema::meta::validate(&value) {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "the root".to_owned() } else { format!("`{place}`") };
            return Err(invalid(match unknown_type(&error) {
                Some(given) => format!("at {place}: {given} is not a type; {TYPES}"),
                None => format!("at {place}: {error}"),
            }));
        }
        let validator = jsonschema::validator_for(&value).map_err(|error| invalid(error.to_string()))?;
        Ok(Self { value, validator, answer_check: None })
    }

    /// The same schema, with a check that replaces its own.
    #[must_use]
    pub fn with_answer_check(self, check: Option<Arc<dyn AnswerChecker>>) -> Self {
        Self { answer_check: check, ..self }
    }

    /// The check that replaces the schema's own, if there is one.
    #[must_use]
    pub fn answer_check(&self) -> Option<&Arc<dyn AnswerChecker>> {
        self.answer_check.as_ref()
    }

    /// The schema itself.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Checks the text of an answer. Code fences around the JSON are accepted.
    #[must_use]
    pub fn check(&self, answer: &str) -> SchemaVerdict {
        let text = strip_fences(answer);
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return SchemaVerdict::Invalid(vec![format!("the answer is not JSON: {error}")]),
        };
        let violations: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(MAX_VIOLATIONS)
            .map(|error| match error.instance_path().to_string() {
                place if place.is_empty() => error.to_string(),
                place => format!("at `{place}`: {error}"),
            })
            .collect();
        if violations.is_empty() {
            let mut compact = String::with_capacity(text.len());
            json_text::write_compact(text, &mut compact);
            SchemaVerdict::Valid(compact)
        } else {
            SchemaVerdict::Invalid(violations)
        }
    }
}

/// The value of `type` in an invalid schema, if it is not an existing type.
fn unknown_type(error: &jsonschema::ValidationError<'_>) -> Option<String> {
    error.schema_path().to_string().contains("/properties/type/").then(|| error.instance().to_string())
}

/// The feedback to the model when its answer is invalid.
#[must_use]
pub fn repair_request(violations: &[String]) -> String {
    let mut text = String::from("Your answer does not satisfy the required JSON Schema:\n");
    for violation in violations {
        text.push_str("- ");
        text.push_str(violation);
        text.push('\n');
    }
    text.push_str("Answer again with the corrected JSON only.");
    text
}

/// The JSON of an answer, if it is JSON.
#[must_use]
pub fn extract_json(answer: &str) -> Option<&str> {
    let text = strip_fences(answer);
    serde_json::from_str::<IgnoredAny>(text).is_ok().then_some(text)
}

/// The JSON inside a Markdown code fence, or the trimmed text if there is none.
#[must_use]
pub fn strip_fences(answer: &str) -> &str {
    let trimmed = answer.trim();
    if !trimmed.contains("```") || serde_json::from_str::<serde::de::IgnoredAny>(trimmed).is_ok() {
        return trimmed;
    }
    let Some((_, after)) = trimmed.split_once("```") else { return trimmed };
    let body = after.split_once('\n').map_or(after, |(_language, body)| body);
    body.rsplit_once("```").map_or(body, |(body, _)| body).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> ResultSchema {
        ResultSchema::parse(text, "s.json").unwrap()
    }

    #[test]
    fn a_schema_that_is_not_valid_is_refused_with_the_place() {
        for (text, part) in [
            ("{", "EOF while parsing"),
            ("[1]", "must be a JSON object"),
            (
                r#"{"properties":{"a":{"type":"text"}}}"#,
                "at `/properties/a/type`: \"text\" is not a type; types are `string`,",
            ),
            (r#"{"type":["string","nil"]}"#, "at `/type`: [\"string\",\"nil\"] is not a type; types are"),
            (r#"{"properties":{"type":"text"}}"#, "at `/properties/type`: \"text\" is not of type"),
        ] {
            let problem = ResultSchema::parse(text, "s.json").unwrap_err();
            assert_eq!(problem.code, ProblemCode::InvalidSchema);
            assert!(
                problem.message.contains("`s.json`") && problem.message.contains(part),
                "{}",
                problem.message
            );
        }
    }

    #[test]
    fn fences_are_stripped_and_number_text_is_kept() {
        let schema = schema(r#"{"type":"object","properties":{"n":{"type":"number"}}}"#);
        for answer in
            ["{\"n\": 1.50}", " ```json\n{\"n\": 1.50}\n``` ", "Sure:\n```\n{\"n\": 1.50}\n```\nDone."]
        {
            assert_eq!(schema.check(answer), SchemaVerdict::Valid("{\"n\":1.50}".into()), "{answer}");
        }
    }

    #[test]
    fn a_null_that_the_schema_allows_is_a_result() {
        assert_eq!(
            schema(r#"{"type":["object","null"]}"#).check("null"),
            SchemaVerdict::Valid("null".into())
        );
    }

    #[test]
    fn violations_name_the_place_and_truncated_json_never_passes() {
        let schema = schema(r#"{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}"#);
        let SchemaVerdict::Invalid(violations) = schema.check(r#"{"x":"three"}"#) else {
            panic!("must be invalid")
        };
        assert!(violations[0].starts_with("at `/x`:"), "{violations:?}");
        assert!(matches!(schema.check(r#"{"x": 3, "y": "tru"#), SchemaVerdict::Invalid(_)));
    }
}
