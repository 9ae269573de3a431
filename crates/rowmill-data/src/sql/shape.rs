//! The columns that a query sees: what the input declares, or what its first rows have.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rowmill_core::json_text::decode_string;
use rowmill_core::ports::{ColumnKind, Dataset};
use rowmill_sql::{Column, Kind};
use rowmill_types::Problem;

use super::decode::{Text, is_number, is_whole};
use super::sample::sample;
use super::watch::{Notice, Watch};

/// The most columns that a table of SQLite can have.
const MOST_COLUMNS: usize = 2000;

/// The columns of an input.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The columns as queries see them.
    pub(crate) columns: Vec<Column>,
    /// The fields that they are, in the same order.
    pub(crate) fields: Vec<String>,
    /// How text is read.
    pub(crate) text: Text,
    /// Whether the input declares its columns.
    pub(crate) declared: bool,
    /// What the user should know about them.
    pub(crate) notices: Vec<String>,
}

impl Shape {
    /// Finds the columns of an input, with whoever tells what a query cannot see of it.
    pub(crate) fn watched(input: &dyn Dataset, notice: Notice) -> Result<(Arc<Self>, Arc<Watch>), Problem> {
        let shape = Self::of(input)?;
        let watch = Watch::new(notice);
        shape.notices.iter().for_each(|text| watch.tell(text.clone()));
        Ok((Arc::new(shape), Arc::new(watch)))
    }

    /// Finds the columns of an input.
    pub(crate) fn of(input: &dyn Dataset) -> Result<Self, Problem> {
        if let Some(columns) = input.columns()? {
            let known = columns.into_iter().map(|column| (column.name, kind_of(column.kind))).collect();
            return Ok(Self::named(known, Text::IsText, true));
        }
        let text = if input.untyped() { Text::MayBeNumber } else { Text::IsText };
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut seen: Vec<(String, Seen)> = Vec::new();
        sample(input, &mut |row| {
            for (name, json) in row.fields() {
                let place = places.get(name).copied().unwrap_or_else(|| {
                    places.insert(name.to_owned(), seen.len());
                    seen.push((name.to_owned(), Seen::default()));
                    seen.len() - 1
                });
                if let Some((_, seen)) = seen.get_mut(place) {
                    seen.add(json, text);
                }
            }
            true
        })?;
        let known = seen.into_iter().map(|(name, seen)| (name, seen.kind(text))).collect();
        Ok(Self::named(known, text, false))
    }

    /// Gives every field a name that SQLite tells from the others: it takes `a` and `A` for the same.
    fn named(known: Vec<(String, Kind)>, text: Text, declared: bool) -> Self {
        let mut shape = Self { columns: Vec::new(), fields: Vec::new(), text, declared, notices: Vec::new() };
        let mut taken = HashSet::new();
        let mut left_out = 0;
        for (field, kind) in known {
            if field.contains('\0') || shape.columns.len() >= MOST_COLUMNS {
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
                let what = "because SQL does not tell upper from lower case";
                shape.notices.push(format!("the field `{field}` is the column `{name}` in queries, {what}"));
            }
            shape.columns.push(Column { name, kind });
            shape.fields.push(field);
        }
        if left_out > 0 {
            let most = format!("queries can use {MOST_COLUMNS} columns");
            shape
                .notices
                .push(format!("{most}; {left_out} further fields of the input are left out of `input`"));
        }
        shape
    }
}

fn kind_of(kind: ColumnKind) -> Kind {
    match kind {
        ColumnKind::Text => Kind::Text,
        ColumnKind::Integer => Kind::Integer,
        ColumnKind::Real => Kind::Real,
        ColumnKind::Decimal(digits, scale) => Kind::Decimal(digits, scale),
        ColumnKind::Boolean => Kind::Boolean,
        ColumnKind::Nested => Kind::Nested,
        ColumnKind::Mixed => Kind::Mixed,
    }
}

