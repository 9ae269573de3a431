//! Random numbers, drawn deterministically from the seed.

use std::f64::consts::TAU;
use std::time::Duration;

use rowmill_core::time_span;

/// The distribution of a number: seconds of a wait, or tokens of an answer.
///
/// ```
/// # use rowmill_simulator::RandomDistribution;
/// let waits = RandomDistribution::parse_durations("lognormal:800ms,0.6").unwrap();
/// assert_eq!(waits, RandomDistribution::LogNormal { median: 0.8, sigma: 0.6 });
/// assert!(RandomDistribution::parse_token_counts("uniform:200..10").is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RandomDistribution {
    /// Always the same.
    Constant(f64),
    /// All values between two numbers with equal probability.
    Uniform {
        /// The minimum.
        low: f64,
        /// The maximum.
        high: f64,
    },
    /// Half of the numbers are below the median, with a long tail above it.
    LogNormal {
        /// The median.
        median: f64,
        /// The spread of the logarithm.
        sigma: f64,
    },
    /// Small numbers are the most frequent.
    Exponential {
        /// The mean.
        mean: f64,
    },
}

/// Longer waits are not plausible.
const LONGEST_SECONDS: f64 = 86_400.0;

impl RandomDistribution {
    /// Parses waits: `200ms`, `uniform:100ms..2s`, `lognormal:800ms,0.6` or `exponential:500ms`.
    ///
    /// # Errors
    ///
    /// The text is none of these; the message says what to write.
    pub fn parse_durations(text: &str) -> Result<Self, String> {
        let seconds = |text: &str| time_span::parse_single_unit_duration(text).map(|time| time.as_secs_f64());
        Self::read(text, seconds).ok_or_else(|| {
            format!(
                "`{text}` is not a latency; write `200ms`, `uniform:100ms..2s`, `lognormal:800ms,0.6` or \
                 `exponential:500ms`"
            )
        })
    }

    /// Parses token counts: `50`, `uniform:10..200`, `lognormal:40,1.0` or `exponential:50`.
    ///
    /// # Errors
    ///
    /// The text is none of these; the message says what to write.
    pub fn parse_token_counts(text: &str) -> Result<Self, String> {
        let tokens = |text: &str| text.parse::<u32>().ok().filter(|count| *count > 0).map(f64::from);
        Self::read(text, tokens).ok_or_else(|| {
            format!(
                "`{text}` is not a length; write `50`, `uniform:10..200`, `lognormal:40,1.0` or \
                 `exponential:50`"
            )
        })
    }

    /// Parses a distribution of what `number` parses.
    pub(crate) fn read(text: &str, number: impl Fn(&str) -> Option<f64>) -> Option<Self> {
        let Some((kind, rest)) = text.split_once(':') else { return Some(Self::Constant(number(text)?)) };
        match kind {
            "constant" => Some(Self::Constant(number(rest)?)),
            "uniform" => {
                let (low, high) = rest.split_once("..")?;
                let (low, high) = (number(low)?, number(high)?);
                (low <= high).then_some(Self::Uniform { low, high })
            }
            "lognormal" => {
                let (median, sigma) = rest.split_once(',')?;
                let sigma = sigma.trim().parse().ok().filter(|sigma| (0.0..=10.0).contains(sigma))?;
                Some(Self::LogNormal { median: number(median)?, sigma })
            }
            "exponential" => Some(Self::Exponential { mean: number(rest)? }),
            _ => None,
        }
    }

    /// The number for two random values, each from 0 up to 1.
    pub(crate) fn draw(&self, chances: (f64, f64)) -> f64 {
        let (first, second) = chances;
        // From above 0 to 1, because 0 has no logarithm.
        let above_zero = 1.0 - first;
        match *self {
            Self::Constant(number) => number,
            Self::Uniform { low, high } => low + (high - low) * first,
            Self::LogNormal { median, sigma } => {
                let normal = (-2.0 * above_zero.ln()).sqrt() * (TAU * second).cos();
                median * (sigma * normal).exp()
            }
            Self::Exponential { mean } => -mean * above_zero.ln(),
        }
    }

    /// The wait for two random values.
    pub(crate) fn draw_wait(&self, chances: (f64, f64)) -> Duration {
        Duration::from_secs_f64(self.draw(chances).clamp(0.0, LONGEST_SECONDS))
    }

    /// The number of tokens for two random values, at least one.
    pub(crate) fn draw_tokens(&self, chances: (f64, f64)) -> u64 {
        (self.draw(chances).round() as u64).clamp(1, u64::from(u32::MAX))
    }
}

impl From<Duration> for RandomDistribution {
    fn from(wait: Duration) -> Self {
        Self::Constant(wait.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(distribution: &RandomDistribution) -> Vec<f64> {
        let share = |index: u32| f64::from(index) / 200.0;
        let chances = (0..200).flat_map(|first| (0..200).map(move |second| (share(first), share(second))));
        let mut drawn: Vec<f64> = chances.map(|chances| distribution.draw(chances)).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    #[test]
    fn every_way_to_write_one_is_read_and_the_rest_is_refused() {
        for text in
            ["0", "20ms", "1.5s", "uniform:0..1s", "lognormal:1s,0", "exponential:500ms", "constant:1s"]
        {
            assert!(RandomDistribution::parse_durations(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "soon",
            "uniform:1s",
            "uniform:2s..1s",
            "lognormal:1s",
            "lognormal:1s,-1",
            "normal:1s,1",
            "pareto:1",
        ] {
            assert!(
                RandomDistribution::parse_durations(text).unwrap_err().contains("write `200ms`"),
                "{text}"
            );
        }
        assert_eq!(
            RandomDistribution::parse_token_counts("uniform:10..200"),
            Ok(RandomDistribution::Uniform { low: 10.0, high: 200.0 })
        );
        assert!(RandomDistribution::parse_token_counts("0").is_err());
    }

    #[test]
    fn draws_have_the_middle_and_the_tail_of_their_distribution() {
        let uniform = draws(&RandomDistribution::Uniform { low: 1.0, high: 3.0 });
        assert!(uniform[0] >= 1.0 && uniform[39_999] <= 3.0 && (uniform[20_000] - 2.0).abs() < 0.02);
        let log_normal = draws(&RandomDistribution::LogNormal { median: 40.0, sigma: 1.0 });
        assert!((log_normal[20_000] - 40.0).abs() < 1.0, "{}", log_normal[20_000]);
        assert!((log_normal[33_653] / 40.0 - 1f64.exp()).abs() < 0.1, "{}", log_normal[33_653]);
        let exponential = draws(&RandomDistribution::Exponential { mean: 2.0 });
        let mean = exponential.iter().sum::<f64>() / 40_000.0;
        assert!((mean - 2.0).abs() < 0.05, "{mean}");
    }
}
