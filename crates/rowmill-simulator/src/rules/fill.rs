//! Fills the values of a call into the texts of a rule.

use serde_json::Value;

use crate::conversation::SimulatedCallView;

/// Replaces `{{last}}`, `{{prompt}}`, `{{system}}` and `{{turn}}` by the values of the call. Inserted text is
/// not searched again, and other braces stay.
pub(super) fn fill_text(text: &str, seen: &SimulatedCallView<'_>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let found = after.split_once("}}").and_then(|(name, tail)| Some((value(name.trim(), seen)?, tail)));
        match found {
            Some((value, tail)) => {
                filled.push_str(&value);
                rest = tail;
            }
            None => {
                filled.push_str("{{");
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

fn value(name: &str, seen: &SimulatedCallView<'_>) -> Option<String> {
    Some(match name {
        "last" => seen.last.to_owned(),
        "prompt" => seen.prompt.to_owned(),
        "system" => seen.system.to_owned(),
        "turn" => seen.turn.to_string(),
        _ => return None,
    })
}

/// Does the same in all strings of a value; keys stay.
pub(super) fn fill_value(value: &Value, seen: &SimulatedCallView<'_>) -> Value {
    match value {
        Value::String(text) => Value::String(fill_text(text, seen)),
        Value::Array(items) => items.iter().map(|item| fill_value(item, seen)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), fill_value(value, seen))).collect()
        }
        other => other.clone(),
    }
}
