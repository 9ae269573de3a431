//! Fields of jobs, in the different forms that providers write them in.

use jiff::Timestamp;
use serde_json::Value;

/// A text that is not empty.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str().filter(|text| !text.is_empty())
}

/// A number, also one that is written as a text.
pub(super) fn count(value: &Value, field: &str) -> Option<u64> {
    let value = value.get(field)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// A time in seconds since 1970, also one that is written as a date.
pub(super) fn seconds(value: &Value, field: &str) -> Option<i64> {
    match value.get(field)? {
        Value::String(text) => text.parse::<Timestamp>().ok().map(Timestamp::as_second),
        number => number.as_i64().or_else(|| number.as_f64().map(|seconds| seconds as i64)),
    }
}
