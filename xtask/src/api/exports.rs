//! Which items users can name, and under which paths, across crates.

use std::collections::{BTreeMap, BTreeSet};

use rustdoc_types::{Crate, Id, Item, ItemEnum, Use};

use crate::Failure;

/// An item of one of the crates.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) krate: &'a Crate,
    pub(super) item: &'a Item,
}

/// The item at a path.
pub(super) enum Export<'a> {
    /// An item of the workspace.
    Ours(Place<'a>),
    /// An item of another crate, by its own path.
    Foreign(String),
}

/// All paths of the crate `root`.
pub(super) fn exports<'a>(
    crates: &'a BTreeMap<String, Crate>,
    root: &str,
) -> Result<Vec<(String, Export<'a>)>, Failure> {
    let krate = crates.get(root).ok_or_else(|| Failure::new(format!("`{root}` is not described")))?;
    let item = krate.index.get(&krate.root).ok_or_else(|| Failure::new("a crate without a root"))?;
    let by_path = crates.iter().map(|(name, krate)| (name.as_str(), by_path(krate))).collect();
    let mut walk = Walk { crates, by_path, seen: BTreeSet::new(), found: Vec::new() };
    walk.export(root.to_owned(), Place { krate, item })?;
    Ok(walk.found)
}

/// How other crates refer to an item. A module and a function may share a path.
fn by_path(krate: &Crate) -> BTreeMap<(String, String), Id> {
    let own = krate.paths.iter().filter(|(_, summary)| summary.crate_id == 0);
    own.map(|(id, summary)| ((summary.path.join("::"), format!("{:?}", summary.kind)), *id)).collect()
}

struct Walk<'a> {
    crates: &'a BTreeMap<String, Crate>,
    by_path: BTreeMap<&'a str, BTreeMap<(String, String), Id>>,
    /// Modules that were visited, by path: modules can re-export each other in a cycle.
    seen: BTreeSet<(String, *const Item)>,
    found: Vec<(String, Export<'a>)>,
}

impl<'a> Walk<'a> {
    fn export(&mut self, path: String, place: Place<'a>) -> Result<(), Failure> {
        if let ItemEnum::Use(used) = &place.item.inner {
            return self.used(path, place.krate, used);
        }
        self.found.push((path.clone(), Export::Ours(place)));
        if matches!(place.item.inner, ItemEnum::Module(_)) { self.members(&path, place) } else { Ok(()) }
    }

    /// The items in a module or an enum, with their paths.
    fn members(&mut self, path: &str, place: Place<'a>) -> Result<(), Failure> {
        if !self.seen.insert((path.to_owned(), std::ptr::from_ref(place.item))) {
            return Ok(());
        }
        let ids = match &place.item.inner {
            ItemEnum::Module(module) => module.items.as_slice(),
            ItemEnum::Enum(members) => members.variants.as_slice(),
            _ => &[],
        };
        for item in ids.iter().filter_map(|id| place.krate.index.get(id)) {
            let member = Place { krate: place.krate, item };
            match (&item.inner, &item.name) {
                (ItemEnum::Use(used), _) if used.is_glob => self.used(path.to_owned(), place.krate, used)?,
                (ItemEnum::Use(used), _) => self.export(format!("{path}::{}", used.name), member)?,
                (ItemEnum::Impl(_), _) | (_, None) => {}
                (_, Some(name)) => self.export(format!("{path}::{name}"), member)?,
            }
        }
        Ok(())
    }

    fn used(&mut self, path: String, krate: &'a Crate, used: &Use) -> Result<(), Failure> {
        match self.target(krate, used)? {
            Export::Ours(place) if used.is_glob => self.members(&path, place),
            Export::Ours(place) => self.export(path, place),
            Export::Foreign(own) => {
                let path = if used.is_glob { format!("{path}::*") } else { path };
                self.found.push((path, Export::Foreign(own)));
                Ok(())
            }
        }
    }

    fn target(&self, krate: &'a Crate, used: &Use) -> Result<Export<'a>, Failure> {
        let Some(id) = used.id else { return Ok(Export::Foreign(used.source.clone())) };
        if let Some(item) = krate.index.get(&id) {
            return Ok(Export::Ours(Place { krate, item }));
        }
        let Some(summary) = krate.paths.get(&id) else { return Ok(Export::Foreign(used.source.clone())) };
        let path = summary.path.join("::");
        let name = summary.path.first().map_or("", String::as_str);
        let Some((krate, ids)) = self.crates.get(name).zip(self.by_path.get(name)) else {
            if name.starts_with("rowmill") {
                return Err(Failure::new(format!(
                    "`{path}` is re-exported, and `{name}` is not described: add it to `DESCRIBED` in \
                     `xtask/src/api/describe.rs`"
                )));
            }
            return Ok(Export::Foreign(path));
        };
        let id = ids.get(&(path.clone(), format!("{:?}", summary.kind)));
        let item = id.and_then(|id| krate.index.get(id));
        // An item that its own crate hides from the documentation is identified only by its path.
        Ok(item.map_or(Export::Foreign(path), |item| Export::Ours(Place { krate, item })))
    }
}
