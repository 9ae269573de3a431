//! The snapshot of the public API, on small crates described by hand.
#![expect(
    clippy::unwrap_used,
    reason = "a crate described by hand that does not parse is a mistake in the test"
)]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use xtask::{ApiChanges, public_surface};

/// A crate as rustdoc describes it. Items are `(id, name, what it is)`; paths `(id, crate, path, kind)`.
fn krate(items: &[(u32, &str, Value)], paths: &[(u32, u32, &str, &str)]) -> Value {
    let index: BTreeMap<_, _> = items
        .iter()
        .map(|(id, name, inner)| {
            let name = (!name.is_empty()).then_some(name);
            let attrs = inner["attrs"].as_array().cloned().unwrap_or_default();
            let mut inner = inner.clone();
            inner.as_object_mut().unwrap().remove("attrs");
            let item = json!({
                "id": id, "crate_id": 0, "name": name, "span": null, "visibility": "public", "docs": null,
                "links": {}, "attrs": attrs, "deprecation": null, "inner": inner,
            });
            (id.to_string(), item)
        })
        .collect();
    let paths: BTreeMap<_, _> = paths
        .iter()
        .map(|(id, krate, path, kind)| {
            let path: Vec<_> = path.split("::").collect();
            (id.to_string(), json!({ "crate_id": krate, "path": path, "kind": kind }))
        })
        .collect();
    json!({
        "root": 0, "crate_version": null, "includes_private": false, "index": index, "paths": paths,
        "external_crates": {}, "target": { "triple": "", "target_features": [] }, "format_version": 57,
    })
}

fn module(items: &[u32]) -> Value {
    json!({ "module": { "is_crate": false, "items": items, "is_stripped": false } })
}

fn used(source: &str, name: &str, id: u32) -> Value {
    json!({ "use": { "source": source, "name": name, "id": id, "is_glob": false } })
}

fn generics() -> Value {
    json!({ "params": [], "where_predicates": [] })
}

fn named(id: u32) -> Value {
    json!({ "resolved_path": { "path": "Written", "id": id, "args": null } })
}

fn function(inputs: &[(&str, Value)], output: &Value, has_body: bool) -> Value {
    let header = json!({ "is_const": false, "is_unsafe": false, "is_async": false, "abi": "Rust" });
    let signature = json!({ "inputs": inputs, "output": output, "is_c_variadic": false });
    json!({ "function": { "sig": signature, "generics": generics(), "header": header, "has_body": has_body } })
}

fn implementation(name: Option<u32>, of: u32, items: &[u32], is_synthetic: bool) -> Value {
    let name =
        name.map(|id| json!({ "path": if id == 90 { "Send" } else { "Unpin" }, "id": id, "args": null }));
    json!({ "impl": {
        "is_unsafe": false, "generics": generics(), "provided_trait_methods": [], "trait": name,
        "for": named(of), "items": items, "is_negative": false, "is_synthetic": is_synthetic, "blanket_impl": null,
    } })
}

fn me() -> Value {
    json!({ "borrowed_ref": { "lifetime": null, "is_mutable": false, "type": { "generic": "Self" } } })
}

/// The library, whose one struct has a field of an item that it re-exports.
fn library() -> Value {
    let fields = json!({ "plain": { "fields": [3], "has_stripped_fields": true } });
    krate(
        &[
            (0, "rowmill", module(&[1, 2, 9])),
            (1, "", used("rowmill_core::Watcher", "Watcher", 50)),
            (2, "Batch", json!({ "struct": { "kind": fields, "generics": generics(), "impls": [4, 5, 6] } })),
            (3, "watcher", json!({ "struct_field": named(50) })),
            (4, "", implementation(None, 2, &[7], false)),
            (5, "", implementation(Some(90), 2, &[], true)),
            (6, "", implementation(Some(91), 2, &[], true)),
            (
                7,
                "run",
                function(&[("self", me()), ("count", json!({ "primitive": "u64" }))], &named(92), true),
            ),
            (9, "", used("other::Clock", "Clock", 93)),
        ],
        &[
            (0, 0, "rowmill", "module"),
            (2, 0, "rowmill::batch::Batch", "struct"),
            (50, 1, "rowmill_core::ports::Watcher", "trait"),
            (90, 2, "core::marker::Send", "trait"),
            (91, 2, "core::marker::Unpin", "trait"),
            (92, 3, "alloc::string::String", "struct"),
            (93, 4, "other::time::Clock", "struct"),
        ],
    )
}

