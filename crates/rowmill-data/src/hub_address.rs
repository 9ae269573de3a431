//! Addresses such as `hf://datasets/owner/name/path?revision=r`.

use std::fmt;

use rowmill_types::{Problem, ProblemCode, deserialize_text};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::percent::percent_decoded;

/// The revision at which the hub keeps a dataset converted to Parquet; `~parquet` for short.
const CONVERTED: &str = "refs/convert/parquet";

/// A URL such as `hf://datasets/owner/name/path?config=c&split=s&revision=r`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(with = "String")]
pub struct HubAddress {
    text: String,
    pub(crate) kind: RepositoryKind,
    /// `name` or `owner/name`.
    pub(crate) repository: String,
    /// A branch, a tag or a commit.
    pub(crate) revision: Option<String>,
    /// The file in the repository, or a pattern; without it, the whole dataset.
    pub(crate) path: Option<String>,
    pub(crate) config: Option<String>,
    pub(crate) split: Option<String>,
}

/// What a repository of the hub contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RepositoryKind {
    Dataset,
    Model,
    Space,
}

impl HubAddress {
    /// Parses the address of a dataset or of a file in one.
    ///
    /// # Errors
    ///
    /// The address is malformed.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let address = Self::parse_any(text)?;
        if address.kind != RepositoryKind::Dataset {
            return Err(wrong(text, "rows can only be read from datasets"));
        }
        Ok(address)
    }

    /// Parses the address of a file, in a repository of any kind.
    pub(crate) fn parse_file(text: &str) -> Result<Self, Problem> {
        let address = Self::parse_any(text)?;
        let why = match &address.path {
            Some(path) if !path.contains('*') => return Ok(address),
            Some(_) => "it must name one file, without `*`",
            None => "it names a repository but no file in it",
        };
        Err(wrong(text, why).hint(
            "write it as `hf://datasets/owner/name/path/text.md`, or `hf://owner/name/…` for a model and \
             `hf://spaces/owner/name/…` for a space; `?revision=r` names a branch, tag or commit",
        ))
    }

    fn parse_any(text: &str) -> Result<Self, Problem> {
        let fail = |why: &str| wrong(text, why);
        let rest = text.split_once("://").map_or("", |(_, rest)| rest);
        let (places, query) =
            rest.split_once('?').map_or((rest, None), |(places, query)| (places, Some(query)));
        let mut parts: Vec<&str> = places.trim_end_matches('/').split('/').collect();
        let kind = match parts.first() {
            Some(&"datasets") => RepositoryKind::Dataset,
            Some(&"spaces") => RepositoryKind::Space,
            _ => RepositoryKind::Model,
        };
        if kind != RepositoryKind::Model || parts.first() == Some(&"models") {
            parts.remove(0);
        }
        // A revision ends the name, so that a name without an owner can have a path.
        let length = if parts.first().is_some_and(|part| part.contains('@')) { 1 } else { 2 };
        let mut path = parts.split_off(length.min(parts.len()));
        let (repository, marked) = match parts.join("/").split_once('@') {
            Some((name, revision)) => (name.to_owned(), Some(marked_revision(revision, &mut path))),
            None => (parts.join("/"), None),
        };
        if !is_repository(&repository) {
            return Err(fail("it does not name a repository"));
        }
        let path: Vec<String> = path.into_iter().map(percent_decoded).collect();
        if path.iter().any(|part| matches!(part.as_str(), "" | "." | "..")) {
            return Err(fail("its path has an empty part, `.` or `..`"));
        }
        let AddressQuery { config, split, revision } =
            AddressQuery::parse(query.unwrap_or_default()).map_err(|why| fail(&why))?;
        let revision = match (marked, revision) {
            (Some(_), Some(_)) => return Err(fail("it names a revision twice")),
            (marked, asked) => marked.or(asked),
        };
        if revision.as_deref().is_some_and(|revision| revision.trim().is_empty()) {
            return Err(fail("its revision is empty"));
        }
        let path = (!path.is_empty()).then(|| path.join("/"));
        if path.is_some() && (config.is_some() || split.is_some()) {
            return Err(fail("`config` and `split` apply to a whole dataset, but it names a file"));
        }
        if kind != RepositoryKind::Dataset && (config.is_some() || split.is_some()) {
            return Err(fail("only datasets have `config` and `split`"));
        }
        Ok(Self { text: text.to_owned(), kind, repository, revision, path, config, split })
    }
}

impl<'de> Deserialize<'de> for HubAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse = |text: &str| Self::parse(text).map_err(|problem| problem.message.to_string());
        deserialize_text(deserializer, "a URL such as `hf://datasets/owner/name`", parse)
    }
}

impl From<HubAddress> for String {
    fn from(address: HubAddress) -> Self {
        address.text
    }
}

impl fmt::Display for HubAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// The revision after `@`. The hub's own refs contain slashes, which are written as they are or encoded.
fn marked_revision(first: &str, path: &mut Vec<&str>) -> String {
    let is_reference = first == "refs" && matches!(path.first(), Some(&"convert" | &"pr" | &"heads"));
    if is_reference && path.len() >= 2 {
        let rest: Vec<&str> = path.drain(..2).collect();
        return format!("refs/{}", rest.join("/"));
    }
    if first == "~parquet" { CONVERTED.into() } else { percent_decoded(first) }
}

/// Whether this is `name` or `owner/name`, with the characters that the hub allows.
fn is_repository(text: &str) -> bool {
    let is_name = |part: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        !part.is_empty() && part.bytes().all(is_letter) && !matches!(part, "." | "..")
    };
    text.split('/').all(is_name)
}