/// Which values were seen in a column.
#[derive(Debug, Default)]
struct Seen {
    text: bool,
    whole: bool,
    /// Whole numbers that do not fit into 64 bits.
    wide: bool,
    real: bool,
    boolean: bool,
    nested: bool,
}

impl Seen {
    fn add(&mut self, json: &str, text: Text) {
        match json.as_bytes().first() {
            Some(b'"') if text == Text::MayBeNumber => {
                let Some(value) = decode_string(json) else { return };
                match &*value {
                    "" => {}
                    "true" | "false" => self.boolean = true,
                    value if is_number(value) => self.add_number(value),
                    _ => self.text = true,
                }
            }
            Some(b'"') => self.text = true,
            Some(b't' | b'f') => self.boolean = true,
            Some(b'[' | b'{') => self.nested = true,
            Some(b'n') | None => {}
            Some(_) => self.add_number(json),
        }
    }

    fn add_number(&mut self, number: &str) {
        if !is_whole(number) {
            self.real = true;
        } else if number.parse::<i64>().is_ok() {
            self.whole = true;
        } else {
            self.wide = true;
        }
    }

    /// What the column is. Text that is not all numbers or all truths stays text.
    fn kind(&self, text: Text) -> Kind {
        let number = self.whole || self.wide || self.real;
        let others = [self.text, number, self.boolean, self.nested];
        match others.iter().filter(|seen| **seen).count() {
            0 if text == Text::IsText => Kind::Mixed,
            1 if self.wide && text == Text::IsText => Kind::Wide,
            1 if self.wide => Kind::Text,
            1 if self.real => Kind::Real,
            1 if self.whole => Kind::Integer,
            1 if self.boolean => Kind::Boolean,
            1 if self.nested => Kind::Nested,
            1 => Kind::Text,
            _ if text == Text::MayBeNumber => Kind::Text,
            _ => Kind::Mixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(values: &[&str], text: Text) -> Kind {
        let mut seen = Seen::default();
        values.iter().for_each(|value| seen.add(value, text));
        seen.kind(text)
    }

    #[test]
    fn the_kind_of_a_json_column_follows_from_its_values() {
        for (values, expected) in [
            (&["1", "null", "-5"][..], Kind::Integer),
            (&["1", "2.5"], Kind::Real),
            (&["1", "18446744073709551615"], Kind::Wide),
            (&["true", "null"], Kind::Boolean),
            (&["[1]", "{}"], Kind::Nested),
            (&["\"1\"", "\"x\""], Kind::Text),
            (&["\"x\"", "1"], Kind::Mixed),
            (&["true", "0"], Kind::Mixed),
            (&["null"], Kind::Mixed),
        ] {
            assert_eq!(kind(values, Text::IsText), expected, "{values:?}");
        }
    }

    #[test]
    fn text_that_is_all_numbers_is_a_number_where_the_format_knows_only_text() {
        for (values, expected) in [
            (&[r#""1""#, r#""""#, r#""-5""#][..], Kind::Integer),
            (&[r#""1""#, r#""2.50""#], Kind::Real),
            (&[r#""01""#, r#""2""#], Kind::Text),
            (&[r#""+1""#], Kind::Text),
            (&[r#"" 1""#], Kind::Text),
            (&[r#""18446744073709551615""#], Kind::Text),
            (&[r#""true""#, r#""false""#], Kind::Boolean),
            (&[r#""true""#, r#""1""#], Kind::Text),
            (&[r#""""#, "null"], Kind::Text),
        ] {
            assert_eq!(kind(values, Text::MayBeNumber), expected, "{values:?}");
        }
    }

    #[test]
    fn fields_that_differ_only_in_case_get_names_that_differ() {
        let known =
            vec![("a".to_owned(), Kind::Text), ("A".to_owned(), Kind::Integer), ("b".to_owned(), Kind::Text)];
        let shape = Shape::named(known, Text::IsText, false);
        let names: Vec<_> = shape.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!((names, shape.fields), (vec!["a", "A_1", "b"], vec!["a".into(), "A".into(), "b".into()]));
        assert_eq!(shape.notices.len(), 1);
    }
}
