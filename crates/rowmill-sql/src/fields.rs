//! Finds the fields of a table that a query uses.

use std::collections::BTreeSet;
use std::fmt;

use crate::expression::emit::EmittedSql;

/// A field of a table as SQLite sees it: a column in one of two forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TableField {
    pub(crate) column: usize,
    pub(crate) form: FieldForm,
}

/// The form of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FieldForm {
    /// The value, with the type of its column.
    Value,
    /// The JSON of the value, as in the input.
    Json,
}

impl fmt::Display for TableField {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            FieldForm::Value => write!(out, "f{}", self.column),
            FieldForm::Json => write!(out, "r{}", self.column),
        }
    }
}

/// The fields of a table that a query for SQLite names. User text is never mistaken for a name, because it is
/// in parameters.
pub(crate) fn used_fields(sql: &str, emitted: &EmittedSql, table: &str) -> Vec<TableField> {
    let scans = emitted.scans.iter().filter(|(_, name)| *name == table);
    let aliases: BTreeSet<&str> = scans.map(|(alias, _)| alias.as_str()).collect();
    let mut fields = BTreeSet::new();
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
    for word in sql.split(|letter| !is_part(letter)) {
        let Some((alias, field)) = word.split_once('.') else { continue };
        let form = match field.as_bytes().first() {
            Some(b'f') => FieldForm::Value,
            Some(b'r') => FieldForm::Json,
            _ => continue,
        };
        if let (true, Some(Ok(column))) = (aliases.contains(alias), field.get(1..).map(str::parse)) {
            fields.insert(TableField { column, form });
        }
    }
    fields.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_the_name_of_their_table() {
        let scans = vec![("t1".to_owned(), "input"), ("t3".to_owned(), "input"), ("t2".to_owned(), "other")];
        let emitted = EmittedSql { scans, ..EmittedSql::default() };
        let sql = "SELECT t1.f0, x0(t3.r12,t2.f7) FROM a WHERE (t1.f0 = ?1) AND t1.rowid > t9.f4";
        let names: Vec<_> = used_fields(sql, &emitted, "input").iter().map(TableField::to_string).collect();
        assert_eq!(names, ["f0", "r12"]);
    }
}
