//! Parses the text of a query.

use sqlparser::ast::{Expr, SetExpr, Statement};
use sqlparser::dialect::DuckDbDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::QueryBinder;
use super::outputs::{BoundQuery, QueryPurpose};
use crate::expression::coerce::as_condition;
use crate::expression::emit::EmittedSql;
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::table::NamedTable;

/// The maximum nesting of brackets.
const DEPTH: usize = 60;

/// Binds a query.
pub(crate) fn bind_sql(text: &str, tables: &[NamedTable]) -> BindResult<(BoundQuery, EmittedSql)> {
    let mut parser = parser(text)?;
    let statement = parser.parse_statement().map_err(|error| refusal(&error, text))?;
    while parser.consume_token(&Token::SemiColon) {}
    let behind = parser.peek_token();
    if behind.token != Token::EOF {
        let hint = "write one query that starts with `SELECT`, `WITH` or `FROM`";
        return Err(QueryRefusal::new("there is text after the query", behind.span).hint(hint));
    }
    let query = match statement {
        Statement::Query(query) => query,
        _ => {
            return Err(QueryRefusal::new("it must be exactly one `SELECT`", QueryPosition::default())
                .hint("write one query that starts with `SELECT`, `WITH` or `FROM`; it can only read"));
        }
    };
    if let SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) = &*query.body {
        return Err(QueryRefusal::new("a query may only read", QueryPosition::default()));
    }
    let mut binder = QueryBinder::new(tables);
    let bound = binder.bind_query(&query, None, &QueryPurpose::Result)?;
    Ok((bound, binder.emitted))
}

/// Binds a condition over the rows of a table; the query returns a row for each row that satisfies it.
pub(crate) fn bind_condition(
    text: &str,
    rows: &NamedTable,
    tables: &[NamedTable],
) -> BindResult<(BoundQuery, EmittedSql)> {
    let mut parser = parser(text)?;
    let expression: Expr = parser.parse_expr().map_err(|error| refusal(&error, text))?;
    let behind = parser.peek_token();
    if behind.token != Token::EOF {
        let hint = "write what would follow `WHERE`, such as `split = 'eval' AND score > 0.5`";
        return Err(QueryRefusal::new("it must be exactly one condition", behind.span).hint(hint));
    }
    let mut binder = QueryBinder::new(tables);
    let (scope, from) = binder.rows_scope(rows);
    let bound = binder.bind_expression(&expression, &scope).and_then(as_condition)?;
    let sql = binder.emitted.expression_sql(&bound)?;
    let sql = format!("SELECT 1 AS c0 FROM {from} WHERE {sql}");
    Ok((BoundQuery { sql, columns: Vec::new(), is_single_row: false }, binder.emitted))
}

fn parser(text: &str) -> BindResult<Parser<'static>> {
    const DIALECT: DuckDbDialect = DuckDbDialect {};
    if let Some(at) = text.find('\0') {
        let place = QueryPosition(location(text, at));
        return Err(QueryRefusal::new("it contains a NUL character", place));
    }
    let tokens = Tokenizer::new(&DIALECT, text)
        .tokenize_with_location()
        .map_err(|error| QueryRefusal::new(error.message, QueryPosition(Some(error.location))))?;
    let placeholder = tokens.iter().find(|token| matches!(token.token, Token::Placeholder(_)));
    if let Some(token) = placeholder {
        return Err(QueryRefusal::new("it has placeholders, such as `?`", token.span)
            .hint("write the values into the query"));
    }
    let parser = Parser::new(&DIALECT).with_recursion_limit(DEPTH);
    Ok(parser.with_tokens_with_locations(bracket_cases(tokens)))
}

/// Puts `CASE … END` into brackets if `->` follows. Otherwise the parser would take the last name in it together
/// with `END` for the parameter of a lambda.
fn bracket_cases(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut bracketed: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let (mut cases, mut ended) = (Vec::new(), None);
    for token in tokens {
        let keyword = match &token.token {
            Token::Word(word) => word.keyword,
            _ => Keyword::NoKeyword,
        };
        match (&token.token, keyword) {
            (Token::Whitespace(_), _) => {}
            (Token::Arrow, _) => {
                if let Some((begin, end, span)) = ended.take() {
                    bracketed.insert(end, TokenWithSpan::new(Token::RParen, span));
                    bracketed.insert(begin, TokenWithSpan::new(Token::LParen, span));
                }
            }
            (_, Keyword::END) => {
                ended = cases.pop().map(|begin| (begin, bracketed.len() + 1, token.span));
            }
            (_, keyword) => {
                ended = None;
                if keyword == Keyword::CASE {
                    cases.push(bracketed.len());
                }
            }
        }
        bracketed.push(token);
    }
    bracketed
}

fn location(text: &str, at: usize) -> Option<Location> {
    let before = text.get(..at)?;
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next()?.chars().count() + 1;
    Some(Location { line: u64::try_from(line).ok()?, column: u64::try_from(column).ok()? })
}

/// The refusal for a parser error, whose message ends with the position.
fn refusal(error: &ParserError, text: &str) -> QueryRefusal {
    let message = match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message.clone(),
        ParserError::RecursionLimitExceeded => {
            return QueryRefusal::new("parentheses are nested too deeply", QueryPosition::default());
        }
    };
    let (what, place) = match message.split_once(" at Line: ") {
        Some((what, place)) => (what.to_owned(), place_in(place)),
        None => (message, QueryPosition::default()),
    };
    let what = what.replace("Expected: ", "expected ").replace(", found: ", ", found `");
    let what = if what.contains(", found `") { format!("{what}`") } else { what };
    let what = what.replace("`EOF`", "the end");
    let place =
        if what.ends_with("the end") { QueryPosition(location(text, text.trim_end().len())) } else { place };
    QueryRefusal::new(what, place)
}

fn place_in(text: &str) -> QueryPosition {
    let numbers = text.split(", Column: ").map(|number| number.trim().parse().ok());
    let mut numbers = numbers.collect::<Option<Vec<u64>>>().unwrap_or_default().into_iter();
    QueryPosition(numbers.next().zip(numbers.next()).map(|(line, column)| Location { line, column }))
}
