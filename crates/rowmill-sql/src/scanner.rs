//! A look at the text of a query before SQLite sees it: what it begins with, and where it ends.

/// What a query text looks like.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The first word, in upper case.
    pub(crate) first_word: String,
    /// Where a second statement begins.
    pub(crate) second: Option<usize>,
    /// Where a bracket is closed that was never opened.
    pub(crate) unopened: Option<usize>,
    /// Where the `;` that ends the first statement stands.
    pub(crate) end: Option<usize>,
}

/// Looks at a query: quotes and comments are passed over as SQLite does.
pub(crate) fn shape(sql: &str) -> Shape {
    let mut shape = Shape::default();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = sql.get(at..).filter(|rest| !rest.is_empty()) {
        let (token, length) = token(rest);
        match token {
            Token::Space => {}
            Token::Other(';') => shape.end = shape.end.or(Some(at)),
            _ if shape.end.is_some() => {
                shape.second = shape.second.or(Some(at));
                break;
            }
            Token::Word if shape.first_word.is_empty() => {
                shape.first_word = rest.get(..length).unwrap_or_default().to_ascii_uppercase();
            }
            Token::Other('(') => depth += 1,
            Token::Other(')') if depth == 0 => shape.unopened = shape.unopened.or(Some(at)),
            Token::Other(')') => depth -= 1,
            Token::Word | Token::Quoted | Token::Other(_) => {}
        }
        if shape.first_word.is_empty() && !matches!(token, Token::Space | Token::Other('(')) {
            shape.first_word = rest.get(..length).unwrap_or_default().to_owned();
        }
        at += length;
    }
    shape
}

enum Token {
    /// Blanks and comments.
    Space,
    Word,
    /// A string or a quoted name.
    Quoted,
    Other(char),
}

/// The token that a text begins with, and how long it is.
fn token(text: &str) -> (Token, usize) {
    let first = text.chars().next().unwrap_or(' ');
    let until = |end: &str| text.find(end).map_or(text.len(), |found| found + end.len());
    let run = |fits: fn(char) -> bool| text.find(|character| !fits(character)).unwrap_or(text.len());
    match first {
        _ if text.starts_with("--") => (Token::Space, until("\n")),
        _ if text.starts_with("/*") => (Token::Space, until("*/")),
        '\'' | '"' | '`' => (Token::Quoted, quoted(text, first)),
        '[' => (Token::Quoted, until("]")),
        _ if first.is_whitespace() || first == '\u{feff}' => (Token::Space, first.len_utf8()),
        _ if is_word(first) => (Token::Word, run(is_word)),
        _ => (Token::Other(first), first.len_utf8()),
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

/// The length of a quoted text; a doubled quote stands for itself.
fn quoted(text: &str, quote: char) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character == quote {
            match characters.peek() {
                Some((_, next)) if *next == quote => {
                    characters.next();
                }
                _ => return at + character.len_utf8(),
            }
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_found_behind_comments_and_brackets() {
        for (sql, word) in [
            ("select 1", "SELECT"),
            ("  -- so\n/* and ; so */ With x as (select 1) select 2", "WITH"),
            ("(select 1)", "SELECT"),
            ("'select'", "'select'"),
            ("", ""),
            ("; select", ";"),
        ] {
            assert_eq!(shape(sql).first_word, word, "{sql}");
        }
    }

    #[test]
    fn only_a_second_statement_is_one() {
        for (sql, second) in [
            ("select 1;", None),
            ("select 1; -- end", None),
            ("select 1;; /* end */ ;", None),
            ("select ';', \"a;b\", [c;d], `e;f`, 'it''s;'", None),
            ("select 1; delete from input", Some(10)),
            ("select 1 -- a;\n; values (1)", Some(17)),
        ] {
            assert_eq!(shape(sql).second, second, "{sql}");
        }
    }

    #[test]
    fn a_bracket_that_was_never_opened_is_found() {
        assert_eq!(shape("a = 1) or (b = 2").unopened, Some(5));
        assert_eq!(shape("a in (1, ')') and (b)").unopened, None);
    }
}
