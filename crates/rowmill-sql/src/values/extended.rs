//! Numbers with a fraction of 64 binary digits, which DuckDB computes averages in: the `long double` of x86-64.
//!
//! Their exponents are not limited here. An average has at most 128 bits above its point and 190 below it, far
//! from the limits of either format.

use super::decimal::{power_of_ten, wide_to_real};

/// The average of `count` numbers with `scale` digits after the point, whose sum is `sum`, with DuckDB's steps:
/// sum, divisor and quotient are each rounded to 64 binary digits, and only the quotient to a DOUBLE.
pub(crate) fn extended_average(sum: i128, scale: u8, count: u64) -> f64 {
    // The greater powers of ten are rounded to a DOUBLE.
    let unit = wide_to_real(power_of_ten(u32::from(scale)));
    let divisor = Extended::of(count.into()).times(Extended::of_real(unit));
    let quotient = Extended::of(sum.unsigned_abs()).divided_by(divisor).to_real();
    if sum < 0 { -quotient } else { quotient }
}

/// A number that is not negative: zero, or a fraction whose first bit is set, times a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extended {
    fraction: u64,
    exponent: i32,
}

impl Extended {
    /// The nearest to an integer.
    fn of(number: u128) -> Self {
        Self::rounded(number, false, 0)
    }

    /// The same as a number that is not negative.
    fn of_real(number: f64) -> Self {
        const FRACTION_BITS: u32 = 52;
        let bits = number.to_bits();
        let fraction = (bits & ((1 << FRACTION_BITS) - 1)) | (1 << FRACTION_BITS);
        let exponent = i32::try_from(bits >> FRACTION_BITS).unwrap_or(0) - 1075;
        Self::rounded(fraction.into(), false, exponent)
    }

    /// The nearest to `number` times two to the power of `exponent`, of two the one with an even fraction.
    /// `has_rest` means that the number is a little greater; it then has at least 65 bits.
    fn rounded(number: u128, has_rest: bool, exponent: i32) -> Self {
        let bits = u128::BITS - number.leading_zeros();
        let Some(excess) = bits.checked_sub(u64::BITS) else {
            let shift = u64::BITS - bits;
            let fraction = u64::try_from(number).unwrap_or(0).checked_shl(shift).unwrap_or(0);
            return Self { fraction, exponent: exponent - shift.cast_signed() };
        };
        let exponent = exponent + excess.cast_signed();
        let fraction = u64::try_from(number >> excess).unwrap_or(u64::MAX);
        let rest = number & ((1 << excess) - 1);
        let half = (1_u128 << excess) >> 1;
        let is_above = rest > half || (rest == half && has_rest);
        let is_tie = rest == half && excess > 0 && !has_rest;
        let rounds_up = is_above || (is_tie && fraction % 2 == 1);
        match fraction.checked_add(u64::from(rounds_up)) {
            Some(fraction) => Self { fraction, exponent },
            None => Self { fraction: 1 << 63, exponent: exponent + 1 },
        }
    }

    fn times(self, other: Self) -> Self {
        let product = u128::from(self.fraction) * u128::from(other.fraction);
        Self::rounded(product, false, self.exponent + other.exponent)
    }

    /// The nearest to the quotient; the divisor is not zero.
    fn divided_by(self, divisor: Self) -> Self {
        // The dividend gets 63 more bits, and two more below, so that the quotient has at least 65.
        let (dividend, by) = (u128::from(self.fraction) << 64, u128::from(divisor.fraction));
        let (Some(high), Some(rest)) = (dividend.checked_div(by), dividend.checked_rem(by)) else {
            return self;
        };
        let (more, rest) = (((rest << 2) / by), (rest << 2) % by);
        let quotient = (high << 2) | more;
        Self::rounded(quotient, rest > 0, self.exponent - divisor.exponent - 66)
    }

    /// The nearest DOUBLE.
    fn to_real(self) -> f64 {
        self.fraction as f64 * 2_f64.powi(self.exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of DuckDB 2.0 on x86-64 for `avg(x)` with `GROUP BY`; in each, a quotient that is rounded only
    /// once has another last digit.
    #[test]
    fn averages_have_the_last_digits_of_duckdb() {
        for (sum, scale, count, expected) in [
            (3_141_964_739_181_622_557_936_350_294, 0, 3, 1.047_321_579_727_207_6e27),
            (6_220_409_845_659_059_003_740_410_237, 0, 7, 8.886_299_779_512_941e26),
            (-29_712_399_302_708_299_521, 0, 7, -4.244_628_471_815_471e18),
            (-33_621_306_397_486_064_639, 0, 6, -5.603_551_066_247_678e18),
            (3_321_572_236_726_199_682_380_288_784_578, 2, 7, 4.745_103_195_323_142e27),
            (4_334_503_683_308_437_721_041_984_126_924, 2, 7, 6.192_148_119_012_053e27),
            // The divisor is rounded, too: there is no DOUBLE of this power of ten.
            (3_981_052_463_925_809_090_643_681_677_519, 25, 7, 56_872.178_056_082_98),
            (3_308_495_289_090_189_722_731_544_663_378, 25, 6, 55_141.588_151_503_16),
            (35_065_506_260_527_647_745, 0, 6, 5.844_251_043_421_274e18),
            (21_810_491_088_724_397_569, 0, 3, 7.270_163_696_241_465e18),
        ] {
            let found = extended_average(sum, scale, count);
            assert_eq!(found.to_bits(), f64::to_bits(expected), "{sum} / {count}: {found}");
        }
    }

    #[test]
    fn averages_that_a_double_holds_are_exact() {
        for (sum, scale, count, expected) in [
            (0, 0, 5, 0.0),
            (0, 2, 1, 0.0),
            (29, 1, 7, 29.0 / 70.0),
            (-1, 0, 3, -1.0 / 3.0),
            (6_000_000, 2, 4, 15_000.0),
            (i128::MAX, 0, 1, i128::MAX as f64),
            (i128::MIN, 0, 2, -(2_f64.powi(126))),
            (u64::MAX.into(), 0, u64::MAX, 1.0),
        ] {
            let found = extended_average(sum, scale, count);
            assert_eq!(found, expected, "{sum} / {count}");
        }
    }
}