#[derive(Debug, Default)]
struct AddressQuery {
    config: Option<String>,
    split: Option<String>,
    revision: Option<String>,
}

impl AddressQuery {
    fn parse(text: &str) -> Result<Self, String> {
        let mut query = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let place = match key {
                "config" => &mut query.config,
                "split" => &mut query.split,
                "revision" => &mut query.revision,
                _ => {
                    return Err(format!(
                        "it has the unknown key `{key}`; known keys are `config`, `split` and `revision`"
                    ));
                }
            };
            let value = percent_decoded(&value.replace('+', " "));
            if value.trim().is_empty() {
                return Err(format!("`{key}` has no value"));
            }
            if place.replace(value).is_some() {
                return Err(format!("`{key}` is given twice"));
            }
        }
        Ok(query)
    }
}

fn wrong(text: &str, why: &str) -> Problem {
    Problem::new(ProblemCode::InputNotFound, format!("invalid `hf://` URL: `{text}`; {why}")).hint(
        "write it as `hf://datasets/owner/name`, `hf://datasets/owner/name?config=c&split=s` or \
         `hf://datasets/owner/name/path/rows.jsonl`; `?revision=r` names a branch, tag or commit",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repository, revision, path, config and split, with `-` for a missing one.
    fn parts(text: &str) -> String {
        let address = HubAddress::parse(text).unwrap();
        assert_eq!(address.to_string(), text);
        let shown = |part: &Option<String>| part.clone().unwrap_or_else(|| "-".into());
        let rest = [&address.revision, &address.path, &address.config, &address.split].map(shown);
        format!("{} {}", address.repository, rest.join(" "))
    }

    #[test]
    fn addresses_of_datasets_are_read() {
        for (text, expected) in [
            ("hf://datasets/squad", "squad - - - -"),
            ("hf://datasets/a/b/", "a/b - - - -"),
            ("HF://datasets/a/b?config=c&split=s", "a/b - - c s"),
            ("hf://datasets/a/b?split=a%2Bb+c&revision=v1", "a/b v1 - - a+b c"),
            ("hf://datasets/a/b/data/x y.csv", "a/b - data/x y.csv - -"),
            ("hf://datasets/a/b/x%20y.csv", "a/b - x y.csv - -"),
            ("hf://datasets/a/b@v1.0/data/x.csv", "a/b v1.0 data/x.csv - -"),
            ("hf://datasets/squad@v1/x.csv", "squad v1 x.csv - -"),
            ("hf://datasets/a/b@refs%2Fpr%2F1/x.csv", "a/b refs/pr/1 x.csv - -"),
            (
                "hf://datasets/a/b@refs/convert/parquet/default/x.parquet",
                "a/b refs/convert/parquet default/x.parquet - -",
            ),
            ("hf://datasets/a/b@~parquet/d/x.parquet", "a/b refs/convert/parquet d/x.parquet - -"),
            ("hf://datasets/a/b/data/*.parquet?revision=main", "a/b main data/*.parquet - -"),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
    }

    #[test]
    fn addresses_that_are_wrong_are_reported_why() {
        for (text, why) in [
            ("hf://datasets", "does not name a repository"),
            ("hf://datasets/", "does not name a repository"),
            ("hf://datasets/a b", "does not name a repository"),
            ("hf://datasets/../b", "does not name a repository"),
            ("hf://datasets/a/b//c", "empty part"),
            ("hf://datasets/a/b/../c", "`..`"),
            ("hf://datasets/a/b/%2e%2e/c", "`..`"),
            ("hf://datasets/a/b?name=c", "unknown key `name`"),
            ("hf://datasets/a/b?split=", "`split` has no value"),
            ("hf://datasets/a/b?split", "`split` has no value"),
            ("hf://datasets/a/b?split=a&split=b", "`split` is given twice"),
            ("hf://datasets/a/b@v1?revision=v1", "revision twice"),
            ("hf://datasets/a/b@?x", "unknown key"),
            ("hf://datasets/a/b@/c", "revision is empty"),
            ("hf://datasets/a/b/c.csv?split=s", "it names a file"),
            ("hf://a/b/c.csv", "only be read from datasets"),
            ("hf://spaces/a/b/c.csv", "only be read from datasets"),
        ] {
            let problem = HubAddress::parse(text).unwrap_err();
            assert!(problem.message.contains(why), "{text}: {}", problem.message);
            assert!(problem.hint.unwrap().contains("hf://datasets/owner/name"));
        }
    }

    #[test]
    fn texts_are_files_of_any_repository() {
        for (text, kind, repository) in [
            ("hf://datasets/a/b/t.md", RepositoryKind::Dataset, "a/b"),
            ("hf://spaces/a/b/t.md", RepositoryKind::Space, "a/b"),
            ("hf://a/b/t.md", RepositoryKind::Model, "a/b"),
            ("hf://models/a/b@v1/t.md", RepositoryKind::Model, "a/b"),
        ] {
            let address = HubAddress::parse_file(text).unwrap();
            assert_eq!((address.kind, address.repository.as_str()), (kind, repository), "{text}");
            assert_eq!(address.path.as_deref(), Some("t.md"));
        }
        for text in ["hf://datasets/a/b", "hf://a/b", "hf://datasets/a/b/*.md", "hf://a/b/t.md?split=x"] {
            assert!(HubAddress::parse_file(text).is_err(), "{text}");
        }
    }
}
