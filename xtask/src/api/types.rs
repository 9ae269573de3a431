//! Writes types, bounds and signatures as text.

use rustdoc_types::{
    Abi, AssocItemConstraint, AssocItemConstraintKind, Crate, Function, FunctionHeader, FunctionSignature,
    GenericArg, GenericArgs, GenericBound, GenericParamDef, GenericParamDefKind, Generics, Path,
    PreciseCapturingArg, Term, TraitBoundModifier, Type, WherePredicate,
};

use super::names::Names;

/// Writes the types of one crate with the names that users know.
#[derive(Clone, Copy)]
pub(super) struct Writer<'a> {
    pub(super) krate: &'a Crate,
    pub(super) names: &'a Names,
}

impl Writer<'_> {
    pub(super) fn of_type(&self, told: &Type) -> String {
        match told {
            Type::ResolvedPath(path) => self.path(path),
            Type::DynTrait(object) => {
                let mut bounds: Vec<_> = object
                    .traits
                    .iter()
                    .map(|bound| {
                        format!("{}{}", self.binder(&bound.generic_params), self.path(&bound.trait_))
                    })
                    .collect();
                bounds.extend(object.lifetime.clone());
                format!("dyn {}", bounds.join(" + "))
            }
            Type::Generic(name) | Type::Primitive(name) => name.clone(),
            Type::FunctionPointer(pointer) => format!(
                "{}{}fn{}",
                self.binder(&pointer.generic_params),
                qualifiers(&pointer.header),
                self.signature(&pointer.sig)
            ),
            Type::Tuple(parts) if parts.len() == 1 => format!("({},)", self.list(parts)),
            Type::Tuple(parts) => format!("({})", self.list(parts)),
            Type::Slice(element) => format!("[{}]", self.of_type(element)),
            Type::Array { type_, len } => format!("[{}; {len}]", self.of_type(type_)),
            Type::Pat { type_, .. } => self.of_type(type_),
            Type::ImplTrait(bounds) => format!("impl {}", self.bounds(bounds)),
            Type::Infer => "_".to_owned(),
            Type::RawPointer { is_mutable, type_ } => {
                format!("*{} {}", if *is_mutable { "mut" } else { "const" }, self.behind(type_))
            }
            Type::BorrowedRef { lifetime, is_mutable, type_ } => {
                format!("{}{}", reference(lifetime.as_deref(), *is_mutable), self.behind(type_))
            }
            Type::QualifiedPath { name, args, self_type, trait_ } => {
                let arguments = args.as_deref().map_or_else(String::new, |args| self.arguments(args));
                let of = self.of_type(self_type);
                match trait_.as_ref().filter(|path| !path.path.is_empty()) {
                    Some(path) => format!("<{of} as {}>::{name}{arguments}", self.path(path)),
                    None => format!("{of}::{name}{arguments}"),
                }
            }
        }
    }

    /// The target of a reference: several bounds need parentheses there.
    fn behind(&self, told: &Type) -> String {
        let text = self.of_type(told);
        let several = match told {
            Type::DynTrait(object) => object.traits.len() + usize::from(object.lifetime.is_some()) > 1,
            Type::ImplTrait(bounds) => bounds.len() > 1,
            _ => false,
        };
        if several { format!("({text})") } else { text }
    }

    pub(super) fn path(&self, path: &Path) -> String {
        let arguments = path.args.as_deref().map_or_else(String::new, |args| self.arguments(args));
        format!("{}{arguments}", self.names.of(self.krate, path.id, &path.path))
    }

    fn arguments(&self, told: &GenericArgs) -> String {
        match told {
            GenericArgs::AngleBracketed { args, constraints } => {
                let mut all: Vec<_> = args.iter().map(|argument| self.argument(argument)).collect();
                all.extend(constraints.iter().map(|constraint| self.constraint(constraint)));
                if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
            }
            GenericArgs::Parenthesized { inputs, output } => {
                format!("({}){}", self.list(inputs), self.output(output.as_ref()))
            }
            GenericArgs::ReturnTypeNotation => "(..)".to_owned(),
        }
    }

    fn argument(&self, told: &GenericArg) -> String {
        match told {
            GenericArg::Lifetime(name) => name.clone(),
            GenericArg::Type(told) => self.of_type(told),
            GenericArg::Const(constant) => constant.expr.clone(),
            GenericArg::Infer => "_".to_owned(),
        }
    }

    fn constraint(&self, told: &AssocItemConstraint) -> String {
        let arguments = told.args.as_deref().map_or_else(String::new, |args| self.arguments(args));
        match &told.binding {
            AssocItemConstraintKind::Equality(term) => {
                format!("{}{arguments} = {}", told.name, self.term(term))
            }
            AssocItemConstraintKind::Constraint(bounds) => {
                format!("{}{arguments}: {}", told.name, self.bounds(bounds))
            }
        }
    }

    fn term(&self, told: &Term) -> String {
        match told {
            Term::Type(told) => self.of_type(told),
            Term::Constant(constant) => constant.expr.clone(),
        }
    }

    pub(super) fn bounds(&self, told: &[GenericBound]) -> String {
        let bounds = told.iter().map(|bound| match bound {
            GenericBound::TraitBound { trait_, generic_params, modifier } => {
                let mark = match modifier {
                    TraitBoundModifier::None => "",
                    TraitBoundModifier::Maybe => "?",
                    TraitBoundModifier::MaybeConst => "[const] ",
                };
                format!("{mark}{}{}", self.binder(generic_params), self.path(trait_))
            }
            GenericBound::Outlives(lifetime) => lifetime.clone(),
            GenericBound::Use(captured) => {
                let names = captured.iter().map(|captured| match captured {
                    PreciseCapturingArg::Lifetime(name) | PreciseCapturingArg::Param(name) => name.as_str(),
                });
                format!("use<{}>", names.collect::<Vec<_>>().join(", "))
            }
        });
        bounds.collect::<Vec<_>>().join(" + ")
    }

    fn binder(&self, parameters: &[GenericParamDef]) -> String {
        if parameters.is_empty() { String::new() } else { format!("for{} ", self.parameters(parameters)) }
    }

    /// The parameters in angle brackets. Those of an `impl Trait` are written where it is used.
    pub(super) fn parameters(&self, told: &[GenericParamDef]) -> String {
        let parameters: Vec<_> = told.iter().filter_map(|told| self.parameter(told)).collect();
        if parameters.is_empty() { String::new() } else { format!("<{}>", parameters.join(", ")) }
    }

    fn parameter(&self, told: &GenericParamDef) -> Option<String> {
        let name = &told.name;
        match &told.kind {
            GenericParamDefKind::Lifetime { outlives } if outlives.is_empty() => Some(name.clone()),
            GenericParamDefKind::Lifetime { outlives } => Some(format!("{name}: {}", outlives.join(" + "))),
            GenericParamDefKind::Type { is_synthetic: true, .. } => None,
            GenericParamDefKind::Type { bounds, default, .. } => {
                let bounds =
                    if bounds.is_empty() { String::new() } else { format!(": {}", self.bounds(bounds)) };
                let default =
                    default.as_ref().map_or_else(String::new, |told| format!(" = {}", self.of_type(told)));
                Some(format!("{name}{bounds}{default}"))
            }
            GenericParamDefKind::Const { type_, default } => {
                let default = default.as_ref().map_or_else(String::new, |value| format!(" = {value}"));
                Some(format!("const {name}: {}{default}", self.of_type(type_)))
            }
        }
    }

    /// The `where` clause; `around` has the bounds of the context, such as those of a method's impl.
    pub(super) fn clause(&self, generics: &Generics, around: Option<&Generics>) -> String {
        let mut all: Vec<_> = generics.where_predicates.iter().map(|told| self.predicate(told)).collect();
        if let Some(around) = around {
            all.extend(around.where_predicates.iter().map(|told| self.predicate(told)));
            let bound = around.params.iter().filter_map(|told| self.parameter(told));
            all.extend(bound.filter(|text| text.contains(": ") && !text.starts_with("const ")));
        }
        all.sort();
        all.dedup();
        if all.is_empty() { String::new() } else { format!(" where {}", all.join(", ")) }
    }

    fn predicate(&self, told: &WherePredicate) -> String {
        match told {
            WherePredicate::BoundPredicate { type_, bounds, generic_params } => {
                format!("{}{}: {}", self.binder(generic_params), self.of_type(type_), self.bounds(bounds))
            }
            WherePredicate::LifetimePredicate { lifetime, outlives } => {
                format!("{lifetime}: {}", outlives.join(" + "))
            }
            WherePredicate::EqPredicate { lhs, rhs } => {
                format!("{} = {}", self.of_type(lhs), self.term(rhs))
            }
        }
    }

    /// A function under a path. Names of parameters are left out, because users do not depend on them.
    pub(super) fn function(&self, path: &str, told: &Function, around: Option<&Generics>) -> String {
        format!(
            "{}fn {path}{}{}{}",
            qualifiers(&told.header),
            self.parameters(&told.generics.params),
            self.signature(&told.sig),
            self.clause(&told.generics, around)
        )
    }

    fn signature(&self, told: &FunctionSignature) -> String {
        let mut inputs: Vec<_> = told.inputs.iter().map(|(name, input)| self.input(name, input)).collect();
        if told.is_c_variadic {
            inputs.push("...".to_owned());
        }
        format!("({}){}", inputs.join(", "), self.output(told.output.as_ref()))
    }

    fn input(&self, name: &str, told: &Type) -> String {
        let is_self = |told: &Type| matches!(told, Type::Generic(name) if name == "Self");
        match told {
            _ if name != "self" => self.of_type(told),
            told if is_self(told) => "self".to_owned(),
            Type::BorrowedRef { lifetime, is_mutable, type_ } if is_self(type_) => {
                format!("{}self", reference(lifetime.as_deref(), *is_mutable))
            }
            _ => format!("self: {}", self.of_type(told)),
        }
    }

    fn output(&self, told: Option<&Type>) -> String {
        told.map_or_else(String::new, |told| format!(" -> {}", self.of_type(told)))
    }

    fn list(&self, told: &[Type]) -> String {
        told.iter().map(|told| self.of_type(told)).collect::<Vec<_>>().join(", ")
    }
}

fn reference(lifetime: Option<&str>, is_mutable: bool) -> String {
    let lifetime = lifetime.map_or_else(String::new, |name| format!("{name} "));
    format!("&{lifetime}{}", if is_mutable { "mut " } else { "" })
}

fn qualifiers(header: &FunctionHeader) -> String {
    let mut text = String::new();
    for (holds, word) in
        [(header.is_const, "const "), (header.is_async, "async "), (header.is_unsafe, "unsafe ")]
    {
        if holds {
            text.push_str(word);
        }
    }
    match &header.abi {
        Abi::Rust => {}
        Abi::Other(name) => text.push_str(&format!("extern {name:?} ")),
        other => text.push_str(&format!("extern {other:?} ")),
    }
    text
}
