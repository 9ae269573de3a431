//! Makes one description of several crates.
//!
//! `public-api` reads the description of one crate, and shows what that re-exports from another by
//! its name alone. So the descriptions are made into one, in which an id that stands for an item of
//! another crate is replaced by the id of the item itself.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use crate::TaskFailure;

/// The format that `public-api` reads, in the version that `Cargo.toml` pins.
const FORMAT: u64 = 57;
/// How many ids each crate has for itself; rustdoc counts from zero, in all of them.
const IDS_PER_CRATE: u64 = 100_000_000;
/// The fields that hold ids, alone or in a list. A tuple of types holds no numbers.
const ID_FIELDS: &[&str] = &["id", "impls", "implementations", "items", "fields", "variants", "tuple"];

/// One description of all crates, with the root of the crate `root`.
pub(super) fn link(crates: BTreeMap<String, Value>, root: &str) -> Result<Value, TaskFailure> {
    let mut definitions = HashMap::new();
    for (number, (name, krate)) in (0_u64..).zip(&crates) {
        check_format(name, krate)?;
        for (id, summary) in entries(krate, "paths") {
            if summary["crate_id"] == 0 && krate["index"].get(id.to_string()).is_some() {
                definitions.insert(definition(summary), number * IDS_PER_CRATE + id);
            }
        }
    }
    let (mut index, mut paths, mut linked) = (Map::new(), Map::new(), None);
    for (number, (name, mut krate)) in (0_u64..).zip(crates) {
        let ids = NewIds::new(&krate, number * IDS_PER_CRATE, &definitions);
        for (id, mut item) in take_entries(&mut krate, "index") {
            // Long, and of no use here; links hold ids as well.
            (item["docs"], item["span"], item["links"]) = (Value::Null, Value::Null, json!({}));
            ids.replace_in(&mut item);
            index.insert(ids.of(id).to_string(), item);
        }
        for (id, summary) in take_entries(&mut krate, "paths") {
            if !ids.of_definitions.contains_key(&id) {
                paths.insert(ids.of(id).to_string(), summary);
            }
        }
        if name == root {
            krate["root"] = ids.of(krate["root"].as_u64().unwrap_or_default()).into();
            linked = Some(krate);
        }
    }
    let mut linked = linked.ok_or_else(|| TaskFailure::new(format!("`{root}` is not described")))?;
    (linked["index"], linked["paths"]) = (index.into(), paths.into());
    Ok(linked)
}

fn check_format(name: &str, krate: &Value) -> Result<(), TaskFailure> {
    let format = &krate["format_version"];
    if *format == FORMAT {
        return Ok(());
    }
    Err(TaskFailure::new(format!(
        "rustdoc describes `{name}` in format {format} and this task reads {FORMAT}: set `public-api` in \
         `Cargo.toml` to the version that needs `rustdoc-types` 0.{format}, and `FORMAT` in \
         `xtask/src/api/link.rs`"
    )))
}

/// The entries of a table whose keys are ids.
fn entries<'a>(krate: &'a Value, table: &str) -> impl Iterator<Item = (u64, &'a Value)> {
    let entries = krate[table].as_object().into_iter().flatten();
    entries.filter_map(|(id, entry)| Some((id.parse().ok()?, entry)))
}

fn take_entries(krate: &mut Value, table: &str) -> impl Iterator<Item = (u64, Value)> + use<> {
    let entries = krate[table].as_object_mut().map(std::mem::take).unwrap_or_default();
    entries.into_iter().filter_map(|(id, entry)| Some((id.parse().ok()?, entry)))
}

/// Where an item is defined, the same in every crate that mentions it. A module and a function may
/// share a path, so the kind belongs to it.
fn definition(summary: &Value) -> String {
    format!("{} {}", summary["kind"], summary["path"])
}

/// What the ids of one crate become.
struct NewIds {
    /// The first id of this crate.
    first: u64,
    /// Ids that stand for items of other crates, and the ids of these items.
    of_definitions: HashMap<u64, u64>,
}

impl NewIds {
    fn new(krate: &Value, first: u64, definitions: &HashMap<String, u64>) -> Self {
        let foreign = entries(krate, "paths").filter(|(_, summary)| summary["crate_id"] != 0);
        let known = foreign.filter_map(|(id, summary)| Some((id, *definitions.get(&definition(summary))?)));
        Self { first, of_definitions: known.collect() }
    }

    fn of(&self, id: u64) -> u64 {
        self.of_definitions.get(&id).copied().unwrap_or(self.first + id)
    }

    /// Replaces all ids in an item.
    fn replace_in(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if ID_FIELDS.contains(&name.as_str()) {
                        self.replace(value);
                    }
                    self.replace_in(value);
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.replace_in(value)),
            _ => {}
        }
    }

    /// Replaces an id, or each id of a list.
    fn replace(&self, value: &mut Value) {
        if let Some(id) = value.as_u64() {
            *value = self.of(id).into();
        }
        for value in value.as_array_mut().into_iter().flatten() {
            if let Some(id) = value.as_u64() {
                *value = self.of(id).into();
            }
        }
    }
}
