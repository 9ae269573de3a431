//! Text functions. Positions count characters from 1.

use super::catalog::{BoundFunction, FunctionCall};
use super::fixed_types::FixedTypeFunction;
use super::text_parts::{TextSide, left, pad, position, right, split_part, split_text, substring};
use crate::expression::coerce::{adapt_argument, cast_to};
use crate::expression::refusal::BindResult;
use crate::expression::typed::{EvaluatedArguments, TypedExpression};
use crate::values::cast::{CastMode, to_text};
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType::{self, BigInt, Boolean, Integer, Varchar};

pub(super) type ComputeResult = Result<Datum, String>;

pub(super) const PLAIN: &[FixedTypeFunction] = &[
    FixedTypeFunction {
        names: &["lower", "lcase"],
        parameters: &[Varchar],
        result: Varchar,
        compute: |a| text(lower_case(text_argument(a, 0))),
    },
    FixedTypeFunction {
        names: &["upper", "ucase"],
        parameters: &[Varchar],
        result: Varchar,
        compute: |a| text(upper(text_argument(a, 0))),
    },
    FixedTypeFunction {
        names: &["strlen"],
        parameters: &[Varchar],
        result: BigInt,
        compute: |a| count_result(text_argument(a, 0).len()),
    },
    FixedTypeFunction { names: &["reverse"], parameters: &[Varchar], result: Varchar, compute: reverse },
    FixedTypeFunction {
        names: &["repeat"],
        parameters: &[Varchar, BigInt],
        result: Varchar,
        compute: repeat,
    },
    FixedTypeFunction { names: &["left"], parameters: &[Varchar, BigInt], result: Varchar, compute: left },
    FixedTypeFunction { names: &["right"], parameters: &[Varchar, BigInt], result: Varchar, compute: right },
    FixedTypeFunction {
        names: &["lpad"],
        parameters: &[Varchar, Integer, Varchar],
        result: Varchar,
        compute: |a| pad(a, TextSide::Left),
    },
    FixedTypeFunction {
        names: &["rpad"],
        parameters: &[Varchar, Integer, Varchar],
        result: Varchar,
        compute: |a| pad(a, TextSide::Right),
    },
    FixedTypeFunction {
        names: &["substr", "substring"],
        parameters: &[Varchar, BigInt],
        result: Varchar,
        compute: |a| text(substring(text_argument(a, 0), number(a, 1), i64::MAX)),
    },
    FixedTypeFunction {
        names: &["substr", "substring"],
        parameters: &[Varchar, BigInt, BigInt],
        result: Varchar,
        compute: |a| text(substring(text_argument(a, 0), number(a, 1), number(a, 2))),
    },
    FixedTypeFunction {
        names: &["starts_with", "prefix"],
        parameters: &[Varchar, Varchar],
        result: Boolean,
        compute: |a| boolean_result(text_argument(a, 0).starts_with(text_argument(a, 1))),
    },
    FixedTypeFunction {
        names: &["ends_with", "suffix"],
        parameters: &[Varchar, Varchar],
        result: Boolean,
        compute: |a| boolean_result(text_argument(a, 0).ends_with(text_argument(a, 1))),
    },
    FixedTypeFunction {
        names: &["strpos", "instr", "position"],
        parameters: &[Varchar, Varchar],
        result: BigInt,
        compute: position,
    },
    FixedTypeFunction {
        names: &["split_part"],
        parameters: &[Varchar, Varchar, BigInt],
        result: Varchar,
        compute: split_part,
    },
    FixedTypeFunction {
        names: &["replace"],
        parameters: &[Varchar, Varchar, Varchar],
        result: Varchar,
        compute: replace,
    },
    FixedTypeFunction {
        names: &["trim"],
        parameters: &[Varchar],
        result: Varchar,
        compute: |a| text(text_argument(a, 0).trim_matches(is_space)),
    },
    FixedTypeFunction {
        names: &["ltrim"],
        parameters: &[Varchar],
        result: Varchar,
        compute: |a| text(text_argument(a, 0).trim_start_matches(is_space)),
    },
    FixedTypeFunction {
        names: &["rtrim"],
        parameters: &[Varchar],
        result: Varchar,
        compute: |a| text(text_argument(a, 0).trim_end_matches(is_space)),
    },
    FixedTypeFunction {
        names: &["trim"],
        parameters: &[Varchar, Varchar],
        result: Varchar,
        compute: |a| text(text_argument(a, 0).trim_matches(|c| text_argument(a, 1).contains(c))),
    },
    FixedTypeFunction {
        names: &["ltrim"],
        parameters: &[Varchar, Varchar],
        result: Varchar,
        compute: |a| text(text_argument(a, 0).trim_start_matches(|c| text_argument(a, 1).contains(c))),
    },
    FixedTypeFunction {
        names: &["rtrim"],
        parameters: &[Varchar, Varchar],
        result: Varchar,
        compute: |a| text(text_argument(a, 0).trim_end_matches(|c| text_argument(a, 1).contains(c))),
    },
    FixedTypeFunction {
        names: &["ascii"],
        parameters: &[Varchar],
        result: Integer,
        compute: |a| code(text_argument(a, 0), 0),
    },
    FixedTypeFunction {
        names: &["unicode", "ord"],
        parameters: &[Varchar],
        result: Integer,
        compute: |a| code(text_argument(a, 0), -1),
    },
    FixedTypeFunction { names: &["chr"], parameters: &[Integer], result: Varchar, compute: character },
];