/// The crate below, with a trait of one required and one provided function, and an enum that the
/// library does not re-export.
fn below() -> Value {
    let items = json!({
        "is_auto": false, "is_unsafe": false, "is_dyn_compatible": false, "items": [2, 3], "generics": generics(),
        "bounds": [], "implementations": [5, 6],
    });
    let kind = json!({ "primitive": "u8" });
    let kind = json!({ "assoc_type": { "generics": generics(), "bounds": [], "type": kind } });
    let mut for_primitive = implementation(Some(1), 4, &[7], false);
    for_primitive["impl"]["for"] = json!({ "primitive": "u64" });
    krate(
        &[
            (0, "rowmill_core", module(&[])),
            (1, "Watcher", json!({ "trait": items })),
            (2, "see", function(&[("self", me()), ("what", named(4))], &Value::Null, false)),
            (3, "end", function(&[("self", me())], &Value::Null, true)),
            (
                4,
                "Sight",
                json!({ "enum": {
                "generics": generics(), "has_stripped_variants": false, "variants": [], "impls": [],
            } }),
            ),
            // Which users cannot name, so that this impl is not shown.
            (5, "", implementation(Some(1), 4, &[7], false)),
            (6, "", for_primitive),
            (7, "Kind", kind),
        ],
        &[
            (0, 0, "rowmill_core", "module"),
            (1, 0, "rowmill_core::ports::Watcher", "trait"),
            (4, 0, "rowmill_core::ports::Sight", "enum"),
        ],
    )
}

/// Crates by name. One more comes first, so that the ids of all others become other ones.
fn crates(all: Vec<(&str, Value)>) -> BTreeMap<String, Value> {
    let first = ("first", krate(&[(0, "first", module(&[]))], &[(0, 0, "first", "module")]));
    all.into_iter().chain([first]).map(|(name, described)| (name.to_owned(), described)).collect()
}

#[test]
fn a_re_exported_trait_is_shown_with_its_functions_under_the_path_of_the_library() {
    let lines =
        public_surface(crates(vec![("rowmill", library()), ("rowmill_core", below())]), "rowmill").unwrap();
    assert_eq!(
        lines,
        [
            "pub mod rowmill",
            "pub use rowmill::Clock = other::Clock",
            "pub struct rowmill::Batch { .. }",
            "pub rowmill::Batch::watcher: rowmill::Watcher",
            "impl rowmill::Batch",
            "pub fn rowmill::Batch::run(&self, u64) -> alloc::string::String",
            "impl core::marker::Send for rowmill::Batch",
            "pub trait rowmill::Watcher // not for `dyn`",
            "provided fn rowmill::Watcher::end(&self)",
            "required fn rowmill::Watcher::see(&self, rowmill_core::ports::Sight)",
            "impl rowmill::Watcher for u64",
            "pub type u64::Kind = u8",
        ]
    );
}

#[test]
fn a_re_export_of_a_crate_that_is_not_described_fails_and_says_where_to_add_it() {
    let failure = public_surface(crates(vec![("rowmill", library())]), "rowmill").unwrap_err().to_string();
    assert!(failure.contains("`rowmill_core::Watcher` is re-exported"), "{failure}");
    assert!(failure.contains("add it to `DESCRIBED`"), "{failure}");
}

#[test]
fn a_description_in_another_format_fails_and_says_which_version_reads_it() {
    let mut below = below();
    below["format_version"] = 58.into();
    let failure = public_surface(crates(vec![("rowmill", library()), ("rowmill_core", below)]), "rowmill");
    let failure = failure.unwrap_err().to_string();
    assert!(failure.starts_with("rustdoc describes `rowmill_core` in format 58 and this task reads 57"));
    assert!(failure.contains("set `public-api` in `Cargo.toml`"), "{failure}");
}

#[test]
fn an_item_with_two_paths_is_shown_under_both_and_a_mark_is_kept() {
    let variant = json!({ "variant": { "kind": "plain", "discriminant": { "expr": "2", "value": "2" } } });
    let choice = json!({
        "enum": { "generics": generics(), "has_stripped_variants": false, "variants": [3], "impls": [5, 6] },
        "attrs": ["non_exhaustive"],
    });
    let pair = json!({ "struct": { "kind": { "tuple": [8, null] }, "generics": generics(), "impls": [] } });
    let library = krate(
        &[
            (0, "rowmill", module(&[1, 2, 7])),
            (1, "Choice", choice),
            (2, "prelude", module(&[4])),
            (3, "Second", variant),
            (4, "", used("crate::Choice", "Choice", 1)),
            (5, "", implementation(Some(90), 1, &[], true)),
            (6, "", implementation(Some(92), 1, &[], false)),
            (7, "Pair", pair),
            (8, "0", json!({ "struct_field": named(1) })),
        ],
        &[
            (1, 0, "rowmill::Choice", "enum"),
            (2, 0, "rowmill::prelude", "module"),
            (90, 1, "core::marker::Send", "trait"),
            (92, 0, "rowmill::hidden::Hidden", "trait"),
        ],
    );
    let lines = public_surface(crates(vec![("rowmill", library)]), "rowmill").unwrap();
    assert_eq!(
        lines,
        [
            "pub mod rowmill",
            "pub mod rowmill::prelude",
            "#[non_exhaustive] pub enum rowmill::prelude::Choice",
            "pub rowmill::prelude::Choice::Second = 2",
            "impl core::marker::Send for rowmill::Choice",
            "#[non_exhaustive] pub enum rowmill::Choice",
            "pub rowmill::Choice::Second = 2",
            "pub struct rowmill::Pair(pub rowmill::Choice, _)",
        ]
    );
}

