//! The aggregate functions, and their results for each type.

use std::cmp::Ordering;

use crate::expression::coerce::{adapt_argument, cast_to};
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::TypedExpression;
use crate::values::cast::CastMode;
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType;

/// The size of a floating-point number in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RealSize {
    /// 32.
    Short,
    /// 64.
    Long,
}

/// An aggregate function that is implemented here.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AggregateKind {
    Sum,
    Average,
    /// The average in a query without groups, which DuckDB computes as `sum / count`.
    AverageOfAll,
    /// The divisor is the count, or the count minus one; optionally with the square root.
    Variance {
        of_sample: bool,
        is_root: bool,
    },
    /// Interpolated, if it falls between two values.
    QuantileBetween(f64, RealSize),
    /// Always one of the values.
    QuantileOf(f64),
    List,
    Join(String),
    /// The first argument of the row in which the second is the maximum or minimum.
    Extreme(Ordering),
    First,
    Last,
    AnyValue,
    CountIf,
    /// The value of the only row.
    Only,
}

impl BoundAggregate {
    /// The same call over all rows of a query without groups.
    pub(crate) fn over_all_rows(self) -> Self {
        let function = match self.function {
            Err(AggregateKind::Average) => Err(AggregateKind::AverageOfAll),
            other => other,
        };
        Self { function, ..self }
    }
}

/// An aggregate function to register with SQLite.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AggregateCall {
    pub(crate) name: String,
    pub(crate) kind: AggregateKind,
    pub(crate) arguments: Vec<SqlType>,
    pub(crate) result: SqlType,
}

/// A bound call of an aggregate function.
#[derive(Debug, Clone)]
pub(crate) struct BoundAggregate {
    /// A function of SQLite that has the same result for encoded values, or one of ours.
    pub(crate) function: Result<&'static str, AggregateKind>,
    pub(crate) arguments: Vec<TypedExpression>,
    pub(crate) result: SqlType,
    pub(crate) window: WindowUse,
}

/// Whether a function can be used with `OVER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowUse {
    Possible,
    Refused,
}

/// Up to this many digits, DuckDB interpolates between two decimal numbers without loss.
const SHORT_DECIMAL: u8 = 18;

const NAMES: &[&str] = &[
    "count",
    "sum",
    "avg",
    "mean",
    "min",
    "max",
    "median",
    "quantile_cont",
    "quantile_disc",
    "stddev",
    "stddev_samp",
    "stddev_pop",
    "variance",
    "var_samp",
    "var_pop",
    "arg_max",
    "max_by",
    "argmax",
    "arg_min",
    "min_by",
    "argmin",
    "any_value",
    "first",
    "last",
    "bool_and",
    "bool_or",
    "count_if",
    "countif",
    "string_agg",
    "group_concat",
    "listagg",
    "list",
    "array_agg",
];

pub(crate) fn is_aggregate(name: &str) -> bool {
    NAMES.contains(&name)
}

pub(crate) fn aggregate_names() -> &'static [&'static str] {
    NAMES
}

/// Binds a call of an aggregate function.
pub(crate) fn bind_aggregate(
    name: &str,
    arguments: Vec<TypedExpression>,
    place: QueryPosition,
) -> BindResult<BoundAggregate> {
    let call = AggregateArguments { name, arguments, place };
    match name {
        "count" => call.count(),
        "sum" => call.sum(),
        "avg" | "mean" => call.average(),
        "min" => call.same_type(Ok("min")),
        "max" => call.same_type(Ok("max")),
        "bool_and" => call.truths(Ok("min")),
        "bool_or" => call.truths(Ok("max")),
        "count_if" | "countif" => {
            let bound = call.truths(Err(AggregateKind::CountIf))?;
            Ok(BoundAggregate { result: SqlType::HugeInt, ..bound })
        }
        "median" => call.quantile(None),
        "quantile_cont" | "quantile_disc" => call.quantile_with_fraction(),
        "stddev" | "stddev_samp" => call.variance(AggregateKind::Variance { of_sample: true, is_root: true }),
        "stddev_pop" => call.variance(AggregateKind::Variance { of_sample: false, is_root: true }),
        "variance" | "var_samp" => call.variance(AggregateKind::Variance { of_sample: true, is_root: false }),
        "var_pop" => call.variance(AggregateKind::Variance { of_sample: false, is_root: false }),
        "arg_max" | "max_by" | "argmax" => call.extreme(Ordering::Greater),
        "arg_min" | "min_by" | "argmin" => call.extreme(Ordering::Less),
        "any_value" => call.own(AggregateKind::AnyValue),
        "first" => call.own(AggregateKind::First),
        "last" => call.own(AggregateKind::Last),
        "string_agg" | "group_concat" | "listagg" => call.join(),
        _ => {
            let bound = call.own(AggregateKind::List)?;
            let result = SqlType::List(Box::new(bound.result.clone()));
            Ok(BoundAggregate { result, ..bound })
        }
    }
}

