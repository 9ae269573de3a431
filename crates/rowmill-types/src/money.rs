//! Exact amounts of money.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount of US dollars, counted in picodollars, so that the price of a token is a whole number and sums are not
/// rounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(u64);

/// Picodollars per dollar.
const PICODOLLARS_PER_DOLLAR: u64 = 1_000_000_000_000;

impl Money {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// More than anyone spends.
    pub const MAX: Self = Self(u64::MAX);

    /// An amount in picodollars.
    #[must_use]
    pub const fn from_pico(pico: u64) -> Self {
        Self(pico)
    }

    /// The amount in picodollars.
    #[must_use]
    pub const fn pico(self) -> u64 {
        self.0
    }

    /// The nearest amount to a number of dollars; `None` if it is negative, too large or not a number.
    ///
    /// ```
    /// # use rowmill_types::Money;
    /// assert_eq!(Money::from_dollars(0.25).unwrap().to_string(), "$0.25");
    /// assert_eq!(Money::from_dollars(-1.0), None);
    /// ```
    #[must_use]
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        let pico = (dollars * PICODOLLARS_PER_DOLLAR as f64).round();
        (dollars >= 0.0 && pico < u64::MAX as f64).then_some(Self(pico as u64))
    }

    /// The amount in dollars, as precisely as a float can represent it.
    #[must_use]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / PICODOLLARS_PER_DOLLAR as f64
    }

    /// The difference, or zero if `other` is larger.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The total of `count` items at this price each.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::add)
    }
}

/// Formats dollars with at least two decimals, and more if small amounts need them.
impl fmt::Display for Money {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.dollars();
        let digits = match dollars {
            _ if self.0.is_multiple_of(PICODOLLARS_PER_DOLLAR / 100) => 2,
            0.01.. => 4,
            _ => 6,
        };
        write!(out, "${dollars:.digits$}")
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Self::from_dollars(dollars)
            .ok_or_else(|| serde::de::Error::custom("must be a non-negative amount in dollars"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_with_the_digits_they_need() {
        for (dollars, shown) in
            [(0.0, "$0.00"), (12.5, "$12.50"), (0.1234, "$0.1234"), (0.000_042, "$0.000042")]
        {
            assert_eq!(Money::from_dollars(dollars).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn sums_are_exact_and_never_wrap() {
        let tenth = Money::from_dollars(0.1).unwrap();
        assert_eq!((0..10).map(|_| tenth).sum::<Money>(), Money::from_dollars(1.0).unwrap());
        assert_eq!(Money::MAX + tenth, Money::MAX);
        assert_eq!(tenth.saturating_sub(Money::MAX), Money::ZERO);
    }
}
