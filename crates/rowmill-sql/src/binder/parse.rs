//! Parses the text of a query.

use sqlparser::ast::{Expr, SetExpr, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::QueryBinder;
use super::dialect::QueryDialect;
use super::outputs::{BoundQuery, QueryPurpose};
use super::parse_refusals::{location, parse_refusal};
use crate::expression::coerce::as_condition;
use crate::expression::emit::EmittedSql;
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::table::NamedTable;

/// The maximum nesting of brackets.
const DEPTH: usize = 60;

/// Binds a query.
pub(crate) fn bind_sql(text: &str, tables: &[NamedTable]) -> BindResult<(BoundQuery, EmittedSql)> {
    let mut parser = parser(text)?;
    let statement = parser.parse_statement().map_err(|error| parse_refusal(&error, text))?;
    while parser.consume_token(&Token::SemiColon) {}
    let behind = parser.peek_token();
    if behind.token != Token::EOF {
        return Err(text_after_query(&behind));
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
    let expression: Expr = parser.parse_expr().map_err(|error| parse_refusal(&error, text))?;
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
    const DIALECT: QueryDialect = QueryDialect;
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
    Ok(parser.with_tokens_with_locations(with_filter_conditions(bracket_cases(tokens))))
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

/// The refusal for what follows a query: a second one, or a word that the parser does not know at this place.
fn text_after_query(behind: &TokenWithSpan) -> QueryRefusal {
    let hint = "write one query that starts with `SELECT`, `WITH` or `FROM`";
    if is_keyword(&behind.token, Keyword::EXCLUDE)
        || is_keyword(&behind.token, Keyword::REPLACE)
        || is_keyword(&behind.token, Keyword::RENAME)
    {
        let hint = "write them in this order: `* EXCLUDE (a) REPLACE (b + 1 AS b) RENAME (c AS d)`";
        return QueryRefusal::new(format!("`{}` is not expected here", behind.token), behind.span).hint(hint);
    }
    QueryRefusal::new("there is text after the query", behind.span).hint(hint)
}

/// Adds the `WHERE` that DuckDB lets one leave out of `count(*) FILTER (x > 1)`, and that the parser needs.
fn with_filter_conditions(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut added = Vec::with_capacity(tokens.len());
    // The last three tokens that are no whitespace: `) FILTER (` precedes a condition.
    let mut last = [Token::EOF, Token::EOF, Token::EOF];
    for token in tokens {
        if !matches!(token.token, Token::Whitespace(_)) {
            let [before, filter, bracket] = last;
            let is_condition = before == Token::RParen
                && is_keyword(&filter, Keyword::FILTER)
                && bracket == Token::LParen
                && !is_keyword(&token.token, Keyword::WHERE);
            if is_condition {
                added.push(TokenWithSpan { token: Token::make_keyword("WHERE"), span: token.span });
            }
            last = [filter, bracket, token.token.clone()];
        }
        added.push(token);
    }
    added
}

fn is_keyword(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.keyword == keyword)
}
