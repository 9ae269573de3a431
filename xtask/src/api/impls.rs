//! Writes the lines of impls.

use rustdoc_types::{GenericArg, GenericArgs, Id, Impl, ItemEnum, Type};

use super::items::Lines;
use super::types::Writer;

/// The auto traits that are listed; these are the ones that users rely on.
const TOLD_OF_AUTO_TRAITS: &[&str] = &["Send", "Sync"];
/// A trait that only the compiler can name.
const UNNAMED: &str = "StructuralPartialEq";

/// Writes the impls under the path of a type or a trait.
pub(super) struct Impls<'a> {
    pub(super) lines: &'a mut Lines,
    pub(super) writer: Writer<'a>,
    pub(super) path: &'a str,
}

impl<'a> Impls<'a> {
    /// The inherent functions and the traits of a type.
    pub(super) fn of_type(&mut self, ids: &[Id]) {
        for told in self.impls(ids) {
            if told.trait_.is_none() {
                self.inherent(told);
            } else if self.tells(told) {
                self.lines.ability(self.path, self.text(told));
            }
        }
    }

    /// The types that implement a trait, except those that users cannot name.
    pub(super) fn of_trait(&mut self, ids: &[Id]) {
        for told in self.impls(ids) {
            let hidden = matches!(&told.for_, Type::ResolvedPath(path) if self.hides(path.id));
            if !hidden && self.tells(told) {
                self.lines.ability(self.path, self.text(told));
            }
        }
    }

    fn impls(&self, ids: &[Id]) -> Vec<&'a Impl> {
        ids.iter()
            .filter_map(|id| match &self.writer.krate.index.get(id)?.inner {
                ItemEnum::Impl(told) => Some(told),
                _ => None,
            })
            .collect()
    }

    fn hides(&self, id: Id) -> bool {
        self.writer.names.hides(self.writer.krate, id)
    }

    fn tells(&self, told: &Impl) -> bool {
        let Some(path) = &told.trait_ else { return false };
        let name = path.path.rsplit("::").next().unwrap_or_default();
        // A blanket impl says nothing about this type, and a hidden trait is of no use.
        told.blanket_impl.is_none()
            && name != UNNAMED
            && !self.hides(path.id)
            && (!told.is_synthetic || TOLD_OF_AUTO_TRAITS.contains(&name))
    }

    fn inherent(&mut self, told: &Impl) {
        let owner = self.owner(&told.for_);
        for item in told.items.iter().filter_map(|id| self.writer.krate.index.get(id)) {
            let Some(name) = &item.name else { continue };
            let path = format!("{owner}::{name}");
            let text = match &item.inner {
                ItemEnum::Function(function) => self.writer.function(&path, function, Some(&told.generics)),
                ItemEnum::AssocConst { type_, .. } => {
                    format!("const {path}: {}", self.writer.of_type(type_))
                }
                _ => continue,
            };
            self.lines.item(&format!("{}::{name}", self.path), format!("pub {text}"));
        }
    }

    /// The type of an impl: with its arguments only if the impl applies to some of them.
    fn owner(&self, told: &Type) -> String {
        let Type::ResolvedPath(path) = told else { return self.writer.of_type(told) };
        let some = path.args.as_deref().is_some_and(|args| match args {
            GenericArgs::AngleBracketed { args, .. } => args.iter().any(|argument| {
                !matches!(argument, GenericArg::Lifetime(_) | GenericArg::Type(Type::Generic(_)))
            }),
            _ => true,
        });
        if some { self.writer.of_type(told) } else { self.path.to_owned() }
    }

    fn text(&self, told: &Impl) -> String {
        let safety = if told.is_unsafe { "unsafe " } else { "" };
        let parameters = self.writer.parameters(&told.generics.params);
        let mark = if told.is_negative { "!" } else { "" };
        let name = told.trait_.as_ref().map_or_else(String::new, |path| self.writer.path(path));
        let of = self.writer.of_type(&told.for_);
        let clause = self.writer.clause(&told.generics, None);
        let mut types = String::new();
        for item in told.items.iter().filter_map(|id| self.writer.krate.index.get(id)) {
            if let (ItemEnum::AssocType { type_: Some(given), .. }, Some(name)) = (&item.inner, &item.name) {
                types.push_str(&format!(" {{ type {name} = {} }}", self.writer.of_type(given)));
            }
        }
        format!("{safety}impl{parameters} {mark}{name} for {of}{clause}{types}")
    }
}
