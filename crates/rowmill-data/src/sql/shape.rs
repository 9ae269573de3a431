//! The columns that a query sees: those that the input declares, or those of its first rows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rowmill_core::ports::{ColumnKind, Dataset};
use rowmill_sql::{SqlTableColumn, SqlType, TextInterpretation};
use rowmill_types::settings::TYPES;
use rowmill_types::{Problem, ProblemCode, nearest_name};

use super::infer::ColumnTypeInference;
use super::query_warnings::QueryWarnings;
use crate::columns::sample_rows;
use crate::{ColumnTypeSetting, WarnFn};

/// The maximum number of columns for queries.
const MOST_COLUMNS: usize = 2000;

/// The origin of a column's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeSource {
    /// Declared by the input.
    Input,
    /// Inferred from the first rows.
    FirstRows,
    /// Declared by the user.
    Setting,
}

/// The columns of an input.
#[derive(Debug)]
pub(crate) struct SqlColumns {
    /// The columns as queries see them.
    pub(crate) columns: Vec<SqlTableColumn>,
    /// The names of their fields in rows, in the same order.
    pub(crate) fields: Vec<String>,
    /// The origins of their types, in the same order.
    type_sources: Vec<TypeSource>,
    /// How text is interpreted.
    pub(crate) text: TextInterpretation,
    /// Whether the input declares its columns.
    pub(crate) declared: bool,
    /// Notices for the user about the columns.
    pub(crate) notices: Vec<String>,
}

impl SqlColumns {
    /// Finds the columns of an input, and creates the watch that reports what a query cannot see of it.
    pub(crate) fn find_columns(
        input: &dyn Dataset,
        types: &[ColumnTypeSetting],
        notice: WarnFn,
    ) -> Result<(Arc<Self>, Arc<QueryWarnings>), Problem> {
        let mut shape = Self::of(input)?;
        shape.declare(types)?;
        let watch = QueryWarnings::new(notice);
        shape.notices.iter().for_each(|text| watch.warn_once(text.clone()));
        Ok((Arc::new(shape), Arc::new(watch)))
    }

    /// Finds the columns of an input.
    fn of(input: &dyn Dataset) -> Result<Self, Problem> {
        if let Some(columns) = input.columns()? {
            let types = input.sql_types()?.unwrap_or_default();
            let known = columns.into_iter().enumerate().map(|(at, column)| {
                let declared = types.get(at).map(|name| SqlType::from_declared_name(name));
                (column.name, declared.unwrap_or_else(|| declared_type(column.kind)))
            });
            return Ok(Self::named(known.collect(), TextInterpretation::AlwaysText, true));
        }
        let text =
            if input.is_untyped() { TextInterpretation::AnyType } else { TextInterpretation::AlwaysText };
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut seen: Vec<(String, ColumnTypeInference)> = Vec::new();
        sample_rows(input, &mut |row| {
            for (name, json) in row.fields() {
                let place = places.get(name).copied().unwrap_or_else(|| {
                    places.insert(name.to_owned(), seen.len());
                    seen.push((name.to_owned(), ColumnTypeInference::default()));
                    seen.len() - 1
                });
                if let Some((_, seen)) = seen.get_mut(place) {
                    seen.add(json, text);
                }
            }
            true
        })?;
        let known = seen.iter().map(|(name, seen)| (name.clone(), seen.kind(text))).collect();
        let mut shape = Self::named(known, text, false);
        for (column, (_, seen)) in shape.columns.iter_mut().zip(&seen) {
            column.note = seen.text_note(&column.name).filter(|_| column.kind == SqlType::Varchar);
        }
        Ok(shape)
    }

    /// The origin of a column's type.
    pub(crate) fn type_source(&self, column: usize) -> TypeSource {
        let otherwise = if self.declared { TypeSource::Input } else { TypeSource::FirstRows };
        self.type_sources.get(column).copied().unwrap_or(otherwise)
    }

    /// Whether a column accepts every value as text.
    pub(crate) fn takes_all(&self, column: usize) -> bool {
        let is_text = self.columns.get(column).is_some_and(|column| column.kind == SqlType::Varchar);
        is_text && self.type_source(column) == TypeSource::Setting
    }

