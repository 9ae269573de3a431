//! A YAML parser with line numbers and limits.

use std::fmt;

use rowmill_types::{Problem, ProblemCode};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::NonFiniteFloatPolicy;
use serde_saphyr::{Options, Spanned};

use crate::mistake::CardMistake;

/// The maximum length of a YAML text. A card is written by hand.
const MAX_BYTES: usize = 1024 * 1024;

/// The content of a YAML node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum YamlContent {
    Null,
    Boolean(bool),
    Number(Number),
    Text(String),
    List(Vec<YamlNode>),
    Mapping(Vec<YamlEntry>),
}

/// Content with its first line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct YamlNode {
    pub(crate) line: u64,
    pub(crate) content: YamlContent,
}

/// One key of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct YamlEntry {
    pub(crate) key: String,
    pub(crate) line: u64,
    pub(crate) node: YamlNode,
}

/// Parses one YAML document.
pub(crate) fn parse_yaml(text: &str) -> Result<YamlNode, CardMistake> {
    if text.len() > MAX_BYTES {
        let message = format!("its YAML is longer than {} KiB", MAX_BYTES >> 10);
        return Err(CardMistake::in_card(message).hint("move long texts to the body or to files"));
    }
    let parsed: Result<Spanned<YamlContent>, _> = serde_saphyr::from_str_with_options(text, options());
    parsed.map(YamlNode::from).map_err(|error| {
        let line = error.location().map_or(0, |location| location.line());
        let mistake = match error.without_snippet() {
            serde_saphyr::Error::MultipleDocuments { .. } => {
                return CardMistake::at(line, "there is more than one YAML document")
                    .hint("write one card per file");
            }
            serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
                return CardMistake::at(line, format!("`{key}` is given twice")).hint("keep one of them");
            }
            _ => CardMistake::at(line, "cannot be read as YAML"),
        };
        mistake.cause(error.without_snippet().to_string()).hint("correct it there")
    })
}

/// Parses a YAML configuration.
///
/// # Errors
///
/// The text is not valid YAML; the message names the source and the line.
pub fn yaml_to_json(source: &str, text: &str) -> Result<Value, Problem> {
    let node = parse_yaml(text).map_err(|mistake| {
        let mut problem = mistake.into_problem(source);
        problem.code = ProblemCode::InvalidConfig;
        problem
    })?;
    Ok(node.to_json())
}

/// Limits that no card comes near, so that a hostile one costs little.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 32,
            flow_nesting_limit: 32,
            max_nodes: 20_000,
            max_events: 60_000,
            max_aliases: 500,
            max_anchors: 500,
            max_recorded_anchor_events: 20_000,
            max_recorded_anchor_bytes: MAX_BYTES,
            max_merge_keys: 100,
            max_documents: 4,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 20_000,
            max_replay_stack_depth: 8,
        },
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        // `no` and `y` can be names as well; a Boolean field accepts them as words.
        strict_booleans: true,
        with_snippet: false,
    }
}

impl YamlNode {
    /// Converts to JSON, without the lines.
    pub(crate) fn to_json(&self) -> Value {
        match &self.content {
            YamlContent::Null => Value::Null,
            YamlContent::Boolean(value) => Value::Bool(*value),
            YamlContent::Number(number) => Value::Number(number.clone()),
            YamlContent::Text(text) => Value::String(text.clone()),
            YamlContent::List(nodes) => Value::Array(nodes.iter().map(Self::to_json).collect()),
            YamlContent::Mapping(entries) => Value::Object(mapping_to_json(entries)),
        }
    }
}

/// Converts a mapping to a JSON object.
pub(crate) fn mapping_to_json(entries: &[YamlEntry]) -> Map<String, Value> {
    entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect()
}

impl From<Spanned<YamlContent>> for YamlNode {
    fn from(spanned: Spanned<YamlContent>) -> Self {
        Self { line: spanned.defined.line(), content: spanned.value }
    }
}

impl<'de> Deserialize<'de> for YamlContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = YamlContent;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<YamlContent, E> {
        Ok(YamlContent::Null)
    }

    fn visit_none<E>(self) -> Result<YamlContent, E> {
        Ok(YamlContent::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlContent, E> {
        Ok(YamlContent::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlContent, E> {
        Ok(YamlContent::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlContent, E> {
        Ok(YamlContent::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<YamlContent, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("the number is not finite"))?;
        Ok(YamlContent::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<YamlContent, E> {
        Ok(YamlContent::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<YamlContent, E> {
        Ok(YamlContent::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlContent, A::Error> {
        let mut nodes = Vec::new();
        while let Some(item) = items.next_element::<Spanned<YamlContent>>()? {
            nodes.push(item.into());
        }
        Ok(YamlContent::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlContent, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let node: YamlNode = map.next_value::<Spanned<YamlContent>>()?.into();
            entries.push(YamlEntry { key: key.value, line: key.defined.line(), node });
        }
        Ok(YamlContent::Mapping(entries))
    }
}
