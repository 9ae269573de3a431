//! Writes the lines of an item.

use std::collections::BTreeSet;

use rustdoc_types::{
    Attribute, Generics, Id, Item, ItemEnum, MacroKind, StructKind, Trait, Type, Variant, VariantKind,
};

use super::exports::Place;
use super::impls::Impls;
use super::names::Names;
use super::types::Writer;

/// Appended to an item with parts that users cannot see.
pub(super) const MORE: &str = " { .. }";
/// Prepended to an item that may get more fields or variants without breaking users.
pub(super) const NON_EXHAUSTIVE: &str = "#[non_exhaustive] ";

/// A line with its sort key: by item, after the item itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    path: String,
    place: u8,
    pub(super) text: String,
}

/// The lines so far, in their order.
#[derive(Default)]
pub(super) struct Lines(pub(super) BTreeSet<Line>);

impl Lines {
    /// The line of an item.
    pub(super) fn item(&mut self, path: &str, text: String) {
        self.0.insert(Line { path: path.to_owned(), place: 0, text });
    }

    /// A line about an impl of a type.
    pub(super) fn ability(&mut self, path: &str, text: String) {
        self.0.insert(Line { path: path.to_owned(), place: 1, text });
    }
}

/// Adds the lines of an item and of its parts.
pub(super) fn describe(lines: &mut Lines, path: &str, place: Place<'_>, names: &Names) {
    let writer = Writer { krate: place.krate, names };
    ItemWriter { lines, writer, path, item: place.item }.describe();
}

struct ItemWriter<'a> {
    lines: &'a mut Lines,
    writer: Writer<'a>,
    path: &'a str,
    item: &'a Item,
}

