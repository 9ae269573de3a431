//! The spec of a run as JSON: written, read back unchanged, and described by a JSON Schema.

use std::borrow::Cow;
use std::fmt;

use rowmill_types::{Problem, ProblemCode};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error, IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json_place::JsonPlace;
use crate::spec::RunSpec;
use crate::spec_mistake::{SpecText, plain_mistake};

/// The format version of specs.
const VERSION: u64 = 1;

/// The version of the form that a spec is written in; this rowmill knows one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpecVersion;

impl Serialize for SpecVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(VERSION)
    }
}

impl<'de> Deserialize<'de> for SpecVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(VersionVisitor)
    }
}

/// Reports an error at the position of the number.
struct VersionVisitor;

impl Visitor<'_> for VersionVisitor {
    type Value = SpecVersion;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the version of the spec, {VERSION}")
    }

    fn visit_u64<E: Error>(self, version: u64) -> Result<SpecVersion, E> {
        match version {
            VERSION => Ok(SpecVersion),
            other => Err(E::custom(format!(
                "this version of rowmill reads specs of version {VERSION}, but this one has version {other}"
            ))),
        }
    }
}

impl JsonSchema for SpecVersion {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SpecVersion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": VERSION })
    }
}

/// Only the version of a spec, to be read first.
#[derive(Deserialize)]
struct VersionOnly {
    #[serde(rename = "version")]
    _version: SpecVersion,
}

impl RunSpec {
    /// Serializes the spec to JSON, including all defaults.
    ///
    /// ```
    /// use rowmill::{InputSpec, InputLocation, OutputTarget, RunSpec};
    ///
    /// let input = InputSpec::new(InputLocation::File("rows.jsonl".into()), None);
    /// let mut spec = RunSpec::new(input, OutputTarget::File("results.jsonl".into()));
    /// spec.work.model = "simulated".into();
    /// assert_eq!(RunSpec::from_json(&spec.to_json()?, "spec.json")?, spec);
    /// # Ok::<(), rowmill::Problem>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A path in the spec is not valid UTF-8.
    pub fn to_json(&self) -> Result<String, Problem> {
        serde_json::to_string_pretty(self).map_err(|error| {
            Problem::new(ProblemCode::InvalidSpec, "the spec cannot be written as JSON")
                .cause(error)
                .hint("use paths that are valid text")
        })
    }

    /// Parses a spec. `source` is the name of the text in messages.
    ///
    /// # Errors
    ///
    /// The text is not a spec, or its settings contradict each other. The message names the position.
    pub fn from_json(text: &str, source: &str) -> Result<Self, Problem> {
        // Invalid JSON is reported first: nothing else can be said about such a text.
        serde_json::from_str::<IgnoredAny>(text)
            .map_err(|error| refused(text, source, &error, SpecText::Broken))?;
        // For a spec of another version, the version is reported, and not the fields that are unknown
        // here.
        read::<VersionOnly>(text, source)?;
        let spec: Self = read(text, source)?;
        match spec.find_contradiction() {
            None => Ok(spec),
            Some((path, what)) => Err(invalid(format!("`{source}` is not a valid spec: `{path}` {what}"))),
        }
    }
}

/// The JSON Schema of specs.
#[must_use]
pub fn run_spec_schema() -> serde_json::Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<RunSpec>().into()
}

fn read<T: DeserializeOwned>(text: &str, source: &str) -> Result<T, Problem> {
    serde_json::from_str(text).map_err(|error| refused(text, source, &error, SpecText::Json))
}

fn refused(text: &str, source: &str, error: &serde_json::Error, kind: SpecText) -> Problem {
    let (line, column) = (error.line(), error.column());
    let place = JsonPlace::at(text, line, column);
    let whole = error.to_string();
    let what = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(what, _)| what);
    let message = format!("`{source}` is not a valid spec at line {line}, column {column}{place}");
    invalid(message).cause(plain_mistake(what, kind))
}

fn invalid(message: String) -> Problem {
    Problem::new(ProblemCode::InvalidSpec, message)
        .hint("see docs/run-spec.md for the format, and for how to have a valid spec written")
}

#[cfg(test)]
#[path = "spec_json_tests.rs"]
mod tests;
