//! Column types from a JSON Schema.

use serde_json::{Map, Value};

use super::kind::{OutputType, StructFields, WholeNumbers};

/// References and nesting are followed this deep; recursive types become JSON beyond it.
const MAX_DEPTH: usize = 24;

/// The type that a schema describes.
pub(super) fn type_from_schema(text: &str) -> OutputType {
    let Ok(root) = serde_json::from_str::<Value>(text) else { return OutputType::Json };
    SchemaReader { root: &root }.kind(&root, &mut Vec::new())
}

struct SchemaReader<'s> {
    root: &'s Value,
}

impl<'s> SchemaReader<'s> {
    /// `path` holds the references on the way here, to detect recursive types.
    fn kind(&self, schema: &'s Value, path: &mut Vec<&'s str>) -> OutputType {
        let Some(keywords) = schema.as_object().filter(|_| path.len() < MAX_DEPTH) else {
            return OutputType::Json;
        };
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            return self.referred(reference, path);
        }
        let format = keywords.get("format").and_then(Value::as_str);
        match type_name(schema) {
            Some("boolean") => OutputType::Bool,
            Some("integer") => whole(),
            Some("number") => OutputType::Double,
            Some("string") if format == Some("date") => OutputType::Date,
            Some("string") if format == Some("date-time") => OutputType::Time,
            Some("string") => OutputType::Text,
            Some("array") => self.list(schema, path),
            Some("object") => self.object(schema, path),
            _ => self.untyped(keywords, path),
        }
    }

    /// The type of a schema that only lists values or other schemas.
    fn untyped(&self, keywords: &'s Map<String, Value>, path: &mut Vec<&'s str>) -> OutputType {
        if let Some(value) = keywords.get("const") {
            return literals(std::slice::from_ref(value));
        }
        if let Some(values) = keywords.get("enum").and_then(Value::as_array) {
            return literals(values);
        }
        let members = ["anyOf", "oneOf", "allOf"].iter().find_map(|name| keywords.get(*name)?.as_array());
        members.map_or(OutputType::Json, |members| self.union(members, path))
    }

    fn referred(&self, reference: &'s str, path: &mut Vec<&'s str>) -> OutputType {
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let Some(target) = target.filter(|_| !path.contains(&reference)) else { return OutputType::Json };
        path.push(reference);
        let kind = self.kind(target, path);
        path.pop();
        kind
    }

    /// Alternatives that differ only in being nullable are one type.
    fn union(&self, members: &'s [Value], path: &mut Vec<&'s str>) -> OutputType {
        let is_null = |member: &Value| member.get("type").is_some_and(|name| name == "null");
        let mut kinds =
            members.iter().filter(|member| !is_null(member)).map(|member| self.kind(member, path));
        let Some(first) = kinds.next() else { return OutputType::Json };
        kinds.fold(first, common)
    }

    fn list(&self, schema: &'s Value, path: &mut Vec<&'s str>) -> OutputType {
        let items = schema.get("items").filter(|items| items.is_object());
        let (Some(items), None) = (items, schema.get("prefixItems")) else { return OutputType::Json };
        path.push("items");
        let item = self.kind(items, path);
        path.pop();
        if item == OutputType::Json { OutputType::Json } else { OutputType::List(Box::new(item)) }
    }

    fn object(&self, schema: &'s Value, path: &mut Vec<&'s str>) -> OutputType {
        let properties = schema.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            return OutputType::Json;
        };
        let mut fields = StructFields::default();
        path.push("properties");
        for (name, schema) in properties {
            fields.add(name.clone(), self.kind(schema, path));
        }
        path.pop();
        OutputType::Struct(fields)
    }
}

fn whole() -> OutputType {
    OutputType::Whole(WholeNumbers { declared: true, ..WholeNumbers::default() })
}

/// The only type that is named besides `null`; a schema with properties is an object even if it names no
/// type.
fn type_name(schema: &Value) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => Some(name),
        Some(Value::Array(names)) => {
            let mut names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.retain(|name| *name != "null");
            if names.contains(&"number") {
                names.retain(|name| *name != "integer");
            }
            if let [name] = names.as_slice() { Some(*name) } else { None }
        }
        None if schema.get("properties").is_some() => Some("object"),
        None if schema.get("items").is_some() => Some("array"),
        _ => None,
    }
}