pub(super) const FUNCTIONS: &[BoundFunction] = &[
    BoundFunction { names: &["length", "len", "char_length", "character_length"], bind: length },
    BoundFunction { names: &["contains"], bind: contains },
    BoundFunction { names: &["string_split", "str_split", "split", "string_to_array"], bind: split },
    BoundFunction { names: &["concat"], bind: concat },
    BoundFunction { names: &["concat_ws"], bind: concat_with },
];

/// An argument that is text.
pub(super) fn text_argument<'a>(arguments: EvaluatedArguments<'a, '_>, at: usize) -> &'a str {
    arguments.get(at).and_then(|datum| datum.as_text()).unwrap_or_default()
}

/// An argument that is an integer.
pub(super) fn number(arguments: EvaluatedArguments<'_, '_>, at: usize) -> i64 {
    let found = arguments.get(at).and_then(|datum| datum.as_whole()).unwrap_or_default();
    i64::try_from(found).unwrap_or(if found < 0 { i64::MIN } else { i64::MAX })
}

pub(super) fn text(text: impl Into<String>) -> ComputeResult {
    Ok(Datum::Text(text.into()))
}

pub(super) fn boolean_result(truth: bool) -> ComputeResult {
    Ok(Datum::Boolean(truth))
}

pub(super) fn count_result(count: usize) -> ComputeResult {
    Ok(Datum::Whole(i128::try_from(count).unwrap_or(i128::MAX)))
}

/// Lower case letter by letter, as in DuckDB: the number of letters does not change.
pub(crate) fn lower_case(text: &str) -> String {
    let letter = |letter: char| {
        let mut lower = letter.to_lowercase();
        match (lower.next(), lower.next()) {
            (Some(one), None) => one,
            _ if letter == 'İ' => 'i',
            _ => letter,
        }
    };
    text.chars().map(letter).collect()
}

fn upper(text: &str) -> String {
    let letter = |letter: char| {
        let mut upper = letter.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(one), None) => one,
            _ if letter == 'ß' => 'ẞ',
            _ => letter,
        }
    };
    text.chars().map(letter).collect()
}

fn is_space(letter: char) -> bool {
    letter == ' '
        || matches!(
            letter,
            '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
        )
}

/// Reverses text. Letters that consist of several characters would be split.
fn reverse(arguments: EvaluatedArguments<'_, '_>) -> ComputeResult {
    let found = text_argument(arguments, 0);
    let is_combined = |letter: char| {
        matches!(letter, '\u{300}'..='\u{36f}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{590}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{1cff}' | '\u{20d0}'..='\u{20ff}')
            || letter == '\r'
    };
    if found.chars().any(is_combined) {
        return Err("text with letters that consist of several characters cannot be reversed".to_owned());
    }
    text(found.chars().rev().collect::<String>())
}

fn repeat(arguments: EvaluatedArguments<'_, '_>) -> ComputeResult {
    let found = text_argument(arguments, 0);
    let count = usize::try_from(number(arguments, 1)).unwrap_or(0);
    match found.len().checked_mul(count) {
        Some(length) if length <= MOST_BYTES => text(found.repeat(count)),
        _ => Err(TOO_LONG.to_owned()),
    }
}

/// The maximum length of a computed text.
pub(super) const MOST_BYTES: usize = 1 << 28;
pub(super) const TOO_LONG: &str = "the text would become longer than 256 MiB";

