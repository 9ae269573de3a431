//! Column types from a JSON Schema.

use serde_json::{Map, Value};

use super::kind::{Fields, Kind, Whole};

/// References and nesting are followed this deep; recursive types become JSON beyond it.
const MAX_DEPTH: usize = 24;

/// The type that a schema describes.
pub(super) fn kind_of_schema(text: &str) -> Kind {
    let Ok(root) = serde_json::from_str::<Value>(text) else { return Kind::Json };
    Reader { root: &root }.kind(&root, &mut Vec::new())
}

struct Reader<'s> {
    root: &'s Value,
}

impl<'s> Reader<'s> {
    /// `path` holds the references on the way here, to detect recursive types.
    fn kind(&self, schema: &'s Value, path: &mut Vec<&'s str>) -> Kind {
        let Some(keywords) = schema.as_object().filter(|_| path.len() < MAX_DEPTH) else {
            return Kind::Json;
        };
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            return self.referred(reference, path);
        }
        let format = keywords.get("format").and_then(Value::as_str);
        match type_name(schema) {
            Some("boolean") => Kind::Bool,
            Some("integer") => whole(),
            Some("number") => Kind::Double,
            Some("string") if format == Some("date") => Kind::Date,
            Some("string") if format == Some("date-time") => Kind::Time,
            Some("string") => Kind::Text,
            Some("array") => self.list(schema, path),
            Some("object") => self.object(schema, path),
            _ => self.untyped(keywords, path),
        }
    }

    /// The type of a schema that only lists values or other schemas.
    fn untyped(&self, keywords: &'s Map<String, Value>, path: &mut Vec<&'s str>) -> Kind {
        if let Some(value) = keywords.get("const") {
            return literals(std::slice::from_ref(value));
        }
        if let Some(values) = keywords.get("enum").and_then(Value::as_array) {
            return literals(values);
        }
        let members = ["anyOf", "oneOf", "allOf"].iter().find_map(|name| keywords.get(*name)?.as_array());
        members.map_or(Kind::Json, |members| self.union(members, path))
    }

    fn referred(&self, reference: &'s str, path: &mut Vec<&'s str>) -> Kind {
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let Some(target) = target.filter(|_| !path.contains(&reference)) else { return Kind::Json };
        path.push(reference);
        let kind = self.kind(target, path);
        path.pop();
        kind
    }

    /// Alternatives that differ only in being nullable are one type.
    fn union(&self, members: &'s [Value], path: &mut Vec<&'s str>) -> Kind {
        let is_null = |member: &Value| member.get("type").is_some_and(|name| name == "null");
        let mut kinds =
            members.iter().filter(|member| !is_null(member)).map(|member| self.kind(member, path));
        let Some(first) = kinds.next() else { return Kind::Json };
        kinds.fold(first, common)
    }

    fn list(&self, schema: &'s Value, path: &mut Vec<&'s str>) -> Kind {
        let items = schema.get("items").filter(|items| items.is_object());
        let (Some(items), None) = (items, schema.get("prefixItems")) else { return Kind::Json };
        path.push("items");
        let item = self.kind(items, path);
        path.pop();
        if item == Kind::Json { Kind::Json } else { Kind::List(Box::new(item)) }
    }

    fn object(&self, schema: &'s Value, path: &mut Vec<&'s str>) -> Kind {
        let properties = schema.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            return Kind::Json;
        };
        let mut fields = Fields::default();
        path.push("properties");
        for (name, schema) in properties {
            fields.add(name.clone(), self.kind(schema, path));
        }
        path.pop();
        Kind::Struct(fields)
    }
}

fn whole() -> Kind {
    Kind::Whole(Whole { declared: true, ..Whole::default() })
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
fn literals(values: &[Value]) -> Kind {
    let kinds = values.iter().filter(|value| !value.is_null()).map(|value| match value {
        Value::Bool(_) => Kind::Bool,
        Value::String(_) => Kind::Text,
        Value::Number(number) if number.is_i64() => whole(),
        Value::Number(_) => Kind::Double,
        Value::Null | Value::Array(_) | Value::Object(_) => Kind::Json,
    });
    kinds.reduce(common).unwrap_or(Kind::Json)
}

/// The type that holds the values of both.
fn common(one: Kind, other: Kind) -> Kind {
    match (one, other) {
        (one, other) if one == other => one,
        (Kind::Whole(_), Kind::Double) | (Kind::Double, Kind::Whole(_)) => Kind::Double,
        (Kind::Date | Kind::Time, Kind::Text) | (Kind::Text, Kind::Date | Kind::Time) => Kind::Text,
        _ => Kind::Json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(item: Kind) -> Kind {
        Kind::List(Box::new(item))
    }

    #[test]
    fn schemas_give_the_documented_types() {
        for (schema, expected) in [
            (r#"{"type":"string"}"#, Kind::Text),
            (r#"{"type":"string","format":"date"}"#, Kind::Date),
            (r#"{"type":"string","format":"date-time"}"#, Kind::Time),
            (r#"{"type":"integer"}"#, whole()),
            (r#"{"type":"number"}"#, Kind::Double),
            (r#"{"type":["integer","number","null"]}"#, Kind::Double),
            (r#"{"type":["boolean","null"]}"#, Kind::Bool),
            (r#"{"type":["string","integer"]}"#, Kind::Json),
            (r#"{"enum":["a","b",null]}"#, Kind::Text),
            (r#"{"enum":[1,2]}"#, whole()),
            (r#"{"enum":[1,"a"]}"#, Kind::Json),
            (r#"{"const":"a"}"#, Kind::Text),
            (r#"{"anyOf":[{"type":"integer"},{"type":"null"}]}"#, whole()),
            (r#"{"oneOf":[{"const":"a"},{"const":"b"}]}"#, Kind::Text),
            (r#"{"anyOf":[{"type":"integer"},{"type":"string"}]}"#, Kind::Json),
            (r##"{"allOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"type":"boolean"}}}"##, Kind::Bool),
            (r#"{"type":"array","items":{"type":"string"}}"#, list(Kind::Text)),
            (
                r#"{"type":"array","items":{"type":"array","items":{"type":"number"}}}"#,
                list(list(Kind::Double)),
            ),
            (r#"{"type":"array"}"#, Kind::Json),
            (r#"{"type":"array","items":{"type":["string","number"]}}"#, Kind::Json),
            (r#"{"type":"object"}"#, Kind::Json),
            (r#"{"type":"object","additionalProperties":{"type":"string"}}"#, Kind::Json),
            ("true", Kind::Json),
            ("{}", Kind::Json),
        ] {
            assert_eq!(kind_of_schema(schema), expected, "{schema}");
        }
    }

    #[test]
    fn properties_keep_their_order_and_what_contains_itself_ends_as_json() {
        let schema = r##"{"properties":{"z":{"type":"string"},"a":{"$ref":"#/$defs/tree"}},
            "$defs":{"tree":{"type":"object","properties":{"n":{"type":"integer"},"left":{"$ref":"#/$defs/tree"}}}}}"##;
        let mut tree = Fields::default();
        tree.add("n".into(), whole());
        tree.add("left".into(), Kind::Json);
        let mut root = Fields::default();
        root.add("z".into(), Kind::Text);
        root.add("a".into(), Kind::Struct(tree));
        assert_eq!(kind_of_schema(schema), Kind::Struct(root));
    }
}
