//! Merges `$ref` and `allOf` into one flat schema.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::generation_budget::{GenerationBudget, schema_parts, value_size};
use crate::value::{count, type_names};

/// The maximum length of a chain of references.
const REFERENCES: u32 = 32;

/// The schema with `$ref` followed and `allOf` merged in.
pub(crate) fn flatten<'m>(
    root: &Value,
    map: &'m Map<String, Value>,
    work: &GenerationBudget,
) -> Cow<'m, Map<String, Value>> {
    if is_flat(map) { Cow::Borrowed(map) } else { Cow::Owned(flat(root, map, (REFERENCES, work))) }
}

fn is_flat(map: &Map<String, Value>) -> bool {
    !map.contains_key("$ref") && !map.contains_key("allOf")
}

fn flat(
    root: &Value,
    map: &Map<String, Value>,
    (fuel, work): (u32, &GenerationBudget),
) -> Map<String, Value> {
    work.count_steps(schema_parts(map));
    if work.is_exceeded() {
        return Map::new();
    }
    let mut merged = map.clone();
    let reference = merged.remove("$ref");
    let all = merged.remove("allOf");
    if fuel == 0 {
        return merged;
    }
    let target = reference.as_ref().and_then(Value::as_str).and_then(|name| lookup(root, name));
    let parts = all.as_ref().and_then(Value::as_array).into_iter().flatten();
    for part in target.into_iter().chain(parts) {
        if let Value::Object(part) = part {
            into(&mut merged, &flat(root, part, (fuel - 1, work)), work);
        }
    }
    merged
}

fn lookup<'r>(root: &'r Value, reference: &str) -> Option<&'r Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// Merges `other` into `base`, so that a value of the result satisfies both as far as the keywords can be merged one by
/// one.
pub(crate) fn into(base: &mut Map<String, Value>, other: &Map<String, Value>, work: &GenerationBudget) {
    work.count_steps(schema_parts(other));
    if work.is_exceeded() {
        return;
    }
    close(base, other);
    for (key, value) in other {
        let Some(held) = base.get_mut(key) else {
            base.insert(key.clone(), value.clone());
            continue;
        };
        match key.as_str() {
            "properties" | "patternProperties" => join_properties(held, value, work),
            "required" => join_lists(held, value),
            "type" => *held = common_types(held, value),
            "enum" => keep_common(held, value),
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
                keep_if(held, value, |old, new| new > old);
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
                keep_if(held, value, |old, new| new < old);
            }
            "items" | "additionalProperties" => *held = both(held, value, work),
            "uniqueItems" => *held = Value::Bool(*held == true || *value == true),
            "anyOf" | "oneOf" => {
                let earlier = held.take();
                *held = value.clone();
                distribute(held, &earlier, work);
            }
            _ => {}
        }
    }
}

/// A side that allows no additional properties forbids those that only the other side names.
fn close(base: &mut Map<String, Value>, other: &Map<String, Value>) {
    let names = |map: &Map<String, Value>| -> Vec<String> {
        map.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned().collect()
    };
    let is_closed = |map: &Map<String, Value>| map.get("additionalProperties") == Some(&Value::Bool(false));
    let (ours, theirs) = (names(base), names(other));
    let mut forbidden: Vec<String> = Vec::new();
    if is_closed(base) {
        forbidden.extend(theirs.iter().filter(|name| !ours.contains(name)).cloned());
    }
    if is_closed(other) {
        forbidden.extend(ours.iter().filter(|name| !theirs.contains(name)).cloned());
    }
    if forbidden.is_empty() {
        return;
    }
    let held = base.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(held) = held {
        held.extend(forbidden.into_iter().map(|name| (name, Value::Bool(false))));
    }
}

fn join_properties(held: &mut Value, other: &Value, work: &GenerationBudget) {
    let (Value::Object(held), Value::Object(other)) = (held, other) else { return };
    for (name, schema) in other {
        match held.get_mut(name) {
            Some(earlier) => *earlier = both(earlier, schema, work),
            None => {
                held.insert(name.clone(), schema.clone());
            }
        }
    }
}

