//! The state of an aggregate while the rows of a group are read.

use std::cmp::Ordering;

use super::bind::{AggregateKind, RealSize};
use crate::values::datum::Datum;
use crate::values::decimal::{fits_digits, power_of_ten, sum_to_real};
use crate::values::extended::extended_average;
use crate::values::sql_type::SqlType;

const TOO_LARGE: &str = "the sum is too large";
/// DuckDB averages decimals of up to so many digits without more than a DOUBLE has.
const SHORT_DIGITS: u8 = 4;

/// The state of a group.
#[derive(Debug)]
pub(super) enum GroupState {
    Whole(WholeSum),
    Real(RealSum),
    Moments(VarianceSum),
    Values(Vec<Datum>),
    Joined(Option<String>),
    Best(Option<(Datum, Datum)>),
    One(Option<Datum>),
}

/// A sum of integers or decimal numbers.
#[derive(Debug, Default)]
pub(super) struct WholeSum {
    sum: Option<i128>,
    overflowed: bool,
    count: i64,
}

/// A sum of floating-point numbers, added one after the other as DuckDB does with one thread. For a window
/// from which rows are removed again, the rounding error of each addition is kept as well, and non-finite
/// numbers are counted separately.
#[derive(Debug, Default)]
pub(super) struct RealSum {
    added: f64,
    has_left: bool,
    sum: f64,
    lost: f64,
    count: i64,
    not_numbers: i64,
    positive: i64,
    negative: i64,
}

/// Mean and squared differences, updated value by value.
#[derive(Debug, Default)]
pub(super) struct VarianceSum {
    count: f64,
    mean: f64,
    squares: f64,
}

impl GroupState {
    pub(super) fn new(kind: &AggregateKind, argument: &SqlType) -> Self {
        match kind {
            AggregateKind::Sum | AggregateKind::Average | AggregateKind::AverageOfAll
                if argument.is_real() =>
            {
                Self::Real(RealSum::default())
            }
            AggregateKind::Sum
            | AggregateKind::Average
            | AggregateKind::AverageOfAll
            | AggregateKind::CountIf => Self::Whole(WholeSum::default()),
            AggregateKind::Variance { .. } => Self::Moments(VarianceSum::default()),
            AggregateKind::QuantileBetween(..) | AggregateKind::QuantileOf(_) | AggregateKind::List => {
                Self::Values(Vec::new())
            }
            AggregateKind::Join(_) => Self::Joined(None),
            AggregateKind::Extreme(_) => Self::Best(None),
            AggregateKind::First | AggregateKind::Last | AggregateKind::AnyValue | AggregateKind::Only => {
                Self::One(None)
            }
        }
    }

    /// Adds a row; with `sign` -1 removes it again.
    pub(super) fn add_row(
        &mut self,
        kind: &AggregateKind,
        mut row: Vec<Datum>,
        sign: i64,
    ) -> Result<(), String> {
        let other = if row.len() > 1 { row.pop() } else { None };
        let datum = row.pop().unwrap_or(Datum::Null);
        match self {
            Self::Whole(sum) => sum.take(&datum, sign),
            Self::Real(sum) => sum.take(&datum, sign),
            Self::Moments(moments) => moments.take(&datum),
            Self::Values(values) => {
                if *kind == AggregateKind::List || !datum.is_null() {
                    values.push(datum);
                }
            }
            Self::Joined(joined) => {
                if let (Datum::Text(text), AggregateKind::Join(separator)) = (datum, kind) {
                    match joined {
                        Some(joined) => {
                            joined.push_str(separator);
                            joined.push_str(&text);
                        }
                        None => *joined = Some(text),
                    }
                }
            }
            Self::Best(best) => {
                let (AggregateKind::Extreme(wanted), Some(by)) = (kind, other) else { return Ok(()) };
                let is_better = best.as_ref().is_none_or(|(_, known)| by.order(known) == *wanted);
                if !datum.is_null() && !by.is_null() && is_better {
                    *best = Some((datum, by));
                }
            }
            Self::One(one) => match kind {
                AggregateKind::Last => *one = Some(datum),
                AggregateKind::Only if one.is_some() => {
                    return Err("a subquery that is used as a value returns more than one row".to_owned());
                }
                AggregateKind::AnyValue if datum.is_null() => {}
                _ => {
                    one.get_or_insert(datum);
                }
            },
        }
        Ok(())
    }

    /// The result.
    pub(super) fn result(&self, kind: &AggregateKind, argument: &SqlType) -> Result<Datum, String> {
        Ok(match (self, kind) {
            (Self::Whole(sum), AggregateKind::Average) => sum.average(argument)?,
            (Self::Whole(sum), AggregateKind::AverageOfAll) => sum.average_of_all(argument)?,
            (Self::Whole(sum), _) => sum.total(argument)?,
            (Self::Real(sum), AggregateKind::Average | AggregateKind::AverageOfAll) => sum.average(),
            (Self::Real(sum), _) => sum.total(),
            (Self::Moments(moments), AggregateKind::Variance { of_sample, is_root }) => {
                let found = moments.variance(*of_sample);
                found.map_or(Datum::Null, |found| Datum::Real(if *is_root { found.sqrt() } else { found }))
            }
            (Self::Values(values), AggregateKind::QuantileBetween(fraction, size)) => {
                match between(values, *fraction) {
                    Datum::Real(number) if *size == RealSize::Short => Datum::Real(f64::from(number as f32)),
                    other => other,
                }
            }
            (Self::Values(values), AggregateKind::QuantileOf(fraction)) => one_of(values, *fraction),
            (Self::Values(values), _) if values.is_empty() => Datum::Null,
            (Self::Values(values), _) => Datum::List(values.clone()),
            (Self::Joined(joined), _) => joined.clone().map_or(Datum::Null, Datum::Text),
            (Self::Best(best), _) => best.as_ref().map_or(Datum::Null, |(datum, _)| datum.clone()),
            (Self::One(one), _) => one.clone().unwrap_or(Datum::Null),
            (Self::Moments(_), _) => Datum::Null,
        })
    }
}

