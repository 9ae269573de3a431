//! The names of items in the snapshot.

use std::collections::BTreeMap;

use rustdoc_types::{Crate, Id};

use super::exports::Place;

/// Names that need no path, because they are in Rust's prelude.
const PRELUDE: &[&str] = &[
    "std::borrow::ToOwned",
    "std::boxed::Box",
    "std::clone::Clone",
    "std::cmp::Eq",
    "std::cmp::Ord",
    "std::cmp::PartialEq",
    "std::cmp::PartialOrd",
    "std::convert::AsMut",
    "std::convert::AsRef",
    "std::convert::From",
    "std::convert::Into",
    "std::convert::TryFrom",
    "std::convert::TryInto",
    "std::default::Default",
    "std::iter::traits::collect::Extend",
    "std::iter::traits::collect::FromIterator",
    "std::iter::traits::collect::IntoIterator",
    "std::iter::traits::double_ended::DoubleEndedIterator",
    "std::iter::traits::exact_size::ExactSizeIterator",
    "std::iter::traits::iterator::Iterator",
    "std::marker::Copy",
    "std::marker::Send",
    "std::marker::Sized",
    "std::marker::Sync",
    "std::ops::drop::Drop",
    "std::ops::function::Fn",
    "std::ops::function::FnMut",
    "std::ops::function::FnOnce",
    "std::option::Option",
    "std::result::Result",
    "std::string::String",
    "std::string::ToString",
    "std::vec::Vec",
];

/// The path and the kind of an item's definition, which are the same in every crate that refers to it.
type Definition = (Vec<String>, String);

/// The paths under which users know items.
#[derive(Default)]
pub(super) struct Names(BTreeMap<Definition, String>);

impl Names {
    /// Adds the path of an item, and returns its previous one.
    pub(super) fn learn(&mut self, place: Place<'_>, path: &str) -> Option<String> {
        let definition = definition(place.krate, place.item.id)?;
        if let Some(known) = self.0.get(&definition) {
            return Some(known.clone());
        }
        self.0.insert(definition, path.to_owned());
        None
    }

    /// The name for users of an id in `krate`: the public path, or else the item's own.
    pub(super) fn of(&self, krate: &Crate, id: Id, written: &str) -> String {
        let Some(definition) = definition(krate, id) else { return written.to_owned() };
        if let Some(path) = self.0.get(&definition) {
            return path.clone();
        }
        let mut segments = definition.0;
        if let Some(name) = segments.first_mut().filter(|name| ["core", "alloc"].contains(&name.as_str())) {
            "std".clone_into(name);
        }
        let path = segments.join("::");
        match segments.pop() {
            Some(last) if PRELUDE.contains(&path.as_str()) => last,
            _ => path,
        }
    }

    /// Whether this is an item of the workspace without a public path.
    pub(super) fn hides(&self, krate: &Crate, id: Id) -> bool {
        definition(krate, id).is_some_and(|definition| {
            let ours = definition.0.first().is_some_and(|name| name.starts_with("rowmill"));
            ours && !self.0.contains_key(&definition)
        })
    }
}

fn definition(krate: &Crate, id: Id) -> Option<Definition> {
    krate.paths.get(&id).map(|summary| (summary.path.clone(), format!("{:?}", summary.kind)))
}
