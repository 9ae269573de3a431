//! Binds expressions.

use sqlparser::ast::{
    BinaryOperator, CastKind, DateTimeField, Expr, Ident, LambdaFunction, OneOrManyWithParens, Spanned as _,
    UnaryOperator, Value,
};

use super::QueryBinder;
use super::data_types::sql_type;
use super::intervals_and_structs::at_utc;
use super::literals::bind_literal;
use super::outputs::QueryPurpose;
use super::scope::NameScope;
use crate::expression::coerce::{
    as_condition, bind_comparison, cast_to, comparison_type_of_all, fold_constant,
};
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::{ComparisonKind, ExpressionNode, TypedExpression};
use crate::scalars::{
    ArithmeticOperator, PatternCase, bind_arithmetic, bind_case, bind_concatenation, bind_extract,
    bind_full_match, bind_json_path, bind_like, bind_list, bind_negation,
};
use crate::values::cast::CastMode;
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType;

impl QueryBinder<'_> {
    /// Binds an expression. In a grouped query, the grouping expressions can be used as a whole.
    pub(super) fn bind_expression(
        &mut self,
        expression: &Expr,
        scope: &NameScope<'_>,
    ) -> BindResult<TypedExpression> {
        if let Some(keys) = &scope.groups
            && keys.written.contains(&expression.to_string())
        {
            return self.bind_inner(expression, &scope.ungrouped(scope.clause));
        }
        self.bind_inner(expression, scope)
    }

    fn bind_inner(&mut self, expression: &Expr, scope: &NameScope<'_>) -> BindResult<TypedExpression> {
        let place = QueryPosition::from(expression.span());
        match expression {
            Expr::Identifier(name) => self.bind_name(std::slice::from_ref(name), scope),
            Expr::CompoundIdentifier(parts) => self.bind_name(parts, scope),
            Expr::CompoundFieldAccess { root, access_chain } => self.bind_access(root, access_chain, scope),
            Expr::Nested(inner) => self.bind_expression(inner, scope),
            Expr::Value(value) => bind_literal(value),
            Expr::TypedString(typed) => {
                let text = bind_literal(&typed.value)?;
                let kind = sql_type(&typed.data_type, place)?;
                cast_to(text, &kind, CastMode::Fail)
            }
            Expr::BinaryOp { left, op, right } => self.bind_binary([left, right], op, scope),
            Expr::UnaryOp { op, expr } => self.bind_unary(op, expr, scope),
            Expr::Cast { kind, expr, data_type, format: None } => {
                let value = self.bind_expression(expr, scope)?;
                let wanted = sql_type(data_type, value.place)?;
                let mode = match kind {
                    CastKind::TryCast | CastKind::SafeCast => CastMode::GiveNull,
                    CastKind::Cast | CastKind::DoubleColon => CastMode::Fail,
                };
                cast_to(value, &wanted, mode)
            }
            Expr::Function(function) => self.bind_call(function, scope),
            // The parser reads `column -> '$.a'` as a lambda function.
            Expr::Lambda(LambdaFunction { params: OneOrManyWithParens::One(column), body, .. }) => {
                let found = self.bind_name(std::slice::from_ref(&column.name), scope)?;
                let path = self.bind_expression(body, scope)?;
                bind_json_path(found, &path, SqlType::Json, place)
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                self.bind_case(operand.as_deref(), conditions, else_result.as_deref(), scope)
            }
            Expr::Array(array) => {
                let values = array.elem.iter().map(|value| self.bind_expression(value, scope));
                bind_list(values.collect::<BindResult<_>>()?, place)
            }
            Expr::Dictionary(fields) => self.bind_object(fields, scope, place),
            Expr::Interval(interval) => self.bind_interval(interval, scope, place),
            Expr::Subquery(query) => self.bind_scalar_query(query, scope, place),
            Expr::Exists { subquery, negated } => {
                let bound = self.bind_query(subquery, Some(scope), &QueryPurpose::Table)?;
                let found = TypedExpression::leaf(format!("EXISTS ({})", bound.sql), SqlType::Boolean, place);
                Ok(if *negated { found.not() } else { found })
            }
            Expr::InSubquery { expr, subquery, negated } => {
                let found = self.bind_in_query(expr, subquery, scope)?;
                Ok(if *negated { found.not() } else { found })
            }
            other => self.bind_test(other, scope, place),
        }
    }

    /// Binds predicates: `IS NULL`, `IN`, `BETWEEN`, `LIKE` and the like; and functions with special syntax.
    fn bind_test(
        &mut self,
        expression: &Expr,
        scope: &NameScope<'_>,
        place: QueryPosition,
    ) -> BindResult<TypedExpression> {
        let negate = |typed: TypedExpression, negated: bool| if negated { typed.not() } else { typed };
        match expression {
            Expr::IsNull(inner) | Expr::IsUnknown(inner) => self.bind_is_null(inner, scope, place),
            Expr::IsNotNull(inner) | Expr::IsNotUnknown(inner) => {
                Ok(self.bind_is_null(inner, scope, place)?.not())
            }
            Expr::IsTrue(inner) => self.bind_is(inner, true, ComparisonKind::NotDistinct, scope),
            Expr::IsNotTrue(inner) => self.bind_is(inner, true, ComparisonKind::Distinct, scope),
            Expr::IsFalse(inner) => self.bind_is(inner, false, ComparisonKind::NotDistinct, scope),
            Expr::IsNotFalse(inner) => self.bind_is(inner, false, ComparisonKind::Distinct, scope),
            Expr::IsDistinctFrom(left, right) => {
                self.bind_comparison(ComparisonKind::Distinct, [left, right], scope)
            }
            Expr::IsNotDistinctFrom(left, right) => {
                self.bind_comparison(ComparisonKind::NotDistinct, [left, right], scope)
            }
            Expr::InList { expr, list, negated } => {
                Ok(negate(self.bind_in_list(expr, list, scope, place)?, *negated))
            }
            Expr::Between { expr, negated, low, high } => {
                let value = self.bind_expression(expr, scope)?;
                let bounds = [self.bind_expression(low, scope)?, self.bind_expression(high, scope)?];
                Ok(negate(between(value, bounds, place)?, *negated))
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                let operands = [self.bind_expression(expr, scope)?, self.bind_expression(pattern, scope)?];
                let escape = self.bind_escape(escape_char.as_deref(), scope)?;
                Ok(negate(bind_like(operands, PatternCase::Kept, escape, place)?, *negated))
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char } => {
                let operands = [self.bind_expression(expr, scope)?, self.bind_expression(pattern, scope)?];
                let escape = self.bind_escape(escape_char.as_deref(), scope)?;
                Ok(negate(bind_like(operands, PatternCase::Ignored, escape, place)?, *negated))
            }
            Expr::SimilarTo { negated, expr, pattern, escape_char: None } => {
                let (text, pattern) =
                    (self.bind_expression(expr, scope)?, self.bind_expression(pattern, scope)?);
                Ok(negate(bind_full_match(text, &pattern, place)?, *negated))
            }
            Expr::Extract { field, expr, .. } => {
                let part = match field {
                    DateTimeField::Custom(name) => name.value.clone(),
                    other => other.to_string(),
                };
                let value = self.bind_expression(expr, scope)?;
                bind_extract(part.trim_matches('\''), value, place)
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                let (value, zone) =
                    (self.bind_expression(timestamp, scope)?, self.bind_expression(time_zone, scope)?);
                at_utc(value, &zone, place)
            }
            other => self.bind_special_call(other, scope, place),
        }
    }

    fn bind_binary(
        &mut self,
        operands: [&Expr; 2],
        operator: &BinaryOperator,
        scope: &NameScope<'_>,
    ) -> BindResult<TypedExpression> {
        use BinaryOperator as B;
        let place = QueryPosition::from(operands[0].span());
        let compare = match operator {
            B::Eq => Some(ComparisonKind::Equal),
            B::NotEq => Some(ComparisonKind::NotEqual),
            B::Lt => Some(ComparisonKind::Less),
            B::LtEq => Some(ComparisonKind::AtMost),
            B::Gt => Some(ComparisonKind::Greater),
            B::GtEq => Some(ComparisonKind::AtLeast),
            _ => None,
        };
        if let Some(compare) = compare {
            return self.bind_comparison(compare, operands, scope);
        }
        let operation = match operator {
            B::Plus => Some(ArithmeticOperator::Add),
            B::Minus => Some(ArithmeticOperator::Subtract),
            B::Multiply => Some(ArithmeticOperator::Multiply),
            B::Divide => Some(ArithmeticOperator::Divide),
            B::DuckIntegerDivide => Some(ArithmeticOperator::DivideWhole),
            B::Modulo => Some(ArithmeticOperator::Remainder),
            B::BitwiseXor | B::PGExp => Some(ArithmeticOperator::Power),
            _ => None,
        };
        let [left, right] = operands;
        let (left, right) = (self.bind_expression(left, scope)?, self.bind_expression(right, scope)?);
        if let Some(operation) = operation {
            return bind_arithmetic(operation, left, right, place);
        }
        match operator {
            B::And => Ok(joined([left, right], ExpressionNode::And, place)?),
            B::Or => Ok(joined([left, right], ExpressionNode::Or, place)?),
            B::StringConcat => bind_concatenation(left, right, place),
            B::Arrow => bind_json_path(left, &right, SqlType::Json, place),
            B::LongArrow => bind_json_path(left, &right, SqlType::Varchar, place),
            B::PGRegexMatch | B::PGRegexNotMatch => {
                let message = format!("`{operator}` has different meanings in different versions of DuckDB");
                let other = "`regexp_full_match` matches the whole text";
                Err(QueryRefusal::new(message, place)
                    .hint(format!("`regexp_matches(x, pattern)` searches anywhere in a text, {other}")))
            }
            other => Err(QueryRefusal::new(format!("the operator `{other}` is not supported"), place)
                .hint("see `docs/sql.md` for all operators")),
        }
    }

    fn bind_comparison(
        &mut self,
        operator: ComparisonKind,
        operands: [&Expr; 2],
        scope: &NameScope<'_>,
    ) -> BindResult<TypedExpression> {
        let [left, right] = operands;
        let place = QueryPosition::from(left.span());
        if is_comparison(left) || is_comparison(right) {
            return Err(QueryRefusal::new("comparisons cannot be chained", place)
                .hint("combine them with `AND`, or put one in parentheses"));
        }
        if matches!(right, Expr::UnaryOp { op: UnaryOperator::Not, .. }) {
            let place = QueryPosition::from(right.span());
            return Err(
                QueryRefusal::new("`NOT` must be in parentheses here", place).hint("write `a = (NOT b)`")
            );
        }
        let (left, right) = (self.bind_expression(left, scope)?, self.bind_expression(right, scope)?);
        bind_comparison(operator, left, right, place)
    }

    fn bind_unary(
        &mut self,
        operator: &UnaryOperator,
        operand: &Expr,
        scope: &NameScope<'_>,
    ) -> BindResult<TypedExpression> {
        let value = self.bind_expression(operand, scope)?;
        let place = value.place;
        match operator {
            UnaryOperator::Minus => bind_negation(value, place),
            UnaryOperator::Plus if value.kind.is_number() => Ok(value),
            UnaryOperator::Not | UnaryOperator::BangNot => fold_constant(as_condition(value)?.not()),
            other => Err(QueryRefusal::new(format!("the operator `{other}` is not supported"), place)),
        }
    }

    fn bind_is_null(
        &mut self,
        inner: &Expr,
        scope: &NameScope<'_>,
        place: QueryPosition,
    ) -> BindResult<TypedExpression> {
        let value = self.bind_expression(inner, scope)?;
        fold_constant(TypedExpression {
            node: ExpressionNode::IsNull(Box::new(value)),
            kind: SqlType::Boolean,
            place,
        })
    }

    fn bind_is(
        &mut self,
        inner: &Expr,
        truth: bool,
        operator: ComparisonKind,
        scope: &NameScope<'_>,
    ) -> BindResult<TypedExpression> {
        let value = as_condition(self.bind_expression(inner, scope)?)?;
        let place = value.place;
        let truth = TypedExpression::constant(Datum::Boolean(truth), SqlType::Boolean, place);
        bind_comparison(operator, value, truth, place)
    }

    fn bind_in_list(
        &mut self,
        value: &Expr,
        list: &[Expr],
        scope: &NameScope<'_>,
        place: QueryPosition,
    ) -> BindResult<TypedExpression> {
        let value = self.bind_expression(value, scope)?;
        let items: Vec<_> =
            list.iter().map(|item| self.bind_expression(item, scope)).collect::<BindResult<_>>()?;
        let kind = comparison_type_of_all(&value, &items.iter().collect::<Vec<_>>())?;
        let value = cast_to(value, &kind, CastMode::Fail)?;
        let items =
            items.into_iter().map(|item| cast_to(item, &kind, CastMode::Fail)).collect::<BindResult<_>>()?;
        fold_constant(TypedExpression {
            node: ExpressionNode::In(Box::new(value), items),
            kind: SqlType::Boolean,
            place,
        })
    }

    fn bind_case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[sqlparser::ast::CaseWhen],
        otherwise: Option<&Expr>,
        scope: &NameScope<'_>,
    ) -> BindResult<TypedExpression> {
        let mut branches = Vec::new();
        for branch in conditions {
            let test = match operand {
                Some(operand) => {
                    self.bind_comparison(ComparisonKind::Equal, [operand, &branch.condition], scope)?
                }
                None => self.bind_expression(&branch.condition, scope)?,
            };
            branches.push((test, self.bind_expression(&branch.result, scope)?));
        }
        let otherwise = otherwise.map(|result| self.bind_expression(result, scope)).transpose()?;
        let place = branches.first().map_or(QueryPosition::default(), |(test, _)| test.place);
        bind_case(branches, otherwise, place)
    }

    fn bind_escape(&mut self, escape: Option<&Expr>, scope: &NameScope<'_>) -> BindResult<Option<char>> {
        let Some(escape) = escape else { return Ok(None) };
        let value = self.bind_expression(escape, scope)?;
        let mut letters = value.literal_text().unwrap_or_default().chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Ok(Some(letter)),
            _ => Err(QueryRefusal::new("`ESCAPE` must be followed by one character", value.place)),
        }
    }
}