/// Lines before, lines after, and how many are removed, changed, demanding and added.
type Case = (&'static [&'static str], &'static [&'static str], (usize, usize, usize, usize));

#[test]
fn each_change_is_sorted_by_what_it_means_for_users() {
    let (none, changed, demanding, added) = ((0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1));
    let cases: &[Case] = &[
        (&["pub mod rowmill"], &["pub mod rowmill"], none),
        (&["pub fn rowmill::run()"], &[], (1, 0, 0, 0)),
        (&[], &["pub fn rowmill::run()"], added),
        (&["pub fn rowmill::run()"], &["pub fn rowmill::run(u64)"], changed),
        (&["pub rowmill::A::b: u32"], &["pub rowmill::A::b: u64"], changed),
        (&["pub fn rowmill::A<u8>::b(self)"], &["pub async fn rowmill::A<u8>::b(self)"], changed),
        (&["pub struct rowmill::A"], &["pub struct rowmill::A { .. }"], changed),
        (&["impl Send for rowmill::A"], &["impl Sync for rowmill::A"], (1, 0, 0, 1)),
        (&["pub struct rowmill::A"], &["pub struct rowmill::A", "pub rowmill::A::b: u32"], demanding),
        (
            &["pub struct rowmill::A { .. }"],
            &["pub struct rowmill::A { .. }", "pub rowmill::A::b: u32"],
            added,
        ),
        (&["pub enum rowmill::A"], &["pub enum rowmill::A", "pub rowmill::A::B"], demanding),
        (
            &["pub enum rowmill::A"],
            &["pub enum rowmill::A", "#[non_exhaustive] pub rowmill::A::B"],
            demanding,
        ),
        (
            &["#[non_exhaustive] pub enum rowmill::A<'a>"],
            &["#[non_exhaustive] pub enum rowmill::A<'a>", "pub rowmill::A::B"],
            added,
        ),
        (&["pub trait rowmill::A"], &["pub trait rowmill::A", "required fn rowmill::A::b(&self)"], demanding),
        (&["pub trait rowmill::A"], &["pub trait rowmill::A", "provided fn rowmill::A::b(&self)"], added),
        (&[], &["pub trait rowmill::A", "required fn rowmill::A::b(&self)"], (0, 0, 0, 2)),
    ];
    for (before, after, expected) in cases {
        let found = ApiChanges::between(before, after);
        let counts = (found.removed.len(), found.changed.len(), found.demanding.len(), found.added.len());
        assert_eq!(counts, *expected, "{before:?} -> {after:?}: {found:?}");
    }
}

#[test]
fn the_message_tells_what_breaks_from_what_is_added_and_what_to_do() {
    let before = ["pub fn rowmill::gone()", "pub fn rowmill::run()", "pub trait rowmill::A"];
    let after = [
        "pub fn rowmill::new()",
        "pub fn rowmill::run(u64)",
        "pub trait rowmill::A",
        "required fn rowmill::A::b(&self)",
    ];
    assert_eq!(
        ApiChanges::between(&before, &after).to_string(),
        "
breaks users:
  - pub fn rowmill::gone()
  - pub fn rowmill::run()
  + pub fn rowmill::run(u64)
  + required fn rowmill::A::b(&self)

added:
  + pub fn rowmill::new()

raise the version in `Cargo.toml` if this is meant, tell it in `CHANGELOG.md`, and run `cargo xtask api` and commit what it writes"
    );
    assert_eq!(
        ApiChanges::between(&[] as &[&str], &["pub fn rowmill::new()"]).to_string(),
        "
added:
  + pub fn rowmill::new()

nothing breaks: run `cargo xtask api` and commit what it writes"
    );
}
