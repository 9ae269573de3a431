//! What makes two runs the same run.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::ports::InputIdentity;

/// Everything that shapes the results of a run. A resume with another
/// fingerprint would mix two runs in one output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The input; with an id field only its path, because then rows may come and go.
    pub input: InputIdentity,
    /// The id field, if any.
    pub id_field: Option<String>,
    /// The model string.
    pub model: String,
    /// Digest of the row template.
    pub prompt: String,
    /// Digest of the instruction, if any.
    pub instruction: Option<String>,
    /// Digest of the schema, if any.
    pub schema: Option<String>,
    /// Digest of the agents that work on rows, if any.
    #[serde(default)]
    pub agents: Option<String>,
    /// The query that numbers the rows, if any.
    #[serde(default)]
    pub query: Option<String>,
    /// The fields that rows keep, unless they keep all.
    #[serde(default)]
    pub columns: Option<String>,
    /// The files that go with rows, and what is sent of them.
    #[serde(default)]
    pub files: Option<String>,
}

/// A digest of text, short enough to show.
#[must_use]
pub fn digest(text: &str) -> String {
    format!("{:032x}", xxh3_128(text.as_bytes()))
}

impl Fingerprint {
    /// Whether both ask a model the same way, whatever the input.
    #[must_use]
    pub fn asks_the_same_as(&self, other: &Self) -> bool {
        (&self.model, &self.prompt, &self.instruction) == (&other.model, &other.prompt, &other.instruction)
            && (&self.schema, &self.columns, &self.files) == (&other.schema, &other.columns, &other.files)
            && self.agents == other.agents
    }

    /// What differs, one line each: the name of the setting, then before and now.
    #[must_use]
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |name: &str, before: Option<&str>, now: Option<&str>| {
            if before != now {
                found.push(format!("{name}: was {}, now {}", shown(before), shown(now)));
            }
        };
        compare("input", Some(&self.input.path), Some(&now.input.path));
        compare("id field", self.id_field.as_deref(), now.id_field.as_deref());
        compare("model", Some(&self.model), Some(&now.model));
        compare("prompt", Some(short(&self.prompt)), Some(short(&now.prompt)));
        compare("instruction", self.instruction.as_deref().map(short), now.instruction.as_deref().map(short));
        compare("schema", self.schema.as_deref().map(short), now.schema.as_deref().map(short));
        compare("agent cards", self.agents.as_deref().map(short), now.agents.as_deref().map(short));
        compare("query", self.query.as_deref(), now.query.as_deref());
        compare("columns", self.columns.as_deref(), now.columns.as_deref());
        compare("files", self.files.as_deref(), now.files.as_deref());
        if self.input.path == now.input.path && self.input != now.input {
            found.push(format!(
                "content of the input: was {}, now {}; row numbers may have moved (with `--id-field` rows may come and go)",
                size(&self.input),
                size(&now.input)
            ));
        }
        found
    }
}

fn shown(value: Option<&str>) -> String {
    value.map_or_else(|| "none".to_owned(), |text| format!("`{text}`"))
}

/// Enough of a digest to tell two apart.
fn short(digest: &str) -> &str {
    digest.get(..8).unwrap_or(digest)
}

fn size(input: &InputIdentity) -> String {
    let bytes = input.size.map_or_else(|| "unknown size".to_owned(), |size| format!("{size} bytes"));
    match &input.probe {
        Some(probe) => format!("{bytes} (digest {})", short(probe)),
        None => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Fingerprint {
        Fingerprint {
            input: InputIdentity { path: "/a.jsonl".into(), size: Some(3), probe: Some("0123456789".into()) },
            id_field: None,
            model: "openai.a".into(),
            prompt: digest("p"),
            instruction: None,
            schema: None,
            agents: None,
            query: None,
            columns: None,
            files: None,
        }
    }

    #[test]
    fn each_changed_setting_is_named_with_before_and_now() {
        let before = sample();
        assert!(before.differences(&sample()).is_empty());
        let now = Fingerprint { model: "openai.b".into(), instruction: Some("x".into()), ..sample() };
        assert_eq!(
            before.differences(&now),
            ["model: was `openai.a`, now `openai.b`", "instruction: was none, now `x`"]
        );
        let grown = Fingerprint { input: InputIdentity { size: Some(4), ..sample().input }, ..sample() };
        assert!(before.differences(&grown)[0].starts_with("content of the input: was 3 bytes"));
    }
}