fn replace(arguments: EvaluatedArguments<'_, '_>) -> ComputeResult {
    let (found, from) = (text_argument(arguments, 0), text_argument(arguments, 1));
    text(if from.is_empty() { found.to_owned() } else { found.replace(from, text_argument(arguments, 2)) })
}

/// The code of the first character, or `of_nothing` for empty text.
fn code(text: &str, of_nothing: i128) -> ComputeResult {
    Ok(Datum::Whole(text.chars().next().map_or(of_nothing, |letter| i128::from(u32::from(letter)))))
}

fn character(arguments: EvaluatedArguments<'_, '_>) -> ComputeResult {
    let code = u32::try_from(number(arguments, 0)).ok();
    let letter = code
        .and_then(char::from_u32)
        .ok_or_else(|| format!("there is no character {}", number(arguments, 0)))?;
    text(letter)
}

fn length(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [argument] = call.exact_arguments()?;
    if matches!(argument.kind, SqlType::List(_)) {
        let count = |arguments: EvaluatedArguments<'_, '_>| match arguments.first().map(|datum| &**datum) {
            Some(Datum::List(items)) => count_result(items.len()),
            _ => Ok(Datum::Null),
        };
        return Ok(TypedExpression::call(count, vec![argument], BigInt, call.place));
    }
    let text = adapt_argument(argument, &Varchar)
        .ok_or_else(|| call.wrong_types("write `length(CAST(x AS VARCHAR))`"))??;
    Ok(TypedExpression::call(
        |a| count_result(text_argument(a, 0).chars().count()),
        vec![text],
        BigInt,
        call.place,
    ))
}

fn contains(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [found, part] = call.exact_arguments()?;
    if matches!(found.kind, SqlType::List(_)) {
        return super::lists::list_contains(call);
    }
    let wrong = || call.wrong_types("it looks for text in text, or for an element in a list");
    let found = adapt_argument(found, &Varchar).ok_or_else(wrong)??;
    let part = adapt_argument(part, &Varchar).ok_or_else(wrong)??;
    Ok(TypedExpression::call(
        |a| boolean_result(text_argument(a, 0).contains(text_argument(a, 1))),
        vec![found, part],
        Boolean,
        call.place,
    ))
}

fn split(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [found, separator] = call.exact_arguments()?;
    let wrong = || call.wrong_types("it splits text at a separator text");
    let found = adapt_argument(found, &Varchar).ok_or_else(wrong)??;
    let separator = adapt_argument(separator, &Varchar).ok_or_else(wrong)??;
    let parts = |a: EvaluatedArguments<'_, '_>| {
        let parts = split_text(text_argument(a, 0), text_argument(a, 1)).into_iter();
        Ok(Datum::List(parts.map(|part| Datum::Text(part.to_owned())).collect()))
    };
    Ok(TypedExpression::call(parts, vec![found, separator], SqlType::List(Box::new(Varchar)), call.place))
}

/// Arguments of any type, as text.
fn texts(call: &FunctionCall) -> BindResult<Vec<TypedExpression>> {
    call.arguments.iter().map(|argument| cast_to(argument.clone(), &Varchar, CastMode::Fail)).collect()
}

fn concat(call: &FunctionCall) -> BindResult<TypedExpression> {
    if call.arguments.is_empty() || call.arguments.iter().any(|argument| argument.kind.is_nested()) {
        return Err(call.wrong_types("it joins text; `list_concat(a, b)` joins lists"));
    }
    let joined = |arguments: EvaluatedArguments<'_, '_>| {
        let parts = arguments.iter().filter_map(|datum| to_text(datum, &Varchar));
        Ok(Datum::Text(parts.collect()))
    };
    Ok(TypedExpression::call_with_nulls(joined, texts(call)?, Varchar, call.place))
}

fn concat_with(call: &FunctionCall) -> BindResult<TypedExpression> {
    if call.arguments.len() < 2 {
        return Err(call.wrong_count("at least 2"));
    }
    let joined = |arguments: EvaluatedArguments<'_, '_>| {
        let Some(separator) = arguments.first().and_then(|datum| datum.as_text()) else {
            return Ok(Datum::Null);
        };
        let parts: Vec<_> = arguments.iter().skip(1).filter_map(|datum| datum.as_text()).collect();
        Ok(Datum::Text(parts.join(separator)))
    };
    Ok(TypedExpression::call_with_nulls(joined, texts(call)?, Varchar, call.place))
}
