//! Rows whose prompts have a known number of tokens on average.

use std::f64::consts::TAU;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::TaskFailure;

/// The simulator counts this many characters as a token.
const CHARACTERS_PER_TOKEN: f64 = 4.0;
/// No prompt is larger than this many average ones, so that each fits the tightest limit.
const LARGEST: f64 = 20.0;
/// The spread of the logarithm of heavy-tailed sizes.
const SIGMA: f64 = 1.0;

const WORDS: &str = "the seller answered after a week and sent another part that fits ";

/// The distribution of row sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SizeSpread {
    /// From half to one and a half times the mean, uniformly.
    Uniform,
    /// Lognormal: most are small, and few large ones hold most of the tokens.
    HeavyTailed,
}

impl SizeSpread {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::HeavyTailed => "heavy-tailed",
        }
    }
}

/// Writes rows with one field, `text`.
pub(super) fn write(
    path: &Path,
    count: u64,
    spread: SizeSpread,
    mean_tokens: f64,
) -> Result<(), TaskFailure> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut chance = SeededRandom(0x5EED);
    for number in 1..=count {
        let length = (size(spread, mean_tokens, &mut chance) * CHARACTERS_PER_TOKEN).round() as usize;
        // The number comes first, so that all prompts are different.
        let start = format!("{number}: ");
        let text: String = start.chars().chain(WORDS.chars().cycle()).take(length.max(start.len())).collect();
        writeln!(out, r#"{{"text":"{text}"}}"#)?;
    }
    Ok(out.flush()?)
}

fn size(spread: SizeSpread, mean: f64, chance: &mut SeededRandom) -> f64 {
    match spread {
        SizeSpread::Uniform => mean * (0.5 + chance.next()),
        SizeSpread::HeavyTailed => {
            let normal = (-2.0 * (1.0 - chance.next()).ln()).sqrt() * (TAU * chance.next()).cos();
            let median = mean / (SIGMA * SIGMA / 2.0).exp();
            (median * (SIGMA * normal).exp()).min(mean * LARGEST)
        }
    }
}

/// Deterministic pseudo-random numbers from 0 to 1 (SplitMix64).
struct SeededRandom(u64);

impl SeededRandom {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_mean_that_was_asked_for_and_only_heavy_tails_have_giants() {
        for (spread, largest) in
            [(SizeSpread::Uniform, 75.0..=150.0), (SizeSpread::HeavyTailed, 900.0..=2_000.0)]
        {
            let mut chance = SeededRandom(1);
            let sizes: Vec<f64> = (0..20_000).map(|_| size(spread, 100.0, &mut chance)).collect();
            let mean = sizes.iter().sum::<f64>() / 20_000.0;
            assert!((95.0..105.0).contains(&mean), "{spread:?}: {mean}");
            let most = sizes.iter().copied().fold(0.0, f64::max);
            assert!(largest.contains(&most), "{spread:?}: {most}");
        }
    }
}
