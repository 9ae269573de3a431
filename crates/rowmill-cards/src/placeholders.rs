//! `{{name}}` in an instruction, and the escape `\{{`.

use rowmill_core::prompt::{TemplatePiece, split_placeholders};

/// The escape for a literal `{{`.
const ESCAPED_OPEN: &str = "\\{{";

/// A part of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstructionPart<'t> {
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
pub(crate) fn split_instruction(text: &str) -> Vec<InstructionPart<'_>> {
    let mut parts = Vec::new();
    for (index, segment) in text.split(ESCAPED_OPEN).enumerate() {
        if index > 0 {
            parts.push(InstructionPart::EscapedOpen);
        }
        parts.extend(split_placeholders(segment).into_iter().map(|piece| match piece {
            TemplatePiece::Literal(literal) => InstructionPart::Literal(literal),
            TemplatePiece::Field { name, source } => InstructionPart::Placeholder { name, source },
        }));
    }
    parts
}

/// Replaces the placeholders of an instruction; escapes stay.
pub(crate) fn replace_placeholders<'t, E>(
    text: &'t str,
    mut replace: impl FnMut(&'t str, &'t str) -> Result<String, E>,
) -> Result<String, E> {
    let mut out = String::with_capacity(text.len());
    for part in split_instruction(text) {
        match part {
            InstructionPart::Literal(literal) => out.push_str(literal),
            InstructionPart::EscapedOpen => out.push_str(ESCAPED_OPEN),
            InstructionPart::Placeholder { name, source } => out.push_str(&replace(name, source)?),
        }
    }
    Ok(out)
}

/// The instruction as it is sent: placeholders filled in, escapes resolved.
pub(crate) fn fill_placeholders<'t, E>(
    text: &'t str,
    mut fill: impl FnMut(&'t str, &'t str) -> Result<String, E>,
) -> Result<String, E> {
    let mut out = String::with_capacity(text.len());
    for part in split_instruction(text) {
        match part {
            InstructionPart::Literal(literal) => out.push_str(&literal.replace("\\}}", "}}")),
            InstructionPart::EscapedOpen => out.push_str("{{"),
            InstructionPart::Placeholder { name, source } => out.push_str(&fill(name, source)?),
        }
    }
    Ok(out)
}
