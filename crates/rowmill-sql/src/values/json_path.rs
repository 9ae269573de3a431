//! Paths into JSON: `$.a.b[0]`, or the name of one field.

use serde_json::value::RawValue;

use super::datum::Datum;
use super::json::{RawFields, to_json};
use super::json_normal::normalized;
use super::sql_type::SqlType;

/// One step into JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Field(String),
    /// Counted from 0, or from the end if negative.
    Element(i64),
}

/// A path into JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonPath(Vec<PathStep>);

impl JsonPath {
    /// The path to an element of a list.
    pub(crate) fn element(at: i64) -> Self {
        Self(vec![PathStep::Element(at)])
    }

    /// Parses a path; `None` if it is invalid or has wildcards.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let Some(mut rest) = text.strip_prefix('$') else {
            // A JSON pointer such as `/a/b` is not supported.
            let is_name = !text.starts_with('/') && !text.is_empty();
            return is_name.then(|| Self(vec![PathStep::Field(text.to_owned())]));
        };
        let mut steps = Vec::new();
        while let Some(first) = rest.chars().next() {
            let (step, behind) = match first {
                '.' => field(rest.get(1..)?)?,
                '[' => element(rest.get(1..)?)?,
                _ => return None,
            };
            steps.push(step);
            rest = behind;
        }
        Some(Self(steps))
    }

    /// The JSON text at the path.
    pub(crate) fn find<'j>(&self, json: &'j str) -> Option<&'j str> {
        find_in_text(&self.0, json)
    }

    /// The JSON text at the path in a list or struct.
    pub(crate) fn find_in(&self, datum: &Datum, kind: &SqlType) -> Option<String> {
        find_in_datum(&self.0, datum, kind)
    }

    /// The type at the path in a list or struct.
    pub(crate) fn kind_in<'k>(&self, kind: &'k SqlType) -> Option<&'k SqlType> {
        self.0.iter().try_fold(kind, |kind, step| match (step, kind) {
            (PathStep::Field(name), SqlType::Struct(fields)) => {
                fields.iter().find(|(known, _)| known == name).map(|(_, kind)| kind)
            }
            (PathStep::Element(_), SqlType::List(item)) => Some(&**item),
            (_, SqlType::Json) => Some(kind),
            _ => None,
        })
    }
}

fn find_in_datum(steps: &[PathStep], datum: &Datum, kind: &SqlType) -> Option<String> {
    let Some((step, rest)) = steps.split_first() else { return to_json(datum, kind) };
    match (step, datum, kind) {
        (PathStep::Field(name), Datum::Struct(values), SqlType::Struct(fields)) => {
            let mut parts = values.iter().zip(fields);
            let (datum, (_, kind)) = parts.find(|(_, (known, _))| known == name)?;
            find_in_datum(rest, datum, kind)
        }
        (PathStep::Element(at), Datum::List(items), SqlType::List(item)) => {
            find_in_datum(rest, items.get(place_of(*at, items.len())?)?, item)
        }
        (_, Datum::Text(text), SqlType::Json) => find_in_text(steps, text).and_then(normalized),
        _ => None,
    }
}

/// The index for a position, which counts from the end if it is negative.
fn place_of(at: i64, count: usize) -> Option<usize> {
    let from_end = if at < 0 { i64::try_from(count).ok()? } else { 0 };
    usize::try_from(at + from_end).ok()
}

fn find_in_text<'j>(steps: &[PathStep], json: &'j str) -> Option<&'j str> {
    let mut found = json.trim();
    for step in steps {
        let value: &RawValue = match step {
            PathStep::Field(name) => {
                let RawFields(fields) = serde_json::from_str(found).ok()?;
                fields.into_iter().find(|(known, _)| known == name)?.1
            }
            PathStep::Element(at) => {
                let items: Vec<&RawValue> = serde_json::from_str(found).ok()?;
                items.get(place_of(*at, items.len())?)?
            }
        };
        found = value.get();
    }
    Some(found)
}

fn field(text: &str) -> Option<(PathStep, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (name, rest) = quoted.split_once('"')?;
        return Some((PathStep::Field(name.to_owned()), rest));
    }
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (!name.is_empty() && !name.contains('*')).then(|| (PathStep::Field(name.to_owned()), rest))
}

fn element(text: &str) -> Option<(PathStep, &str)> {
    let (inside, rest) = text.split_once(']')?;
    let number = inside.strip_prefix('#').unwrap_or(inside);
    let at: i64 = number.parse().ok()?;
    (inside == number || at < 0).then_some((PathStep::Element(at), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_parts() {
        let json = r#"{"a": {"b c": [1, {"d": "x"}]}, "e": null, "": 2}"#;
        for (path, expected) in [
            ("$", Some(json)),
            ("a", Some(r#"{"b c": [1, {"d": "x"}]}"#)),
            ("$.a.\"b c\"[0]", Some("1")),
            ("$.a.\"b c\"[-1].d", Some("\"x\"")),
            ("$.a.\"b c\"[#-2]", Some("1")),
            ("$.a.\"b c\"[2]", None),
            ("$.e", Some("null")),
            ("$.f", None),
            ("0", None),
        ] {
            assert_eq!(JsonPath::parse(path).unwrap().find(json), expected, "{path}");
        }
        for path in ["$.*", "$..a", "$[*]", "/a", "", "$a", "$.a[", "$[x]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
        assert_eq!(JsonPath::element(1).find("[5, 6]"), Some("6"));
    }
}
