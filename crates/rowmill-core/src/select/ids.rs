//! The ids of rows.

use std::borrow::Cow;

use rowmill_types::settings::ID_FIELD;
use rowmill_types::{Problem, ProblemCode, Row, RowError, RowErrorKind, RowId};

use crate::json_text::decode_string;
use crate::redact::Redactor;

/// How row ids are determined: from a field, or from the row number.
#[derive(Debug, Clone, Default)]
pub struct IdRule {
    /// The field that `--id-field` names.
    pub field: Option<Box<str>>,
    /// Removes secrets from ids. An id is written wherever its row is mentioned, and compared when a run is resumed, so
    /// its secrets are removed before anything gets it.
    pub redactor: Redactor,
}

impl IdRule {
    /// The id of a row: its number, or the value of the id field as text.
    ///
    /// Numbers and booleans are used as their JSON text, so `1` and `"1"` are the same id. An id that contained a
    /// secret is followed by `#` and the row number, which distinguishes such rows.
    ///
    /// # Errors
    ///
    /// The row lacks the field, or its value cannot be an id.
    pub fn row_id(&self, row: &Row) -> Result<RowId, RowIdFault> {
        let Some(field) = &self.field else { return Ok(RowId::Number(row.number())) };
        let Some(json) = row.field(field) else {
            return Err(RowIdFault::Missing { field: field.clone() });
        };
        let invalid = |found| Err(RowIdFault::Invalid { field: field.clone(), found });
        match json.as_bytes().first() {
            Some(b'"') => match decode_string(json).unwrap_or_default() {
                text if text.is_empty() => invalid("an empty string"),
                text => Ok(RowId::Text(match self.redactor.redact(&text) {
                    Cow::Owned(hidden) => format!("{hidden}#{}", row.number()).into(),
                    Cow::Borrowed(text) => text.into(),
                })),
            },
            Some(b'n') => invalid("null"),
            Some(b'[') => invalid("an array"),
            Some(b'{') => invalid("an object"),
            _ => Ok(RowId::Text(json.into())),
        }
    }
}

/// Why a row has no id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowIdFault {
    /// The row lacks the id field; only this row fails.
    Missing {
        /// The id field.
        field: Box<str>,
    },
    /// The value cannot be an id.
    Invalid {
        /// The id field.
        field: Box<str>,
        /// What was found instead, e.g. `null`.
        found: &'static str,
    },
}

impl RowIdFault {
    /// The error for the row's envelope, if the run continues.
    #[must_use]
    pub fn row_error(&self) -> RowError {
        match self {
            Self::Missing { field } => {
                RowError::new(RowErrorKind::MissingIdField, format!("Missing id field '{field}'"))
            }
            Self::Invalid { field, found } => RowError::new(
                RowErrorKind::InvalidIdField,
                format!("Id field '{field}' must be a non-empty string or number, got {found}"),
            ),
        }
    }

    /// The problem that stops a run that checks its ids before anything is sent. `None` for a missing field, which is a
    /// failure of that row alone.
    #[must_use]
    pub fn problem(&self, row_number: u64) -> Option<Problem> {
        let Self::Invalid { field, found } = self else { return None };
        let message =
            format!("row {row_number}: id field `{field}` must be a non-empty string or number, got {found}");
        let problem = Problem::new(ProblemCode::InvalidId, message);
        Some(problem.hint(format!("correct the row, or choose another field with {ID_FIELD}")))
    }
}

/// The problem that stops a run when two rows have the same id.
#[must_use]
pub fn duplicate_id_problem(field: &str, id: &RowId, first: u64, second: u64) -> Problem {
    let message = format!("duplicate value `{id}` of id field `{field}` at rows {first} and {second}");
    Problem::new(ProblemCode::DuplicateId, message)
        .hint(format!("make the ids unique, or omit {ID_FIELD} to use row numbers"))
}

/// The error of a row whose id an earlier row had, if the input cannot be checked beforehand.
#[must_use]
pub fn duplicate_id_error(field: &str, id: &RowId) -> RowError {
    let message = format!("Duplicate value '{id}' of id field '{field}': an earlier row has it too");
    RowError::new(RowErrorKind::DuplicateId, message)
}

#[cfg(test)]
mod tests {
    use rowmill_types::Secret;

    use super::*;

    fn id(json: &str) -> Result<RowId, RowIdFault> {
        let redactor = Redactor::new([&Secret::new("sk-12345678")]).unwrap();
        let rule = IdRule { field: Some("k".into()), redactor };
        rule.row_id(&Row::parse(4, json.into()).unwrap())
    }

    #[test]
    fn without_a_field_the_row_number_is_the_id() {
        let row = Row::parse(4, r#"{"k":"a"}"#.into()).unwrap();
        assert_eq!(IdRule::default().row_id(&row), Ok(RowId::Number(4)));
    }

    #[test]
    fn text_numbers_and_booleans_are_ids() {
        for (json, expected) in [
            (r#"{"k":"a\u00e9"}"#, "aé"),
            (r#"{"k":" "}"#, " "),
            (r#"{"k":7}"#, "7"),
            (r#"{"k":1.50}"#, "1.50"),
            (r#"{"k":-3}"#, "-3"),
            (r#"{"k":true}"#, "true"),
            (r#"{"k":"of sk-12345678"}"#, "of ***#4"),
        ] {
            assert_eq!(id(json), Ok(RowId::Text(expected.into())));
        }
    }

    #[test]
    fn values_that_name_nothing_are_reported() {
        for (json, found) in [
            (r#"{"k":null}"#, "null"),
            (r#"{"k":""}"#, "an empty string"),
            (r#"{"k":[1]}"#, "an array"),
            (r#"{"k":{}}"#, "an object"),
        ] {
            let fault = id(json).unwrap_err();
            let expected = format!("row 4: id field `k` must be a non-empty string or number, got {found}");
            let problem = fault.problem(4).unwrap();
            assert_eq!((problem.code, problem.message.as_str()), (ProblemCode::InvalidId, expected.as_str()));
            assert_eq!(fault.row_error().kind, RowErrorKind::InvalidIdField);
        }
    }

    #[test]
    fn a_missing_field_fails_the_row_and_not_the_run() {
        let fault = id(r#"{"K":1}"#).unwrap_err();
        assert_eq!(fault.row_error(), RowError::new(RowErrorKind::MissingIdField, "Missing id field 'k'"));
        assert_eq!(fault.problem(4), None);
    }

    #[test]
    fn a_duplicate_names_both_rows() {
        let problem = duplicate_id_problem("k", &RowId::Text("a".into()), 1, 3);
        assert_eq!(problem.code, ProblemCode::DuplicateId);
        assert_eq!(problem.message, "duplicate value `a` of id field `k` at rows 1 and 3");
        assert_eq!(duplicate_id_error("k", &RowId::Text("a".into())).kind, RowErrorKind::DuplicateId);
    }
}
