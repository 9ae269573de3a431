//! Adapts a JSON Schema to what providers accept, without changing its meaning.

use rowmill_core::validate::strip_fences;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The name under which schemas and tools are sent.
pub(crate) const SCHEMA_NAME: &str = "structured_output";

/// The name of the field that holds a value whose schema is not an object.
const CARRIER: &str = "value";

/// Keywords that strict modes do not support.
const LOOSE: &[&str] = &[
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "prefixItems",
    "contains",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "$dynamicRef",
];

/// A schema as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PreparedSchema {
    /// The schema; its root is an object.
    pub(crate) schema: Value,
    /// Whether it satisfies strict modes.
    pub(crate) strict: bool,
    /// Whether answers hold the value inside an object.
    pub(crate) wrapped: bool,
}

impl PreparedSchema {
    /// Wraps a root that is not an object, and closes objects if the whole schema satisfies strict modes.
    pub(crate) fn new(schema: &Value) -> Self {
        let wrapped = !is_object(schema);
        let schema = if wrapped { wrap(schema) } else { schema.clone() };
        match close(&schema) {
            Some(closed) => Self { schema: closed, strict: true, wrapped },
            None => Self { schema, strict: false, wrapped },
        }
    }

    /// The instruction for providers that enforce JSON but no schema.
    pub(crate) fn as_instruction(&self, instruction: Option<&str>) -> String {
        let demand = format!(
            "Answer with one JSON object that satisfies this JSON Schema, and with nothing else:\n{}",
            self.schema
        );
        match instruction {
            Some(instruction) => format!("{instruction}\n\n{demand}"),
            None => demand,
        }
    }
}

/// Extracts the value from the object that holds it, even inside a code fence; other text stays as it is.
pub(crate) fn unwrap_value(text: String) -> String {
    let found = serde_json::from_str::<std::collections::BTreeMap<String, &RawValue>>(strip_fences(&text));
    let Ok(fields) = found else { return text };
    match fields.get(CARRIER) {
        Some(value) if fields.len() == 1 => value.get().to_owned(),
        _ => text,
    }
}

fn is_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object") && schema.get("anyOf").is_none()
}

/// Wraps the schema in an object; definitions stay at the root, where providers look for them.
fn wrap(schema: &Value) -> Value {
    let mut inner = schema.clone();
    point_into(&mut inner);
    let mut root = Map::new();
    root.insert("type".to_owned(), json!("object"));
    let mut definitions = Map::new();
    if let Value::Object(fields) = &mut inner {
        fields.shift_remove("$schema");
        for name in ["$defs", "definitions"] {
            if let Some(found) = fields.shift_remove(name) {
                definitions.insert(name.to_owned(), found);
            }
        }
    }
    root.insert("properties".to_owned(), json!({ CARRIER: inner }));
    root.insert("required".to_owned(), json!([CARRIER]));
    root.extend(definitions);
    Value::Object(root)
}

/// Adjusts references that start at the root, which has moved.
fn point_into(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match value {
                    Value::String(target) if name == "$ref" => {
                        let kept = target.starts_with("#/$defs/") || target.starts_with("#/definitions/");
                        if let Some(rest) = target.strip_prefix('#').filter(|_| !kept) {
                            *target = format!("#/properties/{CARRIER}{rest}");
                        }
                    }
                    _ => point_into(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(point_into),
        _ => {}
    }
}

/// The schema with every object closed, or `None` if that would change its meaning: an open object, an
/// optional property, or a keyword that strict modes do not support.
fn close(schema: &Value) -> Option<Value> {
    let fields = schema.as_object()?;
    if fields.keys().any(|name| LOOSE.contains(&name.as_str())) {
        return None;
    }
    if !["type", "enum", "const", "anyOf", "$ref"].iter().any(|name| fields.contains_key(*name)) {
        return None;
    }
    let mut closed = Map::new();
    for (name, value) in fields {
        let value = match name.as_str() {
            "properties" | "$defs" | "definitions" => Value::Object(close_each(value)?),
            "items" => close(value)?,
            "anyOf" => Value::Array(value.as_array()?.iter().map(close).collect::<Option<_>>()?),
            _ => value.clone(),
        };
        closed.insert(name.clone(), value);
    }
    if has_type(fields, "array") && !fields.contains_key("items") {
        return None;
    }
    if has_type(fields, "object") || fields.contains_key("properties") {
        let properties = fields.get("properties")?.as_object()?;
        let required = fields.get("required").and_then(Value::as_array);
        let is_required = |name: &String| required.is_some_and(|all| all.iter().any(|one| one == name));
        let closable = fields.get("additionalProperties").is_none_or(|more| more == false);
        if !closable || !properties.keys().all(is_required) {
            return None;
        }
        closed.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Some(Value::Object(closed))
}

fn close_each(schemas: &Value) -> Option<Map<String, Value>> {
    schemas.as_object()?.iter().map(|(name, schema)| Some((name.clone(), close(schema)?))).collect()
}

fn has_type(fields: &Map<String, Value>, name: &str) -> bool {
    match fields.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
