//! The spec of a run as JSON: written, read back equal, and described by a JSON Schema.

use std::borrow::Cow;
use std::fmt;

use rowmill_types::{Problem, ProblemCode};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error, IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::spec::RunSpec;
use crate::spec_mistake::{SpecText, plain_mistake};
use crate::spec_place::Place;

/// The version of the form that specs are written in.
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

/// Tells what is wrong where the number stands.
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
                "this rowmill reads specs of version {VERSION}, and this one is of version {other}"
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

/// The version of a spec, whatever else is in it.
#[derive(Deserialize)]
struct VersionOnly {
    #[serde(rename = "version")]
    _version: SpecVersion,
}

impl RunSpec {
    /// The spec as JSON, with every setting that it has.
    ///
    /// ```
    /// use rowmill::{InputSpec, Location, Output, RunSpec};
    ///
    /// let input = InputSpec::new(Location::File("rows.jsonl".into()), None);
    /// let mut spec = RunSpec::new(input, Output::File("results.jsonl".into()));
    /// spec.work.model = "simulated".into();
    /// assert_eq!(RunSpec::from_json(&spec.to_json()?, "spec.json")?, spec);
    /// # Ok::<(), rowmill::Problem>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A path in it is no text.
    pub fn to_json(&self) -> Result<String, Problem> {
        serde_json::to_string_pretty(self).map_err(|error| {
            Problem::new(ProblemCode::InvalidSpec, "the spec cannot be written as JSON")
                .cause(error)
                .hint("give paths that are valid text")
        })
    }

    /// Reads a spec. `source` is what the text is called in messages.
    ///
    /// # Errors
    ///
    /// It is no spec, or says things that exclude each other. The message names the place.
    pub fn from_json(text: &str, source: &str) -> Result<Self, Problem> {
        // What is no JSON is reported first: of such a text nothing else can be said.
        serde_json::from_str::<IgnoredAny>(text)
            .map_err(|error| refused(text, source, &error, SpecText::Broken))?;
        // Whoever has a spec of another version is told that, and not what is strange in it.
        read::<VersionOnly>(text, source)?;
        let spec: Self = read(text, source)?;
        match spec.contradiction() {
            None => Ok(spec),
            Some((path, what)) => Err(invalid(format!("`{source}` cannot be used: `{path}` {what}"))),
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
    let place = Place::at(text, line, column);
    let whole = error.to_string();
    let what = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(what, _)| what);
    let message = format!("`{source}` is not a valid spec at line {line}, column {column}{place}");
    invalid(message).cause(plain_mistake(what, kind))
}

fn invalid(message: String) -> Problem {
    Problem::new(ProblemCode::InvalidSpec, message)
        .hint("docs/run-spec.md tells what a spec may say, and how to have one written that works")
}

#[cfg(test)]
#[path = "spec_json_tests.rs"]
mod tests;
