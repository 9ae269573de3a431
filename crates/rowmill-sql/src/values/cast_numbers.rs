//! Casts of floating-point numbers to other numbers.

use super::decimal;
use super::sql_type::SqlType;

/// The nearest integer, with ties to even.
pub(crate) fn real_to_whole(number: f64, wanted: &SqlType) -> Option<i128> {
    let (least, greatest) = wanted.whole_range()?;
    let rounded = number.round_ties_even();
    // As floating-point numbers the bounds may be rounded up, so the result is checked again.
    if !rounded.is_finite() || rounded < least as f64 || rounded > greatest as f64 {
        return None;
    }
    let whole = rounded as i128;
    (whole >= least && whole <= greatest).then_some(whole)
}

/// The nearest decimal number, with ties away from zero.
pub(crate) fn real_to_decimal(number: f64, digits: u8, scale: u8) -> Option<i128> {
    let scaled = (number * decimal::power_of_ten(u32::from(scale)) as f64).round();
    if !scaled.is_finite() || scaled.abs() >= decimal::power_of_ten(u32::from(digits)) as f64 {
        return None;
    }
    Some(scaled as i128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_become_even_whole_numbers_and_decimals_away_from_zero() {
        assert_eq!(real_to_whole(2.5, &SqlType::Integer), Some(2));
        assert_eq!(real_to_whole(3.5, &SqlType::Integer), Some(4));
        assert_eq!(real_to_whole(1e30, &SqlType::BigInt), None);
        assert_eq!(real_to_whole(9_223_372_036_854_775_807.0, &SqlType::BigInt), None);
        assert_eq!(real_to_whole(f64::NAN, &SqlType::BigInt), None);
        assert_eq!(real_to_decimal(2.675, 10, 2), Some(268));
        assert_eq!(real_to_decimal(1.005, 10, 2), Some(100));
        assert_eq!(real_to_decimal(1e20, 10, 2), None);
    }
}