impl WholeSum {
    fn take(&mut self, datum: &Datum, sign: i64) {
        let number = match datum {
            Datum::Whole(number) | Datum::Decimal(number) => *number,
            Datum::Boolean(truth) => i128::from(*truth),
            _ => return,
        };
        self.count += sign;
        let sum = self.sum.unwrap_or(0);
        let moved = if sign > 0 { sum.checked_add(number) } else { sum.checked_sub(number) };
        self.overflowed |= moved.is_none();
        self.sum = Some(moved.unwrap_or(0));
    }

    fn total(&self, argument: &SqlType) -> Result<Datum, String> {
        let Some(sum) = self.sum.filter(|_| self.count > 0) else { return Ok(Datum::Null) };
        let is_decimal = matches!(argument, SqlType::Decimal(..));
        if self.overflowed || (is_decimal && !fits_digits(sum, 38)) {
            return Err(TOO_LARGE.to_owned());
        }
        Ok(if is_decimal { Datum::Decimal(sum) } else { Datum::Whole(sum) })
    }

    fn average(&self, argument: &SqlType) -> Result<Datum, String> {
        let Some(sum) = self.sum.filter(|_| self.count > 0) else { return Ok(Datum::Null) };
        if self.overflowed {
            return Err(TOO_LARGE.to_owned());
        }
        let scale = argument.decimal_size().map_or(0, |(_, scale)| scale);
        let is_short = matches!(argument, SqlType::SmallInt | SqlType::Decimal(..=SHORT_DIGITS, _));
        Ok(Datum::Real(if is_short {
            sum as f64 / (self.count as f64 * power_of_ten(u32::from(scale)) as f64)
        } else {
            extended_average(sum, scale, self.count.unsigned_abs())
        }))
    }

    /// The sum as a DOUBLE, divided by the count.
    fn average_of_all(&self, argument: &SqlType) -> Result<Datum, String> {
        let scale = argument.decimal_size().map_or(0, |(_, scale)| scale);
        Ok(match self.total(argument)? {
            Datum::Whole(sum) | Datum::Decimal(sum) => {
                Datum::Real(sum_to_real(sum, scale) / self.count as f64)
            }
            other => other,
        })
    }
}

impl RealSum {
    fn take(&mut self, datum: &Datum, sign: i64) {
        let Datum::Real(number) = datum else { return };
        self.count += sign;
        self.added += number;
        self.has_left |= sign < 0;
        if number.is_nan() {
            self.not_numbers += sign;
        } else if number.is_infinite() {
            let count = if *number > 0.0 { &mut self.positive } else { &mut self.negative };
            *count += sign;
        } else {
            let number = number * sign as f64;
            let sum = self.sum + number;
            let rest = if self.sum.abs() >= number.abs() {
                (self.sum - sum) + number
            } else {
                (number - sum) + self.sum
            };
            if rest.is_finite() {
                self.lost += rest;
            }
            self.sum = sum;
        }
    }

    fn sum(&self) -> f64 {
        if !self.has_left {
            return self.added;
        }
        if self.not_numbers > 0 || (self.positive > 0 && self.negative > 0) {
            return f64::NAN;
        }
        match (self.positive > 0, self.negative > 0) {
            (true, _) => f64::INFINITY,
            (_, true) => f64::NEG_INFINITY,
            _ => self.sum + self.lost,
        }
    }

    fn total(&self) -> Datum {
        if self.count > 0 { Datum::Real(self.sum()) } else { Datum::Null }
    }

    fn average(&self) -> Datum {
        if self.count > 0 { Datum::Real(self.sum() / self.count as f64) } else { Datum::Null }
    }
}

impl VarianceSum {
    fn take(&mut self, datum: &Datum) {
        let Datum::Real(number) = datum else { return };
        self.count += 1.0;
        let distance = number - self.mean;
        self.mean += distance / self.count;
        self.squares += distance * (number - self.mean);
    }

    fn variance(&self, of_sample: bool) -> Option<f64> {
        let below = if of_sample { self.count - 1.0 } else { self.count };
        // A single value has no deviation, even if it is infinite.
        let is_alone = !of_sample && below < 1.5;
        (below > 0.0).then_some(if is_alone { 0.0 } else { self.squares / below })
    }
}

fn sorted(values: &[Datum]) -> Vec<Datum> {
    let mut sorted = values.to_vec();
    sorted.sort_by(Datum::order);
    sorted
}

fn between(values: &[Datum], fraction: f64) -> Datum {
    let sorted = sorted(values);
    let place = sorted.len().saturating_sub(1) as f64 * fraction;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    let (Some(below), Some(above)) = (sorted.get(low), sorted.get(high)) else { return Datum::Null };
    let part = place - low as f64;
    match (below, above) {
        _ if low == high || below.order(above) == Ordering::Equal => below.clone(),
        (Datum::Real(below), Datum::Real(above)) => Datum::Real(below.mul_add(1.0 - part, above * part)),
        (Datum::Decimal(below), Datum::Decimal(above)) => {
            Datum::Decimal((*below as f64 + (above - below) as f64 * part) as i128)
        }
        _ => Datum::Null,
    }
}

fn one_of(values: &[Datum], fraction: f64) -> Datum {
    let sorted = sorted(values);
    let place = (sorted.len() as f64 * fraction).ceil() as usize;
    sorted.get(place.saturating_sub(1)).cloned().unwrap_or(Datum::Null)
}