    /// Sets the declared types of columns.
    fn declare(&mut self, types: &[ColumnTypeSetting]) -> Result<(), Problem> {
        for ColumnTypeSetting { column: name, type_name } in types {
            let named = |column: &SqlTableColumn| column.name.eq_ignore_ascii_case(name);
            let at = self.columns.iter().position(named).ok_or_else(|| self.unknown(name))?;
            let kind = SqlType::from_name(type_name).ok_or_else(|| {
                let message = format!("{TYPES}: unknown type `{type_name}` for column `{name}`");
                Problem::new(ProblemCode::InvalidTypes, message).hint(
                    "use text, boolean, bigint, hugeint, double, decimal(w,s), date, time, timestamp, json, \
                     or lists such as bigint[]",
                )
            })?;
            if let (Some(column), Some(source)) = (self.columns.get_mut(at), self.type_sources.get_mut(at)) {
                *source = TypeSource::Setting;
                column.has_raw = true;
                column.kind = kind;
                column.note = None;
            }
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> Problem {
        let names = || self.columns.iter().map(|column| column.name.as_str());
        let near =
            nearest_name(name, names()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        let listed: Vec<_> = names().take(12).map(|name| format!("`{name}`")).collect();
        let message = if self.declared {
            format!("{TYPES} names `{name}`, which the input does not have")
        } else {
            format!(
                "{TYPES} names `{name}`, which is not among the columns found in the first rows of the input"
            )
        };
        let later = match self.declared {
            true => "",
            false => "; a field that only later rows have is not a column: put a row that has it first",
        };
        let hint = format!("{near}columns: {}{later}", listed.join(", "));
        Problem::new(ProblemCode::InvalidTypes, message).hint(hint)
    }

    /// Gives every field a name that is unique in SQL, which ignores case.
    fn named(known: Vec<(String, SqlType)>, text: TextInterpretation, declared: bool) -> Self {
        let mut shape = Self {
            columns: Vec::new(),
            fields: Vec::new(),
            type_sources: Vec::new(),
            text,
            declared,
            notices: Vec::new(),
        };
        let mut taken = HashSet::new();
        let mut left_out = 0;
        for (field, kind) in known {
            if shape.columns.len() >= MOST_COLUMNS {
                left_out += 1;
                continue;
            }
            let mut name = field.clone();
            let mut count = 0;
            while !taken.insert(name.to_ascii_lowercase()) {
                count += 1;
                name = format!("{field}_{count}");
            }
            if count > 0 {
                let what = "because SQL names are not case-sensitive";
                shape.notices.push(format!("the field `{field}` is the column `{name}` in queries, {what}"));
            }
            // Later rows may differ from the sample, and their values must still be passed on unchanged.
            let has_raw = !declared || !is_written_back(&kind);
            shape.columns.push(SqlTableColumn { name, kind, has_raw, note: None });
            shape.fields.push(field);
            shape.type_sources.push(if declared { TypeSource::Input } else { TypeSource::FirstRows });
        }
        if left_out > 0 {
            let most = format!("queries can use {MOST_COLUMNS} columns");
            shape
                .notices
                .push(format!("{most}; {left_out} further fields of the input are not part of `input`"));
        }
        shape
    }
}

/// Whether values of a type are written exactly as they were read, so that their JSON need not be kept.
fn is_written_back(kind: &SqlType) -> bool {
    matches!(
        kind,
        SqlType::Varchar
            | SqlType::Boolean
            | SqlType::TinyInt
            | SqlType::SmallInt
            | SqlType::Integer
            | SqlType::BigInt
            | SqlType::UTinyInt
            | SqlType::USmallInt
            | SqlType::UInteger
    )
}

fn declared_type(kind: ColumnKind) -> SqlType {
    match kind {
        ColumnKind::Text => SqlType::Varchar,
        ColumnKind::Integer => SqlType::BigInt,
        ColumnKind::Real => SqlType::Double,
        ColumnKind::Decimal(digits, scale) => {
            SqlType::from_declared_name(&format!("DECIMAL({digits},{scale})"))
        }
        ColumnKind::Boolean => SqlType::Boolean,
        ColumnKind::Nested | ColumnKind::Mixed => SqlType::Json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_differ_only_in_case_get_names_that_differ() {
        let known = ["a", "A", "b"].map(|name| (name.to_owned(), SqlType::Varchar)).to_vec();
        let shape = SqlColumns::named(known, TextInterpretation::AlwaysText, false);
        let names: Vec<_> = shape.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!((names, shape.fields), (vec!["a", "A_1", "b"], vec!["a".into(), "A".into(), "b".into()]));
        assert_eq!(shape.notices.len(), 1);
    }

    #[test]
    fn a_declared_type_needs_a_column_and_a_type_that_there_are() {
        let mut shape =
            SqlColumns::named(vec![("zip".into(), SqlType::BigInt)], TextInterpretation::AlwaysText, false);
        let declared = |column: &str, type_name: &str| {
            [ColumnTypeSetting { column: column.into(), type_name: type_name.into() }]
        };
        let unknown = shape.declare(&declared("zap", "text")).unwrap_err();
        assert!(unknown.message.contains("which is not among the columns found in the first rows"));
        let hint = unknown.hint.unwrap();
        assert!(
            hint.contains("did you mean `zip`?") && hint.contains("put a row that has it first"),
            "{hint}"
        );
        assert_eq!(shape.declare(&declared("zip", "colour")).unwrap_err().code, ProblemCode::InvalidTypes);
        shape.declare(&declared("ZIP", "text")).unwrap();
        assert_eq!(shape.columns[0].kind, SqlType::Varchar);
        assert!(shape.takes_all(0));
    }
}