/// The type of values that are listed individually.
fn literals(values: &[Value]) -> OutputType {
    let kinds = values.iter().filter(|value| !value.is_null()).map(|value| match value {
        Value::Bool(_) => OutputType::Bool,
        Value::String(_) => OutputType::Text,
        Value::Number(number) if number.is_i64() => whole(),
        Value::Number(_) => OutputType::Double,
        Value::Null | Value::Array(_) | Value::Object(_) => OutputType::Json,
    });
    kinds.reduce(common).unwrap_or(OutputType::Json)
}

/// The type that holds the values of both.
fn common(one: OutputType, other: OutputType) -> OutputType {
    match (one, other) {
        (one, other) if one == other => one,
        (OutputType::Whole(_), OutputType::Double) | (OutputType::Double, OutputType::Whole(_)) => {
            OutputType::Double
        }
        (OutputType::Date | OutputType::Time, OutputType::Text)
        | (OutputType::Text, OutputType::Date | OutputType::Time) => OutputType::Text,
        _ => OutputType::Json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(item: OutputType) -> OutputType {
        OutputType::List(Box::new(item))
    }

    #[test]
    fn schemas_give_the_documented_types() {
        for (schema, expected) in [
            (r#"{"type":"string"}"#, OutputType::Text),
            (r#"{"type":"string","format":"date"}"#, OutputType::Date),
            (r#"{"type":"string","format":"date-time"}"#, OutputType::Time),
            (r#"{"type":"integer"}"#, whole()),
            (r#"{"type":"number"}"#, OutputType::Double),
            (r#"{"type":["integer","number","null"]}"#, OutputType::Double),
            (r#"{"type":["boolean","null"]}"#, OutputType::Bool),
            (r#"{"type":["string","integer"]}"#, OutputType::Json),
            (r#"{"enum":["a","b",null]}"#, OutputType::Text),
            (r#"{"enum":[1,2]}"#, whole()),
            (r#"{"enum":[1,"a"]}"#, OutputType::Json),
            (r#"{"const":"a"}"#, OutputType::Text),
            (r#"{"anyOf":[{"type":"integer"},{"type":"null"}]}"#, whole()),
            (r#"{"oneOf":[{"const":"a"},{"const":"b"}]}"#, OutputType::Text),
            (r#"{"anyOf":[{"type":"integer"},{"type":"string"}]}"#, OutputType::Json),
            (r##"{"allOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"type":"boolean"}}}"##, OutputType::Bool),
            (r#"{"type":"array","items":{"type":"string"}}"#, list(OutputType::Text)),
            (
                r#"{"type":"array","items":{"type":"array","items":{"type":"number"}}}"#,
                list(list(OutputType::Double)),
            ),
            (r#"{"type":"array"}"#, OutputType::Json),
            (r#"{"type":"array","items":{"type":["string","number"]}}"#, OutputType::Json),
            (r#"{"type":"object"}"#, OutputType::Json),
            (r#"{"type":"object","additionalProperties":{"type":"string"}}"#, OutputType::Json),
            ("true", OutputType::Json),
            ("{}", OutputType::Json),
        ] {
            assert_eq!(type_from_schema(schema), expected, "{schema}");
        }
    }

    #[test]
    fn properties_keep_their_order_and_what_contains_itself_ends_as_json() {
        let schema = r##"{"properties":{"z":{"type":"string"},"a":{"$ref":"#/$defs/tree"}},
            "$defs":{"tree":{"type":"object","properties":{"n":{"type":"integer"},"left":{"$ref":"#/$defs/tree"}}}}}"##;
        let mut tree = StructFields::default();
        tree.add("n".into(), whole());
        tree.add("left".into(), OutputType::Json);
        let mut root = StructFields::default();
        root.add("z".into(), OutputType::Text);
        root.add("a".into(), OutputType::Struct(tree));
        assert_eq!(type_from_schema(schema), OutputType::Struct(root));
    }
}