fn is_comparison(expression: &Expr) -> bool {
    use BinaryOperator as B;
    match expression {
        Expr::BinaryOp { op, .. } => {
            matches!(op, B::Eq | B::NotEq | B::Lt | B::LtEq | B::Gt | B::GtEq)
        }
        Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => true,
        _ => false,
    }
}

/// `AND` and `OR`, with any number of conditions.
fn joined(
    operands: [TypedExpression; 2],
    join: fn(Vec<TypedExpression>) -> ExpressionNode,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let mut parts = Vec::new();
    for operand in operands {
        let operand = as_condition(operand)?;
        let is_same = matches!(
            (&join(Vec::new()), &operand.node),
            (ExpressionNode::And(_), ExpressionNode::And(_)) | (ExpressionNode::Or(_), ExpressionNode::Or(_))
        );
        match operand.node {
            ExpressionNode::And(inner) | ExpressionNode::Or(inner) if is_same => parts.extend(inner),
            node => parts.push(TypedExpression { node, kind: operand.kind, place: operand.place }),
        }
    }
    fold_constant(TypedExpression { node: join(parts), kind: SqlType::Boolean, place })
}

fn between(
    value: TypedExpression,
    bounds: [TypedExpression; 2],
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let [low, high] = bounds;
    let kind = comparison_type_of_all(&value, &[&low, &high])?;
    let cast = |typed: TypedExpression| cast_to(typed, &kind, CastMode::Fail);
    let (value, low, high) = (cast(value)?, cast(low)?, cast(high)?);
    let above = bind_comparison(ComparisonKind::AtLeast, value.clone(), low, place)?;
    let below = bind_comparison(ComparisonKind::AtMost, value, high, place)?;
    joined([above, below], ExpressionNode::And, place)
}

/// The name of a function, if it is not qualified.
pub(super) fn single_name(parts: &[sqlparser::ast::ObjectNamePart]) -> Option<&Ident> {
    match parts {
        [part] => part.as_ident(),
        _ => None,
    }
}

/// An integer literal of the query.
pub(super) fn written_count(expression: &Expr) -> Option<u64> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => text.replace('_', "").parse().ok(),
            _ => None,
        },
        Expr::Nested(inner) => written_count(inner),
        _ => None,
    }
}