fn join_lists(held: &mut Value, other: &Value) {
    let (Value::Array(held), Value::Array(other)) = (held, other) else { return };
    for item in other {
        if !held.contains(item) {
            held.push(item.clone());
        }
    }
}

fn keep_common(held: &mut Value, other: &Value) {
    if let (Value::Array(held), Value::Array(other)) = (held, other) {
        held.retain(|item| other.contains(item));
    }
}

fn common_types(left: &Value, right: &Value) -> Value {
    let list = |value: &Value| match value {
        Value::Array(names) => names.clone(),
        other => vec![other.clone()],
    };
    let right = list(right);
    let fits =
        |name: &Value| right.iter().any(|other| name == other || (name == "integer" && other == "number"));
    let mut common: Vec<Value> = list(left).into_iter().filter(fits).collect();
    let integer = Value::from("integer");
    if list(left).iter().any(|name| name == "number")
        && right.contains(&integer)
        && !common.contains(&integer)
    {
        common.push(integer);
    }
    Value::Array(common)
}

fn keep_if(held: &mut Value, other: &Value, better: fn(f64, f64) -> bool) {
    if let (Some(old), Some(new)) = (held.as_f64(), other.as_f64())
        && better(old, new)
    {
        *held = other.clone();
    }
}

/// A schema that requires both schemas.
fn both(left: &Value, right: &Value, work: &GenerationBudget) -> Value {
    match (left, right) {
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
        (Value::Bool(true), other) | (other, Value::Bool(true)) => other.clone(),
        (Value::Object(left), Value::Object(right)) if is_flat(left) && is_flat(right) => {
            work.count_steps(schema_parts(left));
            let mut merged = left.clone();
            into(&mut merged, right, work);
            Value::Object(merged)
        }
        (left, right) => serde_json::json!({"allOf": [left, right]}),
    }
}

/// Merges two lists of choices, both to be met: each choice of one is combined with one of the other.
fn distribute(held: &mut Value, other: &Value, work: &GenerationBudget) {
    let (parts, _) = value_size(other);
    if let Value::Array(choices) = held {
        for choice in choices {
            work.count_steps(parts);
            if work.is_exceeded() {
                return;
            }
            *choice = serde_json::json!({"allOf": [choice.take(), {"anyOf": other}]});
        }
    }
}

/// The depth of the smallest value of a type.
pub(crate) fn type_height(name: &str) -> u32 {
    match name {
        "null" => 0,
        "array" => 2,
        "object" => 3,
        _ => 1,
    }
}

/// The approximate depth of the smallest value of a schema; large for one that never ends.
pub(crate) fn height(root: &Value, schema: &Value, (fuel, work): (u32, &GenerationBudget)) -> u32 {
    let Value::Object(map) = schema else {
        return if *schema == Value::Bool(false) { 1000 } else { 1 };
    };
    work.count_steps(1);
    if fuel == 0 || work.is_exceeded() {
        return 500;
    }
    let flat = flatten(root, map, work);
    if flat.contains_key("const") || flat.contains_key("enum") {
        return 1;
    }
    let under = |schema: &Value| height(root, schema, (fuel - 1, work)).saturating_add(1);
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = flat.get(keyword) {
            return branches.iter().map(under).min().unwrap_or(1);
        }
    }
    let own = type_names(&flat).iter().map(|name| type_height(name)).min().unwrap_or(1);
    let required = flat.get("required").and_then(Value::as_array).into_iter().flatten();
    let below_object = required
        .filter_map(|name| flat.get("properties")?.get(name.as_str()?))
        .map(under)
        .max()
        .filter(|_| own == 3 || own == 1);
    let below_array = flat
        .get("items")
        .filter(|_| own == 2 && count(&flat, "minItems").is_some_and(|least| least > 0))
        .map(under);
    own.saturating_add(below_object.unwrap_or(0)).saturating_add(below_array.unwrap_or(0))
}
