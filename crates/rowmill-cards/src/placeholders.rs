//! `{{name}}` in an instruction, and the escape `\{{`.

use rowmill_core::prompt::{Piece, pieces};

/// The escape for a literal `{{`.
const ESCAPED_OPEN: &str = "\\{{";

/// A part of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    /// Literal text.
    Literal(&'t str),
    /// `\{{`.
    EscapedOpen,
    /// A placeholder.
    Placeholder {
        /// The name in it.
        name: &'t str,
        /// The placeholder as written.
        source: &'t str,
    },
}

/// Splits an instruction at its placeholders.
pub(crate) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for (index, segment) in text.split(ESCAPED_OPEN).enumerate() {
        if index > 0 {
            parts.push(Part::EscapedOpen);
        }
        parts.extend(pieces(segment).into_iter().map(|piece| match piece {
            Piece::Literal(literal) => Part::Literal(literal),
            Piece::Field { name, source } => Part::Placeholder { name, source },
        }));
    }
    parts
}

/// Replaces the placeholders of an instruction; escapes stay.
pub(crate) fn replaced<'t, E>(
    text: &'t str,
    mut replace: impl FnMut(&'t str, &'t str) -> Result<String, E>,
) -> Result<String, E> {
    let mut out = String::with_capacity(text.len());
    for part in parts(text) {
        match part {
            Part::Literal(literal) => out.push_str(literal),
            Part::EscapedOpen => out.push_str(ESCAPED_OPEN),
            Part::Placeholder { name, source } => out.push_str(&replace(name, source)?),
        }
    }
    Ok(out)
}

/// The instruction as it is sent: placeholders filled in, escapes resolved.
pub(crate) fn filled<'t, E>(
    text: &'t str,
    mut fill: impl FnMut(&'t str, &'t str) -> Result<String, E>,
) -> Result<String, E> {
    let mut out = String::with_capacity(text.len());
    for part in parts(text) {
        match part {
            Part::Literal(literal) => out.push_str(&literal.replace("\\}}", "}}")),
            Part::EscapedOpen => out.push_str("{{"),
            Part::Placeholder { name, source } => out.push_str(&fill(name, source)?),
        }
    }
    Ok(out)
}
