//! The judgement of an answer.

use rowmill_types::{AnswerVerdict, Completion, FinishReason, RowError, RowErrorKind};

use crate::validate::{ResultSchema, SchemaVerdict, repair_request};

/// The consequence of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerConsequence {
    /// Its text is the result.
    Text,
    /// This JSON, which satisfies the schema, is the result.
    Json(String),
    /// Ask again with this feedback.
    Repair(String),
    /// The row failed.
    Failed(RowError),
}

/// Judges one answer. `repairs_left` states whether a violation may be answered with another request.
///
/// Only a complete answer can be a result: one that was refused, filtered, truncated or empty is a failure of its own
/// kind, with the text kept.
#[must_use]
pub fn judge_answer(
    completion: &Completion,
    schema: Option<&ResultSchema>,
    repairs_left: bool,
) -> AnswerConsequence {
    let text = completion.text.as_str();
    let failed = |kind: RowErrorKind, message: &str| {
        let raw_text = (!text.is_empty()).then(|| text.to_owned());
        AnswerConsequence::Failed(RowError { raw_text, ..RowError::new(kind, message) })
    };
    match completion.finish {
        FinishReason::Refused => return failed(RowErrorKind::Refusal, "the model refused to answer"),
        FinishReason::Filtered => {
            return failed(RowErrorKind::ContentFilter, "a content filter stopped the answer");
        }
        FinishReason::Length => {
            return failed(RowErrorKind::OutputTruncated, "the answer was truncated at the token limit");
        }
        FinishReason::Complete | FinishReason::Paused => {}
    }
    if text.trim().is_empty() {
        return failed(RowErrorKind::EmptyAnswer, "the model returned no text");
    }
    let Some(schema) = schema else { return AnswerConsequence::Text };
    let verdict = match completion.verdict.as_deref() {
        None => schema.check(text),
        Some(AnswerVerdict::Valid(result)) => SchemaVerdict::Valid(result.clone()),
        Some(AnswerVerdict::Invalid(violations)) => SchemaVerdict::Invalid(violations.clone()),
        // It is unknown whether the answer is wrong, so there is nothing to repair.
        Some(AnswerVerdict::Unchecked(why)) => {
            return failed(
                RowErrorKind::StructuredOutput,
                &format!("the answer could not be checked: {why}"),
            );
        }
    };
    match verdict {
        SchemaVerdict::Valid(result) => AnswerConsequence::Json(result),
        SchemaVerdict::Invalid(violations) if repairs_left => {
            AnswerConsequence::Repair(repair_request(&violations))
        }
        SchemaVerdict::Invalid(violations) => {
            let message = format!("the answer does not satisfy the JSON schema: {}", violations.join("; "));
            failed(RowErrorKind::StructuredOutput, &message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(text: &str, finish: FinishReason) -> Completion {
        Completion { finish, ..Completion::from_text(text) }
    }

    #[test]
    fn only_a_complete_answer_with_text_is_a_result() {
        for (finish, text, kind) in [
            (FinishReason::Refused, "no", RowErrorKind::Refusal),
            (FinishReason::Filtered, "par", RowErrorKind::ContentFilter),
            (FinishReason::Length, "par", RowErrorKind::OutputTruncated),
            (FinishReason::Complete, " \n", RowErrorKind::EmptyAnswer),
        ] {
            let AnswerConsequence::Failed(error) = judge_answer(&completion(text, finish), None, true) else {
                panic!("{kind} must be a failure")
            };
            assert_eq!((error.kind, error.raw_text.as_deref()), (kind, Some(text)));
        }
        assert_eq!(
            judge_answer(&completion("a\"b", FinishReason::Complete), None, true),
            AnswerConsequence::Text
        );
    }

    #[test]
    fn what_a_check_found_counts_and_not_what_the_schema_says() {
        let schema = ResultSchema::parse(r#"{"type":"integer"}"#, "s").unwrap();
        let checked = |verdict| Completion { verdict: Some(Box::new(verdict)), ..Completion::from_text("3") };
        let valid = AnswerVerdict::Valid("{\"n\":3}".into());
        assert_eq!(
            judge_answer(&checked(valid), Some(&schema), true),
            AnswerConsequence::Json("{\"n\":3}".into())
        );
        let invalid = || AnswerVerdict::Invalid(vec!["three is too many".into()]);
        let AnswerConsequence::Repair(feedback) = judge_answer(&checked(invalid()), Some(&schema), true)
        else {
            panic!("must repair")
        };
        assert!(feedback.contains("\n- three is too many\n"), "{feedback}");
        let unchecked = AnswerVerdict::Unchecked("no Python".into());
        let AnswerConsequence::Failed(error) = judge_answer(&checked(unchecked), Some(&schema), true) else {
            panic!("must fail")
        };
        assert_eq!(error.message, "the answer could not be checked: no Python");
    }

    #[test]
    fn a_violation_asks_again_while_repairs_are_left_and_then_keeps_the_raw_text() {
        let schema = ResultSchema::parse(r#"{"type":"integer"}"#, "s").unwrap();
        let answer = completion("\"three\"", FinishReason::Complete);
        let AnswerConsequence::Repair(feedback) = judge_answer(&answer, Some(&schema), true) else {
            panic!("must repair")
        };
        assert!(feedback.contains("is not of type"));
        let AnswerConsequence::Failed(error) = judge_answer(&answer, Some(&schema), false) else {
            panic!("must fail")
        };
        assert_eq!(error.kind, RowErrorKind::StructuredOutput);
        assert_eq!(error.raw_text.as_deref(), Some("\"three\""));
    }
}