struct AggregateArguments<'n> {
    name: &'n str,
    arguments: Vec<TypedExpression>,
    place: QueryPosition,
}

impl AggregateArguments<'_> {
    fn exactly<const N: usize>(self) -> BindResult<[TypedExpression; N]> {
        let Self { name, arguments, place } = self;
        let found = arguments.len();
        arguments
            .try_into()
            .map_err(|_| QueryRefusal::new(format!("`{name}` takes {N} arguments, not {found}"), place))
    }

    fn wrong_type(&self, hint: &str) -> QueryRefusal {
        let kinds: Vec<_> = self.arguments.iter().map(|argument| argument.kind.to_string()).collect();
        QueryRefusal::new(format!("there is no `{}({})`", self.name, kinds.join(", ")), self.place).hint(hint)
    }

    fn first_kind(&self) -> SqlType {
        self.arguments.first().map_or(SqlType::Null, |argument| argument.kind.clone())
    }

    fn count(self) -> BindResult<BoundAggregate> {
        if self.arguments.len() > 1 {
            return Err(self.wrong_type("count one value, or rows with `count(*)`"));
        }
        let (arguments, result) = (self.arguments, SqlType::BigInt);
        Ok(BoundAggregate { function: Ok("count"), arguments, result, window: WindowUse::Possible })
    }

    fn number(&self) -> BindResult<()> {
        let kind = self.first_kind();
        if kind.is_number() || kind == SqlType::Null {
            return Ok(());
        }
        Err(self
            .wrong_type("it takes numbers: write `CAST(x AS DOUBLE)`, or `TRY_CAST` to ignore other values"))
    }

    fn sum(mut self) -> BindResult<BoundAggregate> {
        if self.first_kind() == SqlType::Boolean {
            let truths = std::mem::take(&mut self.arguments).into_iter();
            self.arguments = truths
                .map(|typed| cast_to(typed, &SqlType::Integer, CastMode::Fail))
                .collect::<BindResult<_>>()?;
        }
        self.number()?;
        let result = match self.first_kind() {
            SqlType::Float | SqlType::Double => SqlType::Double,
            SqlType::Decimal(_, scale) => SqlType::Decimal(38, scale),
            _ => SqlType::HugeInt,
        };
        let arguments = self.exactly::<1>()?.into();
        Ok(BoundAggregate {
            function: Err(AggregateKind::Sum),
            arguments,
            result,
            window: WindowUse::Possible,
        })
    }

    fn average(self) -> BindResult<BoundAggregate> {
        self.number()?;
        let arguments = self.exactly::<1>()?.into();
        let function = Err(AggregateKind::Average);
        Ok(BoundAggregate { function, arguments, result: SqlType::Double, window: WindowUse::Possible })
    }

    fn same_type(self, function: Result<&'static str, AggregateKind>) -> BindResult<BoundAggregate> {
        let result = self.first_kind();
        if !result.is_ordered() {
            return Err(self.wrong_type("its values have no order"));
        }
        let arguments = self.exactly::<1>()?.into();
        Ok(BoundAggregate { function, arguments, result, window: WindowUse::Possible })
    }

    fn truths(self, function: Result<&'static str, AggregateKind>) -> BindResult<BoundAggregate> {
        if !matches!(self.first_kind(), SqlType::Boolean | SqlType::Null) {
            return Err(self.wrong_type("it takes conditions"));
        }
        let arguments = self.exactly::<1>()?.into();
        Ok(BoundAggregate { function, arguments, result: SqlType::Boolean, window: WindowUse::Possible })
    }

    fn own(self, kind: AggregateKind) -> BindResult<BoundAggregate> {
        let result = self.first_kind();
        if matches!(result, SqlType::Other(_)) {
            return Err(self.wrong_type("cast it"));
        }
        let arguments = self.exactly::<1>()?.into();
        Ok(BoundAggregate { function: Err(kind), arguments, result, window: WindowUse::Refused })
    }

    fn variance(self, kind: AggregateKind) -> BindResult<BoundAggregate> {
        self.number()?;
        let [number] = self.exactly()?;
        let arguments = vec![cast_to(number, &SqlType::Double, CastMode::Fail)?];
        Ok(BoundAggregate {
            function: Err(kind),
            arguments,
            result: SqlType::Double,
            window: WindowUse::Refused,
        })
    }

    fn quantile_with_fraction(mut self) -> BindResult<BoundAggregate> {
        let is_pair = self.arguments.len() == 2;
        let last = self.arguments.pop().filter(|_| is_pair);
        let fraction = last.ok_or_else(|| self.wrong_type("it takes a value and a fraction, such as 0.5"))?;
        let place = fraction.place;
        let wrong = || QueryRefusal::new("the fraction must be a number from 0 to 1 in the query", place);
        let fraction = adapt_argument(fraction, &SqlType::Double).ok_or_else(wrong)??;
        let known = fraction.known_value().and_then(Datum::as_real);
        let known = known.filter(|fraction| (0.0..=1.0).contains(fraction)).ok_or_else(wrong)?;
        if self.name == "quantile_disc" {
            let bound = self.same_type(Err(AggregateKind::QuantileOf(known)))?;
            return Ok(BoundAggregate { window: WindowUse::Refused, ..bound });
        }
        self.quantile(Some(known))
    }

    fn quantile(self, fraction: Option<f64>) -> BindResult<BoundAggregate> {
        self.number()?;
        let [number] = self.exactly()?;
        let (number, result) = match number.kind {
            SqlType::Decimal(digits, _) if digits > SHORT_DECIMAL => {
                let message = format!("interpolated values of type {} are not exact", number.kind);
                return Err(QueryRefusal::new(message, number.place).hint("write `CAST(x AS DOUBLE)`"));
            }
            SqlType::Decimal(..) | SqlType::Float | SqlType::Double => {
                let kind = number.kind.clone();
                (number, kind)
            }
            _ => (cast_to(number, &SqlType::Double, CastMode::Fail)?, SqlType::Double),
        };
        let size = if result == SqlType::Float { RealSize::Short } else { RealSize::Long };
        let function = Err(AggregateKind::QuantileBetween(fraction.unwrap_or(0.5), size));
        Ok(BoundAggregate { function, arguments: vec![number], result, window: WindowUse::Refused })
    }

    fn extreme(self, wanted: Ordering) -> BindResult<BoundAggregate> {
        if self.arguments.iter().any(|argument| matches!(argument.kind, SqlType::Other(_))) {
            return Err(self.wrong_type("cast its arguments"));
        }
        if !self.arguments.get(1).is_some_and(|by| by.kind.is_ordered()) {
            return Err(self.wrong_type("its second argument has no order"));
        }
        let result = self.first_kind();
        let arguments = self.exactly::<2>()?.into();
        Ok(BoundAggregate {
            function: Err(AggregateKind::Extreme(wanted)),
            arguments,
            result,
            window: WindowUse::Refused,
        })
    }

    fn join(mut self) -> BindResult<BoundAggregate> {
        let separator = if self.arguments.len() == 2 { self.arguments.pop() } else { None };
        let separator = match separator {
            Some(typed) => {
                typed.known_value().and_then(Datum::as_text).map(str::to_owned).ok_or_else(|| {
                    QueryRefusal::new("the separator must be a string in the query", typed.place)
                })?
            }
            None => ",".to_owned(),
        };
        let [text] = self.exactly()?;
        let arguments = vec![cast_to(text, &SqlType::Varchar, CastMode::Fail)?];
        let function = Err(AggregateKind::Join(separator));
        Ok(BoundAggregate { function, arguments, result: SqlType::Varchar, window: WindowUse::Refused })
    }
}