impl ItemWriter<'_> {
    fn describe(&mut self) {
        let (path, writer) = (self.path, self.writer);
        match &self.item.inner {
            ItemEnum::Module(_) => self.line(format!("pub mod {path}")),
            ItemEnum::Struct(told) => {
                self.line(self.structure(&told.kind, &told.generics));
                if let StructKind::Plain { fields, .. } = &told.kind {
                    self.fields(path, fields);
                }
                self.impls(&told.impls);
            }
            ItemEnum::Union(told) => {
                self.line(format!("pub union {path}{}", self.generics(&told.generics)));
                self.fields(path, &told.fields);
                self.impls(&told.impls);
            }
            ItemEnum::Enum(told) => {
                let more = if told.has_stripped_variants { MORE } else { "" };
                let mark = non_exhaustive(self.item);
                self.line(format!("{mark}pub enum {path}{}{more}", self.generics(&told.generics)));
                for item in told.variants.iter().filter_map(|id| writer.krate.index.get(id)) {
                    if let (ItemEnum::Variant(told), Some(name)) = (&item.inner, &item.name) {
                        self.variant(&format!("{path}::{name}"), item, told);
                    }
                }
                self.impls(&told.impls);
            }
            ItemEnum::Variant(told) => self.variant(path, self.item, told),
            ItemEnum::Trait(told) => self.interface(told),
            ItemEnum::Function(told) => self.line(format!("pub {}", writer.function(path, told, None))),
            ItemEnum::TypeAlias(told) => {
                let generics = self.generics(&told.generics);
                self.line(format!("pub type {path}{generics} = {}", writer.of_type(&told.type_)));
            }
            ItemEnum::TraitAlias(told) => {
                let generics = self.generics(&told.generics);
                self.line(format!("pub trait {path}{generics} = {}", writer.bounds(&told.params)));
            }
            ItemEnum::Constant { type_, .. } => self.constant("const", type_),
            ItemEnum::Static(told) => {
                self.constant(if told.is_mutable { "static mut" } else { "static" }, &told.type_);
            }
            ItemEnum::Macro(_) => self.line(format!("macro {path}!")),
            ItemEnum::ProcMacro(told) => self.line(match told.kind {
                MacroKind::Bang => format!("macro {path}!"),
                MacroKind::Attr => format!("macro #[{path}]"),
                MacroKind::Derive => format!("macro #[derive({path})]"),
            }),
            ItemEnum::ExternType => self.line(format!("pub extern type {path}")),
            // Parts of other items, which are written with those.
            ItemEnum::ExternCrate { .. }
            | ItemEnum::Use(_)
            | ItemEnum::StructField(_)
            | ItemEnum::Impl(_)
            | ItemEnum::Primitive(_)
            | ItemEnum::AssocConst { .. }
            | ItemEnum::AssocType { .. } => {}
        }
    }

    fn line(&mut self, text: String) {
        self.lines.item(self.path, text);
    }

    fn constant(&mut self, word: &str, told: &Type) {
        self.line(format!("pub {word} {}: {}", self.path, self.writer.of_type(told)));
    }

    fn generics(&self, told: &Generics) -> String {
        format!("{}{}", self.writer.parameters(&told.params), self.writer.clause(told, None))
    }

    fn impls(&mut self, ids: &[Id]) {
        Impls { lines: &mut *self.lines, writer: self.writer, path: self.path }.of_type(ids);
    }

    fn structure(&self, kind: &StructKind, generics: &Generics) -> String {
        let head = format!("{}pub struct {}", non_exhaustive(self.item), self.path);
        let parameters = self.writer.parameters(&generics.params);
        let clause = self.writer.clause(generics, None);
        match kind {
            StructKind::Unit => format!("{head}{parameters}{clause};"),
            StructKind::Tuple(fields) => {
                format!("{head}{parameters}({}){clause}", self.positions(fields, "pub "))
            }
            StructKind::Plain { has_stripped_fields, .. } => {
                format!("{head}{parameters}{clause}{}", if *has_stripped_fields { MORE } else { "" })
            }
        }
    }

    /// Unnamed fields; one that users cannot see keeps its position.
    fn positions(&self, fields: &[Option<Id>], before: &str) -> String {
        let told = fields.iter().map(|id| match id.map(|id| self.writer.krate.index.get(&id)) {
            Some(Some(Item { inner: ItemEnum::StructField(told), .. })) => {
                format!("{before}{}", self.writer.of_type(told))
            }
            _ => "_".to_owned(),
        });
        told.collect::<Vec<_>>().join(", ")
    }

    fn fields(&mut self, path: &str, ids: &[Id]) {
        for item in ids.iter().filter_map(|id| self.writer.krate.index.get(id)) {
            if let (ItemEnum::StructField(told), Some(name)) = (&item.inner, &item.name) {
                let path = format!("{path}::{name}");
                let text = format!("field {path}: {}", self.writer.of_type(told));
                self.lines.item(&path, text);
            }
        }
    }

    fn variant(&mut self, path: &str, item: &Item, told: &Variant) {
        let mark = non_exhaustive(item);
        let number = told.discriminant.as_ref().map_or_else(String::new, |told| format!(" = {}", told.value));
        let (content, fields) = match &told.kind {
            VariantKind::Plain => (String::new(), [].as_slice()),
            VariantKind::Tuple(fields) => (format!("({})", self.positions(fields, "")), [].as_slice()),
            VariantKind::Struct { fields, has_stripped_fields } => {
                (if *has_stripped_fields { MORE } else { "" }.to_owned(), fields.as_slice())
            }
        };
        self.lines.item(path, format!("{mark}variant {path}{content}{number}"));
        self.fields(path, fields);
    }

    fn interface(&mut self, told: &Trait) {
        let (path, writer) = (self.path, self.writer);
        let safety = if told.is_unsafe { "unsafe " } else { "" };
        let parameters = writer.parameters(&told.generics.params);
        let above = writer.bounds(&told.bounds);
        let above = if above.is_empty() { above } else { format!(": {above}") };
        let clause = writer.clause(&told.generics, None);
        let object = if told.is_dyn_compatible { "" } else { " // not for `dyn`" };
        self.line(format!("pub {safety}trait {path}{parameters}{above}{clause}{object}"));
        for item in told.items.iter().filter_map(|id| writer.krate.index.get(id)) {
            if let Some(name) = &item.name {
                self.trait_item(&format!("{path}::{name}"), item);
            }
        }
        Impls { lines: &mut *self.lines, writer, path }.of_trait(&told.implementations);
    }

    /// Required items of a trait are distinguished from provided ones.
    fn trait_item(&mut self, path: &str, item: &Item) {
        let writer = self.writer;
        let (given, text) = match &item.inner {
            ItemEnum::Function(told) => (told.has_body, writer.function(path, told, None)),
            ItemEnum::AssocConst { type_, value } => {
                (value.is_some(), format!("const {path}: {}", writer.of_type(type_)))
            }
            ItemEnum::AssocType { generics, bounds, type_ } => {
                let bounds = writer.bounds(bounds);
                let bounds = if bounds.is_empty() { bounds } else { format!(": {bounds}") };
                (type_.is_some(), format!("type {path}{}{bounds}", self.generics(generics)))
            }
            _ => return,
        };
        self.lines.item(path, format!("{} {text}", if given { "provided" } else { "required" }));
    }
}

fn non_exhaustive(item: &Item) -> &'static str {
    if item.attrs.contains(&Attribute::NonExhaustive) { NON_EXHAUSTIVE } else { "" }
}
