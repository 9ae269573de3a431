//! The lines of the snapshot: those of `public-api`, with what it does not show and users rely on.

use std::collections::{BTreeSet, HashSet};

use public_api::{PublicApi, PublicItem};
use serde_json::Value;

use crate::TaskFailure;

/// Follows what has more in it than users can see, so that they cannot build it.
pub(super) const MORE: &str = " { .. }";
/// Precedes what may get more fields or variants without breaking users.
pub(super) const NON_EXHAUSTIVE: &str = "#[non_exhaustive]";
/// Precedes what every implementation of a trait must have.
pub(super) const REQUIRED: &str = "required ";
/// Precedes what an implementation of a trait has anyway.
const PROVIDED: &str = "provided ";
/// Traits that the compiler implements; of these, the ones that users rely on.
const SHOWN_AUTO_TRAITS: &[&str] = &["Send", "Sync"];
/// A trait that only the compiler can name.
const UNNAMED: &str = "StructuralPartialEq";
const NO_ITEM: (&str, &Value) = ("", &Value::Null);

/// A description of crates, and which of its items users can name.
pub(super) struct FileDescription {
    linked: Value,
    crates: BTreeSet<String>,
    public: HashSet<u32>,
}

impl FileDescription {
    /// The items of `api`, which was made of `linked`, a description of these crates.
    pub(super) fn new(linked: Value, crates: BTreeSet<String>, api: &PublicApi) -> Self {
        Self { linked, crates, public: api.items().map(|item| item.id().0).collect() }
    }

    /// A line for each item, in the order of `public-api`, which puts together what belongs together.
    pub(super) fn lines(&self, api: &PublicApi) -> Result<Vec<String>, TaskFailure> {
        let mut seen = HashSet::new();
        let mut lines = Vec::new();
        for item in api.items() {
            // An impl is with its type and with its trait; an item may have several paths.
            if let Some(line) = self.line(item)?.filter(|line| seen.insert(line.clone())) {
                lines.push(line);
            }
        }
        Ok(lines)
    }

    /// The line of an item; `None` if it tells users nothing.
    fn line(&self, item: &PublicItem) -> Result<Option<String>, TaskFailure> {
        let text = item.to_string();
        let (kind, details) = self.inner(item.id().0);
        let (parent_kind, parent) = item.parent_id().map_or(NO_ITEM, |id| self.inner(id.0));
        Ok(match (kind, parent_kind) {
            ("impl", _) => self.shows_impl(details).then_some(text),
            // That a type implements a trait says which functions it has.
            ("function" | "assoc_const", "impl") => parent["trait"].is_null().then_some(text),
            (_, "impl") => self.shows_impl(parent).then_some(text),
            (_, "trait") => Some(trait_item(kind, details, &text)),
            ("use", _) => {
                self.check_use(details)?;
                Some(format!("{text} = {}", details["source"].as_str().unwrap_or_default()))
            }
            ("trait", _) if details["is_dyn_compatible"] == false => Some(format!("{text} // not for `dyn`")),
            _ if has_hidden_parts(details) => Some(text + MORE),
            _ => Some(text),
        })
    }

    /// The kind of an item, and what belongs to that kind.
    fn inner(&self, id: u32) -> (&str, &Value) {
        let inner = self.linked["index"][id.to_string()]["inner"].as_object();
        inner.and_then(|inner| inner.iter().next()).map_or(NO_ITEM, |(kind, it)| (kind, it))
    }

    fn path(&self, id: &Value) -> &Value {
        &self.linked["paths"][id.to_string()]["path"]
    }

    fn crate_of(&self, id: &Value) -> &str {
        self.path(id)[0].as_str().unwrap_or_default()
    }

    /// Whether this is an item of our own without a path for users.
    fn hides(&self, id: &Value) -> bool {
        let is_public =
            id.as_u64().and_then(|id| u32::try_from(id).ok()).is_some_and(|id| self.public.contains(&id));
        self.crate_of(id).starts_with("rowmill") && !is_public
    }

    fn shows_impl(&self, details: &Value) -> bool {
        let path = &details["trait"];
        let name = path["path"].as_str().and_then(|path| path.rsplit("::").next()).unwrap_or_default();
        let is_relied_on = details["is_synthetic"] != true || SHOWN_AUTO_TRAITS.contains(&name);
        let is_hidden = self.hides(&path["id"]) || self.hides(&details["for"]["resolved_path"]["id"]);
        is_relied_on && !is_hidden && name != UNNAMED
    }

    /// Fails for an item of one of our own crates that is missing from the description.
    fn check_use(&self, details: &Value) -> Result<(), TaskFailure> {
        let name = self.crate_of(&details["id"]);
        if !name.starts_with("rowmill") || self.crates.contains(name) {
            return Ok(());
        }
        Err(TaskFailure::new(format!(
            "`{}` is re-exported, and `{name}` is not described: add it to `DESCRIBED` in \
             `xtask/src/api/describe.rs`",
            details["source"].as_str().unwrap_or_default()
        )))
    }
}

/// What an implementation must have is shown apart from what it has anyway.
fn trait_item(kind: &str, details: &Value, text: &str) -> String {
    let is_provided = match kind {
        "function" => details["has_body"] == true,
        "assoc_const" => !details["value"].is_null(),
        _ => !details["type"].is_null(),
    };
    let text = text.strip_prefix("pub ").unwrap_or(text);
    format!("{}{text}", if is_provided { PROVIDED } else { REQUIRED })
}

/// Whether fields or variants are hidden; those of a tuple are shown as `_` by `public-api`.
fn has_hidden_parts(details: &Value) -> bool {
    let kind = &details["kind"];
    [
        &details["has_stripped_variants"],
        &details["has_stripped_fields"],
        &kind["plain"]["has_stripped_fields"],
        &kind["struct"]["has_stripped_fields"],
    ]
    .into_iter()
    .any(|hidden| *hidden == true)
}
