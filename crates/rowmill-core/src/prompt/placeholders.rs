//! The syntax of `{{name}}`, in row templates and in instructions.

/// A part of a text with placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplatePiece<'t> {
    /// Literal text.
    Literal(&'t str),
    /// A placeholder.
    Field {
        /// Its name, without the spaces around it.
        name: &'t str,
        /// The placeholder as written.
        source: &'t str,
    },
}

/// Splits `text` at its placeholders, in one pass.
///
/// The rule is that of the Python pattern `{{\s*([^}]+?)\s*}}`, searched from the left: the first `}` after `{{` must
/// be one of `}}`, and everything before it is the name, including spaces, dots, newlines or opening braces. Without a
/// name (`{{}}`, `{{ }}`) it is literal text.
#[must_use]
pub fn split_placeholders(text: &str) -> Vec<TemplatePiece<'_>> {
    let mut pieces = Vec::new();
    let mut literal_start = 0;
    let mut search = 0;
    while let Some(open) = find(text, search, "{{") {
        // Every other `{{` before this `}` would end at it too, so if one fails, all of them fail, and the search
        // continues behind it.
        let Some(close) = find(text, open + 2, "}") else { break };
        search = close + 1;
        let inner = text.get(open + 2..close).unwrap_or_default();
        let name = inner.trim_matches(is_space);
        if name.is_empty() || !text.get(close..).is_some_and(|rest| rest.starts_with("}}")) {
            continue;
        }
        search = close + 2;
        push_literal(&mut pieces, text.get(literal_start..open));
        pieces.push(TemplatePiece::Field { name, source: text.get(open..search).unwrap_or_default() });
        literal_start = search;
    }
    push_literal(&mut pieces, text.get(literal_start..));
    pieces
}

fn push_literal<'t>(pieces: &mut Vec<TemplatePiece<'t>>, literal: Option<&'t str>) {
    if let Some(literal) = literal
        && !literal.is_empty()
    {
        pieces.push(TemplatePiece::Literal(literal));
    }
}

fn find(text: &str, from: usize, what: &str) -> Option<usize> {
    Some(from + text.get(from..)?.find(what)?)
}

/// Python's `\s`: Unicode white space and the four separators of ASCII.
fn is_space(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\u{1c}'..='\u{1f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Names in angle brackets, literals as they are.
    fn shape(text: &str) -> String {
        let show = |piece: &TemplatePiece<'_>| match piece {
            TemplatePiece::Literal(literal) => (*literal).to_owned(),
            TemplatePiece::Field { name, .. } => format!("<{name}>"),
        };
        split_placeholders(text).iter().map(show).collect()
    }

    #[test]
    fn placeholders_are_found_as_the_python_pattern_finds_them() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("{{a}}", "<a>"),
            ("x{{ a }}y{{\tb\n}}z", "x<a>y<b>z"),
            ("{{a b.c}}", "<a b.c>"),
            ("{{a\nb}}", "<a\nb>"),
            ("{{\u{1c}a\u{a0}\u{1f}}}", "<a>"),
            ("{{{a}}}", "<{a>}"),
            ("{{{{a}}}}", "<{{a>}}"),
            ("{{a}}}", "<a>}"),
            ("{{}}", "{{}}"),
            ("{{ }}", "{{ }}"),
            ("{{ }} }}", "{{ }} }}"),
            ("{{}}}", "{{}}}"),
            ("{{}}{{a}}", "{{}}<a>"),
            ("{a}", "{a}"),
            ("{{a", "{{a"),
            ("{{a}", "{{a}"),
            ("{{a} }}", "{{a} }}"),
            ("{{a}{{b}}", "{{a}<b>"),
            ("{{a}}{{", "<a>{{"),
            ("{{é}}ü{{名前}}", "<é>ü<名前>"),
        ] {
            assert_eq!(shape(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn the_pieces_put_together_are_the_text(text in "[{} a\\n\u{1c}é]{0,24}") {
            let source = |piece: &TemplatePiece<'_>| match piece {
                TemplatePiece::Literal(source) | TemplatePiece::Field { source, .. } => (*source).to_owned(),
            };
            prop_assert_eq!(split_placeholders(&text).iter().map(source).collect::<String>(), text);
        }

        #[test]
        fn the_scanner_agrees_with_the_regular_expression(text in "[{} a\\n\u{1c}é]{0,24}") {
            let pattern = regex::Regex::new(r"\{\{[\s\x1c-\x1f]*([^}]+?)[\s\x1c-\x1f]*\}\}").unwrap();
            let expected = pattern.replace_all(&text, |found: &regex::Captures<'_>| {
                let name = found[1].trim_matches(is_space);
                if name.is_empty() { found[0].to_owned() } else { format!("<{name}>") }
            });
            prop_assert_eq!(shape(&text), expected);
        }
    }
}
